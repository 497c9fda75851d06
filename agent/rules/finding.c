/* What a rule says about a line or a reading: which check, how bad, what to do. */
#include "agent/rules/finding.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const severity_names[] = {"info", "warning", "critical"};
static const char *const action_names[] = {"none",        "reset_gpu", "reboot", "power_cycle",
                                           "reprovision", "failover",  "remove"};
static const char *const clears_names[] = {"new_boot", "event", "quiet", "person"};

const char *severity_name(enum severity severity)
{
    return severity_names[severity];
}

const char *action_name(enum action action)
{
    return action_names[action];
}

const char *clears_name(enum clears clears)
{
    return clears_names[clears];
}

static bool find_name(const char *const *names, size_t count, struct str name, unsigned *ret_index)
{
    for (size_t i = 0; i < count; i++) {
        if (str_eq_c(name, names[i])) {
            *ret_index = (unsigned)i;
            return true;
        }
    }
    return false;
}

bool severity_parse(struct str name, enum severity *ret_severity)
{
    unsigned index;

    if (!find_name(severity_names, COUNTOF(severity_names), name, &index)) {
        return false;
    }
    *ret_severity = (enum severity)index;
    return true;
}

bool action_parse(struct str name, enum action *ret_action)
{
    unsigned index;

    if (!find_name(action_names, COUNTOF(action_names), name, &index)) {
        return false;
    }
    *ret_action = (enum action)index;
    return true;
}

bool clears_parse(struct str name, enum clears *ret_clears)
{
    unsigned index;

    if (!find_name(clears_names, COUNTOF(clears_names), name, &index)) {
        return false;
    }
    *ret_clears = (enum clears)index;
    return true;
}

void finding_set_code_number(struct finding *finding, int64_t number)
{
    finding->code_type = CODE_NUMBER;
    (void)snprintf(finding->code, sizeof(finding->code), "%lld", (long long)number);
}

void finding_set_code(struct finding *finding, const char *format, ...)
{
    va_list args;

    finding->code_type = CODE_TEXT;
    va_start(args, format);
    (void)vsnprintf(finding->code, sizeof(finding->code), format, args);
    va_end(args);
}

void finding_set_device(struct finding *finding, struct str device, bool is_gpu)
{
    size_t len = device.len < sizeof(finding->device) ? device.len : sizeof(finding->device) - 1;

    if (len > 0) {
        memcpy(finding->device, device.ptr, len);
    }
    finding->device[len] = '\0';
    finding->device_is_gpu = is_gpu;
}

void finding_set_summary(struct finding *finding, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)vsnprintf(finding->summary, sizeof(finding->summary), format, args);
    va_end(args);
}

void finding_demote(struct finding *finding)
{
    finding->severity = SEVERITY_INFO;
    finding->action = ACTION_NONE;
    finding->node_fault = false;
    finding->deferred = false;
    finding->clear = false;
}

enum clears clears_by_action(enum action action)
{
    switch (action) {
    case ACTION_RESET_GPU:
        return CLEARS_EVENT;
    case ACTION_REBOOT:
    case ACTION_POWER_CYCLE:
    case ACTION_REPROVISION:
        return CLEARS_NEW_BOOT;
    case ACTION_FAILOVER:
    case ACTION_REMOVE:
        return CLEARS_PERSON;
    case ACTION_NONE:
    default:
        return CLEARS_QUIET;
    }
}
