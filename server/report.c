/* An agent's report: the top level, readings of the machine and of its GPUs. */
#include "server/report.h"

#include <string.h>

#include "server/report_parts.h"

#define NONCE_MAX 64
#define VERSION_MAX 64
/* Below this a difference of clocks is the way through the network. */
#define SKEW_MIN_US (INT64_C(5) * 1000000)
/* Spools hold a day; what claims to be older is a clock that was never set. */
#define EVENT_AGE_MAX_US (INT64_C(7) * 86400 * 1000000)
/* "{" + "-32768," for each GPU at most + "}" with quotes, with room for the widest MiB value. */
#define GPU_TEXT_MAX (REPORT_GPUS_MAX * 12 + 4)

bool report_fail(struct report_reader *reader, enum err err, const char *detail)
{
    if (reader->err == ERR_NONE) {
        reader->err = err;
        reader->detail = detail;
    }
    return false;
}

struct str report_cut(struct str s, size_t max)
{
    if (s.len <= max) {
        return s;
    }
    /* Bytes 10xxxxxx go on with a character (RFC 3629). */
    while (max > 0 && ((unsigned char)s.ptr[max] & 0xc0) == 0x80) {
        max--;
    }
    return (struct str){s.ptr, max};
}

bool report_text(struct report_reader *reader, enum json_type type, size_t max,
                 struct str *ret_text)
{
    struct str raw;
    bool plain;
    *ret_text = (struct str){0};
    if (type != JSON_STR || !json_get_raw_str(&reader->json, &raw, &plain)) {
        return false;
    }
    if (!plain) {
        char *text = arena_alloc(reader->arena, raw.len + 1);
        if (!json_unescape(raw, text, raw.len + 1, &raw)) {
            return false;
        }
    }
    *ret_text = report_cut(raw, max);
    return true;
}

bool report_number(struct report_reader *reader, enum json_type type, int64_t min, int64_t max,
                   int64_t *ret_value)
{
    if (type != JSON_NUM) {
        return false;
    }
    int64_t value;
    if (!json_get_i64(&reader->json, &value)) {
        double fraction;
        if (!json_get_double(&reader->json, &fraction) || fraction < -1e15 || fraction > 1e15) {
            return false;
        }
        value = (int64_t)(fraction < 0 ? fraction - 0.5 : fraction + 0.5);
    }
    if (value < min || value > max) {
        return false;
    }
    *ret_value = value;
    return true;
}

/* Leaves a value that is not wanted; scalars are passed over by the next json_next. */
static bool skip_value(struct report_reader *reader, enum json_type type)
{
    return type != JSON_OBJ && type != JSON_ARR ? type != JSON_ERROR : json_skip(&reader->json);
}

/* ------------------------------------------------------------------------------- readings */

static const struct {
    const char *name;
    bool ratio; /* 0..1, kept as permille */
} metrics[READING_COUNT] = {
    [READING_CPU] = {"cpu_ratio", true},
    [READING_MEM] = {"mem_used_mib", false},
    [READING_MEM_TOTAL] = {"mem_total_mib", false},
    [READING_DISK] = {"disk_ratio", true},
    [READING_NET_RX] = {"net_rx_mbps", false},
    [READING_NET_TX] = {"net_tx_mbps", false},
    [READING_FABRIC_RX] = {"fabric_rx_mbps", false},
    [READING_FABRIC_TX] = {"fabric_tx_mbps", false},
};

static int32_t read_metric(struct report_reader *reader, enum json_type type, bool ratio)
{
    if (!ratio) {
        int64_t value;
        return report_number(reader, type, 0, INT32_MAX, &value) ? (int32_t)value : REPORT_UNKNOWN;
    }
    double value;
    if (type != JSON_NUM || !json_get_double(&reader->json, &value) || value < 0 || value > 1) {
        return REPORT_UNKNOWN;
    }
    return (int32_t)(value * 1000 + 0.5);
}

static bool read_metrics(struct report_reader *reader, enum json_type type)
{
    if (type != JSON_OBJ) {
        return skip_value(reader, type);
    }
    struct str key = {0};
    while ((type = json_next(&reader->json, &key)) != JSON_END) {
        size_t i = 0;
        while (i < READING_COUNT && !str_eq_c(key, metrics[i].name)) {
            i++;
        }
        if (i < READING_COUNT) {
            reader->report->metrics[i] = read_metric(reader, type, metrics[i].ratio);
        }
        if (!skip_value(reader, type)) {
            return false;
        }
    }
    return true;
}

