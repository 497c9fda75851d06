/* From findings to events in the spool, and the list of what is open. */
#include "agent/faults.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "agent/json_path.h"
#include "agent/saver.h"
#include "base/clock.h"
#include "base/encode.h"
#include "base/file.h"
#include "base/log.h"

/* A node with more than this open at once has other problems. */
#define FAULTS_MAX 256
#define LINES_MAX EVIDENCE_MAX

struct fault {
    char check[64];
    char device[FINDING_DEVICE_CAP];
    char code[FINDING_CODE_CAP];
    char boot[UUID_TEXT_LEN + 1];
    enum severity severity;
    enum clears clears;
    bool node_fault;
    bool state; /* opened by a reading, not by a line */
};

/* What the spool held at the start: told, but perhaps behind the mark of the kernel's log. */
struct told {
    char check[64];
    char device[FINDING_DEVICE_CAP];
    char code[FINDING_CODE_CAP];
    int64_t kmsg_seq;
};

struct faults {
    struct saver *saver;
    char path[PATH_MAX];
    char boot[UUID_TEXT_LEN + 1];
    struct spool *spool;
    const struct settings *settings; /* NULL = every check is told */
    struct fault open[FAULTS_MAX];
    size_t count;
    bool changed;
    struct told told[FAULTS_MAX];
    size_t told_count;
};

static const char *event_code(const struct finding *finding)
{
    return finding->fold_code[0] != '\0' ? finding->fold_code : finding->code;
}

static void write_lines(const struct fault_report *report, struct enc *enc)
{
    enc_key(enc, "lines");
    enc_arr(enc);
    for (size_t i = 0; i < report->line_count && i < LINES_MAX; i++) {
        const struct evidence *line = &report->lines[i];

        enc_obj(enc);
        enc_key(enc, "at");
        enc_time(enc, line->at_us > 0 ? line->at_us : report->at_us);
        enc_key(enc, "source");
        enc_cstr(enc, report->source);
        enc_key(enc, "text");
        enc_cstr(enc, line->text);
        enc_key(enc, "opened");
        enc_bool(enc, line->opened);
        enc_obj_end(enc);
    }
    enc_arr_end(enc);
}

void event_write(const struct fault_report *report, bool clear, struct buf *out)
{
    const struct finding *finding = report->finding;
    struct enc enc;

    enc_init(&enc, out);
    enc_obj(&enc);
    enc_key(&enc, "at");
    enc_time(&enc, report->at_us > 0 ? report->at_us : clock_wall_us());
    enc_key(&enc, "check_id");
    enc_cstr(&enc, finding->check);
    enc_key(&enc, "code");
    enc_cstr(&enc, event_code(finding));
    enc_key(&enc, "device");
    enc_cstr(&enc, finding->device);
    enc_key(&enc, "severity");
    enc_cstr(&enc, severity_name(finding->severity));
    enc_key(&enc, "action");
    enc_cstr(&enc, action_name(finding->action));
    enc_key(&enc, "node_fault");
    enc_bool(&enc, finding->node_fault);
    enc_key(&enc, "clears");
    enc_cstr(&enc, clears_name(finding->clears));
    enc_key(&enc, "quiet_seconds");
    enc_i64(&enc, finding->clears == CLEARS_QUIET ? finding->quiet_seconds : 0);
    enc_key(&enc, "count");
    enc_i64(&enc, finding->count > 0 ? (int64_t)finding->count : 1);
    if (clear) {
        enc_key(&enc, "clear");
        enc_bool(&enc, true);
    }
    enc_key(&enc, "summary");
    enc_cstr(&enc, finding->summary);
    if (report->kmsg_seq > 0) {
        enc_key(&enc, "kmsg_seq");
        enc_i64(&enc, report->kmsg_seq);
    }
    write_lines(report, &enc);
    enc_obj_end(&enc);
}

/* Streams of the protocol: 0 critical, 1 other faults, 2 information. */
static unsigned stream_of(enum severity severity)
{
    return severity == SEVERITY_CRITICAL ? 0 : severity == SEVERITY_WARNING ? 1 : 2;
}

static void put(struct faults *faults, const struct fault_report *report, bool clear,
                enum severity stream_severity)
{
    CLEANUP(buf_free) struct buf json = {0};

