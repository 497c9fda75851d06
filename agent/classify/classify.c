/* `classify`: judges the output of other tools and logs once, a JSON line per finding. */
#include "agent/classify/classify.h"

#include <string.h>

#include "agent/faults.h"
#include "base/encode.h"
#include "base/json.h"

#define ARENA_CAP ((size_t)64 * 1024 * 1024)

const struct classify_source classify_sources[] = {
    {"kmsg", classify_kmsg},
    {"journald", classify_journald},
    {"syslog", classify_syslog},
    {"nvidia-smi", classify_smi},
    {"dcgm", classify_dcgm},
    {"dcgmi", classify_dcgmi},
    {"slurm", classify_slurm},
    {"ib", classify_ib},
    {"fabricmanager", classify_fabricmanager},
    {"smartctl", classify_smartctl},
    {"chronyc", classify_chronyc},
    {"lspci", classify_lspci},
    {"systemd", classify_systemd},
};
const size_t classify_source_count = COUNTOF(classify_sources);

static const struct {
    const char *name;
    size_t offset;
} number_keys[] = {
    {"last_seq", offsetof(struct classify_context, last_seq)},
    {"gpu_reset_at_us", offsetof(struct classify_context, gpu_reset_at_us)},
    {"nvswitch_count", offsetof(struct classify_context, nvswitch_count)},
    {"host_nvidia_smi_exit", offsetof(struct classify_context, host_nvidia_smi_exit)},
    {"host_gpu_count", offsetof(struct classify_context, host_gpu_count)},
    {"expected", offsetof(struct classify_context, expected)},
    {"expected_gpus", offsetof(struct classify_context, expected_gpus)},
    {"uptime_s", offsetof(struct classify_context, uptime_s)},
    {"exit", offsetof(struct classify_context, exit)},
    {"interval_s", offsetof(struct classify_context, interval_s)},
    {"gpu", offsetof(struct classify_context, gpu)},
    {"expected_rate_gbps", offsetof(struct classify_context, expected_rate_gbps)},
    {"driver_gpu_count", offsetof(struct classify_context, driver_gpu_count)},
};

static const struct {
    const char *name;
    size_t offset;
} text_keys[] = {
    {"current_boot_id", offsetof(struct classify_context, current_boot_id)},
    {"scope", offsetof(struct classify_context, scope)},
    {"query", offsetof(struct classify_context, query)},
    {"q_gpu_recovery_action", offsetof(struct classify_context, q_gpu_recovery_action)},
};

static bool read_number(struct json_reader *reader, struct str key, struct classify_context *out)
{
    int64_t value;

    for (size_t i = 0; i < COUNTOF(number_keys); i++) {
        if (str_eq_c(key, number_keys[i].name)) {
            if (!json_get_i64(reader, &value)) {
                return false;
            }
            *(int64_t *)((char *)out + number_keys[i].offset) = value;
            return true;
        }
    }
    return json_skip(reader);
}

static bool read_text(struct arena *arena, struct json_reader *reader, struct str key,
                      struct classify_context *out)
{
    struct str raw;
    bool plain;

    for (size_t i = 0; i < COUNTOF(text_keys); i++) {
        if (str_eq_c(key, text_keys[i].name)) {
            struct str *text = (struct str *)((char *)out + text_keys[i].offset);

            if (!json_get_raw_str(reader, &raw, &plain)) {
                return false;
            }
            return json_unescape(raw, arena_alloc(arena, raw.len + 1), raw.len + 1, text);
        }
    }
    return json_skip(reader);
}

static bool read_flag(struct json_reader *reader, struct str key, struct classify_context *out)
{
    bool value;

    if (!json_get_bool(reader, &value)) {
        return false;
    }
    if (str_eq_c(key, "nvidia_smi_timeout")) {
        out->nvidia_smi_timeout = value;
    } else if (str_eq_c(key, "expected_port")) {
        out->expected_port = value;
    }
    return true;
}

static bool read_member(struct arena *arena, struct json_reader *reader, enum json_type type,
                        struct str key, struct classify_context *out)
{
    switch (type) {
    case JSON_NUM:
        return read_number(reader, key, out);
    case JSON_STR:
        return read_text(arena, reader, key, out);
    case JSON_BOOL:
        return read_flag(reader, key, out);
    case JSON_OBJ:
        return str_eq_c(key, "previous") ? json_get_raw(reader, &out->previous) : json_skip(reader);
    case JSON_ARR:
    case JSON_NUL:
        return json_skip(reader);
    case JSON_END:
    case JSON_ERROR:
    default:
        return false;
    }
}

bool classify_context_read(struct arena *arena, struct str json,
                           struct classify_context *ret_context)
{
    struct json_reader reader;
    enum json_type type;
    struct str key;

