/* The life of a repair: one pure table, and the only code that names the next state. */
#ifndef SERVER_REPAIR_FSM_H
#define SERVER_REPAIR_FSM_H

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/str.h"

/* What a state means to others; bits. */
enum repair_trait {
    REPAIR_WAITING = 1 << 0, /* open, a person has to decide */
    REPAIR_BUSY = 1 << 1,    /* open and decided: counts against the limit of repairs at once */
    REPAIR_WORKING = 1 << 2, /* the node shows as `repairing` */
    /* open, an order may have gone out: its incidents are closed by the repair */
    REPAIR_ACTED = 1 << 3,
    REPAIR_ENDED = 1 << 4,
    /* ended before it did anything: when by a person, it is not proposed again in the cooldown */
    REPAIR_HELD = 1 << 5,
    REPAIR_TRIED = 1 << 6 /* ended after an attempt */
};

/* X(symbol, name in SQL and JSON, traits) */
#define REPAIR_STATE_TABLE(X)                                                     \
    X(REPAIR_PROPOSED, "proposed", REPAIR_WAITING)                                \
    X(REPAIR_APPROVED, "approved", REPAIR_BUSY)                                   \
    X(REPAIR_CORDONING, "cordoning", REPAIR_BUSY | REPAIR_WORKING)                \
    X(REPAIR_DRAINING, "draining", REPAIR_BUSY | REPAIR_WORKING)                  \
    X(REPAIR_ACTING, "acting", REPAIR_BUSY | REPAIR_WORKING | REPAIR_ACTED)       \
    X(REPAIR_REJOINING, "rejoining", REPAIR_BUSY | REPAIR_WORKING | REPAIR_ACTED) \
    X(REPAIR_VERIFYING, "verifying", REPAIR_BUSY | REPAIR_WORKING | REPAIR_ACTED) \
    X(REPAIR_UNKNOWN, "unknown", REPAIR_BUSY | REPAIR_ACTED)                      \
    X(REPAIR_SUCCEEDED, "succeeded", REPAIR_ENDED | REPAIR_TRIED)                 \
    X(REPAIR_FAILED, "failed", REPAIR_ENDED | REPAIR_TRIED)                       \
    X(REPAIR_REJECTED, "rejected", REPAIR_ENDED | REPAIR_HELD)                    \
    X(REPAIR_CANCELLED, "cancelled", REPAIR_ENDED | REPAIR_HELD)                  \
    X(REPAIR_RESOLVED, "resolved", REPAIR_ENDED)
enum repair_state {
#define REPAIR_STATE_ENUM(sym, name, traits) sym,
    REPAIR_STATE_TABLE(REPAIR_STATE_ENUM)
#undef REPAIR_STATE_ENUM
        REPAIR_STATE_COUNT
};

/* What happens to a repair. Each event leads to one state only, so that SQL takes (from list, to).
 */
#define REPAIR_EVENT_TABLE(X)                                                                      \
    X(REPAIR_ON_APPROVE, "approve") /* a person says yes to the plan as it stands */               \
    X(REPAIR_ON_REJECT, "reject")   /* a person says no */                                         \
    X(REPAIR_ON_CANCEL, "cancel")   /* a person stops it before anything irreversible */           \
    X(REPAIR_ON_RESOLVE, "resolve") /* its incidents closed by themselves */                       \
    X(REPAIR_ON_LAPSE, "lapse") /* the approval ran out, or the plan changed before it began */    \
    X(REPAIR_ON_BEGIN, "begin")                                                                    \
    X(REPAIR_ON_CORDONED, "cordoned") /* the node takes no new work */                             \
    X(REPAIR_ON_DRAINED, "drained")   /* nothing runs there any more */                            \
    X(REPAIR_ON_OCCUPIED, "occupied") /* something runs there again, or nobody knows any more */   \
    X(REPAIR_ON_WITHDRAW, "withdraw") /* the plan stopped being true before the order went out */  \
    X(REPAIR_ON_ACTED, "acted")       /* the executor has taken the order */                       \
    X(REPAIR_ON_LOST, "lost")         /* the deadline passed and the outcome cannot be seen */     \
    X(REPAIR_ON_REJOINED, "rejoined") /* evidence that the action took place: the node is back */  \
    X(REPAIR_ON_VERIFIED, "verified") /* the fault is gone and stayed away */                      \
    X(REPAIR_ON_FAIL, "fail")         /* refused, failed, or the fault came back */                \
    X(REPAIR_ON_SETTLE_SUCCEEDED, "settle_succeeded") /* a person says how an unknown one ended */ \
    X(REPAIR_ON_SETTLE_FAILED, "settle_failed")                                                    \
    X(REPAIR_ON_RESTORE, "restore") /* the database came back from a backup: what it says is old   \
                                     */
enum repair_event {
#define REPAIR_EVENT_ENUM(sym, name) sym,
    REPAIR_EVENT_TABLE(REPAIR_EVENT_ENUM)
#undef REPAIR_EVENT_ENUM
        REPAIR_EVENT_COUNT
};

/* The state after the event; false when the event is not possible in this state. Pure. */
bool repair_step(enum repair_state from, enum repair_event event,
                 enum repair_state *ret_to) MUST_CHECK;

const char *repair_state_name(enum repair_state state);
bool repair_state_parse(struct str name, enum repair_state *ret_state) MUST_CHECK;
unsigned repair_state_traits(enum repair_state state);
const char *repair_event_name(enum repair_event event);

/* For SQL parameters: PostgreSQL array texts such as "{proposed,approved}", at most
 * REPAIR_LIST_MAX - 1 bytes. */
#define REPAIR_LIST_MAX 192
struct repair_list {
    char text[REPAIR_LIST_MAX];
};
/* The states in which the event is possible. */
struct repair_list repair_event_from(enum repair_event event);
/* The state it leads to. */
enum repair_state repair_event_to(enum repair_event event);
/* The states with any of these traits. */
struct repair_list repair_states_with(unsigned traits);

#endif
