/* Which nodes have commands to fetch: a table in memory, so that a report without any asks nobody.
 */
#ifndef SERVER_COMMANDS_H
#define SERVER_COMMANDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "base/uuid.h"

struct commands;
struct follow;

/*
 * A thread with a connection of its own. It reads the table again when an org's command_seq moved,
 * and every 10 s. When it first sees an org it also brings the interval that nodes are told
 * (node.interval_seconds) up to interval_seconds.
 */
struct commands *commands_new(int64_t interval_seconds);
/* Before follow_start. */
void commands_follow(struct commands *commands, struct follow *follow);
bool commands_start(struct commands *commands) MUST_CHECK;
void commands_stop(struct commands *commands);
void commands_free(struct commands *commands); /* after commands_stop; NULL is fine */

/* Any thread. True when the node may have commands: ask the database (SQL_AGENT_COMMANDS). */
bool commands_wait_for(struct commands *commands, const struct uuid *node);

/* The table's new content, sorted here; for the thread and for tests. Takes a copy. */
void commands_set(struct commands *commands, struct uuid *nodes, size_t count);

/* What the agent checks and acts on (docs/agent-protocol.md, Commands). */
struct command_order {
    struct uuid id;
    struct uuid org;
    struct uuid cluster;
    struct uuid node;
    int64_t epoch_generation;
    int64_t epoch_n;
    struct str action;
    struct str args;    /* a JSON object */
    struct str boot_id; /* empty = any boot */
    struct str nonce;   /* of the report that this answers */
    int64_t repair_no;  /* 0 = none */
};
struct buf;
/* The exact text that is signed, appended to out. */
void command_payload(const struct command_order *order, struct buf *out);

#endif
