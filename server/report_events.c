/* An agent's report: streams of events. An event that cannot be stored is rejected by name. */
#include <string.h>

#include "server/report_parts.h"

#define CHECK_ID_MAX 63 /* incident.check_id */
#define CODE_MAX 63
#define DEVICE_MAX 127
#define SUMMARY_MAX 1023
#define WORD_MAX 32
#define LINE_TEXT_MAX 1023
#define LINE_SOURCE_MAX 63
#define COUNT_MAX INT64_C(1000000000)
#define QUIET_SECONDS_MAX (INT64_C(30) * 86400)

/* The check of the agent's own notes: it had to drop events. */
#define NOTE_CHECK "agent.dropped"

/* What incident.severity, .action and .clears allow; the first stands for an absent or unknown one,
 * except for severity, which must be known. */
static const char *const severities[] = {"info", "warning", "critical", NULL};
static const char *const actions[] = {
    "none", "reset_gpu", "reboot", "power_cycle", "reprovision", "failover", "remove", NULL,
};
static const char *const clear_rules[] = {"person", "new_boot", "event", "quiet", NULL};

/* An event as it is read, before it is judged. */
struct draft {
    struct report_event event;
    struct str severity;
    struct str action;
    struct str clears;
    struct str at;
    int64_t quiet_seconds;
    bool clear;
};

static const char *find_word(const char *const *words, struct str word)
{
    for (size_t i = 0; words[i] != NULL; i++) {
        if (str_eq_c(word, words[i])) {
            return words[i];
        }
    }
    return NULL;
}

static void reject(struct report_reader *reader, int64_t seq, const char *reason)
{
    struct report *report = reader->report;
    if (report->reject_count == reader->reject_cap) {
        size_t cap = reader->reject_cap == 0 ? 8 : 2 * reader->reject_cap;
        struct report_reject *rejects = arena_alloc(reader->arena, cap * sizeof *rejects);
        if (report->reject_count > 0) {
            memcpy(rejects, report->rejects, report->reject_count * sizeof *rejects);
        }
        report->rejects = rejects;
        reader->reject_cap = cap;
    }
    /* The stream's number may stand behind its events: see finish_stream. */
    report->rejects[report->reject_count++] = (struct report_reject){
        .stream = -1,
        .seq = seq,
        .reason = reason,
    };
}

static void keep_event(struct report_reader *reader, const struct report_event *event)
{
    struct report *report = reader->report;
    if (report->event_count == reader->event_cap) {
        size_t cap = reader->event_cap == 0 ? 8 : 2 * reader->event_cap;
        struct report_event *events = arena_alloc(reader->arena, cap * sizeof *events);
        if (report->event_count > 0) {
            memcpy(events, report->events, report->event_count * sizeof *events);
        }
        report->events = events;
        reader->event_cap = cap;
    }
    report->events[report->event_count++] = *event;
}

/* ------------------------------------------------------------------------------- lines */

/* A piece of escaped JSON text cut to max bytes, not inside a character or an escape. */
static struct str cut_escaped(struct str raw, size_t max)
{
    size_t at = 0;
    while (at < raw.len) {
        size_t step = 1;
        if (raw.ptr[at] == '\\') {
            step = raw.ptr[at + 1] == 'u' ? 6 : 2;
            /* The reader let no half surrogate pair through: a high one has its low one. */
            bool high = step == 6 && (raw.ptr[at + 2] | 0x20) == 'd' && raw.ptr[at + 3] >= '8';
            step = high ? 12 : step;
        } else {
            step = str_utf8_len((struct str){raw.ptr + at, raw.len - at});
            step = step == 0 ? 1 : step;
        }
        if (at + step > max) {
            break;
        }
        at += step;
    }
    return (struct str){raw.ptr, at};
}

struct line {
    struct str at; /* still escaped, as the other texts: they are written into JSON again */
    struct str source;
    struct str text;
    bool opened;
};

static bool read_line(struct report_reader *reader, struct line *line)
{
    struct str key = {0};
    enum json_type type;
    while ((type = json_next(&reader->json, &key)) != JSON_END) {
        struct str raw;
        if (type == JSON_STR && json_get_raw_str(&reader->json, &raw, NULL)) {
            int64_t us;
            if (str_eq_c(key, "text")) {
                line->text = cut_escaped(raw, LINE_TEXT_MAX);
            } else if (str_eq_c(key, "source")) {
                line->source = cut_escaped(raw, LINE_SOURCE_MAX);
            } else if (str_eq_c(key, "at") && str_parse_rfc3339(raw, &us)) {
                line->at = raw;
            }
        } else if (type == JSON_BOOL && str_eq_c(key, "opened")) {
            if (!json_get_bool(&reader->json, &line->opened)) {
                return false;
            }
        } else if (type == JSON_ERROR ||
                   ((type == JSON_OBJ || type == JSON_ARR) && !json_skip(&reader->json))) {
            return false;
        }
    }
    return true;
}

