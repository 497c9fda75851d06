/* The log sources of `classify`: kmsg, journald, syslog, all through the rules engine. */
#include <string.h>

#include "agent/classify/classify.h"
#include "agent/rules/engine.h"
#include "agent/rules/log_line.h"
#include "base/json.h"

struct log_run {
    struct classify *classify;
    struct engine *engine;
    /* The record being gathered: continuation lines are joined to it. */
    struct buf text;
    struct record record;
    bool waiting;
    bool raw; /* the record came from /dev/kmsg: indented lines are its KEY=value pairs */
};

static void take(const struct incident *incident, void *ctx)
{
    struct classify *classify = ctx;

    if (classify->count < FINDINGS_MAX) {
        classify->findings[classify->count++] = incident->finding;
    }
}

static void begin(struct log_run *run, struct classify *classify)
{
    const struct classify_context *context = classify->context;
    struct facts facts = {
        .driver_hangs = context->nvidia_smi_timeout,
        .driver_works = context->host_nvidia_smi_exit == 0,
        .nvswitch_count = context->nvswitch_count >= 0 && context->nvswitch_count < 1024
                              ? (int)context->nvswitch_count
                              : -1,
    };

    *run = (struct log_run){.classify = classify, .engine = engine_new(true)};
    engine_set_facts(run->engine, &facts);
}

static void flush(struct log_run *run)
{
    if (!run->waiting) {
        return;
    }
    run->record.text = buf_str(&run->text);
    engine_feed(run->engine, &run->record, 0);
    run->waiting = false;
}

static void end(struct log_run *run)
{
    flush(run);
    engine_take(run->engine, 0, false, take, run->classify);
    engine_free(run->engine);
    buf_free(&run->text);
}

static void start_record(struct log_run *run, const struct record *record)
{
    flush(run);
    run->record = *record;
    buf_clear(&run->text);
    buf_add(&run->text, record->text.ptr, record->text.len);
    run->waiting = true;
}

static void continue_record(struct log_run *run, struct str line)
{
    if (run->waiting && !run->raw && run->text.len < RECORD_TEXT_MAX) {
        buf_add_char(&run->text, '\n');
        buf_add(&run->text, line.ptr, line.len);
    }
}

static bool is_stale_record(const struct classify_context *context, const struct kmsg_record *raw)
{
    return (context->last_seq >= 0 && raw->seq <= (uint64_t)context->last_seq) ||
           (context->gpu_reset_at_us >= 0 && raw->uptime_us <= context->gpu_reset_at_us);
}

static void feed_kmsg(struct log_run *run, struct str line)
{
    char text[RECORD_TEXT_MAX];
    struct log_line parsed;
    struct record record = {.repeat = 1};

    if (line.len > 0 && (line.ptr[0] == ' ' || line.ptr[0] == '\t')) {
        continue_record(run, line);
        return;
    }
    kernel_line_parse(line, &parsed);
    record.uptime_us = parsed.uptime_us;
    record.text = parsed.text;
    if (parsed.is_raw) {
        if (parsed.raw.facility != 0) {
            /* Written by a process: anybody may claim anything there. */
            return;
        }
        record.text = kmsg_unescape(parsed.text, text, sizeof(text));
        record.stale = is_stale_record(run->classify->context, &parsed.raw);
    }
    start_record(run, &record);
    run->raw = parsed.is_raw;
}

void classify_kmsg(struct classify *classify, struct str input)
{
    struct log_run run;
    struct str line;

    begin(&run, classify);
    while (str_split(&input, '\n', &line)) {
        feed_kmsg(&run, line);
    }
    end(&run);
}

/* rsyslog writes control characters as #ooo. */
static struct str unescape_octal(struct arena *arena, struct str text)
{
    char *copy;
    size_t len = 0;

    if (str_find(text, STR("#01"), 0) < 0) {
        return text;
    }
    copy = arena_alloc(arena, text.len + 1);
    for (size_t i = 0; i < text.len; i++) {
        if (text.len - i >= 4 && memcmp(text.ptr + i, "#01", 3) == 0 &&
            (text.ptr[i + 3] == '1' || text.ptr[i + 3] == '2')) {
            copy[len++] = text.ptr[i + 3] == '1' ? '\t' : '\n';
            i += 3;
        } else {
            copy[len++] = text.ptr[i];
        }
    }
    return (struct str){copy, len};
}

