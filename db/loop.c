/* Pipelined connections of an event loop: one for reads, one for verbs. */
#include "db/db.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "db/link.h"

#define CALL_US 5000000   /* a caller has left by then */
#define AWAY_US 1000000   /* while the database is away: one try to connect, see BACKOFF_LAST_MS */
#define WAITING_MAX 4096u /* above the connections of one loop; more is refused */
#define CHECK_MS 100      /* how often overdue calls are looked for */
#define BACKOFF_FIRST_MS 50
#define BACKOFF_LAST_MS 1000

/* Bits of db_call.attempts: each reason for another run counts once. */
enum attempt {
    ATTEMPT_ALONE = 1 << 0, /* a neighbour failed: now in a Sync of its own */
    ATTEMPT_ERROR = 1 << 1, /* 40001, 40P01, 0A000, 26000, a lost race for a key */
    ATTEMPT_LOST = 1 << 2,  /* the connection was lost */
    ATTEMPT_409 = 1 << 3,   /* a twin may have done the work: its answer is replayed */
};

struct queue {
    struct db_call *first;
    struct db_call *last;
};

struct lane {
    struct db_loop *loop;
    struct link *link;
    bool verb;
    struct queue waiting;     /* not sent */
    struct queue again;       /* to be put in front of `waiting` */
    struct db_call *held;     /* a verb whose Sync has not come back */
    struct link_event answer; /* of `held` */
    int64_t connect_us;       /* when to connect next */
    int64_t down_us;          /* since when there is no connection; meaningless when there is one */
    int backoff_ms;
    unsigned generation;
};

struct db_loop {
    struct lane lanes[2];
    struct queue refused;
    size_t waiting;
    int64_t check_us;
    const char *error; /* of the lane that failed last */
};

static void queue_push(struct queue *queue, struct db_call *call)
{
    call->next = NULL;
    if (queue->last == NULL) {
        queue->first = call;
    } else {
        queue->last->next = call;
    }
    queue->last = call;
}

static struct db_call *queue_pop(struct queue *queue)
{
    struct db_call *call = queue->first;
    if (call != NULL) {
        queue->first = call->next;
        if (queue->first == NULL) {
            queue->last = NULL;
        }
        call->next = NULL;
    }
    return call;
}

/* Puts all of `front` before `queue`. */
static void queue_prepend(struct queue *queue, struct queue *front)
{
    if (front->first == NULL) {
        return;
    }
    front->last->next = queue->first;
    if (queue->last == NULL) {
        queue->last = front->last;
    }
    queue->first = front->first;
    *front = (struct queue){NULL, NULL};
}

static void finish(struct db_loop *loop, struct db_call *call, enum err err, PGresult *result,
                   const char *error)
{
    struct db_rows rows = {.result = result};
    loop->waiting--;
    call->error = err == ERR_NONE ? NULL : error;
    call->done(call, err, err == ERR_NONE ? &rows : NULL);
}

/* True, and the call is queued again, when this reason did not count before. */
static bool run_again(struct lane *lane, struct db_call *call, enum attempt why)
{
    if ((call->attempts & why) != 0) {
        return false;
    }
    call->attempts |= why;
    queue_push(&lane->again, call);
    return true;
}

static void fail_call(struct lane *lane, struct db_call *call, const struct failure *failure)
{
    /* A twin with the same key may have won the name: run once more and its answer is replayed. */
    bool taken = failure->err == ERR_NAME_TAKEN || failure->err == ERR_CONFLICT;
    if (call->retry_key != NULL && taken && run_again(lane, call, ATTEMPT_409)) {
        return;
    }
    if (failure->retry != RETRY_NEVER && run_again(lane, call, ATTEMPT_ERROR)) {
        return;
    }
    finish(lane->loop, call, failure->err, NULL, lane->link->error);
}

