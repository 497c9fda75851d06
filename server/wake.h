/* Wakes background loops of this process when an org's data changed; other replicas notice by
 * org_head. */
#ifndef SERVER_WAKE_H
#define SERVER_WAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/uuid.h"

/* What changed; a subscriber names what it cares for. */
enum wake_topic {
    WAKE_HEALTH =
        1 << 0, /* an incident opened, changed or closed; a node's boot id or `ready` changed */
    WAKE_REPAIR = 1 << 1, /* a repair was decided, a command got a result */
    WAKE_NODE = 1 << 2, /* a node was added, paused, changed or removed; cluster settings changed */
    WAKE_STATE = 1 << 3,   /* a node's derived state changed */
    WAKE_WEBHOOK = 1 << 4, /* a webhook's turn is over; concerns nobody else */
    WAKE_ANY = WAKE_HEALTH | WAKE_REPAIR | WAKE_NODE | WAKE_STATE
};

/* At most so many orgs are remembered for a subscriber; more become "all orgs". */
#define WAKE_ORGS_MAX 64

struct wake; /* one subscriber; wake_wait by one thread only */

struct wake *wake_subscribe(unsigned topics);
void wake_unsubscribe(struct wake *wake); /* NULL is fine */

/* From any thread, after the commit; short and never waits for the subscribers. */
void wake_org(const struct uuid *org, unsigned topics);
/* All orgs: after a lost database connection, or when the org is not known. */
void wake_all(unsigned topics);
/* Ends a wait of this subscriber now (stopping a loop). */
void wake_poke(struct wake *wake);

struct wake_orgs {
    struct uuid orgs[WAKE_ORGS_MAX]; /* each once */
    size_t count;
    bool all; /* the list is void: look at every org */
};
/* Waits until something was woken or timeout_ms has passed; takes what has gathered. False when
 * there was nothing. */
bool wake_wait(struct wake *wake, int timeout_ms, struct wake_orgs *ret_orgs);
/* Lets timeout_ms pass while wakes gather; only wake_poke ends it early. */
void wake_pause(struct wake *wake, int timeout_ms);

#endif
