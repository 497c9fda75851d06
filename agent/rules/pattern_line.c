/* Lines that a row of the pattern table fits: from the row to the incident. */
#include <stdio.h>
#include <string.h>

#include "agent/rules/engine_internal.h"
#include "agent/rules/match.h"
#include "agent/rules/patterns.h"

/* A GPU that vanishes is reported by its port first and by its driver about 100 ms later. */
#define HOLD_US 400000
/* The kernel repeats a lockup every 20-odd seconds; five minutes are no hiccup any more. */
#define LOCKUP_FAULT_S 300
/* Three times the same CPU, a pause of three minutes at most between two, is none either; many CPUs
 * at once may be one hiccup of a virtual machine. */
#define LOCKUP_FAULT_COUNT 3
#define EDAC_WARN_COUNT 100
/* Machine checks written this early are what the boot before left in the banks. */
#define MCE_LEFTOVER_US 10000000
/* The status word of a bank: bit 61 = uncorrected (Intel SDM 3B, 16.3.2.2). */
#define MCI_STATUS_UC (UINT64_C(1) << 61)
/* Azure's limit is five a day. */
#define FLAP_WARN_COUNT 5

struct fit {
    const struct feed *feed;
    const struct pattern *row;
    const struct match *match;
};

static struct str capture(const struct fit *fit, size_t number)
{
    if (number == 0 || number > fit->match->count) {
        return (struct str){NULL, 0};
    }
    return fit->match->captures[number - 1];
}

static uint64_t capture_number(const struct fit *fit, size_t number)
{
    uint64_t value;

    return str_parse_u64(capture(fit, number), 0, UINT32_MAX, &value) ? value : UINT32_MAX;
}

/* "ce $2": the number of a capture, in place. */
static void fill_code(const struct fit *fit, struct finding *finding)
{
    const char *dollar;

    if (fit->row->code == NULL) {
        return;
    }
    dollar = strchr(fit->row->code, '$');
    if (dollar == NULL) {
        finding_set_code(finding, "%s", fit->row->code);
        return;
    }
    struct str value = capture(fit, (size_t)(dollar[1] - '0'));
    if (value.len > 24) {
        value.len = 24;
    }
    finding_set_code(finding, "%.*s%.*s", (int)(dollar - fit->row->code), fit->row->code,
                     STR_FMT(value));
}

static void fill_device(const struct fit *fit, struct finding *finding)
{
    struct str name = capture(fit, (size_t)fit->row->device);
    struct pci pci;

    switch (fit->row->device_kind) {
    case DEVICE_GPU:
    case DEVICE_PCI:
        if (pci_parse(name, &pci)) {
            finding_set_device(finding, str_of(pci.text), fit->row->device_kind == DEVICE_GPU);
        }
        break;
    case DEVICE_NAME:
        finding_set_device(finding, name, false);
        break;
    case DEVICE_NONE:
    default:
        break;
    }
}

static struct finding describe(const struct fit *fit)
{
    const struct pattern *row = fit->row;
    struct finding finding = {
        .check = row->check,
        .severity = row->severity,
        .action = row->action,
        .node_fault = row->node_fault,
        .clears = row->clears,
        .quiet_seconds = row->quiet_seconds,
    };

    fill_code(fit, &finding);
    fill_device(fit, &finding);
    finding_set_summary(&finding, "%s%s%s", row->title, finding.device[0] != '\0' ? ": " : "",
                        finding.device);
    return finding;
}

static void set_fault(struct finding *finding, enum action action)
{
    finding->severity = SEVERITY_CRITICAL;
    finding->action = action;
    finding->node_fault = true;
    finding->clears = clears_by_action(action);
}

static void add_held(const struct fit *fit, const struct finding *finding)
{
    struct incident *incident = engine_add(fit->feed, finding);

    if (!incident->taken && incident->not_before_us == INT64_MIN) {
        incident->not_before_us = fit->feed->now_us + HOLD_US;
    }
}

/* Evidence for an open incident of the check on the same device, or on any when the line names
 * none; a warning is held open too, so that one fault does not become two. */
