/* Promises of server/repair/work.h: the next step of a repair. */
#include <criterion/criterion.h>
#include <string.h>

#include "server/config.h"
#include "server/repair/executors/executor.h"
#include "server/repair/work.h"

struct config config;

static struct arena *arena;
static const struct repair_settings no_wait = {.drain_wait_s = 0};

static void open_arena(void)
{
    arena = arena_new(1 << 20);
}

static void close_arena(void)
{
    arena_free(arena);
}

TestSuite(repair_work, .init = open_arena, .fini = close_arena);

/* A reboot that Muster proposed for one open incident, with all well. */
static struct repair_work work_in(enum repair_state state)
{
    return (struct repair_work){
        .state = state,
        .action = ACTION_REBOOT,
        .by_muster = true,
        .incidents = 1,
        .incidents_open = 1,
        .plan_holds = true,
        .ready = true,
        .healthy_delay_s = 600,
        .rejoin_within_s = 1800,
        .command_state = STR(""),
    };
}

static struct repair_next next_of(const struct repair_work *work)
{
    struct repair_next next;

    repair_next_decide(arena, work, executor_for(work->action, work->owner, work->hooked), &no_wait,
                       &next);
    return next;
}

static void assert_step(const struct repair_work *work, enum repair_event event)
{
    struct repair_next next = next_of(work);
    enum repair_state to;

    cr_assert_eq(next.todo, TODO_STEP, "%s", repair_state_name(work->state));
    cr_assert_str_eq(repair_event_name(next.event), repair_event_name(event));
    cr_assert(repair_step(work->state, next.event, &to), "the table knows it");
    cr_assert_neq(next.detail[0], '\0');
}

static void assert_waits(const struct repair_work *work)
{
    cr_assert_eq(next_of(work).todo, TODO_WAIT, "%s", repair_state_name(work->state));
}

Test(repair_work, an_approval_begins_when_the_plan_still_holds)
{
    struct repair_work work = work_in(REPAIR_APPROVED);

    assert_step(&work, REPAIR_ON_BEGIN);
    work.plan_holds = false;
    assert_step(&work, REPAIR_ON_LAPSE);
    cr_assert(next_of(&work).void_approval);
}

Test(repair_work, an_approval_waits_for_a_silent_node_and_lapses_in_time)
{
    struct repair_work work = work_in(REPAIR_APPROVED);

    work.silent = true;
    assert_waits(&work);
    work.late = true;
    assert_step(&work, REPAIR_ON_LAPSE);
}

Test(repair_work, a_fault_that_went_away_ends_the_repair_until_the_order_is_out)
{
    static const enum repair_state states[] = {REPAIR_APPROVED, REPAIR_CORDONING, REPAIR_DRAINING,
                                               REPAIR_ACTING};

    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
        struct repair_work work = work_in(states[i]);
        work.incidents_open = 0;
        assert_step(&work, REPAIR_ON_RESOLVE);
        cr_assert_eq(next_of(&work).node, NODE_UNDO);
    }
}

Test(repair_work, a_persons_request_does_not_need_an_incident)
{
    struct repair_work work = work_in(REPAIR_ACTING);

    work.by_muster = false;
    work.incidents = 0;
    work.incidents_open = 0;
    cr_assert_eq(next_of(&work).todo, TODO_ACT);
}

Test(repair_work, a_boot_before_the_order_withdraws_it)
{
    static const enum repair_state states[] = {REPAIR_CORDONING, REPAIR_DRAINING, REPAIR_ACTING};

    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
        struct repair_work work = work_in(states[i]);
        work.rebooted = true;
        assert_step(&work, REPAIR_ON_WITHDRAW);
    }
}

Test(repair_work, draining_lasts_the_agreed_time)
{
    const struct repair_settings settings = {.drain_wait_s = 5};
    struct repair_work work = work_in(REPAIR_DRAINING);
    struct repair_next next;

    work.state_s = 4.9;
    repair_next_decide(arena, &work, &executor_agent, &settings, &next);
    cr_assert_eq(next.todo, TODO_WAIT);
    work.state_s = 5.0;
    repair_next_decide(arena, &work, &executor_agent, &settings, &next);
    cr_assert_eq(next.event, REPAIR_ON_DRAINED);
}

