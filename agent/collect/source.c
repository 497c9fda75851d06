/* A source that is looked at in a child of its own: asking, taking the answer, judging it. */
#include "agent/collect/source.h"

#include <assert.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/collect/program.h"
#include "agent/rules/checks.h"
#include "base/clock.h"
#include "base/file.h"

#define ARENA_CAP ((size_t)16 * 1024 * 1024)
#define PROGRAM_OUT_MAX ((size_t)1024 * 1024)
/* What is not there may be installed later. */
#define ABSENT_RETRY_S 600
#define RETRY_US INT64_C(1000000)
/* The child gets this much more than the programs it asks. */
#define MARGIN_US 1500000

const struct source_kind *const source_kinds[] = {
    &source_slurm,          &source_chrony, &source_smart, &source_services,
    &source_fabric_manager, &source_dcgm,   &source_pcie,  &source_edac,
    &source_processes,      &source_mounts, &source_links, &source_expected,
};
static_assert(sizeof(source_kinds) / sizeof(source_kinds[0]) == SOURCES, "SOURCES is their number");

/* A finding on its way to the agent: the check by its place in the table. */
struct carried {
    uint32_t check;
    struct finding finding;
};

/* ---- in the child ---- */

void look_absent(struct look *look, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)vsnprintf(look->reason, sizeof(look->reason), format, args);
    va_end(args);
    look->state = COLLECTOR_ABSENT;
}

void look_unknown(struct look *look, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)vsnprintf(look->reason, sizeof(look->reason), format, args);
    va_end(args);
    look->state = COLLECTOR_UNKNOWN;
}

bool look_read(const struct look *look, const char *path, size_t max, struct buf *ret_data)
{
    char full[PATH_MAX];

    return file_read(options_path(look->facts->options, path, full, sizeof(full)), max, ret_data) ==
           0;
}

bool look_number(const struct look *look, const char *path, uint64_t *ret_value)
{
    CLEANUP(buf_free) struct buf data = {0};

    return look_read(look, path, 256, &data) &&
           str_parse_u64(str_trim(buf_str(&data)), 0, UINT64_MAX, ret_value);
}

bool look_has_program(const struct look *look, const char *name)
{
    struct str rest = str_of(look->facts->options->programs_path);
    struct str folder;
    char path[PATH_MAX];

    while (str_split(&rest, ':', &folder)) {
        (void)snprintf(path, sizeof(path), "%.*s/%.200s", folder.len > 3800 ? 0 : (int)folder.len,
                       folder.ptr, name);
        if (folder.len > 0 && access(path, X_OK) == 0) {
            return true;
        }
    }
    return false;
}

bool look_program(struct look *look, const char *const *argv, struct buf *ret_out, int *ret_status)
{
    struct program program = {.folders = look->facts->options->programs_path,
                              .deadline_us = look->deadline_us,
                              .out_max = PROGRAM_OUT_MAX,
                              .out = *ret_out};
    enum program_end end = program_run(&program, argv);

    *ret_out = program.out;
    *ret_status = program.status;
    switch (end) {
    case PROGRAM_ENDED:
        return true;
    case PROGRAM_MISSING:
        look_absent(look, "%s is not installed", argv[0]);
        return false;
    case PROGRAM_UNDEAD:
        look->undead = program.pid;
        look->started = program.started;
        look->timed_out = true;
        look_unknown(look, "%s did not answer and cannot be ended", argv[0]);
        return false;
    case PROGRAM_TIMEOUT:
        look->timed_out = true;
        look_unknown(look, "%s did not answer in time", argv[0]);
        return false;
    case PROGRAM_FAILED:
    default:
        look_unknown(look, "%s: %s", argv[0], strerrordesc_np(program.error));
        return false;
    }
}

struct finding *look_add(struct look *look, const char *check, const char *device,
                         enum severity severity)
{
    struct classify *classify = look->classify;
    /* What finds no place is written over the last. */
    size_t at = classify->count < FINDINGS_MAX ? classify->count++ : FINDINGS_MAX - 1;
    struct finding *finding = &classify->findings[at];

    *finding = classify_finding(check);
    finding->severity = severity;
    finding_set_device(finding, str_of(device), false);
    return finding;
}

static uint32_t index_of(const char *check)
{
    const struct check_row *row = check_find(str_of(check));

    return row == NULL ? UINT32_MAX : (uint32_t)(row - check_rows);
}

