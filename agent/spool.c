/* Events on disk until the server has them. */
#include "agent/spool.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/spool_file.h"
#include "base/file.h"
#include "base/log.h"

#define SEGMENT_BYTES ((uint64_t)128 * 1024)
#define HELD_BYTES ((size_t)256 * 1024)
/* Checksum, blank and line break around a record. */
#define RECORD_FRAME 10

struct stream {
    struct segment *segments; /* oldest first */
    size_t count;
    uint64_t next_number; /* of the next segment file */
    uint64_t acked;       /* number of the last acknowledged event */
    uint64_t skip;        /* acknowledged records at the front of the first segment */
    size_t waiting;
    size_t in_flight;
    int write_fd; /* the last segment, -1 = none is open */
    /* The stream's newest events, a line each: the disk did not take them. */
    struct buf held;
};

struct spool {
    char folder[PATH_MAX];
    uint64_t cap_bytes;
    uint64_t bytes;
    uint64_t dropped;
    struct stream streams[SPOOL_STREAMS];
};

static void segment_path(const struct spool *spool, unsigned stream, uint64_t number, char *path)
{
    (void)snprintf(path, PATH_MAX, "%.4000s/%u-%08llu.log", spool->folder, stream,
                   (unsigned long long)number);
}

/* Of the oldest segment that is still needed. */
static uint64_t first_number(const struct stream *stream)
{
    return stream->count > 0 ? stream->segments[0].number : stream->next_number;
}

static void save_marks(const struct spool *spool)
{
    struct spool_marks marks = {.dropped = spool->dropped};
    char path[PATH_MAX];

    for (unsigned i = 0; i < SPOOL_STREAMS; i++) {
        const struct stream *stream = &spool->streams[i];

        marks.streams[i].acked = stream->acked;
        marks.streams[i].in_flight = stream->in_flight;
        marks.streams[i].segment = first_number(stream);
        marks.streams[i].skip = stream->skip;
    }
    (void)snprintf(path, sizeof(path), "%.4000s/marks", spool->folder);
    int failed = spool_marks_write(path, &marks);
    if (failed != 0) {
        log_error("%s cannot be written: %s", path, strerrordesc_np(failed));
    }
}

static struct segment *add_segment(struct stream *stream, uint64_t number)
{
    struct segment *longer =
        reallocarray(stream->segments, stream->count + 1, sizeof(struct segment));

    assert(longer != NULL);
    stream->segments = longer;
    stream->segments[stream->count] = (struct segment){.number = number};
    if (number >= stream->next_number) {
        stream->next_number = number + 1;
    }
    return &stream->segments[stream->count++];
}

static void close_writer(struct stream *stream)
{
    cleanup_fd(&stream->write_fd);
}

/* Its file stays. */
static void forget_segment(struct spool *spool, unsigned index, size_t at)
{
    struct stream *stream = &spool->streams[index];

    if (at + 1 == stream->count) {
        close_writer(stream);
    }
    spool->bytes -= stream->segments[at].bytes;
    memmove(&stream->segments[at], &stream->segments[at + 1],
            (stream->count - at - 1) * sizeof(struct segment));
    stream->count--;
}

static void remove_file(const struct spool *spool, unsigned index, uint64_t number)
{
    char path[PATH_MAX];

    segment_path(spool, index, number, path);
    (void)unlink(path);
}

/* Forgets a segment and its file. */
static void remove_segment(struct spool *spool, unsigned index, size_t at)
{
    remove_file(spool, index, spool->streams[index].segments[at].number);
    forget_segment(spool, index, at);
}

/* ---- reading back ---- */

static int compare_number(const void *a, const void *b)
{
    uint64_t left = ((const struct segment *)a)->number;
    uint64_t right = ((const struct segment *)b)->number;

    return left < right ? -1 : left > right;
}

static void find_segments(struct spool *spool)
{
    DIR *dir = opendir(spool->folder);
    struct dirent *entry;
    unsigned stream;
    uint64_t number;

    if (dir == NULL) {
        return;
    }
    while ((entry = readdir(dir)) != NULL) {
        if (spool_file_name_parse(str_of(entry->d_name), &stream, &number) &&
            stream < SPOOL_STREAMS) {
            (void)add_segment(&spool->streams[stream], number);
        }
    }
    (void)closedir(dir);
}

