/* One source of facts: its state, heartbeat and back-off, apart from what it reads. */
#include "agent/collect/collector.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"

#define BACKOFF_FIRST_US INT64_C(1000000)
#define BACKOFF_MAX_US (300 * INT64_C(1000000))
#define DOUBLINGS_MAX 9

void collector_init(struct collector *collector, const char *name)
{
    *collector = (struct collector){
        .name = name, .state = COLLECTOR_UNKNOWN, .reason = "not read yet", .news = true};
}

static void enter(struct collector *collector, enum collector_state state, const char *reason,
                  int64_t now_us)
{
    bool same = collector->state == state && strcmp(collector->reason, reason) == 0;

    collector->heartbeat_us = now_us;
    collector->finished_once = true;
    if (same) {
        return;
    }
    collector->state = state;
    (void)snprintf(collector->reason, sizeof(collector->reason), "%s", reason);
    collector->news = true;
    collector->in_report = false;
    log_info("collector %s is %s%s%s", collector->name, collector_state_name(state),
             reason[0] != '\0' ? ": " : "", reason);
}

void collector_ok(struct collector *collector, int64_t now_us)
{
    collector->failures = 0;
    collector->retry_us = 0;
    enter(collector, COLLECTOR_OK, "", now_us);
}

void collector_absent(struct collector *collector, int64_t now_us, const char *format, ...)
{
    char reason[sizeof(collector->reason)];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(reason, sizeof(reason), format, args);
    va_end(args);
    collector->failures = 0;
    enter(collector, COLLECTOR_ABSENT, reason, now_us);
}

void collector_unknown(struct collector *collector, int64_t now_us, const char *format, ...)
{
    char reason[sizeof(collector->reason)];
    int64_t wait_us = BACKOFF_FIRST_US;
    va_list args;

    va_start(args, format);
    (void)vsnprintf(reason, sizeof(reason), format, args);
    va_end(args);
    if (collector->failures < DOUBLINGS_MAX) {
        collector->failures++;
    }
    wait_us <<= collector->failures - 1;
    collector->retry_us = now_us + (wait_us < BACKOFF_MAX_US ? wait_us : BACKOFF_MAX_US);
    enter(collector, COLLECTOR_UNKNOWN, reason, now_us);
}

bool collector_may_try(const struct collector *collector, int64_t now_us)
{
    return now_us >= collector->retry_us;
}

const char *collector_state_name(enum collector_state state)
{
    static const char *const names[] = {"ok", "absent", "unknown"};

    return names[state];
}
