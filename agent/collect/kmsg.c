/* The kernel's log: read without blocking, each record once per boot, within a budget. */
#include "agent/collect/kmsg.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agent/rules/injection.h"
#include "agent/rules/log_line.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"

/* A record with its KEY=value lines: the kernel's CONSOLE_EXT_LOG_MAX. */
#define RECORD_MAX 8192
/* Matching a line costs about 5 us: this is half a percent of a core. What is over waits in the
 * kernel's ring for the next second. */
#define LINES_PER_SECOND 1000
#define BYTES_PER_SECOND ((size_t)512 * 1024)
#define SECOND_US 1000000
#define FILE_LOOK_US 200000
#define PARTIAL_MAX ((size_t)64 * 1024)

static void read_mark(struct kmsg *kmsg)
{
    CLEANUP(buf_free) struct buf data = {0};
    struct str part;
    uint64_t seq;

    if (file_read(kmsg->mark_path, 256, &data) != 0) {
        return;
    }
    struct str rest = str_trim(buf_str(&data));
    if (str_split(&rest, ' ', &part) && str_eq_c(part, kmsg->boot_id) &&
        str_parse_u64(str_trim(rest), 0, INT64_MAX, &seq)) {
        kmsg->told_seq = (int64_t)seq;
    }
}

/* One small write in place: a killed agent leaves the old or the new mark. */
static void write_mark(const struct kmsg *kmsg)
{
    char text[80];
    int len =
        snprintf(text, sizeof(text), "%s %020lld\n", kmsg->boot_id, (long long)kmsg->told_seq);
    CLEANUP(cleanup_fd) int fd = open(kmsg->mark_path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    if (fd < 0 || pwrite(fd, text, (size_t)len, 0) != len) {
        log_error("%s cannot be written: %s", kmsg->mark_path, strerrordesc_np(errno));
    }
}

void kmsg_init(struct kmsg *kmsg, const struct options *options, const struct boot *boot)
{
    *kmsg = (struct kmsg){
        .options = options, .floor = boot->kmsg_floor, .last_seq = -1, .told_seq = -1, .fd = -1};
    collector_init(&kmsg->collector, "kmsg");
    kmsg->engine = engine_new(false);
    (void)snprintf(kmsg->boot_id, sizeof(kmsg->boot_id), "%s", boot->id);
    (void)snprintf(kmsg->mark_path, sizeof(kmsg->mark_path), "%.3072s/kmsg", options->state_dir);
    read_mark(kmsg);
    struct timespec up;
    (void)clock_gettime(CLOCK_MONOTONIC, &up);
    kmsg->boot_wall_us = clock_wall_us() - (int64_t)up.tv_sec * 1000000 - up.tv_nsec / 1000;
}

void kmsg_stop(struct kmsg *kmsg)
{
    cleanup_fd(&kmsg->fd);
    engine_free(kmsg->engine);
    kmsg->engine = NULL;
    buf_free(&kmsg->partial);
}

/* ---- budget ---- */

static bool has_budget(struct kmsg *kmsg, int64_t now_us)
{
    if (now_us - kmsg->budget_us >= SECOND_US) {
        kmsg->budget_us = now_us;
        kmsg->budget_lines = 0;
        kmsg->budget_bytes = 0;
    }
    return kmsg->budget_lines < LINES_PER_SECOND && kmsg->budget_bytes < BYTES_PER_SECOND;
}

static void spend(struct kmsg *kmsg, size_t bytes)
{
    kmsg->budget_lines++;
    kmsg->budget_bytes += bytes;
    /* What was written before the agent came is read in pieces too, but that is no overflow. */
    if (!kmsg->caught_up) {
        return;
    }
    if (kmsg->budget_lines == LINES_PER_SECOND ||
        (kmsg->budget_bytes >= BYTES_PER_SECOND && kmsg->budget_bytes - bytes < BYTES_PER_SECOND)) {
        kmsg->slowed++;
    }
}

/* ---- one record ---- */

static bool is_wanted(const struct kmsg *kmsg, const struct kmsg_record *raw)
{
    return raw->facility == 0 || (raw->facility == 1 && kmsg->options->accept_user_kmsg);
}

/* True when the record was not read before in this boot. */
static bool is_new(struct kmsg *kmsg, const struct kmsg_record *raw)
{
    int64_t seq = (int64_t)raw->seq;
    int64_t before = kmsg->last_seq;

    if (kmsg->gap && before >= 0 && seq > before + 1) {
        kmsg->lost += (uint64_t)(seq - before - 1);
    }
    kmsg->gap = false;
    if (seq <= before) {
        return false;
    }
    kmsg->last_seq = seq;
    return seq > kmsg->told_seq && seq > kmsg->floor;
}

/* True when the line is a fault of some check, not the text of a driver. */
static bool take_injection(struct kmsg *kmsg, struct str text)
{
    struct finding finding;

    if (!injection_parse(text, &finding)) {
        return false;
    }
    if (kmsg->injection_count < KMSG_INJECTIONS_MAX) {
        kmsg->injections[kmsg->injection_count++] = finding;
    }
    return true;
}

static void feed(struct kmsg *kmsg, struct str data, int64_t now_us)
{
    char text[RECORD_TEXT_MAX];
    struct kmsg_record raw;
    struct record record = {.repeat = 1};

    if (!kmsg_parse(data, &raw) || raw.seq > INT64_MAX || !is_new(kmsg, &raw)) {
        return;
    }
    spend(kmsg, data.len);
    if (!is_wanted(kmsg, &raw)) {
        return;
    }
    record.text = kmsg_unescape(raw.text, text, sizeof(text));
    if (raw.facility == 1 && str_starts(record.text, STR(INJECTION_MARK))) {
        record.text.ptr += sizeof(INJECTION_MARK) - 1;
        record.text.len -= sizeof(INJECTION_MARK) - 1;
        log_warning("an injected kernel line: %.*s", STR_FMT(record.text));
        if (take_injection(kmsg, record.text)) {
            return;
        }
    }
    record.seq = (int64_t)raw.seq;
    record.uptime_us = raw.uptime_us;
    /* The log's own clock drifts; what is read as it comes happened now. */
    record.at_us = kmsg->caught_up ? clock_wall_us() : kmsg->boot_wall_us + raw.uptime_us;
    kmsg->access_reg = kmsg->access_reg || str_find(record.text, STR("ACCESS_REG"), 0) >= 0;
    engine_feed(kmsg->engine, &record, now_us);
}

/* ---- the device ---- */

static bool open_device(struct kmsg *kmsg, int64_t now_us)
{
    char path[PATH_MAX];
    struct stat info;

    if (kmsg->fd >= 0) {
        return true;
    }
    if (!collector_may_try(&kmsg->collector, now_us)) {
        return false;
    }
    (void)options_path(kmsg->options, "/dev/kmsg", path, sizeof(path));
    kmsg->fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (kmsg->fd < 0 || fstat(kmsg->fd, &info) != 0) {
        bool permission = errno == EACCES || errno == EPERM;

        collector_unknown(&kmsg->collector, now_us, "/dev/kmsg: %s%s", strerrordesc_np(errno),
                          permission ? "; it needs root or CAP_SYSLOG" : "");
        cleanup_fd(&kmsg->fd);
        return false;
    }
    kmsg->is_file = S_ISREG(info.st_mode);
    buf_clear(&kmsg->partial);
    return true;
}

static void fail(struct kmsg *kmsg, int64_t now_us)
{
    collector_unknown(&kmsg->collector, now_us, "/dev/kmsg: %s", strerrordesc_np(errno));
    cleanup_fd(&kmsg->fd);
}

/* A record a read. */
static void read_device(struct kmsg *kmsg, int64_t now_us)
{
    char data[RECORD_MAX];

    while (has_budget(kmsg, now_us) && !engine_is_full(kmsg->engine)) {
        ssize_t got = read(kmsg->fd, data, sizeof(data));

        if (got > 0) {
            feed(kmsg, (struct str){data, (size_t)got}, now_us);
        } else if (got < 0 && errno == EPIPE) {
            /* The ring went round before we came; the next read continues behind the gap. */
            kmsg->gap = true;
        } else if (got < 0 && errno == EAGAIN) {
            kmsg->caught_up = true;
            break;
        } else if (got == 0 || errno != EINTR) {
            fail(kmsg, now_us);
            return;
        }
    }
    collector_ok(&kmsg->collector, now_us);
}

/* Records are lines; lines that begin with a blank belong to the record before and say nothing. */
static void read_file(struct kmsg *kmsg, int64_t now_us)
{
    char data[RECORD_MAX];

    while (has_budget(kmsg, now_us) && !engine_is_full(kmsg->engine)) {
        ssize_t got = read(kmsg->fd, data, sizeof(data));

        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            fail(kmsg, now_us);
            return;
        }
        if (got == 0) {
            kmsg->caught_up = true;
            break;
        }
        buf_add(&kmsg->partial, data, (size_t)got);
        struct str rest = buf_str(&kmsg->partial);
        ptrdiff_t end;
        while ((end = str_find(rest, STR("\n"), 0)) >= 0) {
            feed(kmsg, (struct str){rest.ptr, (size_t)end}, now_us);
            rest.ptr += end + 1;
            rest.len -= (size_t)end + 1;
        }
        if (rest.len > PARTIAL_MAX) {
            rest.len = 0;
        }
        memmove(kmsg->partial.ptr, rest.ptr, rest.len);
        kmsg->partial.len = rest.len;
    }
    collector_ok(&kmsg->collector, now_us);
}