static char *put_text(char *at, struct str text)
{
    if (text.len > 0) {
        memcpy(at, text.ptr, text.len);
    }
    return at + text.len;
}

static void write_lines(struct report_reader *reader, const struct line *lines, size_t count,
                        struct report_event *event)
{
    size_t size = 0;
    for (size_t i = 0; i < count; i++) {
        size += 64 + lines[i].at.len + lines[i].source.len + lines[i].text.len;
    }
    char *start = arena_alloc(reader->arena, size);
    char *at = start;
    for (size_t i = 0; i < count; i++) {
        if (i > 0) {
            *at++ = ',';
        }
        bool timed = lines[i].at.len > 0;
        at = put_text(at, timed ? STR("{\"at\":\"") : STR("{\"at\":null"));
        at = put_text(at, lines[i].at);
        at = put_text(at, timed ? STR("\",\"source\":\"") : STR(",\"source\":\""));
        at = put_text(at, lines[i].source);
        at = put_text(at, STR("\",\"text\":\""));
        at = put_text(at, lines[i].text);
        at = put_text(at, STR("\",\"opened\":"));
        at = put_text(at, lines[i].opened ? STR("true}") : STR("false}"));
    }
    event->lines = (struct str){start, (size_t)(at - start)};
    event->line_count = (uint8_t)count;
}

static bool read_lines(struct report_reader *reader, struct report_event *event)
{
    struct line lines[REPORT_LINES_MAX];
    size_t count = 0;
    enum json_type type;
    while ((type = json_next(&reader->json, NULL)) != JSON_END) {
        struct line line = {0};
        if (type == JSON_OBJ) {
            if (!read_line(reader, &line)) {
                return false;
            }
        } else if (type == JSON_ERROR || (type == JSON_ARR && !json_skip(&reader->json))) {
            return false;
        }
        if (line.text.len > 0 && count < REPORT_LINES_MAX) {
            lines[count++] = line;
        }
    }
    if (count > 0) {
        write_lines(reader, lines, count, event);
    }
    return true;
}

/* ------------------------------------------------------------------------------- one event */

static bool read_code(struct report_reader *reader, enum json_type type, struct draft *draft)
{
    int64_t number;
    if (report_number(reader, type, INT64_MIN / 2, INT64_MAX / 2, &number)) {
        const char *text = arena_printf(reader->arena, "%lld", (long long)number);
        draft->event.code = str_of(text);
        return true;
    }
    return report_text(reader, type, CODE_MAX + 1, &draft->event.code);
}

static void read_number(struct report_reader *reader, enum json_type type, int64_t max,
                        int64_t *value)
{
    int64_t read;
    if (report_number(reader, type, 0, INT64_MAX, &read)) {
        *value = read > max ? max : read;
    }
}

static bool read_flag(struct report_reader *reader, enum json_type type, bool *flag)
{
    return type != JSON_BOOL || json_get_bool(&reader->json, flag);
}

enum event_field {
    EVENT_SEQ,
    EVENT_AT,
    EVENT_CHECK,
    EVENT_CODE,
    EVENT_DEVICE,
    EVENT_SEVERITY,
    EVENT_ACTION,
    EVENT_FAULT,
    EVENT_CLEARS,
    EVENT_QUIET,
    EVENT_COUNT_FIELD,
    EVENT_SUMMARY,
    EVENT_LINES,
    EVENT_CLEAR,
    EVENT_KERNEL_SEQ,
    EVENT_FIELDS
};
static const char *const event_fields[EVENT_FIELDS] = {
    [EVENT_SEQ] = "seq",
    [EVENT_AT] = "at",
    [EVENT_CHECK] = "check_id",
    [EVENT_CODE] = "code",
    [EVENT_DEVICE] = "device",
    [EVENT_SEVERITY] = "severity",
    [EVENT_ACTION] = "action",
    [EVENT_FAULT] = "node_fault",
    [EVENT_CLEARS] = "clears",
    [EVENT_QUIET] = "quiet_seconds",
    [EVENT_COUNT_FIELD] = "count",
    [EVENT_SUMMARY] = "summary",
    [EVENT_LINES] = "lines",
    [EVENT_CLEAR] = "clear",
    [EVENT_KERNEL_SEQ] = "kmsg_seq",
};

static size_t find_field(struct str key)
{
    size_t i = 0;
    while (i < EVENT_FIELDS && !str_eq_c(key, event_fields[i])) {
        i++;
    }
    return i;
}