static void load_stream(struct spool *spool, unsigned index, const struct spool_marks *marks)
{
    struct stream *stream = &spool->streams[index];
    char path[PATH_MAX];
    uint64_t records = 0;

    stream->acked = marks->streams[index].acked;
    stream->in_flight = marks->streams[index].in_flight;
    if (stream->count > 1) {
        qsort(stream->segments, stream->count, sizeof(struct segment), compare_number);
    }
    while (stream->count > 0 && stream->segments[0].number < marks->streams[index].segment) {
        remove_segment(spool, index, 0); /* acknowledged; the removal was cut short */
    }
    for (size_t i = 0; i < stream->count; i++) {
        segment_path(spool, index, stream->segments[i].number, path);
        spool_segment_scan(path, &stream->segments[i]);
        spool->bytes += stream->segments[i].bytes;
        records += stream->segments[i].records;
    }
    if (stream->next_number < marks->streams[index].segment) {
        stream->next_number = marks->streams[index].segment;
    }
    bool same = stream->count > 0 && stream->segments[0].number == marks->streams[index].segment;
    stream->skip = same ? marks->streams[index].skip : 0;
    if (stream->skip > records) {
        stream->skip = records;
    }
    stream->waiting = (size_t)(records - stream->skip);
    if (stream->in_flight > stream->waiting) {
        stream->in_flight = stream->waiting;
    }
}

struct spool *spool_open(const char *dir, const char *boot_id, uint64_t cap_bytes, char *error,
                         size_t error_cap)
{
    struct spool *spool = calloc(1, sizeof(*spool));
    struct spool_marks marks;
    char path[PATH_MAX];

    assert(spool != NULL);
    spool->cap_bytes = cap_bytes;
    for (unsigned i = 0; i < SPOOL_STREAMS; i++) {
        spool->streams[i].write_fd = -1;
    }
    (void)snprintf(spool->folder, sizeof(spool->folder), "%.3900s/%s", dir, boot_id);
    int failed = file_make_dirs(spool->folder, 0700);
    if (failed != 0) {
        (void)snprintf(error, error_cap, "%.300s cannot be made: %s", spool->folder,
                       strerrordesc_np(failed));
        spool_close(spool);
        return NULL;
    }
    (void)snprintf(path, sizeof(path), "%.4000s/marks", spool->folder);
    spool_marks_read(path, &marks);
    spool->dropped = marks.dropped;
    find_segments(spool);
    for (unsigned i = 0; i < SPOOL_STREAMS; i++) {
        load_stream(spool, i, &marks);
    }
    return spool;
}

/* ---- room ---- */

/* How many of the oldest segments hold events whose numbers are fixed. */
static size_t pinned_segments(const struct stream *stream)
{
    uint64_t fixed = stream->skip + stream->in_flight;
    size_t count = 0;

    if (stream->in_flight == 0) {
        return 0;
    }
    while (count < stream->count && fixed > 0) {
        uint64_t records = stream->segments[count].records;

        fixed -= records < fixed ? records : fixed;
        count++;
    }
    return count;
}

static bool drop_segment(struct spool *spool, unsigned index)
{
    struct stream *stream = &spool->streams[index];
    size_t at = pinned_segments(stream);

    if (at >= stream->count) {
        return false;
    }
    uint64_t lost = stream->segments[at].records;
    if (at == 0) {
        lost -= stream->skip;
        stream->skip = 0;
    }
    stream->waiting -= (size_t)lost;
    spool->dropped += lost;
    remove_segment(spool, index, at);
    return true;
}

/* The oldest information first, critical events last, and never a graver stream for a milder one.
 */
static bool make_room(struct spool *spool, unsigned stream, size_t len)
{
    bool changed = false;

    while (spool->bytes + len > spool->cap_bytes) {
        bool done = false;

        for (unsigned i = SPOOL_STREAMS; i-- > stream && !done;) {
            done = drop_segment(spool, i);
        }
        if (!done) {
            return false;
        }
        changed = true;
    }
    if (changed) {
        save_marks(spool);
    }
    return true;
}

/* ---- writing ---- */

static bool open_writer(struct spool *spool, unsigned index)
{
    struct stream *stream = &spool->streams[index];
    char path[PATH_MAX];

    if (stream->write_fd >= 0 && stream->segments[stream->count - 1].bytes >= SEGMENT_BYTES) {
        close_writer(stream);
    }
    if (stream->write_fd >= 0) {
        return true;
    }
    /* A new segment after each start: the tail of the last one may be torn. */
    segment_path(spool, index, stream->next_number, path);
    stream->write_fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (stream->write_fd < 0) {
        log_error("%s cannot be opened: %s", path, strerrordesc_np(errno));
        return false;
    }
    (void)add_segment(stream, stream->next_number);
    return true;
}

