/* Orders from the server: what they say, and whether this node obeys. */
#ifndef AGENT_ACT_COMMAND_H
#define AGENT_ACT_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/act/command_log.h"
#include "agent/identity.h"
#include "base/str.h"

#define COMMAND_PAYLOAD_MAX ((size_t)16 * 1024)
#define NONCE_CAP 64
#define COMMAND_GPUS_CAP ((size_t)16 * 16) /* 16 GPUs a node */

struct command {
    char id[COMMAND_ID_CAP];
    char action[ACTION_CAP];
    char org_id[UUID_TEXT_LEN + 1];
    char cluster_id[UUID_TEXT_LEN + 1];
    char node_id[UUID_TEXT_LEN + 1];
    char boot_id[UUID_TEXT_LEN + 1];
    char nonce[NONCE_CAP];
    char gpus[COMMAND_GPUS_CAP]; /* args.gpus: PCI addresses joined by commas, "" = none */
    bool simulated;              /* args.simulated: for a node that is only played */
    int64_t epoch[2];
    int64_t repair_no;
};

/* What the node holds an order against. */
struct command_rules {
    const struct identity *identity;
    const char *nonce;             /* of the report whose answer carried the order */
    const char *boot_id;           /* the present one */
    const struct command_log *log; /* NULL = it cannot be used: everything is refused */
    const char *allowed_actions;
    const char *deny_file;
    int64_t destructive_per_hour;
    int64_t now_s; /* wall clock */
};

enum verdict {
    VERDICT_ACT,
    VERDICT_REFUSED,
    VERDICT_KNOWN,   /* begun before: answer with what became of it */
    VERDICT_IGNORED, /* so broken that no result can be addressed */
};

/* False when the payload is not the JSON object of docs/agent-protocol.md. */
bool command_parse(struct str payload, struct command *ret_command) MUST_CHECK;
/*
 * Rules 1-5 of docs/agent-protocol.md in order. ret_command is filled when the payload could be
 * read; ret_reason gets a sentence unless the verdict is VERDICT_ACT.
 */
enum verdict command_judge(const struct command_rules *rules, struct str payload,
                           struct str signature, struct command *ret_command, char *ret_reason,
                           size_t reason_cap);
/* Actions that interrupt work: bound to the boot and counted by the hour. */
bool command_is_destructive(const char *action);

#endif