void kmsg_read(struct kmsg *kmsg, int64_t now_us)
{
    if (!open_device(kmsg, now_us)) {
        return;
    }
    if (kmsg->is_file) {
        read_file(kmsg, now_us);
    } else {
        read_device(kmsg, now_us);
    }
}

/* ---- telling ---- */

static void take(const struct incident *incident, void *ctx)
{
    struct fault_report report = {.finding = &incident->finding,
                                  .lines = incident->lines,
                                  .line_count = incident->line_count,
                                  .source = "kernel",
                                  .at_us = incident->first_us,
                                  .kmsg_seq = incident->last_seq};

    if (faults_knows(ctx, &incident->finding, incident->last_seq)) {
        return;
    }
    struct finding finding = incident->finding;
    report.finding = &finding;
    if (strcmp(finding.check, "gpu_lost") == 0) {
        /* A GPU is lost once, whoever says it first and under whatever code. */
        faults_copy_code(ctx, finding.check, finding.device, finding.fold_code,
                         sizeof(finding.fold_code));
    }
    faults_tell(ctx, &report);
}

static void tell_count(struct faults *faults, const char *check, uint64_t count,
                       const char *summary)
{
    struct finding finding = {.check = check,
                              .severity = SEVERITY_INFO,
                              .clears = CLEARS_QUIET,
                              .quiet_seconds = QUIET_DEFAULT_SECONDS,
                              .count = count};
    struct fault_report report = {.finding = &finding, .source = "agent"};

    finding_set_summary(&finding, "%s", summary);
    faults_tell(faults, &report);
}