static bool write_record(struct spool *spool, unsigned stream, struct str json)
{
    CLEANUP(buf_free) struct buf record = {0};
    struct stream *mine = &spool->streams[stream];

    if (!open_writer(spool, stream)) {
        return false;
    }
    spool_record_write(json, &record);
    struct segment *segment = &mine->segments[mine->count - 1];
    int failed = file_write_all(mine->write_fd, buf_str(&record));
    if (failed != 0) {
        /* What was written of it is a torn record: the segment ends here. */
        log_error("an event could not be written to the spool: %s", strerrordesc_np(failed));
        close_writer(mine);
        if (segment->records == 0) {
            remove_segment(spool, stream, mine->count - 1);
        }
        return false;
    }
    segment->bytes += record.len;
    segment->records++;
    spool->bytes += record.len;
    return true;
}

static void cut_held(struct stream *stream, size_t len)
{
    memmove(stream->held.ptr, stream->held.ptr + len, stream->held.len - len);
    stream->held.len -= len;
}

/* True when nothing is held any more. */
static bool write_held(struct spool *spool, unsigned index)
{
    struct stream *stream = &spool->streams[index];
    struct str rest = buf_str(&stream->held);
    struct str json;
    size_t len = 0;

    while (str_split(&rest, '\n', &json) && write_record(spool, index, json)) {
        len += json.len + 1;
    }
    if (len > 0) {
        cut_held(stream, len);
    }
    return stream->held.len == 0;
}

bool spool_add(struct spool *spool, unsigned stream, struct str json)
{
    struct stream *mine = &spool->streams[stream];

    assert(stream < SPOOL_STREAMS);
    if (json.len > SPOOL_RECORD_MAX || !make_room(spool, stream, json.len + RECORD_FRAME)) {
        spool->dropped++;
        return false;
    }
    if (!write_held(spool, stream) || !write_record(spool, stream, json)) {
        /* A full disk may not hide a fault while the server can be told. */
        if (mine->held.len + json.len >= HELD_BYTES) {
            spool->dropped++;
            return false;
        }
        buf_add(&mine->held, json.ptr, json.len);
        buf_add_char(&mine->held, '\n');
    }
    mine->waiting++;
    return true;
}

void spool_close(struct spool *spool)
{
    if (spool == NULL) {
        return;
    }
    for (unsigned i = 0; i < SPOOL_STREAMS; i++) {
        (void)write_held(spool, i);
        close_writer(&spool->streams[i]);
        buf_free(&spool->streams[i].held);
        free(spool->streams[i].segments);
    }
    free(spool);
}

/* ---- sending ---- */

struct peek {
    spool_visit *visit;
    void *ctx;
    uint64_t skip; /* records to pass over in this segment */
    uint64_t seq;
    size_t records;
    size_t max_records;
    size_t bytes;
    size_t max_bytes;
};

static bool peek_record(struct str json, void *ctx)
{
    struct peek *peek = ctx;

    if (peek->skip > 0) {
        peek->skip--;
        return true;
    }
    if (peek->records == peek->max_records ||
        (peek->records > 0 && peek->bytes + json.len > peek->max_bytes)) {
        return false;
    }
    peek->records++;
    peek->bytes += json.len;
    peek->visit(++peek->seq, json, peek->ctx);
    return true;
}

size_t spool_peek(struct spool *spool, unsigned stream, size_t max_records, size_t max_bytes,
                  spool_visit *visit, void *ctx)
{
    struct stream *mine = &spool->streams[stream];
    struct peek peek = {.visit = visit,
                        .ctx = ctx,
                        .skip = mine->skip,
                        .seq = mine->acked,
                        .max_records = max_records,
                        .max_bytes = max_bytes};
    char path[PATH_MAX];

    for (size_t i = 0; i < mine->count && mine->waiting > 0; i++) {
        segment_path(spool, stream, mine->segments[i].number, path);
        if (!spool_segment_each(path, mine->segments[i].records, peek_record, &peek)) {
            return peek.records;
        }
        peek.skip = 0;
    }
    struct str rest = buf_str(&mine->held);
    struct str json;
    while (str_split(&rest, '\n', &json) && peek_record(json, &peek)) {
    }
    return peek.records;
}