static void take_read(struct lane *lane, struct link_event *event)
{
    struct db_call *call = event->tag;
    if (call == NULL) {
        return;
    }
    if (event->outcome == LINK_OK) {
        finish(lane->loop, call, ERR_NONE, event->result, NULL);
    } else if (event->outcome == LINK_FAILED) {
        fail_call(lane, call, &event->failure);
    } else if (!run_again(lane, call, ATTEMPT_ALONE)) {
        finish(lane->loop, call, ERR_INTERNAL, NULL, lane->link->error);
    }
}

static bool is_conflict(PGresult *result)
{
    struct db_rows rows = {.result = result};
    struct db_reply reply;
    return db_reply_read(&rows, &reply) == ERR_NONE && reply.status == 409;
}

/* A verb counts only when its Sync came back: that is the commit. */
static void take_commit(struct lane *lane, const struct link_event *sync)
{
    struct db_call *call = lane->held;
    struct link_event answer = lane->answer;
    lane->held = NULL;
    lane->answer.result = NULL;
    if (call != NULL) {
        if (sync->outcome == LINK_FAILED) {
            fail_call(lane, call, &sync->failure);
        } else if (answer.outcome != LINK_OK) {
            fail_call(lane, call, &answer.failure);
        } else if (call->retry_key == NULL || !is_conflict(answer.result) ||
                   !run_again(lane, call, ATTEMPT_409)) {
            finish(lane->loop, call, ERR_NONE, answer.result, NULL);
        }
    }
    PQclear(answer.result);
}

static void take_event(struct lane *lane, struct link_event *event)
{
    if (event->outcome == LINK_FAILED) {
        lane->loop->error = lane->link->error;
    }
    if (!lane->verb) {
        if (event->command == LINK_EXEC) {
            take_read(lane, event);
        }
        PQclear(event->result);
    } else if (event->command == LINK_EXEC) {
        lane->held = event->tag;
        lane->answer = *event;
    } else {
        take_commit(lane, event);
    }
}

static void lose_call(struct lane *lane, struct db_call *call)
{
    if (call == NULL || (!lane->verb && run_again(lane, call, ATTEMPT_LOST))) {
        return;
    }
    finish(lane->loop, call, ERR_UNAVAILABLE, NULL, lane->link->error);
}

static void plan_connect(struct lane *lane)
{
    lane->loop->error = lane->link->error;
    lane->connect_us = clock_mono_us() + (int64_t)lane->backoff_ms * 1000;
    lane->backoff_ms =
        lane->backoff_ms * 2 > BACKOFF_LAST_MS ? BACKOFF_LAST_MS : lane->backoff_ms * 2;
}

/* The connection is of no more use: what was in flight is run again or ends. */
static void lose_link(struct lane *lane)
{
    struct link *link = lane->link;
    struct db_call *held = lane->held;
    PQclear(lane->answer.result);
    lane->answer.result = NULL;
    lane->held = NULL;
    lose_call(lane, held);
    for (uint32_t i = 0; i < link->count; i++) {
        const struct link_sent *sent = &link->ring[(link->head + i) % LINK_RING];
        if (sent->command == LINK_EXEC) {
            lose_call(lane, sent->tag);
        }
    }
    link_close(link);
    queue_prepend(&lane->waiting, &lane->again);
    lane->down_us = clock_mono_us();
    plan_connect(lane);
}

static void step_connect(struct lane *lane)
{
    struct link *link = lane->link;
    if (link->state == LINK_DOWN && clock_mono_us() >= lane->connect_us) {
        link_connect(link);
        lane->generation++;
        if (link->state == LINK_DOWN) {
            plan_connect(lane);
        }
    }
    if (link->state == LINK_CONNECTING) {
        link_connect_step(link);
        lane->generation++;
        if (link->state == LINK_DOWN) {
            plan_connect(lane);
        } else if (link->state == LINK_UP) {
            lane->backoff_ms = BACKOFF_FIRST_MS;
        }
    }
}

