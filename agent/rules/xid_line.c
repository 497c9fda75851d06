/* Lines of NVIDIA's driver with an Xid or SXid: what they say and which incident they belong to. */
#include <stdio.h>
#include <string.h>

#include "agent/rules/engine_internal.h"
#include "agent/rules/match.h"
#include "agent/rules/xid.h"

#define XID_MAX 9999
#define SXID_MAX 99999
#define WORDS_MAX 8

struct xid_line {
    struct pci pci;
    uint32_t code;
    struct str rest; /* after the code */
};

/* A newcomer that is a detail of an open root fault of the same GPU. */
static const struct {
    uint32_t newcomer;
    uint32_t root;
} xid_joins[] = {
    /* One uncorrectable memory error writes up to five codes. */
    {63, 48}, {63, 95}, {94, 48}, {94, 95}, {95, 48}, {140, 48}, {171, 48}, {172, 48},
};

static bool cut_number(struct str *text, uint64_t max, uint64_t *ret_value)
{
    struct str digits = {text->ptr, 0};

    while (digits.len < text->len && text->ptr[digits.len] >= '0' && text->ptr[digits.len] <= '9') {
        digits.len++;
    }
    if (!str_parse_u64(digits, 0, max, ret_value)) {
        return false;
    }
    text->ptr += digits.len;
    text->len -= digits.len;
    return true;
}

/* "NVRM: Xid (PCI:0000:01:00 GPU-I:05): 43, pid=..." */
static bool parse_xid(struct str text, struct xid_line *ret_line)
{
    struct str head = STR("NVRM: Xid (");
    uint64_t code;
    ptrdiff_t close;

    text.ptr += head.len;
    text.len -= head.len;
    close = str_find(text, STR("):"), 0);
    if (close < 0 || !pci_parse((struct str){text.ptr, (size_t)close}, &ret_line->pci)) {
        return false;
    }
    text.ptr += close + 2;
    text.len -= (size_t)close + 2;
    text = str_trim(text);
    if (!cut_number(&text, XID_MAX, &code)) {
        return false;
    }
    if (text.len > 0 && text.ptr[0] != ',' && text.ptr[0] != ' ') {
        return false;
    }
    ret_line->code = (uint32_t)code;
    ret_line->rest = text;
    return true;
}

static void set_action(struct finding *finding, enum action action)
{
    finding->action = action;
    finding->severity = action == ACTION_NONE ? SEVERITY_WARNING : SEVERITY_CRITICAL;
    finding->node_fault = action != ACTION_NONE;
    finding->clears = clears_by_action(action);
    finding->deferred = false;
}

/* "GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)"; the line may be cut. */
static void read_recovery(const struct xid_line *line, struct finding *finding)
{
    const struct recovery_row *row = NULL;
    struct match match;
    uint64_t value;

    finding->clears = CLEARS_EVENT;
    if (match_text("*action changed from %x * to %x (*", line->rest, &match) &&
        str_parse_hex_u64(match.captures[1], &value) && value <= UINT32_MAX) {
        row = recovery_find((uint32_t)value);
    }
    if (row == NULL) {
        return;
    }
    set_action(finding, row->action);
    finding->clears = CLEARS_EVENT;
    finding_set_summary(finding, "GPU %s: the driver's recovery action is now \"%s\"",
                        line->pci.text, row->text);
    if (row->value == 0) {
        finding_demote(finding);
        finding->clear = true;
    }
}

static size_t read_words(struct str text, uint32_t *words)
{
    ptrdiff_t open = str_find(text, STR("(0x"), 0);
    struct str word;
    uint64_t value;
    size_t count = 0;

    if (open < 0) {
        return 0;
    }
    text.ptr += open + 1;
    text.len -= (size_t)open + 1;
    while (count < WORDS_MAX && str_split(&text, ' ', &word)) {
        bool last = word.len > 0 && word.ptr[word.len - 1] == ')';

        if (last) {
            word.len--;
        }
        if (!str_parse_hex_u64(word, &value) || value > UINT32_MAX) {
            break;
        }
        words[count++] = (uint32_t)value;
        if (last) {
            break;
        }
    }
    return count;
}

/* ", [pid=1, name=x::y,] UNIT  Fatal  XC0 i0 Link 01 (0x...)": the unit is the word before Fatal or
 * Nonfatal; those words themselves are not authoritative. */
static struct str read_unit(struct str text)
{
    struct str before = {NULL, 0};
    struct str word;