/* False only when the JSON is malformed; a value of a wrong type counts as absent. */
static bool read_field(struct report_reader *reader, enum json_type type, size_t field,
                       struct draft *draft)
{
    struct report_event *event = &draft->event;
    switch (field) {
    case EVENT_SEQ:
        read_number(reader, type, INT64_MAX, &event->seq);
        break;
    case EVENT_AT:
        (void)report_text(reader, type, 64, &draft->at);
        break;
    case EVENT_CHECK:
        (void)report_text(reader, type, CHECK_ID_MAX + 1, &event->check_id);
        break;
    case EVENT_CODE:
        (void)read_code(reader, type, draft);
        break;
    case EVENT_DEVICE:
        (void)report_text(reader, type, DEVICE_MAX + 1, &event->device);
        break;
    case EVENT_SEVERITY:
        (void)report_text(reader, type, WORD_MAX, &draft->severity);
        break;
    case EVENT_ACTION:
        (void)report_text(reader, type, WORD_MAX, &draft->action);
        break;
    case EVENT_FAULT:
        return read_flag(reader, type, &event->node_fault);
    case EVENT_CLEARS:
        (void)report_text(reader, type, WORD_MAX, &draft->clears);
        break;
    case EVENT_QUIET:
        read_number(reader, type, QUIET_SECONDS_MAX, &draft->quiet_seconds);
        break;
    case EVENT_COUNT_FIELD:
        read_number(reader, type, COUNT_MAX, &event->count);
        break;
    case EVENT_SUMMARY:
        (void)report_text(reader, type, SUMMARY_MAX, &event->summary);
        break;
    case EVENT_LINES:
        return type != JSON_ARR || read_lines(reader, event);
    case EVENT_CLEAR:
        return read_flag(reader, type, &draft->clear);
    case EVENT_KERNEL_SEQ:
        read_number(reader, type, INT64_MAX, &event->kernel_seq);
        break;
    default:
        break;
    }
    return true;
}

/* Why an event cannot be stored; NULL when it can, and then it is complete. */
static const char *judge(struct draft *draft)
{
    struct report_event *event = &draft->event;
    if (event->seq < 1) {
        return "seq must be a whole number of 1 or more";
    }
    if (event->check_id.len == 0) {
        return "check_id is missing";
    }
    if (event->check_id.len > CHECK_ID_MAX) {
        return "check_id is too long";
    }
    if (event->code.len > CODE_MAX) {
        return "code is too long";
    }
    if (event->device.len > DEVICE_MAX) {
        return "device is too long";
    }
    event->kind = draft->clear ? REPORT_CLEAR : REPORT_FAULT;
    if (str_eq_c(event->check_id, NOTE_CHECK)) {
        event->kind = REPORT_NOTE;
    }
    event->severity = find_word(severities, draft->severity);
    if (event->severity == NULL) {
        if (event->kind == REPORT_FAULT) {
            return "severity must be info, warning or critical";
        }
        event->severity = event->kind == REPORT_NOTE ? "warning" : "info";
    }
    const char *action = find_word(actions, draft->action);
    event->action = action == NULL ? actions[0] : action;
    const char *clears = find_word(clear_rules, draft->clears);
    event->clears = clears == NULL ? clear_rules[0] : clears;
    event->quiet_seconds = (int32_t)draft->quiet_seconds;
    event->count = event->count < 1 ? 1 : event->count;
    if (!str_parse_rfc3339(draft->at, &event->at_us)) {
        event->at_us = 0;
    }
    return NULL;
}

static bool read_event(struct report_reader *reader)
{
    struct draft draft = {0};
    struct str key = {0};
    enum json_type type;
    while ((type = json_next(&reader->json, &key)) != JSON_END) {
        size_t field = find_field(key);
        bool entered = type == JSON_OBJ || (type == JSON_ARR && field != EVENT_LINES);
        if (type == JSON_ERROR ||
            (entered ? !json_skip(&reader->json) : !read_field(reader, type, field, &draft))) {
            return false;
        }
    }
    if (reader->report->event_count + reader->report->reject_count == REPORT_EVENTS_MAX) {
        return report_fail(reader, ERR_TOO_LARGE, "A report holds at most 2,048 events.");
    }
    const char *reason = judge(&draft);
    if (draft.event.kind == REPORT_CLEAR && ++reader->clear_count > REPORT_CLEARS_MAX) {
        return report_fail(reader, ERR_TOO_LARGE, "A report holds at most 256 clears.");
    }
    if (reason != NULL) {
        reject(reader, draft.event.seq, reason);
    } else {
        keep_event(reader, &draft.event);
    }
    return true;
}

/* ------------------------------------------------------------------------------- streams */

