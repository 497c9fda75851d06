/* The log of NVIDIA's fabric manager: each line once, those of this boot only. */
#include "agent/collect/fabric_manager.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agent/collect/source.h"
#include "base/clock.h"
#include "base/file.h"

/* Read at once; what is more waits for the next look. */
#define PIECE ((size_t)256 * 1024)
/* A log written before it was ever looked at is searched from so far back. */
#define FIRST ((off_t)256 * 1024)

bool fabric_manager_time(struct str line, int64_t *ret_s)
{
    char text[32];
    struct tm parts = {.tm_isdst = -1};

    if (line.len < 22 || line.ptr[0] != '[') {
        return false;
    }
    (void)snprintf(text, sizeof(text), "%.20s", line.ptr + 1);
    const char *end = strptime(text, "%b %d %Y %H:%M:%S", &parts);
    if (end == NULL || *end != '\0') {
        return false;
    }
    time_t at = mktime(&parts);
    *ret_s = (int64_t)at;
    return at != (time_t)-1;
}

struct mark {
    uint64_t inode;
    uint64_t offset;
    bool known;
};

static struct mark read_mark(struct str memory)
{
    struct mark mark = {.known = false};
    struct str part;

    mark.known = str_split(&memory, ' ', &part) &&
                 str_parse_u64(part, 0, UINT64_MAX, &mark.inode) &&
                 str_parse_u64(str_trim(memory), 0, INT64_MAX, &mark.offset);
    return mark;
}

static void judge(struct look *look, struct str text, bool first)
{
    int64_t boot_s = clock_wall_us() / 1000000 - look->facts->uptime_s;
    struct str line;

    while (str_split(&text, '\n', &line)) {
        int64_t at_s = 0;
        bool dated = fabric_manager_time(line, &at_s);

        if ((dated && at_s < boot_s) || (!dated && first)) {
            continue;
        }
        classify_fabricmanager(look->classify, line);
    }
}

/* Whole lines from the offset on; returns how many bytes they take. */
static size_t read_lines(int fd, off_t offset, struct buf *data)
{
    buf_reserve(data, PIECE);
    ssize_t got = pread(fd, data->ptr, PIECE, offset);
    if (got <= 0) {
        return 0;
    }
    data->len = (size_t)got;
    while (data->len > 0 && data->ptr[data->len - 1] != '\n') {
        data->len--;
    }
    /* A line longer than everything is no line. */
    return data->len == 0 && (size_t)got == PIECE ? PIECE : data->len;
}

static void look_at_log(struct look *look)
{
    const struct options *options = look->facts->options;
    CLEANUP(buf_free) struct buf data = {0};
    struct mark mark = read_mark(look->memory);
    char path[PATH_MAX];
    struct stat info;

    (void)options_path(options, options->fabric_manager_log, path, sizeof(path));
    CLEANUP(cleanup_fd) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 && errno == ENOENT) {
        look_absent(look, "there is no %.100s", options->fabric_manager_log);
        return;
    }
    if (fd < 0 || fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        look_unknown(look, "%.80s: %s", options->fabric_manager_log,
                     fd < 0 ? strerrordesc_np(errno) : "not a plain file");
        return;
    }
    /* Another file, or one that was emptied, is read from its beginning. */
    off_t offset = (off_t)mark.offset;
    if (!mark.known) {
        offset = info.st_size > FIRST ? info.st_size - FIRST : 0;
    } else if (mark.inode != info.st_ino || offset > info.st_size) {
        offset = 0;
    }
    size_t taken = read_lines(fd, offset, &data);
    judge(look, buf_str(&data), !mark.known);
    buf_printf(&look->next, "%llu %llu", (unsigned long long)info.st_ino,
               (unsigned long long)offset + taken);
}

const struct source_kind source_fabric_manager = {.name = "fabric_manager",
                                                  .period_s = 10,
                                                  .patience = 1,
                                                  .persist = true,
                                                  .look = look_at_log,
                                                  .silent = "the log cannot be read in time"};
