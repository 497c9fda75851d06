/* What the server wants this agent to do differently: reading, clamping, asking. */
#include "agent/settings.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/json_path.h"
#include "agent/rules/checks.h"
#include "base/crypto.h"
#include "base/json.h"

/* A rule that waits twenty times longer than it was made for is no rule any more. */
#define LOOKS_FACTOR 20
#define LOOKS_MAX 200
#define WORD_MAX 1024
#define SCRIPT_MAX 4096

static const char *const metric_names[METRIC_COUNT] = {
    [METRIC_CPU_RATIO] = "cpu_ratio",           [METRIC_MEM_RATIO] = "mem_ratio",
    [METRIC_DISK_RATIO] = "disk_ratio",         [METRIC_NET_RX_MBPS] = "net_rx_mbps",
    [METRIC_NET_TX_MBPS] = "net_tx_mbps",       [METRIC_FABRIC_RX_MBPS] = "fabric_rx_mbps",
    [METRIC_FABRIC_TX_MBPS] = "fabric_tx_mbps", [METRIC_GPU_UTIL] = "gpu_util",
    [METRIC_GPU_MEM_RATIO] = "gpu_mem_ratio",   [METRIC_GPU_TEMP_C] = "gpu_temp_c",
    [METRIC_GPU_POWER_W] = "gpu_power_w",
};

const char *own_metric_name(enum own_metric metric)
{
    return metric_names[metric];
}

void settings_version(struct str document, char version[SETTINGS_VERSION_CAP])
{
    uint8_t hash[SHA256_LEN];

    crypto_sha256(document, hash);
    for (size_t i = 0; i < (SETTINGS_VERSION_CAP - 1) / 2; i++) {
        (void)snprintf(version + 2 * i, 3, "%02x", hash[i]);
    }
}

void settings_init(struct settings *settings)
{
    *settings = (struct settings){.expected_gpus = -1};
}

void settings_free(struct settings *settings)
{
    for (size_t i = 0; i < settings->check_count; i++) {
        buf_free(&settings->checks[i].words);
    }
    settings->check_count = 0;
}

static void note_problem(struct settings *settings, const char *part)
{
    size_t len = strlen(settings->problem);

    (void)snprintf(settings->problem + len, sizeof(settings->problem) - len, "%s%s",
                   len > 0 ? ", " : "", part);
}

/* ---- small readings ---- */

/* Any text, without its escapes; false when it is absent, too long or no text. */
static bool read_text(struct str object, const char *path, char *text, size_t cap)
{
    struct json_reader reader;
    struct str raw;
    struct str plain;

    if (!json_path(object, path, &raw)) {
        return false;
    }
    json_open(&reader, raw);
    if (json_next(&reader, NULL) != JSON_STR || !json_get_raw_str(&reader, &raw, NULL) ||
        !json_unescape(raw, text, cap - 1, &plain)) {
        return false;
    }
    text[plain.len] = '\0';
    return memchr(text, '\0', plain.len) == NULL;
}

static bool read_number(struct str object, const char *path, double *ret_value)
{
    struct json_reader reader;
    struct str raw;

    if (!json_path(object, path, &raw)) {
        return false;
    }
    json_open(&reader, raw);
    return json_next(&reader, NULL) == JSON_NUM && json_get_double(&reader, ret_value);
}

static bool read_between(struct str object, const char *path, int64_t min, int64_t max,
                         int64_t *ret_value)
{
    return json_path_i64(object, path, ret_value) && *ret_value >= min && *ret_value <= max;
}

/* The next member of an array as text; false at its end or when the text is broken. */
static bool next_item(struct json_reader *reader, struct str *ret_item, bool *ret_good)
{
    enum json_type type = json_next(reader, NULL);

    *ret_good = type != JSON_ERROR;
    if (type == JSON_END || type == JSON_ERROR) {
        return false;
    }
    *ret_good = json_get_raw(reader, ret_item);
    return *ret_good;
}

