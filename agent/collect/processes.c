/* Processes that hang or pile up, and numbers that run out: /proc, once a minute. */
#include "agent/collect/processes.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "agent/collect/source.h"

/* gpud: a thousand zombies are a parent that does not look. */
#define ZOMBIES_WARN 1000
/* EKS: of open files and of process numbers. */
#define FULL_WARN 0.80
#define FULL_CRITICAL 0.95
/* So many looks in a row in state D without having run in between. */
#define BLOCKED_LOOKS 5
#define BLOCKED_MAX 256
/* include/linux/sched.h PF_KTHREAD: kernel threads may rest in state D. */
#define KERNEL_THREAD UINT64_C(0x00200000)
#define PIDS_MAX 65536

bool process_parse(struct str text, struct process *ret_process)
{
    struct str part = {NULL, 0};
    const char *open = text.len > 0 ? memchr(text.ptr, '(', text.len) : NULL;
    const char *close = text.len > 0 ? memrchr(text.ptr, ')', text.len) : NULL;

    if (open == NULL || close == NULL || close < open) {
        return false;
    }
    size_t len = (size_t)(close - open - 1);
    if (len >= sizeof(ret_process->name)) {
        len = sizeof(ret_process->name) - 1;
    }
    (void)memcpy(ret_process->name, open + 1, len);
    ret_process->name[len] = '\0';
    for (char *c = ret_process->name; *c != '\0'; c++) {
        *c = *c <= ' ' || *c > '~' ? '_' : *c;
    }
    struct str rest = str_trim((struct str){close + 1, (size_t)(text.ptr + text.len - close - 1)});
    for (int field = 3; field <= 22; field++) {
        if (!str_split(&rest, ' ', &part)) {
            return false;
        }
        if (field == 3) {
            ret_process->state = part.len == 1 ? part.ptr[0] : '?';
        } else if (field == 9 && !str_parse_u64(part, 0, UINT64_MAX, &ret_process->flags)) {
            return false;
        }
    }
    return str_parse_u64(part, 0, UINT64_MAX, &ret_process->started);
}

/* How often it gave up the CPU: one that hangs does not. */
static uint64_t count_switches(const struct look *look, uint64_t pid)
{
    CLEANUP(buf_free) struct buf data = {0};
    char path[64];
    struct str line;
    uint64_t sum = 0;

    (void)snprintf(path, sizeof(path), "/proc/%llu/status", (unsigned long long)pid);
    if (!look_read(look, path, 16384, &data)) {
        return 0;
    }
    struct str rest = buf_str(&data);
    while (str_split(&rest, '\n', &line)) {
        struct str key;
        uint64_t value;

        if (str_split(&line, ':', &key) && str_ends(key, STR("voluntary_ctxt_switches")) &&
            str_parse_u64(str_trim(line), 0, UINT64_MAX / 2, &value)) {
            sum += value;
        }
    }
    return sum;
}

/* "<pid> <started> <switches> <looks>" of the look before: in how many it hung already. */
static uint64_t recall(struct str memory, uint64_t pid, uint64_t started, uint64_t switches)
{
    struct str line;

    while (str_split(&memory, '\n', &line)) {
        uint64_t numbers[4] = {0};
        struct str part;
        size_t count = 0;

        while (count < COUNTOF(numbers) && str_split(&line, ' ', &part) &&
               str_parse_u64(part, 0, UINT64_MAX, &numbers[count])) {
            count++;
        }
        if (count == COUNTOF(numbers) && numbers[0] == pid && numbers[1] == started) {
            return numbers[2] == switches && numbers[3] < UINT32_MAX ? numbers[3] : 0;
        }
    }
    return 0;
}

static void judge_blocked(struct look *look, uint64_t pid, const struct process *process)
{
    uint64_t switches = count_switches(look, pid);
    uint64_t looks = recall(look->memory, pid, process->started, switches) + 1;

    buf_printf(&look->next, "%llu %llu %llu %llu\n", (unsigned long long)pid,
               (unsigned long long)process->started, (unsigned long long)switches,
               (unsigned long long)looks);
    if (looks < BLOCKED_LOOKS) {
        return;
    }
    struct finding finding = classify_finding("process_blocked");
    finding_set_device(&finding, str_of(process->name), false);
    finding_set_code(&finding, "blocked");
    finding.severity = SEVERITY_WARNING;
    finding_set_summary(&finding, "process %llu (%s) hangs in the kernel", (unsigned long long)pid,
                        process->name);
    classify_add(look->classify, &finding);
}

