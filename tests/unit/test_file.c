/* Promises of base/file.h. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

static char folder[64];

static void make_folder(void)
{
    (void)snprintf(folder, sizeof(folder), "/tmp/muster-test-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    cr_assert_eq(chdir(folder), 0);
}

static void remove_folder(void)
{
    static const char *const names[] = {"f", "fifo", "a/b/c", "a/b", "a", "d"};

    for (size_t i = 0; i < COUNTOF(names); i++) {
        (void)remove(names[i]);
    }
    cr_assert_eq(chdir("/"), 0);
    (void)rmdir(folder);
}

TestSuite(file, .init = make_folder, .fini = remove_folder);

static size_t count_entries(const char *path)
{
    DIR *dir = opendir(path);
    size_t count = 0;

    while (readdir(dir) != NULL) {
        count++;
    }
    (void)closedir(dir);
    return count - 2;
}

Test(file, what_is_written_reads_back_with_its_mode)
{
    CLEANUP(buf_free) struct buf data = {0};
    struct stat info;

    cr_assert_eq(file_write_durable("f", STR("one\0two"), 0600), 0);
    cr_assert_eq(file_read("f", 100, &data), 0);
    cr_assert(str_eq(buf_str(&data), STR("one\0two")));
    cr_assert_eq(stat("f", &info), 0);
    cr_assert_eq(info.st_mode & 07777, 0600);
    cr_assert_eq(count_entries("."), 1, "no temporary file is left");
}

Test(file, a_write_replaces_the_file_in_one_step)
{
    CLEANUP(buf_free) struct buf data = {0};
    struct stat before;
    struct stat after;

    cr_assert_eq(file_write_durable("f", STR("a long first text"), 0644), 0);
    cr_assert_eq(stat("f", &before), 0);
    cr_assert_eq(file_write_durable("f", STR("short"), 0644), 0);
    cr_assert_eq(stat("f", &after), 0);
    cr_assert_neq(before.st_ino, after.st_ino, "the old file is never written into");
    cr_assert_eq(file_read("f", 100, &data), 0);
    cr_assert(str_eq_c(buf_str(&data), "short"));
}

Test(file, a_failed_write_leaves_nothing_behind)
{
    cr_assert_eq(mkdir("d", 0755), 0);
    cr_assert_eq(file_write_durable("d", STR("x"), 0644), EISDIR);
    cr_assert_eq(count_entries("."), 1);
    cr_assert_eq(file_write_durable("missing/f", STR("x"), 0644), ENOENT);
}

Test(file, a_file_that_is_there_is_not_created_again)
{
    struct buf data = {0};

    cr_assert_eq(file_create_durable("new", STR("first"), 0600), 0);
    cr_assert_eq(file_create_durable("new", STR("second"), 0600), EEXIST);
    cr_assert_eq(file_read("new", 100, &data), 0);
    cr_assert(str_eq_c(buf_str(&data), "first"));
    buf_free(&data);
}

Test(file, the_limit_is_exact)
{
    CLEANUP(buf_free) struct buf data = {0};

    cr_assert_eq(file_write_durable("f", STR("12345"), 0644), 0);
    cr_assert_eq(file_read("f", 5, &data), 0);
    cr_assert_eq(data.len, 5);
    cr_assert_eq(file_read("f", 4, &data), EFBIG);
    cr_assert_eq(data.len, 0, "nothing half read is given out");
}

Test(file, a_large_file_is_read_whole)
{
    CLEANUP(buf_free) struct buf data = {0};
    CLEANUP(buf_free) struct buf back = {0};

    for (int i = 0; i < 100000; i++) {
        buf_printf(&data, "%d,", i);
    }
    cr_assert_eq(file_write_durable("f", buf_str(&data), 0644), 0);
    cr_assert_eq(file_read("f", 1024 * 1024, &back), 0);
    cr_assert(str_eq(buf_str(&data), buf_str(&back)));
}

Test(file, files_of_proc_that_claim_no_size_are_read)
{
    CLEANUP(buf_free) struct buf data = {0};

    cr_assert_eq(file_read("/proc/self/status", 64 * 1024, &data), 0);
    cr_assert(str_starts(buf_str(&data), STR("Name:")));
}

Test(file, a_missing_file_and_a_folder_give_their_errno)
{
    CLEANUP(buf_free) struct buf data = {0};

    cr_assert_eq(file_read("nothing", 10, &data), ENOENT);
    cr_assert_eq(file_read(".", 10, &data), EISDIR);
}

Test(file, a_fifo_without_writer_does_not_hang, .timeout = 60)
{
    CLEANUP(buf_free) struct buf data = {0};

    cr_assert_eq(mkfifo("fifo", 0600), 0);
    cr_assert_eq(file_read("fifo", 10, &data), 0);
    cr_assert_eq(data.len, 0);
}

Test(file, folders_are_made_with_their_parents_and_twice_is_fine)
{
    struct stat info;

    cr_assert_eq(file_make_dirs("a/b/c", 0700), 0);
    cr_assert_eq(file_make_dirs("a/b/c/", 0700), 0);
    cr_assert_eq(stat("a/b/c", &info), 0);
    cr_assert_eq(info.st_mode & 07777, 0700);
    cr_assert_eq(file_write_durable("f", STR(""), 0644), 0);
    cr_assert_eq(file_make_dirs("f/g", 0700), ENOTDIR);
    cr_assert_eq(file_make_dirs("", 0700), ENOENT);
}

Test(file, write_all_reports_the_error_of_the_descriptor)
{
    CLEANUP(cleanup_fd) int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);

    cr_assert_geq(fd, 0);
    cr_assert_eq(file_write_all(fd, STR("x")), ENOSPC);
    cr_assert_eq(file_write_all(-1, STR("x")), EBADF);
    cr_assert_eq(file_write_all(-1, STR("")), 0);
}
