/* Decides the next step of a repair: one function a state. */
#include "server/repair/work.h"

#include <inttypes.h>
#include <string.h>

#include "server/repair/executors/executor.h"

/* A scheduler that says nothing for so long is waited for in a state that a person can cancel. */
#define UNREAD_S 60

static const struct repair_next wait = {.todo = TODO_WAIT, .deadline_s = -1};

bool repair_work_read(const struct db_rows *rows, int row, struct repair_work *ret_work)
{
    struct repair_work w = {0};
    struct uuid command;

#define COL(name) db_rows_col(rows, name)
    if (!db_uuid(rows, row, COL("id"), &w.id) || !db_uuid(rows, row, COL("node_id"), &w.node_id) ||
        !repair_state_parse(db_text(rows, row, COL("state")), &w.state) ||
        !action_parse(db_text(rows, row, COL("action")), &w.action)) {
        return false;
    }
    w.no = db_i64(rows, row, COL("no"));
    w.version = db_i64(rows, row, COL("version"));
    w.node_name = db_text(rows, row, COL("node_name"));
    w.by_muster = str_eq_c(db_text(rows, row, COL("requested_by")), "muster");
    w.demo = db_bool(rows, row, COL("demo"));
    w.state_s = db_double(rows, row, COL("state_s"));
    w.late = db_bool(rows, row, COL("late"));
    w.incidents = db_i64(rows, row, COL("incidents"));
    w.incidents_open = db_i64(rows, row, COL("incidents_open"));
    w.plan_holds = db_bool(rows, row, COL("plan_holds"));
    w.rebooted = db_bool(rows, row, COL("rebooted"));
    w.ready = db_bool(rows, row, COL("ready"));
    w.silent = db_bool(rows, row, COL("silent"));
    w.stopped = db_text(rows, row, COL("stopped"));
    w.earlier_waves = db_text(rows, row, COL("earlier_waves"));
    w.healthy_delay_s = db_i64(rows, row, COL("healthy_delay_s"));
    w.rejoin_within_s = db_i64(rows, row, COL("rejoin_within_s"));
    w.has_command = db_uuid(rows, row, COL("command_id"), &command);
    w.command_state = db_text(rows, row, COL("command_state"));
    w.command_result = db_text(rows, row, COL("command_result"));
    w.fresh = db_bool(rows, row, COL("fresh"));
    w.command_late = db_bool(rows, row, COL("command_late"));
    w.scheduler = db_text(rows, row, COL("scheduler"));
    w.drained = db_bool(rows, row, COL("drained"));
    w.occupied = db_bool(rows, row, COL("occupied"));
    w.overdue = db_bool(rows, row, COL("overdue"));
    w.jobs = db_text(rows, row, COL("jobs"));
    w.came_back = db_text(rows, row, COL("came_back"));
    w.not_clear = db_text(rows, row, COL("not_clear"));
#undef COL
    *ret_work = w;
    return true;
}

struct repair_list repair_work_states(void)
{
    return repair_states_with(REPAIR_BUSY);
}

static struct repair_next step(enum repair_event event, const char *detail)
{
    return (struct repair_next){
        .todo = TODO_STEP, .event = event, .detail = detail, .deadline_s = -1};
}

/* A repair that Muster proposed has lost its reason. */
static bool is_moot(const struct repair_work *work)
{
    return work->by_muster && work->incidents > 0 && work->incidents_open == 0;
}

/* What has not begun waits; what was ordered and taken goes on. */
static bool is_stopped(const struct repair_work *work)
{
    return work->stopped.len > 0;
}

static struct repair_next resolve(void)
{
    struct repair_next next =
        step(REPAIR_ON_RESOLVE, "Its incidents closed before anything was done.");

    next.node = NODE_UNDO;
    return next;
}

static struct repair_next lapse(const char *detail)
{
    struct repair_next next = step(REPAIR_ON_LAPSE, detail);

    next.void_approval = true;
    return next;
}

static struct repair_next next_approved(struct arena *arena, const struct repair_work *work,
                                        const struct executor *executor)
{
    const char *why = NULL;

    if (is_moot(work)) {
        return resolve();
    }
    if (!work->plan_holds) {
        return lapse("The plan changed before the work began.");
    }
    if (executor == NULL) {
        return lapse("Nothing here can carry it out any more.");
    }
    if (is_stopped(work)) {
        return work->late ? lapse("Repairs were stopped until it was too late to begin.") : wait;
    }
    if (str_eq_c(work->earlier_waves, "failed")) {
        return lapse("A repair of an earlier wave did not go well.");
    }
    if (work->earlier_waves.len > 0) {
        return wait; /* its batch has begun, so it is not late */
    }
    bool can = executor->probe(work, &why);
    if (work->late) {
        return lapse(can ? "The work did not begin in time."
                         : arena_printf(arena, "The work did not begin in time. %s", why));
    }
    return can ? step(REPAIR_ON_BEGIN, "The node is taken out of scheduling.") : wait;
}