static bool walk_processes(struct look *look, uint64_t *ret_zombies)
{
    CLEANUP(buf_free) struct buf data = {0};
    char path[PATH_MAX];
    struct dirent *entry;
    unsigned seen = 0;
    unsigned blocked = 0;
    uint64_t zombies = 0;
    DIR *dir = opendir(options_path(look->facts->options, "/proc", path, sizeof(path)));

    if (dir == NULL) {
        return false;
    }
    while (seen < PIDS_MAX && (entry = readdir(dir)) != NULL) {
        struct process process;
        uint64_t pid;

        if (!str_parse_u64(str_of(entry->d_name), 1, UINT32_MAX, &pid)) {
            continue;
        }
        seen++;
        (void)snprintf(path, sizeof(path), "/proc/%llu/stat", (unsigned long long)pid);
        if (!look_read(look, path, 4096, &data) || !process_parse(buf_str(&data), &process)) {
            continue; /* it has ended meanwhile */
        }
        zombies += process.state == 'Z';
        if (process.state == 'D' && (process.flags & KERNEL_THREAD) == 0 && blocked < BLOCKED_MAX) {
            blocked++;
            judge_blocked(look, pid, &process);
        }
    }
    (void)closedir(dir);
    *ret_zombies = zombies;
    return true;
}

static void judge_share(struct look *look, const char *check, const char *what, uint64_t used,
                        uint64_t most)
{
    double share = most > 0 ? (double)used / (double)most : 0;

    if (share < FULL_WARN) {
        return;
    }
    struct finding *finding = look_add(look, check, "", SEVERITY_WARNING);
    if (share >= FULL_CRITICAL) {
        classify_set_fault(finding, ACTION_REBOOT);
    }
    finding_set_code(finding, "%.0f %%", share * 100);
    (void)snprintf(finding->fold_code, sizeof(finding->fold_code), "used");
    finding_set_summary(finding, "%llu of %llu %s are in use", (unsigned long long)used,
                        (unsigned long long)most, what);
}

/* "allocated unused most" */
static void judge_files(struct look *look)
{
    CLEANUP(buf_free) struct buf data = {0};
    uint64_t numbers[3] = {0};
    size_t count = 0;
    struct str part;

    if (!look_read(look, "/proc/sys/fs/file-nr", 256, &data)) {
        return;
    }
    struct str rest = str_trim(buf_str(&data));
    while (count < COUNTOF(numbers) && str_split(&rest, '\t', &part) &&
           str_parse_u64(str_trim(part), 0, UINT64_MAX, &numbers[count])) {
        count++;
    }
    if (count == COUNTOF(numbers) && numbers[1] <= numbers[0]) {
        judge_share(look, "fd_exhaustion", "open files", numbers[0] - numbers[1], numbers[2]);
    }
}

/* Threads take process numbers too: the second number of "running/all" in /proc/loadavg. */
static void judge_pids(struct look *look)
{
    CLEANUP(buf_free) struct buf data = {0};
    uint64_t all = 0;
    uint64_t most = 0;
    uint64_t threads = 0;
    struct str part;

    if (!look_read(look, "/proc/loadavg", 256, &data) ||
        !look_number(look, "/proc/sys/kernel/pid_max", &most)) {
        return;
    }
    if (look_number(look, "/proc/sys/kernel/threads-max", &threads) && threads < most) {
        most = threads;
    }
    struct str rest = buf_str(&data);
    for (int field = 0; field < 4; field++) {
        if (!str_split(&rest, ' ', &part)) {
            return;
        }
    }
    ptrdiff_t slash = str_find(part, STR("/"), 0);
    if (slash >= 0 &&
        str_parse_u64((struct str){part.ptr + slash + 1, part.len - (size_t)slash - 1}, 0,
                      UINT64_MAX, &all)) {
        judge_share(look, "pid_exhaustion", "process numbers", all, most);
    }
}

static void look_at_processes(struct look *look)
{
    uint64_t zombies = 0;

    if (!walk_processes(look, &zombies)) {
        look_unknown(look, "/proc cannot be read");
        return;
    }
    if (zombies >= ZOMBIES_WARN) {
        struct finding *finding = look_add(look, "process_zombies", "", SEVERITY_WARNING);

        finding_set_code(finding, "%llu", (unsigned long long)zombies);
        (void)snprintf(finding->fold_code, sizeof(finding->fold_code), "many");
        finding_set_summary(finding, "%llu processes have ended and nobody takes notice",
                            (unsigned long long)zombies);
    }
    judge_files(look);
    judge_pids(look);
}

const struct source_kind source_processes = {.name = "processes",
                                             .period_s = 60,
                                             .patience = 1,
                                             .look = look_at_processes,
                                             .silent = "/proc does not answer"};