struct stream_draft {
    struct uuid boot_id;
    int64_t number; /* -1 = absent */
    size_t first_event;
    size_t first_reject;
    bool bad_boot;
};

static bool read_events(struct report_reader *reader)
{
    enum json_type type;
    while ((type = json_next(&reader->json, NULL)) != JSON_END) {
        if (type == JSON_OBJ) {
            if (!read_event(reader)) {
                return false;
            }
        } else if (type == JSON_ERROR || (type == JSON_ARR && !json_skip(&reader->json))) {
            return false;
        }
    }
    return true;
}

/* Drops the events of the stream that `reason_of` refuses; the others move together. */
static void reject_all(struct report_reader *reader, size_t first, const char *reason)
{
    struct report *report = reader->report;
    for (size_t i = first; i < report->event_count; i++) {
        reject(reader, report->events[i].seq, reason);
    }
    report->event_count = first;
}

static void reject_out_of_order(struct report_reader *reader, size_t first, int64_t last_seq)
{
    struct report *report = reader->report;
    size_t kept = first;
    for (size_t i = first; i < report->event_count; i++) {
        if (report->events[i].seq <= last_seq) {
            reject(reader, report->events[i].seq, "seq must grow within a stream");
            continue;
        }
        last_seq = report->events[i].seq;
        report->events[kept++] = report->events[i];
    }
    report->event_count = kept;
}

/* The last seq of the same boot and stream earlier in this report. */
static int64_t find_last_seq(const struct report *report, const struct stream_draft *draft)
{
    int64_t last_seq = 0;
    for (size_t i = 0; i < report->stream_count; i++) {
        const struct report_stream *stream = &report->streams[i];
        if (stream->stream == draft->number && uuid_eq(&stream->boot_id, &draft->boot_id)) {
            last_seq = report->events[stream->first + stream->count - 1].seq;
        }
    }
    return last_seq;
}

static bool finish_stream(struct report_reader *reader, const struct stream_draft *draft)
{
    struct report *report = reader->report;
    if (draft->number < 0 || draft->number > REPORT_STREAM_LAST || draft->bad_boot) {
        reject_all(reader, draft->first_event,
                   draft->bad_boot ? "boot_id of the stream must be a UUID"
                                   : "stream must be 0, 1 or 2");
    } else {
        reject_out_of_order(reader, draft->first_event, find_last_seq(report, draft));
    }
    for (size_t i = draft->first_reject; i < report->reject_count; i++) {
        report->rejects[i].stream = draft->number;
    }
    if (report->event_count == draft->first_event) {
        return true;
    }
    if (report->stream_count == REPORT_STREAMS_MAX) {
        return report_fail(reader, ERR_TOO_LARGE, "A report holds at most 16 streams.");
    }
    report->streams[report->stream_count++] = (struct report_stream){
        .boot_id = draft->boot_id,
        .stream = (int)draft->number,
        .first = draft->first_event,
        .count = report->event_count - draft->first_event,
    };
    return true;
}

static bool read_stream(struct report_reader *reader)
{
    struct stream_draft draft = {
        .number = -1,
        .first_event = reader->report->event_count,
        .first_reject = reader->report->reject_count,
    };
    struct str key = {0};
    enum json_type type;
    while ((type = json_next(&reader->json, &key)) != JSON_END) {
        struct str text;
        if (type == JSON_ARR && str_eq_c(key, "events")) {
            if (!read_events(reader)) {
                return false;
            }
        } else if (str_eq_c(key, "stream")) {
            (void)report_number(reader, type, 0, INT32_MAX, &draft.number);
        } else if (str_eq_c(key, "boot_id") && type == JSON_STR) {
            draft.bad_boot = !report_text(reader, type, UUID_TEXT_LEN + 1, &text) ||
                             !uuid_parse(text, &draft.boot_id);
        }
        if (type == JSON_ERROR) {
            return false;
        }
        bool entered = type == JSON_OBJ || (type == JSON_ARR && !str_eq_c(key, "events"));
        if (entered && !json_skip(&reader->json)) {
            return false;
        }
    }
    return finish_stream(reader, &draft);
}

bool report_read_streams(struct report_reader *reader, enum json_type type)
{
    if (type != JSON_ARR) {
        return type == JSON_NUL ||
               report_fail(reader, ERR_INVALID_FIELDS, "streams must be an array.");
    }
    while ((type = json_next(&reader->json, NULL)) != JSON_END) {
        if (type == JSON_OBJ) {
            if (!read_stream(reader)) {
                return false;
            }
        } else if (type == JSON_ERROR || (type == JSON_ARR && !json_skip(&reader->json))) {
            return false;
        }
    }
    return true;
}
