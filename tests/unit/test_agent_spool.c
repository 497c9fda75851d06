/* Promises of the agent's spool: order, numbers without holes, bounds, torn tails. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/spool.h"
#include "agent/spool_file.h"
#include "base/file.h"

#define BOOT "0b6a1f04-9c2f-4f1e-8a55-2d1f7b0c9e11"
#define OTHER "1c7b2f04-9c2f-4f1e-8a55-2d1f7b0c9e22"

static char dir[64];
static char error[320];
static uint64_t seen_seq[5000];
static int seen_value[5000];
static size_t seen_count;

static void make_dir(void)
{
    (void)snprintf(dir, sizeof(dir), "/tmp/muster-spool-XXXXXX");
    cr_assert_not_null(mkdtemp(dir));
}

static void remove_dir(void)
{
    spool_remove(dir, BOOT);
    spool_remove(dir, OTHER);
    (void)rmdir(dir);
}

TestSuite(spool, .init = make_dir, .fini = remove_dir);

static struct spool *open_spool(uint64_t cap)
{
    struct spool *spool = spool_open(dir, BOOT, cap, error, sizeof(error));

    cr_assert_not_null(spool, "%s", error);
    return spool;
}

static bool add(struct spool *spool, unsigned stream, int value, size_t padding)
{
    CLEANUP(buf_free) struct buf json = {0};

    buf_printf(&json, "{\"n\":%d,\"p\":\"", value);
    for (size_t i = 0; i < padding; i++) {
        buf_add_char(&json, 'x');
    }
    buf_add_c(&json, "\"}");
    return spool_add(spool, stream, buf_str(&json));
}

static void visit(uint64_t seq, struct str json, void *ctx)
{
    struct str part;
    uint64_t value;

    (void)ctx;
    json.ptr += 5;
    json.len -= 5;
    cr_assert(str_split(&json, ',', &part) && str_parse_u64(part, 0, INT32_MAX, &value));
    seen_seq[seen_count] = seq;
    seen_value[seen_count++] = (int)value;
}

static size_t peek(struct spool *spool, unsigned stream, size_t max)
{
    seen_count = 0;
    return spool_peek(spool, stream, max, SIZE_MAX, visit, NULL);
}

static void sending(struct spool *spool, unsigned stream, size_t count)
{
    size_t counts[SPOOL_STREAMS] = {0};

    counts[stream] = count;
    spool_sending(spool, counts);
}

static void acknowledge(struct spool *spool, unsigned stream, size_t count)
{
    size_t counts[SPOOL_STREAMS] = {0};

    counts[stream] = count;
    spool_acknowledge(spool, counts);
}

Test(spool, events_come_back_in_order_and_numbered_from_one)
{
    struct spool *spool = open_spool(1 << 20);

    for (int i = 0; i < 10; i++) {
        cr_assert(add(spool, 0, i, 10));
    }
    cr_assert_eq(peek(spool, 0, 4), 4);
    cr_assert_eq(seen_seq[0], 1);
    cr_assert_eq(seen_value[3], 3);
    sending(spool, 0, 4);
    acknowledge(spool, 0, 4);
    cr_assert_eq(peek(spool, 0, 100), 6);
    cr_assert_eq(seen_seq[0], 5);
    cr_assert_eq(seen_value[0], 4);
    cr_assert_eq(spool_waiting(spool, 0), 6);
    spool_close(spool);
}

Test(spool, streams_are_numbered_apart)
{
    struct spool *spool = open_spool(1 << 20);

    cr_assert(add(spool, 0, 1, 0) && add(spool, 2, 2, 0) && add(spool, 2, 3, 0));
    cr_assert_eq(peek(spool, 2, 9), 2);
    cr_assert_eq(seen_seq[1], 2);
    cr_assert_eq(peek(spool, 1, 9), 0);
    spool_close(spool);
}

Test(spool, a_restart_changes_nothing)
{
    struct spool *spool = open_spool(1 << 20);

    for (int i = 0; i < 3000; i++) {
        cr_assert(add(spool, 1, i, 100));
    }
    sending(spool, 1, 500);
    acknowledge(spool, 1, 500);
    sending(spool, 1, 500);
    spool_close(spool);
    spool = open_spool(1 << 20);
    cr_assert_eq(spool_waiting(spool, 1), 2500);
    cr_assert_eq(spool_in_flight(spool, 1), 500);
    cr_assert(add(spool, 1, 3000, 100));
    cr_assert_eq(peek(spool, 1, 5000), 2501);
    cr_assert_eq(seen_seq[0], 501);
    cr_assert_eq(seen_value[0], 500);
    cr_assert_eq(seen_seq[2500], 3001);
    cr_assert_eq(seen_value[2500], 3000);
    spool_close(spool);
}

/* The newest file of a stream. */
static void newest(unsigned stream, char *path, size_t cap)
{
    char folder[128];
    unsigned found_stream;
    uint64_t number;
    uint64_t best = 0;
    struct dirent *entry;

    (void)snprintf(folder, sizeof(folder), "%s/" BOOT, dir);
    DIR *open = opendir(folder);
    while ((entry = readdir(open)) != NULL) {
        if (spool_file_name_parse(str_of(entry->d_name), &found_stream, &number) &&
            found_stream == stream && number >= best) {
            best = number;
            (void)snprintf(path, cap, "%s/%.64s", folder, entry->d_name);
        }
    }
    (void)closedir(open);
}

