/* Memory from /proc/meminfo. */
#include "agent/collect/memory.h"

#include <limits.h>
#include <string.h>

#include "agent/rules/match.h"
#include "base/file.h"

#define FILE_MAX ((size_t)64 * 1024)

void memory_init(struct memory *memory)
{
    collector_init(&memory->collector, "memory");
}

bool memory_parse(struct str text, int64_t *ret_total_kib, int64_t *ret_available_kib)
{
    struct match match;
    struct str line;
    int64_t total = -1;
    int64_t available = -1;

    while (str_split(&text, '\n', &line)) {
        if (match_text("MemTotal:*%d kB", line, &match)) {
            if (!str_parse_i64(match.captures[0], 1, INT64_MAX / 2048, &total)) {
                return false;
            }
        } else if (match_text("MemAvailable:*%d kB", line, &match) &&
                   !str_parse_i64(match.captures[0], 0, INT64_MAX / 2048, &available)) {
            return false;
        }
    }
    if (total < 0 || available < 0 || available > total) {
        return false;
    }
    *ret_total_kib = total;
    *ret_available_kib = available;
    return true;
}

void memory_collect(struct memory *memory, const struct options *options, struct readings *readings,
                    int64_t now_us)
{
    CLEANUP(buf_free) struct buf data = {0};
    char path[PATH_MAX];
    int64_t total;
    int64_t available;
    int failed =
        file_read(options_path(options, "/proc/meminfo", path, sizeof(path)), FILE_MAX, &data);

    readings->mem_used_mib = READING_NONE;
    readings->mem_total_mib = READING_NONE;
    if (failed != 0) {
        collector_unknown(&memory->collector, now_us, "/proc/meminfo: %s", strerrordesc_np(failed));
        return;
    }
    if (!memory_parse(buf_str(&data), &total, &available)) {
        collector_unknown(&memory->collector, now_us, "/proc/meminfo has another form");
        return;
    }
    readings->mem_total_mib = total / 1024;
    readings->mem_used_mib = (total - available) / 1024;
    collector_ok(&memory->collector, now_us);
}