    *ret_context = (struct classify_context){.expected_port = -1};
    for (size_t i = 0; i < COUNTOF(number_keys); i++) {
        *(int64_t *)((char *)ret_context + number_keys[i].offset) = -1;
    }
    if (str_trim(json).len == 0) {
        return true;
    }
    json_open(&reader, json);
    if (json_next(&reader, NULL) != JSON_OBJ) {
        return false;
    }
    while ((type = json_next(&reader, &key)) != JSON_END) {
        if (!read_member(arena, &reader, type, key, ret_context)) {
            return false;
        }
    }
    return json_close(&reader);
}

struct finding classify_finding(const char *check)
{
    return (struct finding){
        .check = check, .clears = CLEARS_QUIET, .quiet_seconds = QUIET_DEFAULT_SECONDS, .count = 1};
}

void classify_set_fault(struct finding *finding, enum action action)
{
    finding->severity = SEVERITY_CRITICAL;
    finding->action = action;
    finding->node_fault = true;
    finding->clears = clears_by_action(action);
}

void classify_add(struct classify *classify, const struct finding *finding)
{
    for (size_t i = 0; i < classify->count; i++) {
        struct finding *mine = &classify->findings[i];

        if (strcmp(mine->check, finding->check) == 0 && strcmp(mine->code, finding->code) == 0 &&
            strcmp(mine->device, finding->device) == 0) {
            mine->count += finding->count;
            return;
        }
    }
    if (classify->count < FINDINGS_MAX) {
        classify->findings[classify->count++] = *finding;
    }
}

static void write_code(struct enc *enc, const struct finding *finding)
{
    int64_t number;

    switch (finding->code_type) {
    case CODE_NUMBER:
        if (str_parse_i64(str_of(finding->code), INT64_MIN, INT64_MAX, &number)) {
            enc_i64(enc, number);
            return;
        }
        enc_null(enc);
        return;
    case CODE_TEXT:
        enc_cstr(enc, finding->code);
        return;
    case CODE_NONE:
    default:
        enc_null(enc);
        return;
    }
}

void classify_write(const struct classify *classify, struct buf *out)
{
    for (size_t i = 0; i < classify->count; i++) {
        const struct finding *finding = &classify->findings[i];
        struct enc enc;

        enc_init(&enc, out);
        enc_obj(&enc);
        enc_key(&enc, "check");
        enc_cstr(&enc, finding->check);
        enc_key(&enc, "code");
        write_code(&enc, finding);
        enc_key(&enc, "gpu");
        enc_cstr(&enc, finding->device_is_gpu ? finding->device : NULL);
        enc_key(&enc, "severity");
        enc_cstr(&enc, severity_name(finding->severity));
        enc_key(&enc, "action");
        enc_cstr(&enc, action_name(finding->action));
        enc_key(&enc, "node_fault");
        enc_bool(&enc, finding->node_fault);
        enc_key(&enc, "count");
        enc_i64(&enc, (int64_t)finding->count);
        enc_key(&enc, "clears");
        enc_bool(&enc, finding->clear);
        enc_key(&enc, "deferred");
        enc_bool(&enc, finding->deferred);
        enc_obj_end(&enc);
        buf_add_char(out, '\n');
    }
}

void classify_write_events(const struct classify *classify, const char *source, struct buf *out)
{
    for (size_t i = 0; i < classify->count; i++) {
        struct fault_report report = {.finding = &classify->findings[i], .source = source};

        event_write(&report, false, out);
        buf_add_char(out, '\n');
    }
}

static bool run(struct str source, struct str context_json, struct str input, bool events,
                struct buf *out, const char **ret_error)
{
    CLEANUP(arena_freep) struct arena *arena = NULL;
    struct classify_context context;
    const struct classify_source *found = NULL;

    for (size_t i = 0; i < classify_source_count; i++) {
        if (str_eq_c(source, classify_sources[i].name)) {
            found = &classify_sources[i];
        }
    }
    if (found == NULL) {
        *ret_error = "there is no such source";
        return false;
    }
    arena = arena_new(ARENA_CAP);
    if (!classify_context_read(arena, context_json, &context)) {
        *ret_error = "the context is not a JSON object of known values";
        return false;
    }
    struct classify *classify = arena_zalloc(arena, sizeof(*classify));
    classify->context = &context;
    classify->arena = arena;
    found->run(classify, input);
    if (events) {
        classify_write_events(classify, found->name, out);
    } else {
        classify_write(classify, out);
    }
    return true;
}

bool classify_run(struct str source, struct str context_json, struct str input, struct buf *out,
                  const char **ret_error)
{
    return run(source, context_json, input, false, out, ret_error);
}

bool classify_run_events(struct str source, struct str context_json, struct str input,
                         struct buf *out, const char **ret_error)
{
    return run(source, context_json, input, true, out, ret_error);
}
