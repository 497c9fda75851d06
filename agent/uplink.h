/* The one thread that talks to the server: enrolment, access tokens, reports. */
#ifndef AGENT_UPLINK_H
#define AGENT_UPLINK_H

#include <stdbool.h>

#include "agent/identity.h"
#include "agent/options.h"
#include "base/buf.h"

struct uplink;

struct uplink_result {
    bool sent;          /* the report reached the server; status is its answer */
    long status;        /* HTTP status of the last exchange, 0 = no answer */
    long retry_after_s; /* -1 = not said */
    char error[256];    /* a sentence, when not a 200 */
    struct buf body;    /* the answer of a 200 */
};

/* Starts the thread. It works on the identity, which the caller may read only while no report is
 * under way. notify_fd (an eventfd) becomes readable when a report is over. NULL with errno when no
 * thread can be started. */
struct uplink *uplink_start(const struct options *options, struct identity *identity,
                            int notify_fd);
/* Waits for the exchange under way, at most its time limit. */
void uplink_stop(struct uplink *uplink);
bool uplink_busy(const struct uplink *uplink);
/* Hands a report over; only when not busy. sync_fd (or -1) is a copy of a file's descriptor that is
 * synced to disk first and then closed. The body's memory moves. */
void uplink_send(struct uplink *uplink, struct buf *body, int sync_fd);
/* The result of the report that is over; the body's memory moves to the caller. */
void uplink_take(struct uplink *uplink, struct uplink_result *ret_result);
/* Closes the connection before the next report. */
void uplink_reconnect(struct uplink *uplink);

/* Enrols now, in this thread. False with a sentence. Needs a join token in the options. */
bool uplink_enroll_now(const struct options *options, struct identity *identity, char *error,
                       size_t error_cap) MUST_CHECK;

#endif
