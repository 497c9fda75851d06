/* Metrics of dcgm-exporter and the JSON of `dcgmi health`. */
#include "agent/classify/dcgm.h"

#include <stdio.h>
#include <string.h>

#include "agent/classify/classify.h"
#include "agent/json_path.h"
#include "agent/rules/xid.h"

#define GPUS_MAX 64
/* DCGM writes "blank" values from here up: not supported, not found, not permitted. */
#define BLANK_FROM INT64_C(0x7ffffffffffffff0)

/* What several lines say about one GPU together. */
struct gpu_view {
    char gpu[16];
    double engine_active; /* profiling; -1 = not seen */
    double util;          /* percent; -1 = not seen */
};

bool dcgm_parse(struct str line, struct dcgm_sample *ret_sample)
{
    ptrdiff_t open = str_find(line, STR("{"), 0);
    ptrdiff_t close = str_find(line, STR("} "), 0);

    if (open <= 0 || close < open || line.ptr[0] == '#') {
        return false;
    }
    ret_sample->name = (struct str){line.ptr, (size_t)open};
    ret_sample->labels = (struct str){line.ptr + open + 1, (size_t)(close - open - 1)};
    ret_sample->value = str_trim((struct str){line.ptr + close + 1, line.len - (size_t)close - 1});
    return true;
}

struct str dcgm_label(const struct dcgm_sample *sample, const char *name)
{
    struct str rest = sample->labels;
    size_t len = strlen(name);

    for (size_t at = 0; at + len + 3 <= rest.len; at++) {
        if ((at == 0 || rest.ptr[at - 1] == ',') && memcmp(rest.ptr + at, name, len) == 0 &&
            rest.ptr[at + len] == '=' && rest.ptr[at + len + 1] == '"') {
            ptrdiff_t end = str_find(rest, STR("\""), at + len + 2);

            if (end < 0) {
                break;
            }
            return (struct str){rest.ptr + at + len + 2, (size_t)end - at - len - 2};
        }
    }
    return (struct str){NULL, 0};
}

bool dcgm_count(const struct dcgm_sample *sample, int64_t *ret_value)
{
    double value;

    if (str_parse_i64(sample->value, 0, BLANK_FROM - 1, ret_value)) {
        return true;
    }
    if (!str_parse_double(sample->value, &value) || value < 0 || value > 1e15) {
        return false;
    }
    *ret_value = (int64_t)value;
    return true;
}

/* Newer releases dropped the S. */
bool dcgm_is_xid_gauge(struct str name)
{
    return str_eq_c(name, "DCGM_FI_DEV_XID_ERRORS") || str_eq_c(name, "DCGM_FI_DEV_XID_ERROR");
}

bool dcgm_is_xid_counter(struct str name)
{
    return str_eq_c(name, "DCGM_EXP_XID_ERRORS_COUNT") ||
           str_eq_c(name, "DCGM_EXP_XID_ERROR_COUNT");
}

/* True when the exporter was seen with another value before: only edges are events, because the
 * gauge keeps its last code for ever. */
static bool is_edge(const struct classify *classify, struct str gpu, int64_t value)
{
    char path[32];
    int64_t before;

    (void)snprintf(path, sizeof(path), "%.*s", gpu.len > 16 ? 16 : (int)gpu.len, gpu.ptr);
    return classify->context->previous.len > 0 &&
           json_path_i64(classify->context->previous, path, &before) && before != value;
}

static void add_xid(struct classify *classify, struct str gpu, int64_t code, int64_t count,
                    bool event)
{
    struct finding finding;
    char device[16];

    if (code <= 0 || code > 9999) {
        return;
    }
    (void)snprintf(device, sizeof(device), "%.*s", gpu.len > 15 ? 15 : (int)gpu.len, gpu.ptr);
    xid_describe((uint32_t)code, device, &finding);
    finding.count = (uint64_t)count;
    if (!event) {
        finding_demote(&finding);
    }
    classify_add(classify, &finding);
}

static void add_fixed(struct classify *classify, struct str gpu, const char *check,
                      const char *code, enum action action)
{
    struct finding finding = classify_finding(check);

    finding_set_device(&finding, gpu, true);
    finding_set_code(&finding, "%s", code);
    if (action == ACTION_RESET_GPU && strcmp(code, "pending") == 0) {
        finding.severity = SEVERITY_WARNING;
        finding.action = action;
        finding.deferred = true;
    } else if (action != ACTION_NONE) {
        classify_set_fault(&finding, action);
    }
    for (size_t i = 0; i < classify->count; i++) {
        /* A GPU is listed once per MIG instance. */
        if (strcmp(classify->findings[i].check, check) == 0 &&
            strcmp(classify->findings[i].device, finding.device) == 0) {
            return;
        }
    }
    classify_add(classify, &finding);
}