static bool open_list(struct str document, const char *part, struct json_reader *reader)
{
    struct str raw;

    /* A part that is absent says nothing. */
    if (!json_path(document, part, &raw)) {
        raw = STR("[]");
    }
    json_open(reader, raw);
    return json_next(reader, NULL) == JSON_ARR;
}

/* ---- off, looks, expected ---- */

static bool read_off(struct str document, struct settings *settings)
{
    struct json_reader reader;
    enum json_type type;
    struct str name;
    bool plain;

    if (!open_list(document, "off", &reader)) {
        return false;
    }
    while ((type = json_next(&reader, NULL)) != JSON_END) {
        if (type != JSON_STR || !json_get_raw_str(&reader, &name, &plain)) {
            return false;
        }
        const struct check_row *row = check_find(name);
        /* A check of a newer agent, or of the server, is none of ours. */
        if (row != NULL && settings->off_count < SETTINGS_OFF_MAX) {
            settings->off[settings->off_count++] = row->id;
        }
    }
    return true;
}

static bool read_looks(struct str document, struct settings *settings)
{
    struct json_reader reader;
    struct str item;
    struct str name;
    bool good;

    if (!open_list(document, "looks", &reader)) {
        return false;
    }
    while (next_item(&reader, &item, &good)) {
        int64_t raise = 0;
        int64_t clear = 0;

        if (!json_path_text(item, "check_id", &name) ||
            (json_path(item, "raise", &(struct str){0}) &&
             !read_between(item, "raise", 1, LOOKS_MAX, &raise)) ||
            (json_path(item, "clear", &(struct str){0}) &&
             !read_between(item, "clear", 1, LOOKS_MAX, &clear))) {
            return false;
        }
        const struct check_row *row = check_find(name);
        if (row != NULL && settings->looks_count < SETTINGS_LOOKS_MAX) {
            settings->looks[settings->looks_count].check = row->id;
            settings->looks[settings->looks_count].raise = (uint8_t)raise;
            settings->looks[settings->looks_count++].clear = (uint8_t)clear;
        }
    }
    return good;
}

static bool read_expected(struct str document, struct settings *settings)
{
    struct str part;

    if (!json_path(document, "expected", &part)) {
        return true;
    }
    return (!json_path(part, "gpus", &(struct str){0}) ||
            read_between(part, "gpus", 0, 64, &settings->expected_gpus)) &&
           (!json_path(part, "port_gbps", &(struct str){0}) ||
            read_between(part, "port_gbps", 0, 10000, &settings->expected_port_gbps)) &&
           (!json_path(part, "ports", &(struct str){0}) ||
            read_text(part, "ports", settings->expected_ports, SETTINGS_PORTS_CAP));
}

/* ---- checks of the organization's own ---- */

static bool read_metric(struct str item, struct own_check *check)
{
    struct str word;
    bool known = false;

    if (!json_path_text(item, "metric", &word)) {
        return false;
    }
    for (size_t i = 0; i < METRIC_COUNT; i++) {
        if (str_eq_c(word, metric_names[i])) {
            check->metric = (enum own_metric)i;
            known = true;
        }
    }
    if (!known || !json_path_text(item, "comparison", &word)) {
        return false;
    }
    check->above = str_eq_c(word, "above");
    return (check->above || str_eq_c(word, "below")) &&
           read_number(item, "threshold", &check->threshold) &&
           read_number(item, "clear_threshold", &check->clear_threshold) &&
           (check->above ? check->clear_threshold <= check->threshold
                         : check->clear_threshold >= check->threshold) &&
           read_between(item, "for_seconds", 0, 86400, &check->for_seconds);
}