Test(repair_work, the_act_happens_only_without_an_order)
{
    struct repair_work work = work_in(REPAIR_ACTING);

    cr_assert_eq(next_of(&work).todo, TODO_ACT);
    work.has_command = true;
    work.command_state = STR("ready");
    assert_waits(&work);
}

/* clang-format off */
static const struct {
    const char *command;
    bool late, rebooted;
    int event; /* -1 = waits */
    bool expires;
} orders[] = {
    {"ready", false, false, -1, false},
    {"ready", true, false, REPAIR_ON_FAIL, true},
    {"sent", false, false, -1, false},
    {"sent", true, false, REPAIR_ON_LOST, false},
    {"sent", true, true, REPAIR_ON_ACTED, false},   /* the boot proves it */
    {"accepted", true, false, REPAIR_ON_ACTED, false},
    {"done", false, false, REPAIR_ON_ACTED, false},
    {"refused", false, false, REPAIR_ON_FAIL, false},
    {"failed", false, false, REPAIR_ON_FAIL, false},
    {"expired", false, false, REPAIR_ON_FAIL, false},
};
/* clang-format on */

Test(repair_work, what_became_of_an_order_decides_and_silence_after_handing_it_out_is_unknown)
{
    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
        struct repair_work work = work_in(REPAIR_ACTING);
        work.has_command = true;
        work.command_state = str_of(orders[i].command);
        work.command_late = orders[i].late;
        work.rebooted = orders[i].rebooted;
        struct repair_next next = next_of(&work);
        if (orders[i].event < 0) {
            cr_assert_eq(next.todo, TODO_WAIT, "case %zu", i);
        } else {
            cr_assert_eq(next.todo, TODO_STEP, "case %zu", i);
            cr_assert_eq((int)next.event, orders[i].event, "case %zu", i);
            cr_assert_eq(next.expire_command, orders[i].expires, "case %zu", i);
        }
    }
}

Test(repair_work, R15_nothing_is_ordered_before_the_scheduler_said_once_more_that_the_node_is_empty)
{
    struct repair_work work = work_in(REPAIR_ACTING);

    work.scheduler = STR("slurm");
    assert_waits(&work);
    work.drained = true;
    cr_assert_eq(next_of(&work).todo, TODO_ACT);
    work.drained = false;
    work.occupied = true;
    assert_step(&work, REPAIR_ON_OCCUPIED);
    work.occupied = false;
    work.state_s = 61; /* it says nothing: a person may cancel what drains */
    assert_step(&work, REPAIR_ON_OCCUPIED);
}

Test(repair_work, R15_an_order_that_nobody_took_is_taken_back_when_a_job_began)
{
    static const struct {
        bool occupied, drained, late;
        const char *command;
        int event; /* -1 = waits */
    } cases[] = {
        {true, false, false, "ready", REPAIR_ON_WITHDRAW},
        {true, false, false, "sent", -1}, /* it may act at any moment */
        {false, false, false, "ready", -1},
        {false, false, true, "ready", REPAIR_ON_WITHDRAW},
        {false, true, true, "ready", REPAIR_ON_FAIL},
        {false, true, false, "withdrawn", REPAIR_ON_WITHDRAW},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct repair_work work = work_in(REPAIR_ACTING);
        work.scheduler = STR("slurm");
        work.has_command = true;
        work.command_state = str_of(cases[i].command);
        work.command_result = STR("Something began to run.");
        work.command_late = cases[i].late;
        work.occupied = cases[i].occupied;
        work.drained = cases[i].drained;
        struct repair_next next = next_of(&work);
        cr_assert_eq(next.todo, cases[i].event < 0 ? TODO_WAIT : TODO_STEP, "case %zu", i);
        if (cases[i].event >= 0) {
            cr_assert_eq((int)next.event, cases[i].event, "case %zu", i);
        }
        if (cases[i].event == REPAIR_ON_WITHDRAW) {
            cr_assert_eq(next.node, NODE_UNDO, "case %zu", i);
            cr_assert_eq(next.expire_command, strcmp(cases[i].command, "ready") == 0, "case %zu",
                         i);
        }
    }
}

