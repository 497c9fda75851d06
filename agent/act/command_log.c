/* What this node was ordered to do, append-only and synced to disk before anything is done. */
#include "agent/act/command_log.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"

/* At one act an hour this is more than ten years; a larger file is not ours. */
#define LOG_FILE_MAX ((size_t)32 * 1024 * 1024)
/* Older entries matter only for the epoch, which is kept beside. */
#define ENTRIES_MAX 512
#define HOUR_S 3600

struct command_log {
    int fd;
    struct command_entry entries[ENTRIES_MAX]; /* oldest first */
    size_t count;
    int64_t epoch[2]; /* the greatest pair */
};

static int compare_epoch(const int64_t a[2], const int64_t b[2])
{
    if (a[0] != b[0]) {
        return a[0] < b[0] ? -1 : 1;
    }
    return a[1] < b[1] ? -1 : a[1] > b[1];
}

static void keep(struct command_log *log, const struct command_entry *entry)
{
    if (log->count == ENTRIES_MAX) {
        memmove(&log->entries[0], &log->entries[1],
                (ENTRIES_MAX - 1) * sizeof(struct command_entry));
        log->count--;
    }
    log->entries[log->count++] = *entry;
    if (compare_epoch(entry->epoch, log->epoch) > 0) {
        log->epoch[0] = entry->epoch[0];
        log->epoch[1] = entry->epoch[1];
    }
}

static struct command_entry *find(struct command_log *log, const char *id)
{
    for (size_t i = log->count; i-- > 0;) {
        if (strcmp(log->entries[i].id, id) == 0) {
            return &log->entries[i];
        }
    }
    return NULL;
}

static bool cut_text(struct str *line, char *buf, size_t cap)
{
    struct str part;

    if (!str_split(line, ' ', &part) || part.len == 0 || part.len >= cap) {
        return false;
    }
    memcpy(buf, part.ptr, part.len);
    buf[part.len] = '\0';
    return true;
}

static bool cut_number(struct str *line, int64_t *ret_value)
{
    struct str part;

    return str_split(line, ' ', &part) && str_parse_i64(part, 0, INT64_MAX, ret_value);
}

static bool read_begun(struct command_log *log, struct str line)
{
    struct command_entry entry = {.ended = false};

    if (!cut_text(&line, entry.id, sizeof(entry.id)) || !cut_number(&line, &entry.epoch[0]) ||
        !cut_number(&line, &entry.epoch[1]) ||
        !cut_text(&line, entry.action, sizeof(entry.action)) ||
        !cut_text(&line, entry.boot_id, sizeof(entry.boot_id)) ||
        !cut_number(&line, &entry.begun_s)) {
        return false;
    }
    keep(log, &entry);
    return true;
}

static bool read_ended(struct command_log *log, struct str line)
{
    char id[COMMAND_ID_CAP];
    char word[16];
    int64_t at_s;

    if (!cut_text(&line, id, sizeof(id)) || !cut_text(&line, word, sizeof(word)) ||
        !cut_number(&line, &at_s)) {
        return false;
    }
    struct command_entry *entry = find(log, id);
    if (entry != NULL) {
        entry->ended = true;
        entry->failed = strcmp(word, "done") != 0;
        (void)snprintf(entry->detail, sizeof(entry->detail), "%.*s",
                       line.len > 150 ? 150 : (int)line.len, line.ptr);
    }
    return true;
}

static bool read_line(struct command_log *log, struct str line)
{
    struct str word;

    if (!str_split(&line, ' ', &word)) {
        return false;
    }
    if (str_eq_c(word, "begun")) {
        return read_begun(log, line);
    }
    return str_eq_c(word, "ended") && read_ended(log, line);
}

/* Whole lines only. False when a line in the middle is not ours: better no act than a second one.
 */
static bool load(struct command_log *log, struct str text)
{
    for (;;) {
        ptrdiff_t end = str_find(text, STR("\n"), 0);

        if (end < 0) {
            return true;
        }
        struct str line = {text.ptr, (size_t)end};
        if (line.len > 0 && !read_line(log, line)) {
            return false;
        }
        text.ptr += end + 1;
        text.len -= (size_t)end + 1;
    }
}

