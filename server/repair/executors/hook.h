/* The operator's own automation as executor: orders are signed messages, ends come by call-back. */
#ifndef SERVER_REPAIR_EXECUTORS_HOOK_H
#define SERVER_REPAIR_EXECUTORS_HOOK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/str.h"

struct hook_target;

#define HOOK_ERROR_MAX 240
#define HOOK_TICKET_USE "order" /* of the call-back's ticket; its id is the command's */

enum hook_said {
    HOOK_ACCEPTED, /* 202: it is on its way, or was already */
    HOOK_DONE,     /* asked afterwards: it says that it is done, which proves nothing yet */
    HOOK_FAILED,   /* asked afterwards: tried and failed */
    HOOK_REFUSED,  /* another 4xx: surely no effect */
    HOOK_BUSY,     /* 409, 429, or nothing could be sent: surely no effect, later perhaps */
    HOOK_UNCLEAR,  /* whatever else: it may have one. Never sent again by itself */
};

/* id: the order's, the same for ever. Blocks for the target's time-out. A sentence with what is not
 * HOOK_ACCEPTED. */
enum hook_said hook_order(const struct hook_target *hook, struct arena *arena, struct str id,
                          struct str body, char error[HOOK_ERROR_MAX]);
/* Asks what became of an order, where status_url is given; safe, a few times over 10 s. */
enum hook_said hook_ask(const struct hook_target *hook, struct arena *arena, struct str id,
                        char error[HOOK_ERROR_MAX]);
/* The message of a call-back comes from the same automation: its signature and its time are right.
 */
bool hook_verify(const struct hook_target *hook, struct arena *arena, struct str id,
                 struct str timestamp, struct str body, struct str signatures) MUST_CHECK;

#endif