static bool read_words(struct str item, struct own_check *check)
{
    struct json_reader reader;
    enum json_type type;
    struct str raw;
    struct str word;
    char text[SCRIPT_MAX + 1];

    if (!json_path(item, "argv", &raw)) {
        if (!read_text(item, "script", text, sizeof(text)) || text[0] == '\0') {
            return false;
        }
        buf_add(&check->words, text, strlen(text) + 1);
        return true;
    }
    json_open(&reader, raw);
    if (json_next(&reader, NULL) != JSON_ARR) {
        return false;
    }
    while ((type = json_next(&reader, NULL)) != JSON_END) {
        if (type != JSON_STR || check->word_count == SETTINGS_WORDS_MAX ||
            !json_get_raw_str(&reader, &raw, NULL) || !json_unescape(raw, text, WORD_MAX, &word) ||
            memchr(word.ptr, '\0', word.len) != NULL) {
            return false;
        }
        buf_add(&check->words, word.ptr, word.len);
        buf_add_char(&check->words, '\0');
        check->word_count++;
    }
    return check->word_count > 0 && check->words.ptr[0] == '/';
}

static bool read_command(struct str item, struct own_check *check)
{
    return read_words(item, check) && read_text(item, "user", check->user, sizeof(check->user)) &&
           read_between(item, "interval_seconds", 10, 86400, &check->interval_seconds) &&
           read_between(item, "timeout_seconds", 1, 300, &check->timeout_seconds) &&
           check->timeout_seconds <= check->interval_seconds &&
           read_between(item, "output_bytes", 256, 16384, &check->output_bytes) &&
           read_between(item, "raise_after", 1, 100, &check->raise_after) &&
           read_between(item, "clear_after", 1, 100, &check->clear_after);
}

static bool is_name(struct str text)
{
    bool good = text.len > 0 && text.len <= 40;

    for (size_t i = 0; good && i < text.len; i++) {
        char c = text.ptr[i];
        good = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
    }
    return good;
}

static bool read_check(struct str item, struct own_check *check)
{
    struct str severity;
    struct str action;
    struct str kind;

    if (!read_text(item, "title", check->title, sizeof(check->title))) {
        check->title[0] = '\0';
    }
    if (!json_path_text(item, "severity", &severity) || !json_path_text(item, "action", &action) ||
        !severity_parse(severity, &check->severity) || !action_parse(action, &check->action) ||
        (check->action != ACTION_NONE && check->severity != SEVERITY_CRITICAL) ||
        !read_between(item, "version", 1, INT64_MAX, &check->version) ||
        !json_path_text(item, "kind", &kind)) {
        return false;
    }
    check->is_command = str_eq_c(kind, "command");
    return check->is_command ? read_command(item, check)
                             : str_eq_c(kind, "metric") && read_metric(item, check);
}

static void add_kept(struct settings *settings, const struct own_check *kept)
{
    struct own_check *check = &settings->checks[settings->check_count++];

    *check = *kept;
    check->words = (struct buf){0};
    buf_add(&check->words, kept->words.ptr, kept->words.len);
}

static void take_check(struct settings *settings, const struct settings *kept, struct str item)
{
    struct own_check *check = &settings->checks[settings->check_count];
    struct str name;

    *check = (struct own_check){.version = 0};
    if (!json_path_text(item, "name", &name) || !is_name(name)) {
        note_problem(settings, "a check without a name");
        return;
    }
    (void)snprintf(check->id, sizeof(check->id), "custom:%.*s", STR_FMT(name));
    if (settings_find(settings, check->id) != NULL) {
        note_problem(settings, "a check that is there twice");
        return;
    }
    if (read_check(item, check)) {
        settings->check_count++;
        return;
    }
    note_problem(settings, check->id);
    buf_free(&check->words);
    const struct own_check *before = kept == NULL ? NULL : settings_find(kept, check->id);
    if (before != NULL) {
        add_kept(settings, before);
    }
}

static bool read_checks(struct str document, const struct settings *kept, struct settings *settings)
{
    struct json_reader reader;
    struct str item;
    bool good;

    if (!open_list(document, "checks", &reader)) {
        return false;
    }
    while (next_item(&reader, &item, &good)) {
        if (settings->check_count == SETTINGS_CHECKS_MAX) {
            note_problem(settings, "more checks than 50");
            return true;
        }
        take_check(settings, kept, item);
    }
    return good;
}