static void feed_syslog(struct log_run *run, struct str line)
{
    struct record record = {.repeat = 1};
    struct log_line parsed;

    syslog_line_parse(line, &parsed);
    if (parsed.ident.len == 0) {
        return;
    }
    record.uptime_us = parsed.uptime_us;
    record.text = unescape_octal(run->classify->arena, parsed.text);
    if (!str_eq_c(parsed.ident, "kernel")) {
        record.ident = parsed.ident;
    }
    start_record(run, &record);
}

void classify_syslog(struct classify *classify, struct str input)
{
    struct log_run run;
    struct str line;

    begin(&run, classify);
    while (str_split(&input, '\n', &line)) {
        feed_syslog(&run, line);
    }
    end(&run);
}

/* The members of a journal entry that matter. */
struct entry {
    struct str transport;
    struct str identifier;
    struct str boot_id;
    struct str realtime;
    struct str message;
};

static bool read_string(struct arena *arena, struct json_reader *reader, struct str *ret_text)
{
    struct str raw;
    bool plain;

    return json_get_raw_str(reader, &raw, &plain) &&
           json_unescape(raw, arena_alloc(arena, raw.len + 1), raw.len + 1, ret_text);
}

/* A message that is not UTF-8 is an array of its bytes. */
static bool read_bytes(struct arena *arena, struct json_reader *reader, struct str *ret_text)
{
    size_t left = (size_t)(reader->end - reader->at);
    size_t cap = left < RECORD_TEXT_MAX ? left : RECORD_TEXT_MAX;
    char *bytes = arena_alloc(arena, cap + 1);
    enum json_type type;
    size_t len = 0;
    int64_t value;

    while ((type = json_next(reader, NULL)) == JSON_NUM) {
        if (!json_get_i64(reader, &value)) {
            return false;
        }
        if (len < cap) {
            bytes[len++] = (char)value;
        }
    }
    *ret_text = (struct str){bytes, len};
    return type == JSON_END;
}

static struct str *entry_member(struct entry *entry, struct str key)
{
    if (str_eq_c(key, "_TRANSPORT")) {
        return &entry->transport;
    }
    if (str_eq_c(key, "SYSLOG_IDENTIFIER")) {
        return &entry->identifier;
    }
    if (str_eq_c(key, "_BOOT_ID")) {
        return &entry->boot_id;
    }
    if (str_eq_c(key, "__REALTIME_TIMESTAMP")) {
        return &entry->realtime;
    }
    return str_eq_c(key, "MESSAGE") ? &entry->message : NULL;
}

static bool read_entry(struct arena *arena, struct str line, struct entry *entry)
{
    struct json_reader reader;
    enum json_type type;
    struct str key;

    json_open(&reader, line);
    if (json_next(&reader, NULL) != JSON_OBJ) {
        return false;
    }
    while ((type = json_next(&reader, &key)) != JSON_END) {
        struct str *member;
        bool good = false;

        if (type == JSON_ERROR) {
            return false; /* there is no key then */
        }
        member = entry_member(entry, key);
        if (member != NULL && type == JSON_STR) {
            good = read_string(arena, &reader, member);
        } else if (member == &entry->message && type == JSON_ARR) {
            good = read_bytes(arena, &reader, member);
        } else {
            good = json_skip(&reader);
        }
        if (!good) {
            return false;
        }
    }
    return json_close(&reader);
}

static void feed_entry(struct log_run *run, const struct entry *entry)
{
    const struct classify_context *context = run->classify->context;
    struct record record = {.uptime_us = -1, .repeat = 1, .text = entry->message};
    uint64_t at = 0;

    if (!str_eq_c(entry->transport, "kernel")) {
        /* Only the kernel's own transport speaks for the kernel. */
        if (entry->identifier.len == 0 || str_eq_c(entry->identifier, "kernel")) {
            return;
        }
        record.ident = entry->identifier;
    }
    if (str_parse_u64(entry->realtime, 0, INT64_MAX, &at)) {
        record.at_us = (int64_t)at;
    }
    record.stale = context->current_boot_id.len > 0 && entry->boot_id.len > 0 &&
                   !str_eq_nocase(context->current_boot_id, entry->boot_id);
    start_record(run, &record);
}

void classify_journald(struct classify *classify, struct str input)
{
    struct log_run run;
    struct str line;

    begin(&run, classify);
    while (str_split(&input, '\n', &line)) {
        struct entry entry = {.message = {NULL, 0}};

        line = str_trim(line);
        if (line.len == 0) {
            continue;
        }
        if (line.ptr[0] != '{') {
            feed_syslog(&run, line);
        } else if (read_entry(classify->arena, line, &entry)) {
            feed_entry(&run, &entry);
        }
    }
    end(&run);
}
