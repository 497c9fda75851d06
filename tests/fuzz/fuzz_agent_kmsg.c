/* Kernel records as /dev/kmsg gives them, through the parser and the rules of a running agent. */
#include <string.h>

#include "agent/rules/engine.h"
#include "agent/rules/log_line.h"
#include "tests/fuzz/fuzz.h"

static void take(const struct incident *incident, void *ctx)
{
    uint64_t *sum = ctx;

    FUZZ_CHECK(incident->finding.check != NULL);
    FUZZ_CHECK(strlen(incident->finding.code) < FINDING_CODE_CAP);
    FUZZ_CHECK(incident->line_count <= EVIDENCE_MAX);
    for (size_t i = 0; i < incident->line_count; i++) {
        *sum += strlen(incident->lines[i].text);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str rest = {(const char *)data, size};
    struct engine *engine = engine_new((size & 1) != 0);
    char text[RECORD_TEXT_MAX];
    struct str line;
    uint64_t sum = 0;
    int64_t now_us = 0;

    while (str_split(&rest, '\n', &line)) {
        struct record record = {.repeat = 1, .uptime_us = -1};
        struct kmsg_record raw;
        struct log_line parsed;

        kernel_line_parse(line, &parsed);
        syslog_line_parse(line, &parsed);
        record.text = line;
        if (kmsg_parse(line, &raw)) {
            record.text = kmsg_unescape(raw.text, text, sizeof(text));
            record.uptime_us = raw.uptime_us;
            record.stale = (raw.seq & 7) == 7;
        }
        now_us += 1000;
        engine_feed(engine, &record, now_us);
        if (engine_has_urgent(engine, now_us) || engine_is_full(engine)) {
            engine_take(engine, now_us, false, take, &sum);
        }
    }
    engine_take(engine, now_us + 1000000, false, take, &sum);
    engine_free(engine);
    return sum == UINT64_MAX;
}