static const char *cordoned_words(struct arena *arena, const struct repair_work *work,
                                  int64_t wait_s)
{
    if (work->scheduler.len > 0) {
        return work->jobs.len > 0
                   ? arena_printf(arena, "The node takes no new work. It is waited for: %.*s.",
                                  STR_FMT(work->jobs))
                   : "The node takes no new work; the scheduler is asked whether it is empty.";
    }
    return wait_s > 0
               ? arena_printf(arena, "The node takes no new work; waiting %" PRId64 " s.", wait_s)
               : "The node takes no new work. No scheduler is known, so nothing is waited for.";
}

static struct repair_next next_draining(struct arena *arena, const struct repair_work *work,
                                        const struct repair_settings *settings)
{
    if (is_moot(work)) {
        return resolve();
    }
    if (work->rebooted) {
        struct repair_next next = step(REPAIR_ON_WITHDRAW, "The node booted by itself meanwhile.");
        next.node = NODE_UNDO;
        return next;
    }
    if (is_stopped(work)) {
        return wait;
    }
    if (work->state == REPAIR_CORDONING) {
        struct repair_next next =
            step(REPAIR_ON_CORDONED, cordoned_words(arena, work, settings->drain_wait_s));
        next.node = NODE_CORDON;
        return next;
    }
    if (work->scheduler.len > 0 && !work->drained && work->overdue) {
        struct repair_next next =
            step(REPAIR_ON_WITHDRAW, "What runs on the node outlived the wait of the policy, which "
                                     "interrupts nothing.");
        next.node = NODE_UNDO;
        return next;
    }
    if (work->state_s < (double)settings->drain_wait_s ||
        (work->scheduler.len > 0 && !work->drained)) {
        return wait;
    }
    return step(REPAIR_ON_DRAINED, work->scheduler.len > 0
                                       ? "The scheduler says that nothing runs on it any more."
                                       : "Nothing is left to wait for.");
}

static struct repair_next failed(struct arena *arena, const struct repair_work *work,
                                 const char *what)
{
    return step(REPAIR_ON_FAIL,
                work->command_result.len == 0
                    ? arena_printf(arena, "%s.", what)
                    : arena_printf(arena, "%s: %.*s", what, STR_FMT(work->command_result)));
}

/* Nothing acts on a node of a scheduler unless it said, since this state began, that it is empty.
 */
static bool is_idle(const struct repair_work *work)
{
    return work->scheduler.len == 0 || work->drained;
}

static struct repair_next withdraw(const char *detail)
{
    struct repair_next next = step(REPAIR_ON_WITHDRAW, detail);

    next.node = NODE_UNDO;
    return next;
}

static struct repair_next next_before_order(const struct repair_work *work,
                                            const struct executor *executor)
{
    if (is_moot(work)) {
        return resolve();
    }
    if (work->rebooted || executor == NULL) {
        return withdraw(work->rebooted ? "The node booted by itself before the order went out."
                                       : "Nothing here can carry it out any more.");
    }
    if (is_stopped(work)) {
        return wait;
    }
    if (is_idle(work)) {
        return (struct repair_next){.todo = TODO_ACT, .deadline_s = -1};
    }
    if (work->occupied) {
        return step(REPAIR_ON_OCCUPIED, "Something runs on the node again, so it is waited for.");
    }
    return work->state_s < UNREAD_S
               ? wait
               : step(REPAIR_ON_OCCUPIED, "The scheduler does not say that the node is empty.");
}

/* The order is ready and nobody took it: it can still be taken back. */
static struct repair_next next_before_taken(const struct repair_work *work)
{
    struct repair_next next = wait;

    if (is_stopped(work)) {
        next = withdraw("Repairs were stopped before the order was taken.");
    } else if (work->scheduler.len > 0 && work->occupied) {
        next = withdraw("Something began to run on the node before the order was taken.");
    } else if (work->command_late && !is_idle(work)) {
        next = withdraw("The scheduler did not say that the node is empty until it was too late.");
    }
    next.expire_command = next.todo == TODO_STEP;
    return next;
}

static struct repair_next next_acting(struct arena *arena, const struct repair_work *work,
                                      const struct executor *executor)
{
    if (!work->has_command) {
        return next_before_order(work, executor);
    }
    if (str_eq_c(work->command_state, "ready")) {
        struct repair_next taken_back = next_before_taken(work);
        if (taken_back.todo == TODO_STEP) {
            return taken_back;
        }
    }
    if (str_eq_c(work->command_state, "withdrawn")) {
        return withdraw(arena_printf(arena, "%.*s", STR_FMT(work->command_result)));
    }
    if (executor == NULL) {
        return wait;
    }
    struct repair_next next = wait;
    switch (executor->watch(work)) {
    case WATCH_WAITING:
        return wait;
    case WATCH_ACCEPTED:
    case WATCH_DONE:
        next = step(REPAIR_ON_ACTED, "The order was taken; waiting for the node to come back.");
        next.deadline_s = work->rejoin_within_s;
        return next;
    case WATCH_REFUSED:
        return failed(arena, work, arena_printf(arena, "%s refused", executor->who));
    case WATCH_FAILED:
        return failed(arena, work, arena_printf(arena, "%s tried and failed", executor->who));
    case WATCH_NEVER_TAKEN:
        next = step(REPAIR_ON_FAIL,
                    arena_printf(arena, "%s did not take the order in time; it was withdrawn.",
                                 executor->who));
        next.expire_command = str_eq_c(work->command_state, "ready");
        return next;
    case WATCH_LOST:
        return step(REPAIR_ON_LOST, "The order was handed out and nothing was heard of it since.");
    }
    return wait;
}