    event_write(report, clear, &json);
    if (json.len > SPOOL_RECORD_MAX) {
        /* Never in practice: texts are bounded, but each byte may need an escape. */
        struct fault_report bare = *report;
        bare.line_count = 0;
        buf_clear(&json);
        event_write(&bare, clear, &json);
    }
    if (!spool_add(faults->spool, stream_of(stream_severity), buf_str(&json))) {
        log_warning("an event of %s was dropped", report->finding->check);
    }
}

/* ---- the list on disk: check, device, code, boot, severity, clears, node fault,
 * whether it is a state; tab separated */

static void copy_field(char *to, size_t cap, struct str text)
{
    (void)snprintf(to, cap, "%.*s", text.len > 200 ? 200 : (int)text.len, text.ptr);
}

static bool parse_fault(struct str line, struct fault *ret_fault)
{
    struct str parts[8];
    size_t count = 0;

    while (count < COUNTOF(parts) && str_split(&line, '\t', &parts[count])) {
        count++;
    }
    if (count != COUNTOF(parts) || parts[0].len == 0 ||
        !severity_parse(parts[4], &ret_fault->severity) ||
        !clears_parse(parts[5], &ret_fault->clears)) {
        return false;
    }
    copy_field(ret_fault->check, sizeof(ret_fault->check), parts[0]);
    copy_field(ret_fault->device, sizeof(ret_fault->device), parts[1]);
    copy_field(ret_fault->code, sizeof(ret_fault->code), parts[2]);
    copy_field(ret_fault->boot, sizeof(ret_fault->boot), parts[3]);
    ret_fault->node_fault = str_eq_c(parts[6], "fault");
    ret_fault->state = str_eq_c(parts[7], "state");
    return true;
}

static void load(struct faults *faults)
{
    CLEANUP(buf_free) struct buf data = {0};
    struct str line;

    if (file_read(faults->path, (size_t)FAULTS_MAX * 512, &data) != 0) {
        return;
    }
    struct str rest = buf_str(&data);
    while (faults->count < FAULTS_MAX && str_split(&rest, '\n', &line)) {
        if (parse_fault(line, &faults->open[faults->count])) {
            faults->count++;
        }
    }
}

void faults_save(struct faults *faults)
{
    CLEANUP(buf_free) struct buf text = {0};

    if (!faults->changed && !saver_failed(faults->saver)) {
        return;
    }
    for (size_t i = 0; i < faults->count; i++) {
        const struct fault *fault = &faults->open[i];

        buf_printf(&text, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", fault->check, fault->device,
                   fault->code, fault->boot, severity_name(fault->severity),
                   clears_name(fault->clears), fault->node_fault ? "fault" : "warning",
                   fault->state ? "state" : "line");
    }
    faults->changed = false;
    saver_put(faults->saver, &text);
}

void faults_flush(struct faults *faults)
{
    faults_save(faults);
    saver_flush(faults->saver);
}

static bool fits(const struct fault *fault, const char *check, const char *device)
{
    return (check == NULL || strcmp(fault->check, check) == 0) &&
           (device == NULL || strcmp(fault->device, device) == 0);
}

static void forget(struct faults *faults, size_t at)
{
    faults->open[at] = faults->open[--faults->count];
    faults->changed = true;
}

/* Information and what ends by time or by a person needs no memory here. */
static void remember(struct faults *faults, const struct finding *finding, bool state)
{
    struct fault fault = {.severity = finding->severity,
                          .clears = finding->clears,
                          .node_fault = finding->node_fault,
                          .state = state};

    if (finding->clears != CLEARS_EVENT && !finding->node_fault) {
        return;
    }
    (void)snprintf(fault.check, sizeof(fault.check), "%s", finding->check);
    (void)snprintf(fault.device, sizeof(fault.device), "%s", finding->device);
    (void)snprintf(fault.code, sizeof(fault.code), "%s", event_code(finding));
    (void)snprintf(fault.boot, sizeof(fault.boot), "%s", faults->boot);
    for (char *c = fault.device; *c != '\0'; c++) {
        if (*c == '\t' || *c == '\n') {
            *c = ' ';
        }
    }
    for (size_t i = 0; i < faults->count; i++) {
        struct fault *mine = &faults->open[i];

        if (fits(mine, fault.check, fault.device) && strcmp(mine->code, fault.code) == 0) {
            if (fault.severity > mine->severity) {
                *mine = fault;
                faults->changed = true;
            }
            return;
        }
    }
    if (faults->count < FAULTS_MAX) {
        faults->open[faults->count++] = fault;
        faults->changed = true;
    }
}