static const struct {
    const char *name;
    int64_t min;
    int64_t max; /* of the column */
} gpus[GPU_COUNT] = {
    [GPU_UTIL] = {"util", 0, 100},
    [GPU_MEM] = {"mem_mib", 0, INT32_MAX},
    [GPU_MEM_TOTAL] = {"mem_total_mib", 0, INT32_MAX},
    [GPU_TEMP] = {"temp_c", -273, INT16_MAX},
    [GPU_POWER] = {"power_w", 0, INT16_MAX},
};

static char *put_number(char *at, int64_t value)
{
    char digits[20];
    size_t len = 0;
    uint64_t left = value < 0 ? -(uint64_t)value : (uint64_t)value;
    do {
        digits[len++] = (char)('0' + left % 10);
        left /= 10;
    } while (left > 0);
    if (value < 0) {
        *at++ = '-';
    }
    while (len > 0) {
        *at++ = digits[--len];
    }
    return at;
}

static void count_reading(struct report_figures *figures, int64_t value)
{
    figures->sum += value;
    if (figures->read == 0 || value > figures->max) {
        figures->max = (int32_t)value;
    }
    figures->read++;
}

/* Writes the JSON array as an element of a PostgreSQL text[]: the shape the writer sends. */
static bool read_gpu_array(struct report_reader *reader, enum json_type type, size_t which)
{
    if (type != JSON_ARR) {
        return skip_value(reader, type);
    }
    char text[GPU_TEXT_MAX];
    char *at = text;
    *at++ = '"';
    *at++ = '{';
    size_t count = 0;
    struct report_figures figures = {0};
    while ((type = json_next(&reader->json, NULL)) != JSON_END) {
        int64_t value;
        bool known = report_number(reader, type, gpus[which].min, gpus[which].max, &value);
        if (!known && !skip_value(reader, type)) {
            return false;
        }
        if (count == REPORT_GPUS_MAX) {
            continue;
        }
        if (count++ > 0) {
            *at++ = ',';
        }
        if (known) {
            at = put_number(at, value);
            count_reading(&figures, value);
        } else {
            memcpy(at, "NULL", 4);
            at += 4;
        }
    }
    *at++ = '}';
    *at++ = '"';
    size_t len = (size_t)(at - text);
    reader->report->gpus[which] = (struct str){arena_strndup(reader->arena, text, len), len};
    reader->report->gpu_figures[which] = figures;
    return true;
}

static bool read_gpus(struct report_reader *reader, enum json_type type)
{
    if (type != JSON_OBJ) {
        return skip_value(reader, type);
    }
    struct str key = {0};
    while ((type = json_next(&reader->json, &key)) != JSON_END) {
        size_t i = 0;
        while (i < GPU_COUNT && !str_eq_c(key, gpus[i].name)) {
            i++;
        }
        if (i < GPU_COUNT ? !read_gpu_array(reader, type, i) : !skip_value(reader, type)) {
            return false;
        }
    }
    return true;
}

/* ------------------------------------------------------------------------------- the top level */

static bool read_boot_id(struct report_reader *reader, enum json_type type)
{
    struct str text;
    if (!report_text(reader, type, UUID_TEXT_LEN + 1, &text) ||
        !uuid_parse(text, &reader->report->boot_id)) {
        return report_fail(reader, ERR_INVALID_FIELDS, "boot_id must be a UUID.");
    }
    return true;
}

static bool read_seq(struct report_reader *reader, enum json_type type)
{
    if (type != JSON_NUM || !json_get_i64(&reader->json, &reader->report->seq) ||
        reader->report->seq < 1) {
        return report_fail(reader, ERR_INVALID_FIELDS, "seq must be a whole number of 1 or more.");
    }
    return true;
}

static bool is_base64url(struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '-' || c == '_')) {
            return false;
        }
    }
    return true;
}

static bool read_nonce(struct report_reader *reader, enum json_type type)
{
    struct str text;
    if (report_text(reader, type, NONCE_MAX + 1, &text) && text.len <= NONCE_MAX &&
        is_base64url(text)) {
        reader->report->nonce = text;
    }
    return skip_value(reader, type);
}

static bool read_ready(struct report_reader *reader, enum json_type type)
{
    if (type == JSON_BOOL) {
        return json_get_bool(&reader->json, &reader->report->ready);
    }
    return skip_value(reader, type);
}

static bool read_sent_at(struct report_reader *reader, enum json_type type)
{
    struct str text;
    if (report_text(reader, type, 64, &text) && !str_parse_rfc3339(text, &reader->sent_at_us)) {
        reader->sent_at_us = 0;
    }
    return skip_value(reader, type);
}

static bool read_command_key(struct report_reader *reader, enum json_type type)
{
    (void)report_number(reader, type, 1, INT32_MAX, &reader->report->command_key);
    return skip_value(reader, type);
}