/* The gravest first: what does not fit is the mildest. */
static int compare_findings(const void *a, const void *b)
{
    const struct finding *left = a;
    const struct finding *right = b;

    return (int)right->severity - (int)left->severity;
}

static void write_answer(struct look *look, struct buf *answer)
{
    struct classify *classify = look->classify;
    struct look_answer head = {.state = look->state,
                               .ends = look->ends,
                               .timed_out = look->timed_out,
                               .undead = look->undead,
                               .started = look->started};

    (void)memcpy(head.reason, look->reason, sizeof(head.reason));
    if (classify->count > LOOK_FINDINGS_MAX) {
        qsort(classify->findings, classify->count, sizeof(struct finding), compare_findings);
        classify->count = LOOK_FINDINGS_MAX;
    }
    head.count = (uint32_t)classify->count;
    buf_add(answer, &head, sizeof(head));
    for (size_t i = 0; i < classify->count; i++) {
        struct carried carried = {.check = index_of(classify->findings[i].check),
                                  .finding = classify->findings[i]};

        carried.finding.check = NULL;
        buf_add(answer, &carried, sizeof(carried));
    }
    if (look->next.len <= LOOK_MEMORY_MAX) {
        buf_add(answer, look->next.ptr, look->next.len);
    }
}

void source_look(const struct source_kind *kind, const struct source_facts *facts,
                 struct str memory, int64_t timeout_us, struct buf *answer)
{
    CLEANUP(arena_freep) struct arena *arena = arena_new(ARENA_CAP);
    struct look look = {.facts = facts, .memory = memory, .at_us = clock_mono_us()};

    look.deadline_us = look.at_us + timeout_us;
    look.classify = arena_zalloc(arena, sizeof(*look.classify));
    look.classify->arena = arena;
    look.classify->context = &look.context;
    /* Nothing in it can be wrong. */
    if (classify_context_read(arena, (struct str){NULL, 0}, &look.context)) {
        kind->look(&look);
    }
    write_answer(&look, answer);
    buf_free(&look.next);
}

static bool source_round(void **state, const void *ctx, struct buf *answer)
{
    const struct source *source = ctx;

    (void)state;
    source_look(source->kind, &source->facts, buf_str(&source->memory),
                source->facts.options->probe_timeout_seconds * source->kind->patience * 1000000,
                answer);
    return false;
}

/* ---- in the agent ---- */

void source_init(struct source *source, const struct source_kind *kind,
                 const struct options *options)
{
    *source = (struct source){.kind = kind};
    collector_init(&source->collector, kind->name);
    debounce_init(&source->debounce, kind->name);
    (void)snprintf(source->process, sizeof(source->process), "muster-%.8s", kind->name);
    probe_init(&source->probe, source->process, source_round, source,
               options->probe_timeout_seconds * kind->patience * 1000000 + MARGIN_US);
    if (kind->persist) {
        (void)snprintf(source->memory_path, sizeof(source->memory_path), "%.3072s/memory.%s",
                       options->state_dir, kind->name);
        if (file_read(source->memory_path, LOOK_MEMORY_MAX, &source->memory) != 0) {
            buf_clear(&source->memory);
        }
    }
}

void source_stop(struct source *source)
{
    probe_stop(&source->probe);
    debounce_free(&source->debounce);
    buf_free(&source->memory);
}

static int64_t period_us(const struct source *source)
{
    int64_t fixed_ms = source->facts.options->collect_interval_ms;

    return fixed_ms > 0 ? fixed_ms * 1000 : source->kind->period_s * INT64_C(1000000);
}

void source_ask(struct source *source, const struct source_facts *facts, int64_t now_us)
{
    if (now_us < source->due_us || source->probe.busy) {
        return;
    }
    if (source->undead != 0 && program_lives(source->undead, source->started)) {
        collector_unknown(&source->collector, now_us,
                          "a program it asked hangs in the kernel and cannot be ended");
        source->due_us = source->collector.retry_us;
        return;
    }
    source->undead = 0;
    source->facts = *facts;
    if (probe_ask(&source->probe, now_us)) {
        source->due_us = now_us + period_us(source);
    } else {
        /* The child before is still on its way out. */
        source->due_us = now_us + (period_us(source) < RETRY_US ? period_us(source) : RETRY_US);
    }
}