    while (str_split(&text, ' ', &word)) {
        if (str_eq_c(word, "Fatal") || str_eq_c(word, "Nonfatal") || str_eq_c(word, "Non-fatal")) {
            return before;
        }
        if (word.len > 0) {
            before = word;
        }
    }
    return (struct str){NULL, 0};
}

static void read_nvlink5(const struct xid_line *line, struct finding *finding)
{
    uint32_t words[WORDS_MAX];
    size_t count = read_words(line->rest, words);

    switch (nvlink5_decode(line->code, read_unit(line->rest), words, count)) {
    case NVLINK5_RESET:
        set_action(finding, ACTION_RESET_GPU);
        break;
    case NVLINK5_UNKNOWN:
    case NVLINK5_IGNORE:
    case NVLINK5_EVALUATE:
    default:
        set_action(finding, ACTION_NONE);
        break;
    }
}

static void describe_xid(const struct xid_line *line, struct finding *finding)
{
    xid_describe(line->code, line->pci.text, finding);
    if (line->code == 154) {
        read_recovery(line, finding);
    } else if (line->code >= 144 && line->code <= 150) {
        read_nvlink5(line, finding);
    }
}

static bool is_root(const struct incident *incident)
{
    return incident->finding.device_is_gpu && !incident->finding.clear &&
           incident->finding.severity >= SEVERITY_WARNING &&
           strcmp(incident->finding.check, "gpu_recovery_action") != 0;
}

/* The first fault of this GPU in the window: causes come before what they cause. */
static struct incident *find_root(const struct feed *feed, const char *device)
{
    struct incident *first = NULL;

    for (size_t i = 0; i < INCIDENTS_MAX; i++) {
        struct incident *incident = &feed->engine->incidents[i];

        if (incident->used && is_root(incident) && strcmp(incident->finding.device, device) == 0 &&
            engine_find(feed, incident->finding.check, device, incident->finding.code) ==
                incident &&
            (first == NULL || incident->finding.severity > first->finding.severity ||
             (incident->finding.severity == first->finding.severity &&
              incident->order < first->order))) {
            first = incident;
        }
    }
    return first;
}

static struct incident *find_code(const struct feed *feed, const char *device, uint32_t code)
{
    struct finding wanted;

    finding_set_code_number(&wanted, code);
    return engine_find(feed, NULL, device, wanted.code);
}

/* True when the line belongs to an incident that is open already. */
static bool join_xid(const struct feed *feed, const struct xid_line *line,
                     const struct finding *finding)
{
    struct incident *root = NULL;

    for (size_t i = 0; i < COUNTOF(xid_joins) && root == NULL; i++) {
        if (xid_joins[i].newcomer == line->code) {
            root = find_code(feed, line->pci.text, xid_joins[i].root);
        }
    }
    if (line->code == 154 && !finding->clear) {
        root = find_root(feed, line->pci.text);
        if (root != NULL && finding->action != ACTION_NONE) {
            engine_escalate(root, finding);
        }
    }
    if (line->code == 45) {
        root = find_root(feed, line->pci.text);
    }
    if (line->code == 79) {
        root = engine_find(feed, "gpu_lost", line->pci.text, NULL);
        if (root != NULL && !root->taken && root->finding.code_type != CODE_NUMBER) {
            finding_set_code_number(&root->finding, line->code);
            (void)memcpy(root->finding.summary, finding->summary, sizeof(finding->summary));
        }
    }
    if (root == NULL) {
        return false;
    }
    engine_note(feed, root);
    return true;
}

/* What was told before its cause and not given out yet goes into the cause. */
static void absorb_details(const struct feed *feed, const struct xid_line *line,
                           struct incident *root)
{
    struct incident *victim;

    for (size_t i = 0; i < COUNTOF(xid_joins); i++) {
        if (xid_joins[i].root != line->code) {
            continue;
        }
        victim = find_code(feed, line->pci.text, xid_joins[i].newcomer);
        if (victim != NULL && victim != root && !victim->taken) {
            engine_absorb(root, victim);
        }
    }
    victim = engine_find(feed, "gpu_recovery_action", line->pci.text, NULL);
    if (victim != NULL && victim != root && is_root(root) && !victim->taken &&
        !victim->finding.clear) {
        engine_absorb(root, victim);
    }
    victim = engine_find(feed, "pcie_aer", NULL, "fatal");
    if (victim != NULL && line->code == 79 && !victim->taken) {
        /* A surprise-down on the root port and the loss of the GPU are one event. */
        engine_absorb(root, victim);
    }
}

