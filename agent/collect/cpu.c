/* CPU time from /proc/stat. */
#include "agent/collect/cpu.h"

#include <limits.h>
#include <string.h>

#include "base/file.h"

/* One line a CPU: room for a few thousand of them. */
#define FILE_MAX ((size_t)1024 * 1024)

void cpu_init(struct cpu *cpu)
{
    *cpu = (struct cpu){.busy = 0};
    collector_init(&cpu->collector, "cpu");
}

bool cpu_parse(struct str text, uint64_t *ret_busy, uint64_t *ret_total)
{
    /* user nice system idle iowait irq softirq steal (proc(5)); guest is inside user */
    uint64_t numbers[8] = {0};
    size_t count = 0;
    struct str line;
    struct str part;

    if (!str_split(&text, '\n', &line) || !str_starts(line, STR("cpu "))) {
        return false;
    }
    line.ptr += 4;
    line.len -= 4;
    while (count < COUNTOF(numbers) && str_split(&line, ' ', &part)) {
        if (part.len == 0) {
            continue;
        }
        if (!str_parse_u64(part, 0, UINT64_MAX / 16, &numbers[count])) {
            return false;
        }
        count++;
    }
    if (count < 4) {
        return false;
    }
    *ret_total = 0;
    for (size_t i = 0; i < COUNTOF(numbers); i++) {
        *ret_total += numbers[i];
    }
    *ret_busy = *ret_total - numbers[3] - numbers[4];
    return true;
}

void cpu_collect(struct cpu *cpu, const struct options *options, struct readings *readings,
                 int64_t now_us)
{
    CLEANUP(buf_free) struct buf data = {0};
    char path[PATH_MAX];
    uint64_t busy;
    uint64_t total;
    int failed =
        file_read(options_path(options, "/proc/stat", path, sizeof(path)), FILE_MAX, &data);

    readings->cpu_ratio = READING_NONE;
    if (failed != 0) {
        collector_unknown(&cpu->collector, now_us, "/proc/stat: %s", strerrordesc_np(failed));
        return;
    }
    if (!cpu_parse(buf_str(&data), &busy, &total)) {
        collector_unknown(&cpu->collector, now_us, "/proc/stat has another form");
        return;
    }
    /* Counters may step back by a tick when a CPU goes idle; then this round says nothing. */
    if (cpu->total > 0 && total > cpu->total && busy >= cpu->busy &&
        busy - cpu->busy <= total - cpu->total) {
        readings->cpu_ratio = (double)(busy - cpu->busy) / (double)(total - cpu->total);
    }
    cpu->busy = busy;
    cpu->total = total;
    collector_ok(&cpu->collector, now_us);
}