static void tell_injections(struct kmsg *kmsg, struct faults *faults)
{
    for (size_t i = 0; i < kmsg->injection_count; i++) {
        const struct finding *finding = &kmsg->injections[i];
        struct fault_report report = {.finding = finding, .source = "inject"};

        if (finding->clear) {
            faults_clear(faults, finding->check, finding->device, finding->summary);
        } else {
            faults_tell(faults, &report);
        }
    }
    kmsg->injection_count = 0;
}

static bool tell_losses(struct kmsg *kmsg, struct faults *faults)
{
    bool told = kmsg->lost > 0 || kmsg->slowed > 0;

    if (kmsg->lost > 0) {
        tell_count(faults, "agent.kmsg_lost", kmsg->lost,
                   "kernel lines were overwritten before they could be read");
        kmsg->lost = 0;
    }
    if (kmsg->slowed > 0) {
        tell_count(faults, "agent.kmsg_overflow", kmsg->slowed,
                   "the kernel wrote more than 1000 lines a second; reading was slowed down");
        kmsg->slowed = 0;
    }
    return told;
}

bool kmsg_tell(struct kmsg *kmsg, struct faults *faults, bool all, int64_t now_us)
{
    bool urgent = engine_has_urgent(kmsg->engine, now_us);
    bool told;

    tell_injections(kmsg, faults);
    if (!all && !urgent && !engine_is_full(kmsg->engine)) {
        return false;
    }
    told = tell_losses(kmsg, faults) || urgent;
    engine_take(kmsg->engine, now_us, false, take, faults);
    /* What is held back is not in the spool yet: the mark must not pass it. */
    if (engine_next_due(kmsg->engine) == INT64_MAX && kmsg->last_seq > kmsg->told_seq) {
        kmsg->told_seq = kmsg->last_seq;
        write_mark(kmsg);
    }
    return told;
}

int kmsg_fd(const struct kmsg *kmsg, int64_t now_us)
{
    bool paused = now_us - kmsg->budget_us < SECOND_US && (kmsg->budget_lines >= LINES_PER_SECOND ||
                                                           kmsg->budget_bytes >= BYTES_PER_SECOND);

    return kmsg->is_file || paused ? -1 : kmsg->fd;
}

int64_t kmsg_due(const struct kmsg *kmsg, int64_t now_us)
{
    int64_t held = engine_next_due(kmsg->engine);
    int64_t due;

    if (engine_is_full(kmsg->engine)) {
        due = now_us;
    } else if (kmsg->fd < 0) {
        due = kmsg->collector.retry_us;
    } else if (kmsg->is_file) {
        due = now_us + FILE_LOOK_US;
    } else if (kmsg_fd(kmsg, now_us) < 0) {
        due = kmsg->budget_us + SECOND_US;
    } else {
        due = INT64_MAX;
    }
    return held < due ? held : due;
}