static bool is_back(const struct repair_work *work, enum watch_result watch)
{
    bool here = work->ready && !work->silent;
    bool lost = work->state == REPAIR_UNKNOWN;

    switch (work->action) {
    case ACTION_RESET_GPU:
        /* A boot does what a reset does; it counts where the agent's word will not come any more.
         */
        return here && (watch == WATCH_DONE || (lost && work->rebooted));
    case ACTION_REPROVISION:
        /* Where nobody can say whether it was installed, an agent that lost its key can. */
        return here && work->rebooted && (!lost || work->fresh);
    case ACTION_FAILOVER:
        return here && work->rebooted && work->fresh;
    case ACTION_REMOVE:
        return watch == WATCH_DONE; /* it does not come back */
    case ACTION_REBOOT:
    case ACTION_POWER_CYCLE:
    case ACTION_COUNT:
        break;
    }
    return here && work->rebooted;
}

static struct repair_next rejoined(struct arena *arena, const struct repair_work *work)
{
    if (work->action == ACTION_REMOVE) {
        return step(REPAIR_ON_REJOINED, "The machine was taken out of service.");
    }
    struct repair_next next = step(
        REPAIR_ON_REJOINED, arena_printf(arena, "The node is back; watching it for %" PRId64 " s.",
                                         work->healthy_delay_s));

    next.deadline_s = work->healthy_delay_s + work->rejoin_within_s;
    return next;
}

static struct repair_next next_rejoining(struct arena *arena, const struct repair_work *work,
                                         const struct executor *executor)
{
    enum watch_result watch = executor == NULL ? WATCH_WAITING : executor->watch(work);

    if (is_back(work, watch)) {
        return rejoined(arena, work);
    }
    if (watch == WATCH_REFUSED || watch == WATCH_FAILED) {
        return failed(arena, work,
                      arena_printf(arena, "%s %s", executor->who,
                                   watch == WATCH_REFUSED ? "refused" : "tried and failed"));
    }
    if (work->state == REPAIR_REJOINING && work->late) {
        return step(REPAIR_ON_LOST, work->rebooted
                                        ? "The node booted but did not become ready in time."
                                        : "The node did not come back in time.");
    }
    return wait;
}

static struct repair_next next_verifying(struct arena *arena, const struct repair_work *work)
{
    if (work->action == ACTION_REMOVE) {
        struct repair_next next =
            step(REPAIR_ON_VERIFIED, "The node is removed and its keys have ended.");
        next.node = NODE_REMOVE;
        return next;
    }
    if (work->came_back.len > 0) {
        return step(REPAIR_ON_FAIL, arena_printf(arena, "A fault is back after %.0f s: %.*s",
                                                 work->state_s, STR_FMT(work->came_back)));
    }
    bool seen = work->ready && !work->silent;
    if (seen && work->state_s >= (double)work->healthy_delay_s && work->not_clear.len == 0) {
        struct repair_next next =
            step(REPAIR_ON_VERIFIED, arena_printf(arena, "No fault for %.0f s.", work->state_s));
        next.node = NODE_UNCORDON;
        next.close_incidents = true;
        return next;
    }
    if (!work->late) {
        return wait;
    }
    if (!seen) {
        return step(REPAIR_ON_LOST, "The node fell silent before it was proved healthy.");
    }
    return step(REPAIR_ON_FAIL, arena_printf(arena, "%.*s", STR_FMT(work->not_clear)));
}

void repair_next_decide(struct arena *arena, const struct repair_work *work,
                        const struct executor *executor, const struct repair_settings *settings,
                        struct repair_next *ret_next)
{
    struct repair_next next = wait;

    switch (work->state) {
    case REPAIR_APPROVED:
        next = next_approved(arena, work, executor);
        break;
    case REPAIR_CORDONING:
    case REPAIR_DRAINING:
        next = next_draining(arena, work, settings);
        break;
    case REPAIR_ACTING:
        next = next_acting(arena, work, executor);
        break;
    case REPAIR_REJOINING:
    case REPAIR_UNKNOWN: /* late evidence settles it; otherwise a person does */
        next = next_rejoining(arena, work, executor);
        break;
    case REPAIR_VERIFYING:
        next = next_verifying(arena, work);
        break;
    case REPAIR_PROPOSED:
    case REPAIR_SUCCEEDED:
    case REPAIR_FAILED:
    case REPAIR_REJECTED:
    case REPAIR_CANCELLED:
    case REPAIR_RESOLVED:
    case REPAIR_STATE_COUNT:
        break;
    }
    *ret_next = next;
}