static void receive(struct lane *lane)
{
    struct link *link = lane->link;
    struct link_event event;
    if (link->state != LINK_UP) {
        return;
    }
    link_read(link);
    while (link_next(link, &event)) {
        take_event(lane, &event);
    }
    queue_prepend(&lane->waiting, &lane->again);
    bool is_hung = link->count > 0 && clock_mono_us() - link->progress_us > CALL_US;
    if (is_hung && !link->broken) {
        (void)snprintf(link->error, sizeof(link->error), "no answer from the database in time");
    }
    if (link->broken || is_hung) {
        lose_link(lane);
    }
}

/* Everything that waits, and the Syncs with it: an open pipeline would hold its locks for ever. */
static void send_waiting(struct lane *lane)
{
    struct link *link = lane->link;
    bool is_open = false; /* units were queued after the last Sync */
    while (link->state == LINK_UP && !link->broken && link_has_room(link)) {
        struct db_call *call = queue_pop(&lane->waiting);
        if (call == NULL) {
            break;
        }
        bool is_alone = lane->verb || (call->attempts & ATTEMPT_ALONE) != 0;
        if (is_alone && is_open) {
            link_sync(link, NULL);
            is_open = false;
        }
        link_send(link, call->sql, call->has_org ? &call->org : NULL, call->scope, &call->args,
                  call);
        if (link->broken) {
            /* It never left. */
            queue_push(&lane->again, call);
            break;
        }
        if (is_alone) {
            link_sync(link, NULL);
        } else {
            is_open = true;
        }
    }
    if (is_open) {
        link_sync(link, NULL);
    }
    if (link->state == LINK_UP && link->flush_pending) {
        link_flush(link);
    }
    if (link->state == LINK_UP && link->broken) {
        lose_link(lane);
    }
}

static void expire_queue(struct db_loop *loop, struct queue *queue, int64_t oldest_us)
{
    struct queue kept = {NULL, NULL};
    struct queue late = {NULL, NULL};
    for (struct db_call *call = queue_pop(queue); call != NULL; call = queue_pop(queue)) {
        queue_push(call->queued_us < oldest_us ? &late : &kept, call);
    }
    *queue = kept;
    for (struct db_call *call = queue_pop(&late); call != NULL; call = queue_pop(&late)) {
        finish(loop, call, ERR_UNAVAILABLE, NULL,
               loop->error[0] != '\0' ? loop->error : "no answer from the database in time");
    }
}

/* Calls in flight are let go; what comes back for them is dropped. */
static void expire_sent(struct lane *lane, int64_t oldest_us)
{
    static const char late[] = "no answer from the database in time";
    struct link *link = lane->link;
    for (uint32_t i = 0; i < link->count; i++) {
        struct link_sent *sent = &link->ring[(link->head + i) % LINK_RING];
        struct db_call *call = sent->command == LINK_EXEC ? sent->tag : NULL;
        if (call != NULL && call->queued_us < oldest_us) {
            sent->tag = NULL;
            finish(lane->loop, call, ERR_UNAVAILABLE, NULL, late);
        }
    }
    if (lane->held != NULL && lane->held->queued_us < oldest_us) {
        finish(lane->loop, MOVE(lane->held), ERR_UNAVAILABLE, NULL, late);
    }
}

static void expire(struct db_loop *loop)
{
    int64_t now_us = clock_mono_us();
    if (loop->waiting == 0 || now_us < loop->check_us) {
        return;
    }
    loop->check_us = now_us + CHECK_MS * 1000;
    for (size_t i = 0; i < COUNTOF(loop->lanes); i++) {
        struct lane *lane = &loop->lanes[i];
        bool is_away = lane->link->state != LINK_UP && now_us - lane->down_us > CALL_US;
        expire_queue(loop, &lane->waiting, now_us - (is_away ? AWAY_US : CALL_US));
        expire_sent(lane, now_us - CALL_US);
    }
}

