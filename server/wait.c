/* Long polls: a request whose answer has not changed waits until its org moves or its time is up.
 */
#include "server/wait.h"

#include <stdlib.h>

#include "base/clock.h"
#include "server/exchange.h"
#include "server/follow.h"

#define WAITING_MAX 1000 /* a loop; more are answered 304 at once */
#define TICK_MS 250

struct waits {
    struct loop *loop;
    struct exchange *first;
    size_t count;
};

bool exchange_wait(struct exchange *ex)
{
    struct waits *waits = loop_slot(ex->rq.loop, LOOP_SLOT_WAIT);
    int64_t now_us = clock_mono_us();
    if (ex->wait_until_us == 0) {
        ex->wait_until_us = now_us + (int64_t)ex->rq.wait_seconds * 1000000;
    }
    if (waits == NULL || waits->count >= WAITING_MAX || now_us >= ex->wait_until_us ||
        loop_stopping(ex->rq.loop)) {
        return false;
    }
    ex->next = waits->first;
    waits->first = ex;
    waits->count++;
    return true;
}

/* Takes all out of the list whose org is named (NULL = any) or whose time is up. */
static struct exchange *take(struct waits *waits, const struct uuid *org, int64_t now_us)
{
    struct exchange *taken = NULL;
    struct exchange **at = &waits->first;
    while (*at != NULL) {
        struct exchange *ex = *at;
        if (now_us >= ex->wait_until_us || (org != NULL && uuid_eq(org, &ex->rq.caller.org))) {
            *at = ex->next;
            waits->count--;
            ex->next = taken;
            taken = ex;
        } else {
            at = &ex->next;
        }
    }
    return taken;
}

/* Those whose time is up keep the answer they have (304); the others ask again. */
static void wake_taken(struct exchange *taken, int64_t now_us)
{
    while (taken != NULL) {
        struct exchange *ex = taken;
        taken = ex->next;
        ex->next = NULL;
        if (now_us >= ex->wait_until_us) {
            request_resume(&ex->rq);
        } else {
            exchange_requery(ex);
        }
    }
}

static void on_changes(void *arg, const struct follow_change *changes, size_t count,
                       bool auth_moved)
{
    struct waits *waits = arg;
    int64_t now_us = clock_mono_us();
    (void)auth_moved;
    for (size_t i = 0; i < count && waits->first != NULL; i++) {
        if (changes[i].events || changes[i].rollup) {
            wake_taken(take(waits, &changes[i].head.org, now_us), now_us);
        }
    }
}

static void on_tick(void *arg)
{
    struct waits *waits = arg;
    int64_t now_us = clock_mono_us();
    if (waits->first != NULL) {
        wake_taken(take(waits, NULL, now_us), now_us);
    }
}

static void on_stop(void *arg)
{
    struct waits *waits = arg;
    wake_taken(take(waits, NULL, INT64_MAX), INT64_MAX);
}

void wait_attach(struct loop *loop)
{
    struct waits *waits = calloc(1, sizeof(*waits));
    if (waits == NULL) {
        abort();
    }
    waits->loop = loop;
    loop_slot_set(loop, LOOP_SLOT_WAIT, waits);
    loop_change_hook_add(loop, on_changes, waits);
    loop_timer_add(loop, TICK_MS, on_tick, waits);
    loop_stop_hook_add(loop, on_stop, waits);
}

void wait_detach(struct loop *loop)
{
    free(loop_slot(loop, LOOP_SLOT_WAIT));
    loop_slot_set(loop, LOOP_SLOT_WAIT, NULL);
}