bool source_read(struct str answer, struct look_answer *ret_head, struct finding *findings,
                 struct str *ret_memory)
{
    if (answer.len < sizeof(*ret_head)) {
        return false;
    }
    (void)memcpy(ret_head, answer.ptr, sizeof(*ret_head));
    answer.ptr += sizeof(*ret_head);
    answer.len -= sizeof(*ret_head);
    if (ret_head->count > LOOK_FINDINGS_MAX ||
        answer.len < ret_head->count * sizeof(struct carried)) {
        return false;
    }
    ret_head->reason[sizeof(ret_head->reason) - 1] = '\0';
    for (uint32_t i = 0; i < ret_head->count; i++) {
        struct carried carried;

        (void)memcpy(&carried, answer.ptr, sizeof(carried));
        if (carried.check >= check_row_count) {
            return false;
        }
        findings[i] = carried.finding;
        findings[i].check = check_rows[carried.check].id;
        answer.ptr += sizeof(carried);
        answer.len -= sizeof(carried);
    }
    *ret_memory = answer;
    return true;
}

static void keep_memory(struct source *source, struct str memory)
{
    bool same = str_eq(memory, buf_str(&source->memory));

    if (same) {
        return;
    }
    buf_clear(&source->memory);
    buf_add(&source->memory, memory.ptr, memory.len);
    if (source->memory_path[0] != '\0') {
        /* Not synced: after a power cut the same lines are told again, and fold. */
        FILE *file = fopen(source->memory_path, "we");

        if (file != NULL) {
            (void)fwrite(memory.ptr, 1, memory.len, file);
            (void)fclose(file);
        }
    }
}

/* Silence is evidence too, of the tool that keeps silent. */
static void add_silence(struct source *source, struct debounce_round *round,
                        struct finding *findings)
{
    struct finding *finding = &findings[0];

    *finding = (struct finding){.check = "telemetry", .severity = SEVERITY_INFO, .count = 1};
    finding_set_code(finding, "no_answer");
    finding_set_device(finding, str_of(source->kind->name), false);
    finding_set_summary(finding, "%.60s: %.100s", source->kind->name, source->collector.reason);
    round->count = 1;
    round->silence = true;
}

static void take_answer(struct source *source, struct debounce_round *round,
                        struct finding *findings)
{
    struct look_answer head;
    struct str memory;

    if (!source_read(buf_str(&source->probe.answer), &head, findings, &memory)) {
        collector_unknown(&source->collector, round->now_us, "the answer has another size");
        return;
    }
    source->undead = head.undead;
    source->started = head.started;
    round->count = head.count;
    if (head.state == COLLECTOR_OK) {
        collector_ok(&source->collector, round->now_us);
        debounce_round(&source->debounce, round);
        keep_memory(source, memory);
        return;
    }
    if (head.state == COLLECTOR_ABSENT) {
        bool fast = source->facts.options->collect_interval_ms > 0;

        collector_absent(&source->collector, round->now_us, "%s", head.reason);
        if (head.ends) {
            round->count = 0;
            debounce_round(&source->debounce, round);
            return;
        }
        source->due_us = round->now_us + (fast ? period_us(source) : ABSENT_RETRY_S * 1000000);
        return;
    }
    collector_unknown(&source->collector, round->now_us, "%s", head.reason);
    source->due_us = source->collector.retry_us > round->now_us + period_us(source)
                         ? source->collector.retry_us
                         : round->now_us + period_us(source);
    bool told = state_row_find(source->kind->name, "telemetry", "no_answer") != NULL;
    if (head.timed_out && told) {
        add_silence(source, round, findings);
        debounce_round(&source->debounce, round);
    }
}

void source_news(struct source *source, enum probe_news news, struct faults *faults,
                 const struct grace *grace, int64_t now_us)
{
    struct finding findings[LOOK_FINDINGS_MAX];
    struct debounce_round round = {.findings = findings,
                                   .faults = faults,
                                   .grace = grace,
                                   .nvml_ok = source->facts.nvml_ok,
                                   .settings = source->facts.settings,
                                   .now_us = now_us};

    switch (news) {
    case PROBE_ANSWERED:
        take_answer(source, &round, findings);
        buf_free(&source->probe.answer);
        return;
    case PROBE_TIMEOUT:
        collector_unknown(&source->collector, now_us, "%s", source->kind->silent);
        return;
    case PROBE_DIED:
        collector_unknown(&source->collector, now_us, "the probe %s", source->probe.reason);
        return;
    case PROBE_NOTHING:
    case PROBE_GONE:
    default:
        return;
    }
}

int64_t source_due(const struct source *source)
{
    int64_t due = probe_due(&source->probe);

    if (due == INT64_MAX) {
        return source->due_us;
    }
    return due;
}