void spool_sending(struct spool *spool, const size_t counts[SPOOL_STREAMS])
{
    bool changed = false;

    for (unsigned i = 0; i < SPOOL_STREAMS; i++) {
        if (counts[i] > spool->streams[i].in_flight) {
            spool->streams[i].in_flight = counts[i];
            changed = true;
        }
    }
    if (changed) {
        save_marks(spool);
    }
}

static void acknowledge(struct spool *spool, unsigned index, size_t count)
{
    struct stream *stream = &spool->streams[index];

    assert(count <= stream->waiting);
    stream->acked += count;
    stream->waiting -= count;
    stream->in_flight -= count < stream->in_flight ? count : stream->in_flight;
    stream->skip += count;
    while (stream->count > 0 && stream->skip >= stream->segments[0].records) {
        stream->skip -= stream->segments[0].records;
        forget_segment(spool, index, 0);
    }
    if (stream->count == 0 && stream->skip > 0) {
        struct str rest = buf_str(&stream->held);
        struct str json;
        size_t len = 0;

        for (; stream->skip > 0 && str_split(&rest, '\n', &json); stream->skip--) {
            len += json.len + 1;
        }
        cut_held(stream, len);
        stream->skip = 0;
    }
}

void spool_acknowledge(struct spool *spool, const size_t counts[SPOOL_STREAMS])
{
    uint64_t first[SPOOL_STREAMS];

    if (counts[0] + counts[1] + counts[2] == 0) {
        return;
    }
    for (unsigned i = 0; i < SPOOL_STREAMS; i++) {
        first[i] = first_number(&spool->streams[i]);
        acknowledge(spool, i, counts[i]);
    }
    /* The marks first: were the files gone and the marks old, the next event would get a number
     * that the server has, and be taken for one sent again. */
    save_marks(spool);
    for (unsigned i = 0; i < SPOOL_STREAMS; i++) {
        for (uint64_t number = first[i]; number < first_number(&spool->streams[i]); number++) {
            remove_file(spool, i, number);
        }
    }
}

size_t spool_waiting(const struct spool *spool, unsigned stream)
{
    return spool->streams[stream].waiting;
}

size_t spool_in_flight(const struct spool *spool, unsigned stream)
{
    return spool->streams[stream].in_flight;
}

uint64_t spool_dropped(const struct spool *spool)
{
    return spool->dropped;
}

void spool_dropped_told(struct spool *spool, uint64_t count)
{
    assert(count <= spool->dropped);
    spool->dropped -= count;
    save_marks(spool);
}

int spool_sync_fd(const struct spool *spool)
{
    int fd = spool->streams[0].write_fd;

    return fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

/* ---- other boots ---- */

static bool holds_files(const char *dir, const char *boot_id)
{
    char path[PATH_MAX];
    struct dirent *entry;
    bool found = false;

    (void)snprintf(path, sizeof(path), "%.3900s/%s", dir, boot_id);
    DIR *folder = opendir(path);
    if (folder == NULL) {
        return false;
    }
    while ((entry = readdir(folder)) != NULL && !found) {
        found = entry->d_name[0] != '.';
    }
    (void)closedir(folder);
    return found;
}

bool spool_find_old(const char *dir, const char *boot_id, char ret_boot[UUID_TEXT_LEN + 1])
{
    DIR *folder = opendir(dir);
    struct dirent *entry;
    struct uuid uuid;
    bool found = false;

    if (folder == NULL) {
        return false;
    }
    while ((entry = readdir(folder)) != NULL && !found) {
        if (strcmp(entry->d_name, boot_id) == 0 || !uuid_parse(str_of(entry->d_name), &uuid)) {
            continue;
        }
        (void)snprintf(ret_boot, UUID_TEXT_LEN + 1, "%.36s", entry->d_name);
        found = holds_files(dir, entry->d_name);
        if (!found) {
            spool_remove(dir, entry->d_name);
        }
    }
    (void)closedir(folder);
    return found;
}

void spool_remove(const char *dir, const char *boot_id)
{
    char path[PATH_MAX];
    char file[PATH_MAX];
    struct dirent *entry;

    (void)snprintf(path, sizeof(path), "%.3900s/%s", dir, boot_id);
    DIR *folder = opendir(path);
    if (folder == NULL) {
        return;
    }
    while ((entry = readdir(folder)) != NULL) {
        if (entry->d_name[0] != '.') {
            (void)snprintf(file, sizeof(file), "%.3950s/%.64s", path, entry->d_name);
            (void)unlink(file);
        }
    }
    (void)closedir(folder);
    (void)rmdir(path);
}