static void read_told(uint64_t seq, struct str json, void *ctx)
{
    struct faults *faults = ctx;
    struct told told;
    struct str check;
    struct str device;
    struct str code;

    (void)seq;
    if (!json_path_i64(json, "kmsg_seq", &told.kmsg_seq) ||
        !json_path_text(json, "check_id", &check) || !json_path_text(json, "device", &device) ||
        !json_path_text(json, "code", &code)) {
        return;
    }
    copy_field(told.check, sizeof(told.check), check);
    copy_field(told.device, sizeof(told.device), device);
    copy_field(told.code, sizeof(told.code), code);
    if (faults->told_count == FAULTS_MAX) {
        /* The newest are those that the mark may have missed. */
        memmove(&faults->told[0], &faults->told[1], (FAULTS_MAX - 1) * sizeof(struct told));
        faults->told_count--;
    }
    faults->told[faults->told_count++] = told;
}

bool faults_knows(const struct faults *faults, const struct finding *finding, int64_t kmsg_seq)
{
    for (size_t i = 0; i < faults->told_count; i++) {
        const struct told *told = &faults->told[i];

        if (told->kmsg_seq >= kmsg_seq && kmsg_seq > 0 &&
            strcmp(told->check, finding->check) == 0 &&
            strcmp(told->device, finding->device) == 0 &&
            strcmp(told->code, event_code(finding)) == 0) {
            return true;
        }
    }
    return false;
}

struct faults *faults_open(const char *path, struct spool *spool, const char *boot_id)
{
    struct faults *faults = calloc(1, sizeof(*faults));

    assert(faults != NULL);
    (void)snprintf(faults->path, sizeof(faults->path), "%s", path);
    (void)snprintf(faults->boot, sizeof(faults->boot), "%s", boot_id);
    faults->spool = spool;
    faults->saver = saver_new(faults->path);
    load(faults);
    for (unsigned i = 0; i < SPOOL_STREAMS; i++) {
        (void)spool_peek(spool, i, SIZE_MAX, SIZE_MAX, read_told, faults);
    }
    return faults;
}

void faults_close(struct faults *faults)
{
    if (faults == NULL) {
        return;
    }
    saver_free(faults->saver);
    free(faults);
}

void faults_set_settings(struct faults *faults, const struct settings *settings)
{
    faults->settings = settings;
}

static bool is_off(const struct faults *faults, const struct finding *finding)
{
    return faults->settings != NULL && settings_is_off(faults->settings, finding->check);
}

static void tell_clear(struct faults *faults, const struct fault *fault, const char *why)
{
    struct finding finding = {
        .check = fault->check, .severity = fault->severity, .clears = fault->clears, .count = 1};
    struct fault_report report = {.finding = &finding, .source = "agent"};

    (void)snprintf(finding.code, sizeof(finding.code), "%s", fault->code);
    (void)snprintf(finding.device, sizeof(finding.device), "%s", fault->device);
    finding_set_summary(&finding, "%s", why);
    put(faults, &report, true, fault->severity);
}

void faults_clear(struct faults *faults, const char *check, const char *device, const char *why)
{
    for (size_t i = faults->count; i-- > 0;) {
        if (fits(&faults->open[i], check, device) && faults->open[i].clears == CLEARS_EVENT) {
            tell_clear(faults, &faults->open[i], why);
            forget(faults, i);
        }
    }
}

/* The driver says that this GPU needs no recovery any more: what a reset ends has ended. */
static void tell_recovered(struct faults *faults, const struct fault_report *report)
{
    const struct finding *finding = report->finding;
    bool gpu_wide = strcmp(finding->check, "gpu_recovery_action") == 0;

    faults_clear(faults, gpu_wide ? NULL : finding->check, finding->device, finding->summary);
    put(faults, report, false, SEVERITY_INFO);
}