static bool fail(char *error, size_t error_cap, const char *path, const char *why)
{
    (void)snprintf(error, error_cap, "the command log %.250s %s", path, why);
    return false;
}

/* Up to and with the last line break. */
static size_t whole_len(struct str text)
{
    while (text.len > 0 && text.ptr[text.len - 1] != '\n') {
        text.len--;
    }
    return text.len;
}

static bool open_log(struct command_log *log, const char *path, char *error, size_t error_cap)
{
    CLEANUP(buf_free) struct buf data = {0};
    int failed = file_read(path, LOG_FILE_MAX, &data);

    if (failed != 0 && failed != ENOENT) {
        return fail(error, error_cap, path, strerrordesc_np(failed));
    }
    if (!load(log, buf_str(&data))) {
        return fail(error, error_cap, path, "has a line that is not a fact of ours");
    }
    log->fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (log->fd < 0) {
        return fail(error, error_cap, path, strerrordesc_np(errno));
    }
    /* A torn tail would swallow the next line. */
    if (ftruncate(log->fd, (off_t)whole_len(buf_str(&data))) != 0) {
        return fail(error, error_cap, path, strerrordesc_np(errno));
    }
    return true;
}

struct command_log *command_log_open(const char *path, char *error, size_t error_cap)
{
    struct command_log *log = calloc(1, sizeof(*log));

    assert(log != NULL);
    log->fd = -1;
    log->epoch[0] = -1;
    log->epoch[1] = -1;
    if (!open_log(log, path, error, error_cap)) {
        command_log_close(log);
        return NULL;
    }
    return log;
}

void command_log_close(struct command_log *log)
{
    if (log == NULL) {
        return;
    }
    cleanup_fd(&log->fd);
    free(log);
}

static int append(struct command_log *log, struct str line)
{
    int failed = file_write_all(log->fd, line);

    if (failed == 0 && fsync(log->fd) != 0) {
        failed = errno;
    }
    return failed;
}

int command_log_begin(struct command_log *log, const struct command_entry *entry)
{
    CLEANUP(buf_free) struct buf line = {0};

    buf_printf(&line, "begun %s %lld %lld %s %s %lld\n", entry->id, (long long)entry->epoch[0],
               (long long)entry->epoch[1], entry->action, entry->boot_id,
               (long long)entry->begun_s);
    int failed = append(log, buf_str(&line));
    if (failed == 0) {
        keep(log, entry);
    }
    return failed;
}

int command_log_end(struct command_log *log, const char *id, bool failed, const char *detail)
{
    CLEANUP(buf_free) struct buf line = {0};
    struct command_entry *entry = find(log, id);

    buf_printf(&line, "ended %s %s %lld %s", id, failed ? "failed" : "done",
               (long long)(clock_wall_us() / 1000000), detail);
    for (size_t i = 0; i < line.len; i++) {
        if (line.ptr[i] == '\n') {
            line.ptr[i] = ' ';
        }
    }
    buf_add_char(&line, '\n');
    int error = append(log, buf_str(&line));
    if (error == 0 && entry != NULL) {
        entry->ended = true;
        entry->failed = failed;
        (void)snprintf(entry->detail, sizeof(entry->detail), "%.150s", detail);
    }
    return error;
}

const struct command_entry *command_log_find(const struct command_log *log, const char *id)
{
    return find((struct command_log *)log, id);
}

const struct command_entry *command_log_unfinished(const struct command_log *log)
{
    for (size_t i = log->count; i-- > 0;) {
        if (!log->entries[i].ended) {
            return &log->entries[i];
        }
    }
    return NULL;
}

bool command_log_epoch_is_new(const struct command_log *log, const int64_t epoch[2])
{
    return compare_epoch(epoch, log->epoch) > 0;
}

size_t command_log_last_hour(const struct command_log *log, int64_t now_s)
{
    size_t count = 0;

    for (size_t i = 0; i < log->count; i++) {
        count += log->entries[i].begun_s > now_s - HOUR_S;
    }
    return count;
}