/* A version as agents keep it: lower hexadecimal digits. */
static bool read_version(struct report_reader *reader, enum json_type type, struct str *ret_version)
{
    struct str text;
    bool good = report_text(reader, type, VERSION_MAX + 1, &text) && text.len <= VERSION_MAX;
    for (size_t i = 0; good && i < text.len; i++) {
        char c = text.ptr[i];
        good = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
    }
    if (good) {
        *ret_version = text.len > 0 ? text : STR("");
    }
    return skip_value(reader, type);
}

static bool read_settings(struct report_reader *reader, enum json_type type)
{
    return read_version(reader, type, &reader->report->settings);
}

static bool read_settings_refused(struct report_reader *reader, enum json_type type)
{
    return read_version(reader, type, &reader->report->settings_refused);
}

static const struct {
    const char *name;
    bool (*read)(struct report_reader *reader, enum json_type type);
} members[] = {
    {"boot_id", read_boot_id},
    {"seq", read_seq},
    {"sent_at", read_sent_at},
    {"nonce", read_nonce},
    {"ready", read_ready},
    {"command_key", read_command_key},
    {"settings", read_settings},
    {"settings_refused", read_settings_refused},
    {"metrics", read_metrics},
    {"gpus", read_gpus},
    {"streams", report_read_streams},
    {"inventory", report_read_inventory},
    {"collectors", report_read_collectors},
    {"results", report_read_results},
};

static bool read_members(struct report_reader *reader)
{
    enum json_type type = json_next(&reader->json, NULL);
    if (type != JSON_OBJ) {
        return type != JSON_ERROR && json_skip(&reader->json) && json_close(&reader->json) &&
               report_fail(reader, ERR_INVALID_FIELDS, "A report is a JSON object.");
    }
    struct str key = {0};
    unsigned seen = 0;
    while ((type = json_next(&reader->json, &key)) != JSON_END) {
        if (type == JSON_ERROR) {
            return false;
        }
        size_t i = 0;
        while (i < COUNTOF(members) && !str_eq_c(key, members[i].name)) {
            i++;
        }
        if (i == COUNTOF(members)) {
            if (!skip_value(reader, type)) {
                return false;
            }
            continue;
        }
        if ((seen & 1U << i) != 0) {
            /* Each part reserves memory once: that bounds what a body can make us take. */
            return report_fail(reader, ERR_INVALID_FIELDS, "A member of the report is repeated.");
        }
        seen |= 1U << i;
        if (!members[i].read(reader, type)) {
            return false;
        }
    }
    return json_close(&reader->json);
}

/* The agent's clock is data: times are moved to ours, and never into the future. */
static void settle_times(struct report_reader *reader)
{
    int64_t skew_us = reader->sent_at_us == 0 ? 0 : reader->received_us - reader->sent_at_us;
    if (skew_us < SKEW_MIN_US && skew_us > -SKEW_MIN_US) {
        skew_us = 0;
    }
    int64_t oldest_us = reader->received_us - EVENT_AGE_MAX_US;
    for (size_t i = 0; i < reader->report->event_count; i++) {
        int64_t *at_us = &reader->report->events[i].at_us;
        *at_us = *at_us == 0 ? reader->received_us : *at_us + skew_us;
        *at_us = *at_us > reader->received_us ? reader->received_us : *at_us;
        *at_us = *at_us < oldest_us ? oldest_us : *at_us;
    }
}

/* A stream without a boot of its own belongs to the report's, which may be read after it. */
static void settle_boots(struct report *report)
{
    for (size_t i = 0; i < report->stream_count; i++) {
        if (uuid_is_zero(&report->streams[i].boot_id)) {
            report->streams[i].boot_id = report->boot_id;
        }
    }
}

enum err report_read(struct arena *arena, struct str body, int64_t received_us,
                     struct report *ret_report, const char **ret_detail)
{
    struct report_reader reader = {
        .arena = arena,
        .report = ret_report,
        .received_us = received_us,
    };
    memset(ret_report, 0, sizeof *ret_report);
    for (size_t i = 0; i < READING_COUNT; i++) {
        ret_report->metrics[i] = REPORT_UNKNOWN;
    }
    json_open(&reader.json, body);
    if (!read_members(&reader)) {
        bool malformed = reader.json.error != NULL || reader.err == ERR_NONE;
        *ret_detail = reader.json.error != NULL ? reader.json.error : reader.detail;
        *ret_detail = *ret_detail == NULL ? "the text is cut off" : *ret_detail;
        return malformed ? ERR_BAD_JSON : reader.err;
    }
    if (uuid_is_zero(&ret_report->boot_id) || ret_report->seq == 0) {
        *ret_detail = ret_report->seq == 0 ? "seq is missing." : "boot_id is missing.";
        return ERR_INVALID_FIELDS;
    }
    settle_boots(ret_report);
    settle_times(&reader);
    return ERR_NONE;
}