static void add_joined(const struct fit *fit, const struct finding *finding)
{
    const char *device = finding->device[0] != '\0' ? finding->device : NULL;
    struct incident *open = engine_find(fit->feed, finding->check, device, NULL);

    if (open == NULL) {
        (void)engine_add(fit->feed, finding);
        return;
    }
    if (finding->node_fault) {
        engine_escalate(open, finding);
    }
    engine_note(fit->feed, open);
}

static void add_aer(const struct fit *fit, const struct finding *finding)
{
    struct incident *lost = engine_find(fit->feed, "gpu_lost", NULL, NULL);

    if (lost != NULL) {
        engine_note(fit->feed, lost);
        return;
    }
    add_held(fit, finding);
}

static void add_lost(const struct fit *fit, const struct finding *finding)
{
    struct incident *open = engine_find(fit->feed, "gpu_lost", finding->device, NULL);

    if (open != NULL) {
        engine_note(fit->feed, open);
        return;
    }
    open = engine_add(fit->feed, finding);
    struct incident *port = engine_find(fit->feed, "pcie_aer", NULL, "fatal");
    if (port != NULL && !port->taken) {
        engine_absorb(open, port);
    }
}

static void add_init(const struct fit *fit, const struct finding *finding)
{
    struct incident *before = engine_find(fit->feed, finding->check, "", NULL);
    struct incident *incident = engine_add(fit->feed, finding);

    engine_escalate(incident, finding);
    if (before != NULL && before != incident && !before->taken) {
        engine_absorb(incident, before);
    }
}

static void add_clear(const struct fit *fit, struct finding *finding)
{
    struct incident *open = engine_find(fit->feed, finding->check, finding->device, NULL);

    finding->clear = true;
    if (open != NULL && !open->taken) {
        open->finding = *finding;
        open->finding.count = 1;
        (void)snprintf(open->finding.fold_code, sizeof(open->finding.fold_code), "not_responding");
        engine_note(fit->feed, open);
        return;
    }
    (void)snprintf(finding->fold_code, sizeof(finding->fold_code), "not_responding");
    (void)engine_add(fit->feed, finding);
}

static void add_soft_lockup(const struct fit *fit, struct finding *finding)
{
    if (capture_number(fit, 2) >= LOCKUP_FAULT_S) {
        set_fault(finding, ACTION_REBOOT);
    }
    add_held(fit, finding);
    struct incident *open = engine_find(fit->feed, finding->check, NULL, NULL);
    if (open == NULL) {
        return;
    }
    uint64_t cpu = capture_number(fit, 1);
    open->part = open->repeats == 0 ? cpu : open->part;
    open->repeats += open->part == cpu ? fit->feed->record->repeat : 0;
    if (open->repeats >= LOCKUP_FAULT_COUNT) {
        set_fault(finding, ACTION_REBOOT);
    }
    engine_escalate(open, finding);
}

/* The register dump behind a soft lockup says whose loop it is. */
static void add_nic_lockup(const struct fit *fit, struct finding *finding)
{
    struct incident *open = engine_find(fit->feed, "kernel_soft_lockup", NULL, NULL);

    if (open == NULL) {
        return;
    }
    if (open->taken) {
        (void)engine_add(fit->feed, finding);
        return;
    }
    finding->count = open->finding.count;
    open->finding = *finding;
    engine_note(fit->feed, open);
}

static void add_edac(const struct fit *fit, struct finding *finding)
{
    bool overflow = str_find(fit->feed->text, STR("OVERFLOW"), 0) >= 0;
    uint64_t count = capture_number(fit, 2);

    (void)snprintf(finding->fold_code, sizeof(finding->fold_code), "%.2s", finding->code);
    if (finding->severity == SEVERITY_INFO && (overflow || count >= EDAC_WARN_COUNT)) {
        finding->severity = SEVERITY_WARNING;
    }
    (void)engine_add(fit->feed, finding);
}