Test(spool, a_torn_tail_loses_the_torn_record_only)
{
    struct spool *spool = open_spool(1 << 20);
    char path[256];
    struct stat info;

    for (int i = 0; i < 10; i++) {
        cr_assert(add(spool, 0, i, 50));
    }
    spool_close(spool);
    newest(0, path, sizeof(path));
    cr_assert_eq(stat(path, &info), 0);
    cr_assert_eq(truncate(path, info.st_size - 20), 0);
    spool = open_spool(1 << 20);
    cr_assert_eq(spool_waiting(spool, 0), 9);
    cr_assert(add(spool, 0, 77, 50));
    cr_assert_eq(peek(spool, 0, 100), 10);
    cr_assert_eq(seen_value[9], 77);
    cr_assert_eq(seen_seq[9], 10);
    spool_close(spool);
}

Test(spool, a_flipped_byte_ends_the_file_and_not_the_program)
{
    struct spool *spool = open_spool(1 << 20);
    char path[256];

    for (int i = 0; i < 10; i++) {
        cr_assert(add(spool, 0, i, 50));
    }
    spool_close(spool);
    newest(0, path, sizeof(path));
    CLEANUP(cleanup_fd) int fd = open(path, O_WRONLY | O_CLOEXEC);
    cr_assert_eq(pwrite(fd, "!", 1, 200), 1);
    spool = open_spool(1 << 20);
    cr_assert_lt(spool_waiting(spool, 0), 10);
    cr_assert_eq(peek(spool, 0, 100), spool_waiting(spool, 0));
    spool_close(spool);
}

Test(spool, D3_a_full_spool_drops_the_oldest_information_first_and_criticals_last)
{
    struct spool *spool = open_spool(1 << 20);

    for (int i = 0; i < 300; i++) {
        cr_assert(add(spool, 0, i, 200));
        cr_assert(add(spool, 1, i, 200));
    }
    for (int i = 0; i < 9000; i++) {
        cr_assert(add(spool, 2, i, 200));
    }
    cr_assert_eq(spool_waiting(spool, 0), 300);
    cr_assert_eq(spool_waiting(spool, 1), 300);
    cr_assert_eq(spool_waiting(spool, 2) + spool_dropped(spool), 9000);
    cr_assert_gt(spool_dropped(spool), 0);
    cr_assert_eq(peek(spool, 2, 1), 1);
    cr_assert_eq(seen_seq[0], 1);
    cr_assert_eq((uint64_t)seen_value[0], spool_dropped(spool));
    /* Warnings push out information, criticals push out both. */
    for (int i = 0; i < 9000; i++) {
        cr_assert(add(spool, 0, i, 200));
    }
    cr_assert_leq(spool_waiting(spool, 2), 1);
    cr_assert_eq(spool_waiting(spool, 1), 0);
    spool_close(spool);
}

Test(spool, D3_information_never_pushes_out_what_is_graver)
{
    struct spool *spool = open_spool(1 << 18);

    for (int i = 0; i < 5000; i++) {
        (void)add(spool, 0, i, 200);
    }
    size_t kept = spool_waiting(spool, 0);
    for (int i = 0; i < 500; i++) {
        (void)add(spool, 2, i, 8000);
    }
    cr_assert_eq(spool_waiting(spool, 0), kept);
    cr_assert_leq(spool_waiting(spool, 2), 32);
    spool_close(spool);
}