static void judge_recovery(struct classify *classify, struct str gpu, int64_t value)
{
    const struct recovery_row *row = value <= 255 ? recovery_find((uint32_t)value) : NULL;
    struct finding finding = classify_finding("gpu_recovery_action");

    if (row == NULL || value == 0) {
        return;
    }
    finding_set_device(&finding, gpu, true);
    finding_set_code_number(&finding, value);
    finding.severity = SEVERITY_WARNING;
    if (row->action != ACTION_NONE) {
        classify_set_fault(&finding, row->action);
    }
    classify_add(classify, &finding);
}

static void judge_sample(struct classify *classify, const struct dcgm_sample *sample)
{
    struct str gpu = dcgm_label(sample, "gpu");
    int64_t value;
    int64_t code;

    if (!dcgm_count(sample, &value) || value == 0) {
        return;
    }
    if (dcgm_is_xid_gauge(sample->name)) {
        add_xid(classify, gpu, value, 1, is_edge(classify, gpu, value));
    } else if (dcgm_is_xid_counter(sample->name)) {
        if (str_parse_i64(dcgm_label(sample, "xid"), 1, 9999, &code)) {
            add_xid(classify, gpu, code, value, true);
        }
    } else if (str_eq_c(sample->name, "DCGM_FI_DEV_ROW_REMAP_FAILURE")) {
        add_fixed(classify, gpu, "gpu_row_remap", "failure", ACTION_REMOVE);
    } else if (str_eq_c(sample->name, "DCGM_FI_DEV_ROW_REMAP_PENDING")) {
        add_fixed(classify, gpu, "gpu_row_remap", "pending", ACTION_RESET_GPU);
    } else if (str_eq_c(sample->name, "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL")) {
        add_fixed(classify, gpu, "gpu_ecc", "dbe", ACTION_RESET_GPU);
    } else if (str_eq_c(sample->name, "DCGM_FI_DEV_GPU_RECOVERY_ACTION") ||
               str_eq_c(sample->name, "DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION")) {
        judge_recovery(classify, gpu, value);
    }
}

static struct gpu_view *view_of(struct gpu_view *views, size_t *count, struct str gpu)
{
    for (size_t i = 0; i < *count; i++) {
        if (str_eq_c(gpu, views[i].gpu)) {
            return &views[i];
        }
    }
    if (*count == GPUS_MAX || gpu.len == 0 || gpu.len >= sizeof(views[0].gpu)) {
        return NULL;
    }
    struct gpu_view *view = &views[(*count)++];
    *view = (struct gpu_view){.engine_active = -1, .util = -1};
    memcpy(view->gpu, gpu.ptr, gpu.len);
    return view;
}

static void gather_view(struct gpu_view *views, size_t *count, const struct dcgm_sample *sample)
{
    bool engine = str_eq_c(sample->name, "DCGM_FI_PROF_GR_ENGINE_ACTIVE");
    double value;

    if ((!engine && !str_eq_c(sample->name, "DCGM_FI_DEV_GPU_UTIL")) ||
        !str_parse_double(sample->value, &value)) {
        return;
    }
    struct gpu_view *view = view_of(views, count, dcgm_label(sample, "gpu"));
    if (view != NULL) {
        *(engine ? &view->engine_active : &view->util) = value;
    }
}

void classify_dcgm(struct classify *classify, struct str input)
{
    struct gpu_view views[GPUS_MAX];
    struct dcgm_sample sample;
    struct str line;
    size_t count = 0;

    while (str_split(&input, '\n', &line)) {
        if (dcgm_parse(str_trim(line), &sample)) {
            judge_sample(classify, &sample);
            gather_view(views, &count, &sample);
        }
    }
    for (size_t i = 0; i < count; i++) {
        /* Utilisation 99 % with an engine that never ran: the profiling side stopped. */
        if (views[i].engine_active >= 0 && views[i].engine_active < 1e-9 && views[i].util >= 50) {
            add_fixed(classify, str_of(views[i].gpu), "telemetry", "prof_stuck", ACTION_NONE);
        }
    }
}

/* A healthy verdict proves nothing (a reset can be due all the same); a bad one is a hint. */
void classify_dcgmi(struct classify *classify, struct str input)
{
    struct finding finding = classify_finding("telemetry");
    struct str value;

    if (!json_path_text(input, "body/Overall Health/value", &value) ||
        str_eq_nocase(value, STR("Healthy"))) {
        return;
    }
    finding_set_code(&finding, "dcgm_health");
    finding.severity = SEVERITY_WARNING;
    classify_add(classify, &finding);
}