static void tell(struct faults *faults, const struct fault_report *report, bool state)
{
    if (report->finding->clear) {
        tell_recovered(faults, report);
        return;
    }
    if (is_off(faults, report->finding)) {
        return;
    }
    put(faults, report, false, report->finding->severity);
    remember(faults, report->finding, state);
}

void faults_tell(struct faults *faults, const struct fault_report *report)
{
    tell(faults, report, false);
}

void faults_begin_boot(struct faults *faults)
{
    for (size_t i = faults->count; i-- > 0;) {
        struct fault *fault = &faults->open[i];

        if (strcmp(fault->boot, faults->boot) == 0) {
            continue;
        }
        if (fault->state) {
            (void)snprintf(fault->boot, sizeof(fault->boot), "%s", faults->boot);
            faults->changed = true;
            continue;
        }
        if (fault->clears == CLEARS_EVENT) {
            tell_clear(faults, fault, "the node has booted anew");
        }
        forget(faults, i);
    }
}

static struct fault *find_open(struct faults *faults, const char *check, const char *device)
{
    for (size_t i = 0; i < faults->count; i++) {
        if (fits(&faults->open[i], check, device)) {
            return &faults->open[i];
        }
    }
    return NULL;
}

static void end_state(struct faults *faults, const char *check, const char *device, const char *why)
{
    for (size_t i = faults->count; i-- > 0;) {
        if (faults->open[i].state && fits(&faults->open[i], check, device)) {
            tell_clear(faults, &faults->open[i], why);
            forget(faults, i);
        }
    }
}

void faults_state(struct faults *faults, const struct fault_report *report, bool bad)
{
    const struct finding *finding = report->finding;
    struct fault *open = find_open(faults, finding->check, finding->device);

    if (!bad) {
        if (open != NULL) {
            end_state(faults, finding->check, finding->device, finding->summary);
        }
        return;
    }
    if (open == NULL || finding->severity > open->severity) {
        if (open != NULL && strcmp(open->code, event_code(finding)) != 0) {
            end_state(faults, finding->check, finding->device, "it became another fault");
        }
        tell(faults, report, true);
    }
}

void faults_reading(struct faults *faults, const struct fault_report *report, bool bad)
{
    const struct finding *finding = report->finding;
    const char *code = event_code(finding);

    for (size_t i = faults->count; i-- > 0;) {
        struct fault *fault = &faults->open[i];

        if (!fault->state || !fits(fault, finding->check, finding->device) ||
            strcmp(fault->code, code) != 0) {
            continue;
        }
        if (!bad) {
            tell_clear(faults, fault, finding->summary);
            forget(faults, i);
            return;
        }
        if (finding->severity <= fault->severity) {
            return;
        }
    }
    if (bad) {
        tell(faults, report, true);
    }
}

int faults_gravest(const struct faults *faults, const char *check, const char *device)
{
    int gravest = -1;

    for (size_t i = 0; i < faults->count; i++) {
        const struct fault *fault = &faults->open[i];

        if (fits(fault, check, device) && (int)fault->severity > gravest) {
            gravest = (int)fault->severity;
        }
    }
    return gravest;
}

void faults_each_reading(const struct faults *faults,
                         void (*each)(const char *check, const char *device, const char *code,
                                      void *ctx),
                         void *ctx)
{
    for (size_t i = 0; i < faults->count; i++) {
        if (faults->open[i].state) {
            each(faults->open[i].check, faults->open[i].device, faults->open[i].code, ctx);
        }
    }
}

bool faults_has(const struct faults *faults, const char *check, const char *device)
{
    for (size_t i = 0; i < faults->count; i++) {
        if (fits(&faults->open[i], check, device)) {
            return true;
        }
    }
    return false;
}

bool faults_has_node_fault(const struct faults *faults, const char *device)
{
    for (size_t i = 0; i < faults->count; i++) {
        if (faults->open[i].node_fault && strcmp(faults->open[i].device, device) == 0) {
            return true;
        }
    }
    return false;
}

void faults_copy_code(const struct faults *faults, const char *check, const char *device,
                      char *code, size_t cap)
{
    for (size_t i = 0; i < faults->count; i++) {
        if (fits(&faults->open[i], check, device)) {
            (void)snprintf(code, cap, "%s", faults->open[i].code);
            return;
        }
    }
}