Test(spool, what_is_on_its_way_keeps_its_number_while_others_are_dropped)
{
    struct spool *spool = open_spool(1 << 20);

    for (int i = 0; i < 1000; i++) {
        cr_assert(add(spool, 2, i, 200));
    }
    sending(spool, 2, 10);
    for (int i = 1000; i < 9000; i++) {
        cr_assert(add(spool, 2, i, 200));
    }
    cr_assert_gt(spool_dropped(spool), 0);
    cr_assert_eq(peek(spool, 2, 10), 10);
    cr_assert_eq(seen_value[9], 9);
    cr_assert_eq(seen_seq[9], 10);
    spool_close(spool);
}

Test(spool, dropped_events_are_remembered_until_told)
{
    struct spool *spool = open_spool(1 << 18);

    for (int i = 0; i < 5000; i++) {
        (void)add(spool, 2, i, 200);
    }
    uint64_t dropped = spool_dropped(spool);
    cr_assert_gt(dropped, 0);
    spool_close(spool);
    spool = open_spool(1 << 18);
    cr_assert_eq(spool_dropped(spool), dropped);
    spool_dropped_told(spool, dropped);
    cr_assert_eq(spool_dropped(spool), 0);
    spool_close(spool);
}

/* As on a full disk: no file of this process may grow. */
static void fill_disk(bool full)
{
    struct rlimit limit;

    (void)signal(SIGXFSZ, SIG_IGN);
    cr_assert_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = full ? 0 : limit.rlim_max;
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

Test(spool, D3_a_full_disk_loses_no_event_while_the_server_answers)
{
    struct spool *spool = open_spool(1 << 20);

    cr_assert(add(spool, 0, 1, 10));
    fill_disk(true);
    cr_assert(add(spool, 0, 2, 10));
    cr_assert(add(spool, 0, 3, 10));
    cr_assert_eq(peek(spool, 0, 10), 3);
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(seen_value[i], i + 1);
        cr_assert_eq(seen_seq[i], (uint64_t)i + 1);
    }
    sending(spool, 0, 2);
    acknowledge(spool, 0, 2);
    cr_assert_eq(peek(spool, 0, 10), 1);
    cr_assert_eq(seen_value[0], 3);
    cr_assert_eq(seen_seq[0], 3);
    cr_assert_eq(spool_dropped(spool), 0);
    fill_disk(false);
    spool_close(spool);
}

Test(spool, what_a_full_disk_did_not_take_is_written_before_what_comes_later)
{
    struct spool *spool = open_spool(1 << 20);

    fill_disk(true);
    cr_assert(add(spool, 0, 1, 10));
    cr_assert(add(spool, 0, 2, 10));
    fill_disk(false);
    cr_assert(add(spool, 0, 3, 10));
    spool_close(spool);
    spool = open_spool(1 << 20);
    cr_assert_eq(peek(spool, 0, 10), 3);
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(seen_value[i], i + 1);
    }
    spool_close(spool);
}

Test(spool, what_is_held_in_memory_is_bounded_and_the_rest_counts_as_dropped)
{
    struct spool *spool = open_spool(1 << 20);
    int kept = 0;

    fill_disk(true);
    while (kept < 1000 && add(spool, 0, kept, 1000)) {
        kept++;
    }
    cr_assert_gt(kept, 200);
    cr_assert_lt(kept, 1000);
    cr_assert_eq(spool_dropped(spool), 1);
    cr_assert_eq(peek(spool, 0, 1000), (size_t)kept);
    fill_disk(false);
    spool_close(spool);
}

Test(spool, another_boots_events_are_found_and_removed)
{
    struct spool *old = spool_open(dir, OTHER, 1 << 20, error, sizeof(error));
    char boot[UUID_TEXT_LEN + 1];

    cr_assert(add(old, 0, 1, 0));
    spool_close(old);
    struct spool *spool = open_spool(1 << 20);
    cr_assert(spool_find_old(dir, BOOT, boot));
    cr_assert_str_eq(boot, OTHER);
    spool_remove(dir, OTHER);
    cr_assert_not(spool_find_old(dir, BOOT, boot));
    spool_close(spool);
}

Test(spool, a_record_with_a_wrong_checksum_is_no_record)
{
    CLEANUP(buf_free) struct buf record = {0};
    struct str json;

    spool_record_write(STR("{\"a\":1}"), &record);
    cr_assert(spool_record_parse((struct str){record.ptr, record.len - 1}, &json));
    cr_assert(str_eq_c(json, "{\"a\":1}"));
    record.ptr[record.len - 3] = '2';
    cr_assert_not(spool_record_parse((struct str){record.ptr, record.len - 1}, &json));
    cr_assert_not(spool_record_parse(STR(""), &json));
}