/* Two transitions of one GPU: the last one holds. */
static bool replace_recovery(const struct feed *feed, const struct finding *finding)
{
    struct incident *open = engine_find(feed, "gpu_recovery_action", finding->device, NULL);

    if (open == NULL || open->taken) {
        return false;
    }
    uint64_t count = open->finding.count;
    open->finding = *finding;
    open->finding.count = count + 1;
    engine_note(feed, open);
    return true;
}

bool xid_feed(const struct feed *feed)
{
    struct finding finding = {.check = NULL};
    struct xid_line line;
    struct incident *incident;

    if (!str_starts(feed->text, STR("NVRM: Xid ("))) {
        return false;
    }
    if (!parse_xid(feed->text, &line)) {
        feed->engine->unparsed++;
        return true;
    }
    describe_xid(&line, &finding);
    if (join_xid(feed, &line, &finding) || (line.code == 154 && replace_recovery(feed, &finding))) {
        return true;
    }
    if (line.code == 45 && (incident = engine_find(feed, "gpu_xid", NULL, "45")) != NULL) {
        /* One job's end tears down its channels on all its GPUs: one fact, told by the first. */
        incident->finding.count += feed->record->repeat;
        engine_note(feed, incident);
        return true;
    }
    incident = engine_add(feed, &finding);
    absorb_details(feed, &line, incident);
    return true;
}

/* Error counters of a link that retry by themselves: a trend, also when the line says Non-fatal. */
static bool is_trend(uint64_t code)
{
    return code == 20001 || code == 20009 || code == 20012;
}

/* Severity from the line itself, then from the table; NVIDIA's own lists do not cover SOE halts. */
static void judge_sxid(struct finding *finding, uint64_t code, struct str rest)
{
    const struct xid_row *row = sxid_find((uint32_t)code);
    struct match match;

    finding->severity = SEVERITY_WARNING;
    if (match_text("Fatal,*", rest, &match) || match_text("*HALT*", rest, &match)) {
        finding->severity = SEVERITY_CRITICAL;
    } else if (match_text("Severity %d Engine instance*", rest, &match) ||
               match_text("Data {*", rest, &match)) {
        finding->severity = SEVERITY_INFO;
    } else if (match_text("(?i)Non-fatal,*", rest, &match)) {
        if (is_trend(code) || (row != NULL && row->severity == SEVERITY_INFO)) {
            finding->severity = SEVERITY_INFO;
        }
    } else if (row != NULL && !row->by_text) {
        finding->severity = row->severity;
    }
    if (finding->severity == SEVERITY_CRITICAL) {
        finding->action = ACTION_REBOOT;
        finding->node_fault = true;
    }
    finding->clears = clears_by_action(finding->action);
}

/* "nvidia-nvswitch0: SXid (PCI:0000:00:00.0): 20034, Fatal, Link 30 LTSSM Fault Up" */
bool sxid_feed(const struct feed *feed)
{
    struct finding finding = {.check = "nvswitch_sxid", .quiet_seconds = QUIET_DEFAULT_SECONDS};
    struct match match;
    struct str rest;
    uint64_t code;
    char device[32];

    if (!match_text("nvidia-nvswitch%d: SXid (PCI:%p): %d, *", feed->text, &match)) {
        return false;
    }
    if (!str_parse_u64(match.captures[2], 0, SXID_MAX, &code) || match.captures[0].len > 4) {
        feed->engine->unparsed++;
        return true;
    }
    rest.ptr = match.captures[2].ptr + match.captures[2].len + 1;
    rest.len = (size_t)(feed->text.ptr + feed->text.len - rest.ptr);
    rest = str_trim(rest);
    (void)snprintf(device, sizeof(device), "nvswitch%.*s", STR_FMT(match.captures[0]));
    finding_set_code_number(&finding, (int64_t)code);
    finding_set_device(&finding, str_of(device), false);
    judge_sxid(&finding, code, rest);
    finding_set_summary(&finding, "NVSwitch %.*s: SXid %u, %.*s", STR_FMT(match.captures[0]),
                        (unsigned)code, rest.len > 120 ? 120 : (int)rest.len, rest.ptr);

    struct incident *open = engine_find(feed, finding.check, device, finding.code);
    if (open != NULL && finding.severity == SEVERITY_INFO && !open->taken) {
        engine_note(feed, open);
        return true;
    }
    struct incident *incident = engine_add(feed, &finding);
    engine_escalate(incident, &finding);
    return true;
}