/* ---- all of it ---- */

static void keep_off(const struct settings *kept, struct settings *settings)
{
    (void)memcpy(settings->off, kept->off, sizeof(settings->off));
    settings->off_count = kept->off_count;
}

static void keep_looks(const struct settings *kept, struct settings *settings)
{
    (void)memcpy(settings->looks, kept->looks, sizeof(settings->looks));
    settings->looks_count = kept->looks_count;
}

static void keep_expected(const struct settings *kept, struct settings *settings)
{
    settings->expected_gpus = kept->expected_gpus;
    settings->expected_port_gbps = kept->expected_port_gbps;
    (void)memcpy(settings->expected_ports, kept->expected_ports, sizeof(settings->expected_ports));
}

static void keep_checks(const struct settings *kept, struct settings *settings)
{
    settings_free(settings);
    for (size_t i = 0; i < kept->check_count; i++) {
        add_kept(settings, &kept->checks[i]);
    }
}

static void read_parts(struct str document, const struct settings *kept, struct settings *settings)
{
    if (!read_off(document, settings)) {
        keep_off(kept, settings);
        note_problem(settings, "off");
    }
    if (!read_looks(document, settings)) {
        keep_looks(kept, settings);
        note_problem(settings, "looks");
    }
    if (!read_expected(document, settings)) {
        keep_expected(kept, settings);
        note_problem(settings, "expected");
    }
    if (!read_checks(document, kept, settings)) {
        keep_checks(kept, settings);
        note_problem(settings, "checks");
    }
}

bool settings_read(struct str document, const struct settings *kept, struct settings *ret_settings)
{
    struct json_reader reader;

    settings_init(ret_settings);
    if (document.len > SETTINGS_MAX) {
        return false;
    }
    json_open(&reader, document);
    if (json_next(&reader, NULL) != JSON_OBJ || !json_skip(&reader) || !json_close(&reader)) {
        return false;
    }
    settings_version(document, ret_settings->version);
    if (kept != NULL) {
        read_parts(document, kept, ret_settings);
        return true;
    }
    struct settings *none = calloc(1, sizeof(*none));
    assert(none != NULL);
    settings_init(none);
    read_parts(document, none, ret_settings);
    free(none);
    return true;
}

/* ---- asking ---- */

bool settings_is_off(const struct settings *settings, const char *check)
{
    for (size_t i = 0; i < settings->off_count; i++) {
        if (strcmp(settings->off[i], check) == 0) {
            return true;
        }
    }
    return false;
}

static unsigned clamp(unsigned wanted, unsigned own)
{
    unsigned most = own * LOOKS_FACTOR < LOOKS_MAX ? own * LOOKS_FACTOR : LOOKS_MAX;

    return wanted == 0 || own == 0 ? own : wanted < most ? wanted : most;
}

unsigned settings_raise(const struct settings *settings, const struct state_row *row)
{
    for (size_t i = 0; settings != NULL && i < settings->looks_count; i++) {
        if (strcmp(settings->looks[i].check, row->check) == 0) {
            return clamp(settings->looks[i].raise, row->raise_rounds);
        }
    }
    return row->raise_rounds;
}

unsigned settings_clear(const struct settings *settings, const struct state_row *row)
{
    for (size_t i = 0; settings != NULL && i < settings->looks_count; i++) {
        if (strcmp(settings->looks[i].check, row->check) == 0) {
            return clamp(settings->looks[i].clear, row->clear_rounds);
        }
    }
    return row->clear_rounds;
}

const struct own_check *settings_find(const struct settings *settings, const char *id)
{
    for (size_t i = 0; i < settings->check_count; i++) {
        if (strcmp(settings->checks[i].id, id) == 0) {
            return &settings->checks[i];
        }
    }
    return NULL;
}
