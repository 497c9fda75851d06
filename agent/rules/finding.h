/* What a rule says about a line or a reading: which check, how bad, what to do. */
#ifndef AGENT_RULES_FINDING_H
#define AGENT_RULES_FINDING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

enum severity { SEVERITY_INFO, SEVERITY_WARNING, SEVERITY_CRITICAL };

/* From mild to severe: of two actions for one fault the greater one holds. */
enum action {
    ACTION_NONE,
    ACTION_RESET_GPU,
    ACTION_REBOOT,
    ACTION_POWER_CYCLE,
    ACTION_REPROVISION,
    ACTION_FAILOVER,
    ACTION_REMOVE,
};

/* How an open incident of this kind ends; the names are those of docs/agent-protocol.md. */
enum clears {
    CLEARS_NEW_BOOT, /* a new boot id and no new event */
    CLEARS_EVENT,    /* the agent says that the condition is gone */
    CLEARS_QUIET,    /* no event for quiet_seconds */
    CLEARS_PERSON,
};

enum code_type { CODE_NONE, CODE_NUMBER, CODE_TEXT };

#define FINDING_CODE_CAP 48
#define FINDING_DEVICE_CAP 64
#define FINDING_SUMMARY_CAP 200

struct finding {
    const char *check; /* a row of check_rows; lives for ever */
    enum code_type code_type;
    char code[FINDING_CODE_CAP];
    /* The code under which events fold when `code` carries a changing number ("ce 262" -> "ce");
     * empty = code. */
    char fold_code[FINDING_CODE_CAP];
    char device[FINDING_DEVICE_CAP]; /* PCI address dddd:bb:dd, interface, disk, server; "" = the
                                        node */
    bool device_is_gpu;              /* device is a GPU's PCI address or, from tools, its index */
    enum severity severity;
    enum action action;
    enum clears clears;
    uint32_t quiet_seconds; /* with CLEARS_QUIET */
    bool node_fault;
    bool deferred; /* the action waits for the next drain */
    bool clear;    /* the line says that the condition is gone */
    uint64_t count;
    char summary[FINDING_SUMMARY_CAP];
};

const char *severity_name(enum severity severity);
const char *action_name(enum action action);
const char *clears_name(enum clears clears);
bool severity_parse(struct str name, enum severity *ret_severity) MUST_CHECK;
bool action_parse(struct str name, enum action *ret_action) MUST_CHECK;
bool clears_parse(struct str name, enum clears *ret_clears) MUST_CHECK;

void finding_set_code_number(struct finding *finding, int64_t number);
void finding_set_code(struct finding *finding, const char *format, ...) PRINTF_LIKE(2, 3);
void finding_set_device(struct finding *finding, struct str device, bool is_gpu); /* cut to fit */
void finding_set_summary(struct finding *finding, const char *format, ...) PRINTF_LIKE(2, 3);
/* Turns it into history: shown, never acted on. */
void finding_demote(struct finding *finding);
/* How a fault with this action ends when nothing more is known: a reboot's by the new boot, a
 * reset's by the driver's or our own word, a person's task by the person, else by an hour of quiet.
 */
enum clears clears_by_action(enum action action);

#define QUIET_DEFAULT_SECONDS 3600

#endif