static void add_mce(const struct fit *fit, struct finding *finding)
{
    int64_t uptime_us = fit->feed->record->uptime_us;
    uint64_t status = 0;

    if (uptime_us >= 0 && uptime_us < MCE_LEFTOVER_US) {
        finding->severity = SEVERITY_WARNING;
        finding_set_code(finding, "mce_leftover");
        finding_set_summary(finding, "machine check left by the boot before");
    } else if (str_parse_hex_u64(capture(fit, 4), &status) && (status & MCI_STATUS_UC) != 0) {
        set_fault(finding, ACTION_REBOOT);
    }
    add_joined(fit, finding);
}

static void add_buffer_io(const struct fit *fit, const struct finding *finding)
{
    struct incident *disk = engine_find(fit->feed, "disk_nvme", NULL, NULL);

    if (disk != NULL && disk->finding.node_fault) {
        engine_note(fit->feed, disk);
        return;
    }
    (void)engine_add(fit->feed, finding);
}

static void add_flap(const struct fit *fit, struct finding *finding)
{
    /* Management and data ports are named otherwise; only the fabric's links are judged here. */
    if (!str_starts(str_of(finding->device), STR("ib"))) {
        finding->check = "eth_link";
    }
    (void)snprintf(finding->fold_code, sizeof(finding->fold_code), "flap");
    struct incident *incident = engine_add(fit->feed, finding);
    uint64_t count = incident->finding.count;
    if (count >= FLAP_WARN_COUNT) {
        incident->finding.severity = SEVERITY_WARNING;
        finding_set_code(&incident->finding, "flap %llu/24h", (unsigned long long)count);
    } else {
        finding_set_code(&incident->finding, "flap %llu", (unsigned long long)count);
    }
}

static void add_refined(const struct fit *fit, struct finding *finding)
{
    const struct facts *facts = &fit->feed->engine->facts;

    switch (fit->row->refine) {
    case REFINE_CONTEXT:
        engine_remember(fit->feed, str_of(finding->device));
        return;
    case REFINE_JOIN:
        add_joined(fit, finding);
        return;
    case REFINE_CLEAR:
        add_clear(fit, finding);
        return;
    case REFINE_INIT:
        add_init(fit, finding);
        return;
    case REFINE_HOLD:
        add_held(fit, finding);
        return;
    case REFINE_AER:
        add_aer(fit, finding);
        return;
    case REFINE_LOST:
        add_lost(fit, finding);
        return;
    case REFINE_SOFT_LOCKUP:
        add_soft_lockup(fit, finding);
        return;
    case REFINE_NIC_LOCKUP:
        add_nic_lockup(fit, finding);
        return;
    case REFINE_EDAC:
        add_edac(fit, finding);
        return;
    case REFINE_MCE:
        add_mce(fit, finding);
        return;
    case REFINE_BUFFER_IO:
        add_buffer_io(fit, finding);
        return;
    case REFINE_FLAP:
        add_flap(fit, finding);
        return;
    case REFINE_MISMATCH:
        if (facts->driver_works) {
            finding_demote(finding);
            finding->severity = SEVERITY_WARNING;
            finding->clears = CLEARS_QUIET;
            finding->quiet_seconds = QUIET_DEFAULT_SECONDS;
        }
        break;
    case REFINE_HUNG_TASK:
        if (facts->driver_hangs) {
            set_fault(finding, ACTION_REBOOT);
        }
        break;
    case REFINE_NO_SWITCH:
        if (facts->nvswitch_count == 0) {
            finding->severity = SEVERITY_INFO;
        }
        break;
    case REFINE_NONE:
    default:
        break;
    }
    (void)engine_add(fit->feed, finding);
}

bool pattern_feed(const struct feed *feed)
{
    struct str ident = feed->record->ident;
    struct match match;

    for (size_t i = 0; i < pattern_count; i++) {
        const struct pattern *row = &patterns[i];
        bool theirs = row->service == NULL ? ident.len == 0 : str_eq_c(ident, row->service);

        if (!theirs || !match_text(row->pattern, feed->text, &match)) {
            continue;
        }
        struct fit fit = {.feed = feed, .row = row, .match = &match};
        struct finding finding = describe(&fit);
        add_refined(&fit, &finding);
        return true;
    }
    return false;
}
