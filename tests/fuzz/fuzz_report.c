/* Fuzzes the decoder of agents' reports: whatever comes, it stays within the body and the arena. */
#include "tests/fuzz/fuzz.h"

#include "base/json.h"
#include "server/report.h"

/* The body's cap is 1 MiB; the arena is that of a request. */
#define BODY_MAX (1u << 20)
#define ARENA_CAP (8u << 20)

static void check_json(struct str text)
{
    struct json_reader reader;
    json_open(&reader, text);
    FUZZ_CHECK(json_next(&reader, NULL) != JSON_ERROR && json_skip(&reader) && json_close(&reader));
}

static void check_events(struct arena *arena, const struct report *report)
{
    size_t count = 0;
    for (size_t i = 0; i < report->stream_count; i++) {
        const struct report_stream *stream = &report->streams[i];
        int64_t last_seq = 0;
        for (size_t k = stream->first; k < stream->first + stream->count; k++) {
            const struct report_event *event = &report->events[k];
            FUZZ_CHECK(event->seq > last_seq && event->count >= 1);
            FUZZ_CHECK(event->check_id.len > 0 && event->check_id.len <= 63);
            FUZZ_CHECK(str_is_utf8(event->check_id) && str_is_utf8(event->summary));
            last_seq = event->seq;
            check_json(str_of(arena_printf(arena, "[%.*s]", STR_FMT(event->lines))));
        }
        count += stream->count;
    }
    FUZZ_CHECK(count == report->event_count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > BODY_MAX) {
        return 0;
    }
    struct arena *arena = arena_new(ARENA_CAP);
    struct arena *scratch = arena_new(4 * ARENA_CAP);
    struct report report;
    const char *detail = NULL;
    struct str body = {(const char *)data, size};
    enum err err = report_read(arena, body, INT64_C(1800000000000000), &report, &detail);
    if (err == ERR_NONE) {
        check_events(scratch, &report);
        const struct str lists[] = {report.devices, report.collectors, report.results};
        for (size_t i = 0; i < COUNTOF(lists); i++) {
            if (lists[i].ptr != NULL) {
                check_json(lists[i]);
            }
        }
    } else {
        FUZZ_CHECK(detail != NULL);
    }
    arena_free(arena);
    arena_free(scratch);
    return 0;
}
