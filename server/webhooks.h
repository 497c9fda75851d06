/* Webhooks: what kinds of events there are, and how a message is sent. */
#ifndef SERVER_WEBHOOKS_H
#define SERVER_WEBHOOKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "db/db.h"

/*
 * X(kind, event type, state): an event is of a kind when its type is that and, where a state is
 * given, its data say `to` that state. The kinds are words of the API (docs/webhooks.md).
 */
#define WEBHOOK_KIND_TABLE(X)                     \
    X("repair.proposed", "repair.proposed", "")   \
    X("repair.approved", "repair.approved", "")   \
    X("repair.rejected", "repair.rejected", "")   \
    X("repair.begun", "repair.step", "cordoning") \
    X("repair.succeeded", "repair.succeeded", "") \
    X("repair.failed", "repair.failed", "")       \
    X("repair.cancelled", "repair.cancelled", "") \
    X("repair.resolved", "repair.resolved", "")   \
    X("repair.unknown", "repair.unknown", "")     \
    X("breaker.opened", "breaker.opened", "")     \
    X("breaker.reset", "breaker.reset", "")       \
    X("repairs.stopped", "repairs.stopped", "")   \
    X("repairs.allowed", "repairs.allowed", "")   \
    X("incident.opened", "incident.opened", "")   \
    X("incident.closed", "incident.closed", "")   \
    X("node.state_changed", "node.state_changed", "")
#define WEBHOOK_KIND_ONE(kind, type, state) +1
#define WEBHOOK_KIND_COUNT (0 WEBHOOK_KIND_TABLE(WEBHOOK_KIND_ONE))
/* The same as JSON, for the statement that looks for them: [{kind, type, to}]. */
extern const char webhook_kinds_json[];

/* NULL, or a sentence why nothing may be sent there: https to a public address, or what
 * outbound_allow names. */
const char *webhook_url_problem(struct arena *arena, struct str url) MUST_CHECK;

struct webhook_message {
    struct uuid webhook;
    const char *url;
    struct str ca_certificate;  /* empty = the system's */
    struct str sealed;          /* secret_store_unseal opens them */
    struct str sealed_previous; /* ptr NULL = none */
    struct str id;
    struct str body;
};

struct webhook_end {
    int status; /* 0 = no answer */
    int64_t duration_ms;
    int64_t retry_after_s; /* -1 = it did not say */
    char error[200];       /* empty = taken */
};

/* Blocks for 10 s at most; threads of a pool only. Nothing of the answer but its status is kept. */
void webhook_send(struct db_conn *db, struct arena *arena, const struct uuid *org,
                  const struct webhook_message *message, struct webhook_end *ret_end);
/* A row of webhook_claim or webhook_test; the texts are copied to the arena. */
void webhook_message_read(struct arena *arena, const struct db_rows *rows,
                          const struct uuid *webhook, struct webhook_message *ret_message);
/* Stores how a try ended; attempts: those before. */
enum err webhook_tell(struct db_conn *db, struct arena *arena, const struct uuid *org,
                      const struct webhook_message *message, const struct webhook_end *end,
                      int64_t attempts, bool is_test) MUST_CHECK;

#endif
