/* The spool's files: records with a checksum, and the marks. */
#include "agent/spool_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

/* A segment is closed at 128 KiB; one more record may follow the last look. */
#define SEGMENT_FILE_MAX ((size_t)256 * 1024)
#define CHECKSUM_LEN 8

bool spool_file_name_parse(struct str name, unsigned *ret_stream, uint64_t *ret_number)
{
    struct str part;
    uint64_t stream;

    if (!str_ends(name, STR(".log"))) {
        return false;
    }
    name.len -= 4;
    if (!str_split(&name, '-', &part) || !str_parse_u64(part, 0, 9, &stream) ||
        !str_parse_u64(name, 0, UINT32_MAX, ret_number)) {
        return false;
    }
    *ret_stream = (unsigned)stream;
    return true;
}

/* FNV-1a: finds torn writes; nobody forges his own spool. */
static uint32_t checksum(struct str text)
{
    uint32_t hash = UINT32_C(2166136261);

    for (size_t i = 0; i < text.len; i++) {
        hash = (hash ^ (uint8_t)text.ptr[i]) * UINT32_C(16777619);
    }
    return hash;
}

void spool_record_write(struct str json, struct buf *out)
{
    buf_printf(out, "%08x ", checksum(json));
    buf_add(out, json.ptr, json.len);
    buf_add_char(out, '\n');
}

bool spool_record_parse(struct str line, struct str *ret_json)
{
    uint64_t sum;

    if (line.len < CHECKSUM_LEN + 3 || line.ptr[CHECKSUM_LEN] != ' ' ||
        !str_parse_hex_u64((struct str){line.ptr, CHECKSUM_LEN}, &sum)) {
        return false;
    }
    struct str json = {line.ptr + CHECKSUM_LEN + 1, line.len - CHECKSUM_LEN - 1};
    if (checksum(json) != sum) {
        return false;
    }
    *ret_json = json;
    return true;
}

/* The next whole record; false at the end or at a torn one. */
static bool next_record(struct str *rest, struct str *ret_json)
{
    ptrdiff_t end = str_find(*rest, STR("\n"), 0);
    struct str line = {rest->ptr, end < 0 ? 0 : (size_t)end};

    if (end < 0 || !spool_record_parse(line, ret_json)) {
        return false;
    }
    rest->ptr += end + 1;
    rest->len -= (size_t)end + 1;
    return true;
}

void spool_segment_scan(const char *path, struct segment *segment)
{
    CLEANUP(buf_free) struct buf data = {0};
    struct str json;

    segment->bytes = 0;
    segment->records = 0;
    if (file_read(path, SEGMENT_FILE_MAX, &data) != 0) {
        return;
    }
    struct str rest = buf_str(&data);
    while (next_record(&rest, &json)) {
        segment->records++;
    }
    segment->bytes = data.len - rest.len;
}

bool spool_segment_each(const char *path, uint64_t records,
                        bool (*visit)(struct str json, void *ctx), void *ctx)
{
    CLEANUP(buf_free) struct buf data = {0};
    struct str json;

    if (file_read(path, SEGMENT_FILE_MAX, &data) != 0) {
        return false;
    }
    struct str rest = buf_str(&data);
    for (uint64_t i = 0; i < records && next_record(&rest, &json); i++) {
        if (!visit(json, ctx)) {
            return false;
        }
    }
    return true;
}

static bool cut_number(struct str *line, uint64_t *ret_value)
{
    struct str part;

    return str_split(line, ' ', &part) && str_parse_u64(part, 0, INT64_MAX, ret_value);
}

void spool_marks_read(const char *path, struct spool_marks *ret_marks)
{
    CLEANUP(buf_free) struct buf data = {0};
    struct spool_marks marks = {.dropped = 0};
    struct str line;

    *ret_marks = marks;
    if (file_read(path, 4096, &data) != 0) {
        return;
    }
    struct str rest = buf_str(&data);
    for (size_t i = 0; i < COUNTOF(marks.streams); i++) {
        if (!str_split(&rest, '\n', &line) || !cut_number(&line, &marks.streams[i].acked) ||
            !cut_number(&line, &marks.streams[i].segment) ||
            !cut_number(&line, &marks.streams[i].skip) ||
            !cut_number(&line, &marks.streams[i].in_flight)) {
            return;
        }
    }
    if (!str_split(&rest, '\n', &line) || !cut_number(&line, &marks.dropped)) {
        return;
    }
    *ret_marks = marks;
}

int spool_marks_write(const char *path, const struct spool_marks *marks)
{
    CLEANUP(buf_free) struct buf text = {0};
    char temporary[PATH_MAX];

    for (size_t i = 0; i < COUNTOF(marks->streams); i++) {
        buf_printf(&text, "%llu %llu %llu %llu\n", (unsigned long long)marks->streams[i].acked,
                   (unsigned long long)marks->streams[i].segment,
                   (unsigned long long)marks->streams[i].skip,
                   (unsigned long long)marks->streams[i].in_flight);
    }
    buf_printf(&text, "%llu\n", (unsigned long long)marks->dropped);
    (void)snprintf(temporary, sizeof(temporary), "%.4000s.new", path);
    CLEANUP(cleanup_fd) int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0) {
        return errno;
    }
    int failed = file_write_all(fd, buf_str(&text));
    if (failed == 0 && rename(temporary, path) != 0) {
        failed = errno;
    }
    return failed;
}
