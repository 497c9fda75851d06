/* Promises of the file that a thread writes: the newest text, and failures that are said. */
#include "agent/saver.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

static char folder[64];
static char path[128];

static void make_folder(void)
{
    (void)snprintf(folder, sizeof(folder), "/tmp/muster-saver-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/in/file", folder);
}

static void remove_folder(void)
{
    char inner[96];

    (void)unlink(path);
    (void)snprintf(inner, sizeof(inner), "%s/in", folder);
    (void)rmdir(inner);
    (void)rmdir(folder);
}

static void make_inner(void)
{
    char inner[96];

    (void)snprintf(inner, sizeof(inner), "%s/in", folder);
    cr_assert_eq(mkdir(inner, 0700), 0);
}

TestSuite(saver, .init = make_folder, .fini = remove_folder);

static void put(struct saver *saver, int number)
{
    CLEANUP(buf_free) struct buf text = {0};

    buf_printf(&text, "%d\n", number);
    saver_put(saver, &text);
}

static void expect(const char *wanted)
{
    CLEANUP(buf_free) struct buf data = {0};

    cr_assert_eq(file_read(path, 100, &data), 0);
    cr_expect(str_eq_c(buf_str(&data), wanted), "%s", data.ptr);
}

Test(saver, the_newest_text_reaches_the_disk)
{
    struct saver *saver = saver_new(path);

    make_inner();
    for (int i = 0; i <= 200; i++) {
        put(saver, i);
    }
    saver_flush(saver);
    expect("200\n");
    cr_expect_not(saver_failed(saver));
    saver_free(saver);
}

Test(saver, what_waits_is_written_before_the_end)
{
    struct saver *saver = saver_new(path);

    make_inner();
    put(saver, 7);
    saver_free(saver);
    expect("7\n");
}

Test(saver, a_write_that_failed_is_said_until_one_succeeds)
{
    struct saver *saver = saver_new(path);

    put(saver, 1);
    saver_flush(saver);
    cr_expect(saver_failed(saver), "there is no folder");
    make_inner();
    put(saver, 2);
    saver_flush(saver);
    cr_expect_not(saver_failed(saver));
    expect("2\n");
    saver_free(saver);
}