Test(repair_work, a_node_is_back_when_its_new_boot_is_ready_and_heard)
{
    struct repair_work work = work_in(REPAIR_REJOINING);

    work.has_command = true;
    work.command_state = STR("accepted");
    assert_waits(&work);
    work.rebooted = true;
    work.ready = false;
    assert_waits(&work);
    work.ready = true;
    work.silent = true;
    assert_waits(&work);
    work.silent = false;
    assert_step(&work, REPAIR_ON_REJOINED);
    cr_assert_eq(next_of(&work).deadline_s, 2400);
}

Test(repair_work, a_node_that_does_not_come_back_is_unknown_and_late_evidence_settles_it)
{
    struct repair_work work = work_in(REPAIR_REJOINING);

    work.has_command = true;
    work.command_state = STR("accepted");
    work.late = true;
    assert_step(&work, REPAIR_ON_LOST);
    work.state = REPAIR_UNKNOWN;
    assert_waits(&work);
    work.rebooted = true;
    assert_step(&work, REPAIR_ON_REJOINED);
}

Test(repair_work, a_reset_is_proved_by_the_agents_word_and_by_a_boot_only_when_that_was_lost)
{
    struct repair_work work = work_in(REPAIR_REJOINING);

    work.action = ACTION_RESET_GPU;
    work.has_command = true;
    work.command_state = STR("accepted");
    work.rebooted = true;
    assert_waits(&work);
    work.command_state = STR("done");
    assert_step(&work, REPAIR_ON_REJOINED);
    work.state = REPAIR_UNKNOWN;
    work.command_state = STR("sent");
    assert_step(&work, REPAIR_ON_REJOINED);
}

Test(repair_work, verifying_takes_the_whole_delay)
{
    struct repair_work work = work_in(REPAIR_VERIFYING);

    work.rebooted = true;
    work.state_s = 599;
    assert_waits(&work);
    work.state_s = 600;
    assert_step(&work, REPAIR_ON_VERIFIED);
    struct repair_next next = next_of(&work);
    cr_assert(next.close_incidents);
    cr_assert_eq(next.node, NODE_UNCORDON);
}

Test(repair_work, a_fault_that_comes_back_fails_at_once)
{
    struct repair_work work = work_in(REPAIR_VERIFYING);

    work.state_s = 30;
    work.came_back = STR("GPU 0000:bb:00 fell off the bus");
    assert_step(&work, REPAIR_ON_FAIL);
}

Test(repair_work, silence_proves_nothing)
{
    struct repair_work work = work_in(REPAIR_VERIFYING);

    work.state_s = 900;
    work.silent = true;
    assert_waits(&work);
    work.late = true;
    assert_step(&work, REPAIR_ON_LOST);
}

Test(repair_work, an_incident_that_does_not_clear_fails_at_the_deadline)
{
    struct repair_work work = work_in(REPAIR_VERIFYING);

    work.state_s = 900;
    work.not_clear = STR("Incident 3 is still open: disk is read-only");
    assert_waits(&work);
    work.late = true;
    assert_step(&work, REPAIR_ON_FAIL);
}

Test(repair_work, states_that_wait_for_people_or_have_ended_are_left_alone)
{
    for (int s = 0; s < REPAIR_STATE_COUNT; s++) {
        struct repair_work work = work_in((enum repair_state)s);
        bool busy = (repair_state_traits((enum repair_state)s) & REPAIR_BUSY) != 0;
        work.late = true;
        if (!busy) {
            assert_waits(&work);
        }
        cr_assert_eq(strstr(repair_work_states().text, repair_state_name((enum repair_state)s)) !=
                         NULL,
                     busy);
    }
}