struct db_loop *db_loop_new(void)
{
    struct db_loop *loop = calloc(1, sizeof(*loop));
    if (loop == NULL) {
        abort();
    }
    loop->error = "";
    for (size_t i = 0; i < COUNTOF(loop->lanes); i++) {
        loop->lanes[i] = (struct lane){
            .loop = loop,
            .link = link_new(DB_APP),
            .verb = i == 1,
            .backoff_ms = BACKOFF_FIRST_MS,
            .down_us = clock_mono_us(),
        };
    }
    return loop;
}

static void end_queue(struct db_loop *loop, struct queue *queue, enum err err, const char *error)
{
    struct queue all = *queue;
    *queue = (struct queue){NULL, NULL};
    for (struct db_call *call = queue_pop(&all); call != NULL; call = queue_pop(&all)) {
        finish(loop, call, err, NULL, error);
    }
}

void db_loop_free(struct db_loop *loop)
{
    if (loop == NULL) {
        return;
    }
    for (size_t i = 0; i < COUNTOF(loop->lanes); i++) {
        expire_sent(&loop->lanes[i], INT64_MAX);
        PQclear(loop->lanes[i].answer.result);
        end_queue(loop, &loop->lanes[i].waiting, ERR_UNAVAILABLE, "the server stops");
        link_free(loop->lanes[i].link);
    }
    end_queue(loop, &loop->refused, ERR_UNAVAILABLE, "the server stops");
    free(loop);
}

void db_submit(struct db_loop *loop, struct db_call *call)
{
    call->queued_us = clock_mono_us();
    call->attempts = 0;
    call->error = NULL;
    bool is_full = loop->waiting >= WAITING_MAX;
    loop->waiting++;
    queue_push(is_full ? &loop->refused : &loop->lanes[call->verb ? 1 : 0].waiting, call);
}

void db_loop_polls(struct db_loop *loop, struct db_poll polls[2])
{
    for (size_t i = 0; i < COUNTOF(loop->lanes); i++) {
        polls[i].fd = link_poll(loop->lanes[i].link, &polls[i].events);
        polls[i].generation = loop->lanes[i].generation;
    }
}

void db_loop_turn(struct db_loop *loop)
{
    end_queue(loop, &loop->refused, ERR_OVERLOADED, "too many calls wait for the database");
    for (size_t i = 0; i < COUNTOF(loop->lanes); i++) {
        step_connect(&loop->lanes[i]);
        receive(&loop->lanes[i]);
    }
    expire(loop);
    /* Last, so that what the callbacks asked for leaves in the same turn. */
    for (size_t i = 0; i < COUNTOF(loop->lanes); i++) {
        send_waiting(&loop->lanes[i]);
    }
}

static int lane_timeout_ms(const struct lane *lane, int64_t now_us)
{
    const struct link *link = lane->link;
    if (link->state == LINK_UP) {
        return lane->waiting.first != NULL && link_has_room(link) ? 0 : 1000;
    }
    int64_t at_us = link->state == LINK_DOWN ? lane->connect_us : link->deadline_us;
    return at_us <= now_us ? 0 : (int)((at_us - now_us) / 1000) + 1;
}

int db_loop_timeout_ms(const struct db_loop *loop)
{
    int64_t now_us = clock_mono_us();
    int timeout_ms = loop->refused.first != NULL ? 0 : loop->waiting > 0 ? CHECK_MS : 1000;
    for (size_t i = 0; i < COUNTOF(loop->lanes); i++) {
        int lane_ms = lane_timeout_ms(&loop->lanes[i], now_us);
        timeout_ms = lane_ms < timeout_ms ? lane_ms : timeout_ms;
    }
    return timeout_ms;
}

bool db_loop_ready(const struct db_loop *loop)
{
    return loop->lanes[0].link->state == LINK_UP && loop->lanes[1].link->state == LINK_UP;
}

size_t db_loop_waiting(const struct db_loop *loop)
{
    return loop->waiting;
}

const char *db_loop_error(const struct db_loop *loop)
{
    return loop->error;
}
