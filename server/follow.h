/* The follower: one thread that polls org_head and tells who waits what moved. */
#ifndef SERVER_FOLLOW_H
#define SERVER_FOLLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/uuid.h"

struct follow;

/* The counters of an org, as last seen (at most 250 ms old while the database answers). */
struct follow_head {
    struct uuid org;
    int64_t event_seq;
    int64_t rollup_version;
    int64_t command_seq;
};

/* What moved since the poll before. The first sight of an org says that everything moved. */
struct follow_change {
    struct follow_head head;
    bool events;
    bool rollup;
    bool commands;
};

/*
 * Called on the follower's thread after a poll that found changes; must not block (loops post to
 * themselves, background loops signal their own condition). `auth_moved` says that a credential
 * was revoked somewhere: cached ones are void. count may be 0 then.
 */
typedef void follow_fn(void *ctx, const struct follow_change *changes, size_t count,
                       bool auth_moved);

struct follow *follow_new(int poll_ms);
/* Before follow_start. At most 32 subscribers; ctx lives until follow_stop has returned. */
void follow_subscribe(struct follow *follow, follow_fn *fn, void *ctx);
bool follow_start(struct follow *follow) MUST_CHECK;
void follow_stop(struct follow *follow); /* ends the thread */
void follow_free(struct follow *follow); /* after follow_stop; NULL is fine */

/* Any thread: poll at once (after a local write). Requests that change something do it themselves.
 */
void follow_poke(struct follow *follow);
/* Any thread: installation.auth_epoch as last seen; 0 = not yet. */
int64_t follow_auth_epoch(const struct follow *follow);
/* Any thread: microseconds since the last poll that succeeded; INT64_MAX = none yet. */
int64_t follow_age_us(const struct follow *follow);

#endif
