/* Random walks of whole fleets under the real admission code, judged by rules written once more,
 * and public failures played again. MUSTER_SIM_STEPS and MUSTER_SIM_NODES make the walks longer. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "server/repair/fleet.h"

/* clang-format off */
#define KIND(check, code) {{check, sizeof check - 1}, {code, sizeof code - 1}}
static const struct fleet_kind kinds[] = {
    KIND("", ""), KIND("gpu_lost", "79"), KIND("gpu_xid", "119"), KIND("gpu_ecc", "95"),
    KIND("ib_link", "down"), KIND("fs_readonly", ""), KIND("driver_mismatch", ""),
};
/* clang-format on */
#undef KIND
#define KINDS ((uint32_t)COUNTOF(kinds))

static uint64_t dice;

static uint64_t roll(uint64_t below)
{
    dice ^= dice << 13;
    dice ^= dice >> 7;
    dice ^= dice << 17;
    return dice % below;
}

static uint64_t setting(const char *name, uint64_t fallback)
{
    const char *text = getenv(name);
    uint64_t value = fallback;

    return text != NULL && str_parse_u64(str_of(text), 1, UINT32_MAX, &value) ? value : fallback;
}

static struct policy automatic(void)
{
    struct policy policy = policy_default(1800);

    policy.mode = POLICY_AUTOMATIC;
    return policy;
}

static void lay_out(struct fleet *fleet, size_t count)
{
    fleet_init(fleet, count);
    for (size_t i = 0; i < count; i++) {
        fleet->nodes[i].rack = (uint32_t)(1 + i / 4);
        fleet->nodes[i].leaf = (uint32_t)(1 + i / 32);
        fleet->nodes[i].role = i < 2 ? 1 : i < 4 ? 2 : 0;
    }
}

/* ------------------------------------------------------------------ the judge: plain logs, plain
 * loops */
struct entry {
    int64_t at;
    uint32_t node;
    uint32_t kind;
    enum repair_action action;
};

struct judge {
    struct entry *starts;
    size_t starts_count;
    int64_t *ended_at;
    bool *faulty;
    bool *repairing;
    double starts_share; /* an hour */
    bool open;
    bool stopped;
};

static void judge_init(struct judge *judge, size_t nodes, size_t steps)
{
    *judge = (struct judge){.starts = calloc(steps + 1, sizeof *judge->starts),
                            .ended_at = calloc(nodes, sizeof *judge->ended_at),
                            .faulty = calloc(nodes, sizeof *judge->faulty),
                            .repairing = calloc(nodes, sizeof *judge->repairing)};
    for (size_t i = 0; i < nodes; i++) {
        judge->ended_at[i] = -1000000;
    }
}

static void judge_free(struct judge *judge)
{
    free(judge->starts);
    free(judge->ended_at);
    free(judge->faulty);
    free(judge->repairing);
}

/* Whether this start breaks any limit; the answer is a word, or NULL. */
static const char *judge_start(const struct judge *judge, const struct fleet *fleet, uint32_t node,
                               enum repair_action action, int64_t at)
{
    double running = 0;
    double down = 0;
    double nodes = (double)fleet->count;
    int64_t hour = 0;
    int64_t week = 0;
    bool mate = fleet->nodes[node].role == 0;

    for (size_t i = 0; i < fleet->count; i++) {
        const struct fleet_node *n = &fleet->nodes[i];
        bool near = n->rack == fleet->nodes[node].rack || n->leaf == fleet->nodes[node].leaf;
        running += judge->repairing[i];
        down += judge->repairing[i] || judge->faulty[i];
        if (i != node && near && judge->repairing[i]) {
            return "two of one rack or leaf";
        }
        mate = mate || (i != node && n->role == fleet->nodes[node].role && !judge->faulty[i] &&
                        !judge->repairing[i]);
    }
    for (size_t i = judge->starts_count; i > 0 && judge->starts[i - 1].at > at - 7 * 86400; i--) {
        const struct entry *e = &judge->starts[i - 1];
        hour += e->at > at - 3600;
        week += e->node == node && e->action == action && e->kind == fleet->nodes[node].kind;
    }
    double base = nodes * 0.02 < 1 ? 1 : nodes * 0.02 > 20 ? 20 : nodes * 0.02;
    double limit = base * (1 - down / nodes / 0.2);
    if (down / nodes >= 0.2) {
        return "a fifth is down";
    }
    /* the limit is rounded up */
    if (running > limit - 1e-9) {
        return "too many at once";
    }
    double share = nodes * judge->starts_share;
    if ((double)hour + 1 > (share > 2 ? share : 2)) {
        return "too many starts in an hour";
    }
    if (at - judge->ended_at[node] < 1800) {
        return "no rest";
    }
    if (week + 1 > (action == ACTION_POWER_CYCLE ? 1 : 2)) {
        return "over the budget";
    }
    if (!mate) {
        return "the last of its role";
    }
    return judge->open ? "the breaker is open" : judge->stopped ? "stopped" : NULL;
}

/* ------------------------------------------------------------------ the walk */
struct walk {
    struct fleet fleet;
    struct judge judge;
    struct policy policy;
    int64_t now;
    uint64_t calm; /* a fault in so many times */
    uint64_t slow; /* likewise the end of a repair */
    uint64_t tries;
    uint64_t starts;
    uint64_t trips;
};

static void walk_start(struct walk *w, uint32_t node)
{
    static const enum repair_action actions[] = {
        ACTION_RESET_GPU, ACTION_REBOOT, ACTION_POWER_CYCLE, ACTION_REPROVISION, ACTION_REMOVE};
    struct fleet_node *n = &w->fleet.nodes[node];
    enum repair_action action = actions[roll(COUNTOF(actions))];
    struct admission admission;

    if (!n->faulty || n->repairing) {
        return;
    }
    struct admission_counters c =
        fleet_counters(&w->fleet, &w->policy, &kinds[n->kind], node, action, w->now);
    w->tries++;
    admission_decide(&w->policy, &c, &admission);
    if (admission.count > 0) {
        return;
    }
    const char *broken = judge_start(&w->judge, &w->fleet, node, action, w->now);
    cr_assert_null(broken, "node %u, %s at %lld: %s", node, action_info(action)->name,
                   (long long)w->now, broken);
    cr_assert(action != ACTION_REMOVE && action != ACTION_REPROVISION);
    w->judge.starts[w->judge.starts_count++] = (struct entry){w->now, node, n->kind, action};
    w->judge.repairing[node] = true;
    fleet_start(&w->fleet, node, action, w->now);
    w->starts++;
}

static void walk_end(struct walk *w)
{
    if (w->fleet.busy_count == 0) {
        return;
    }
    uint32_t node = w->fleet.busy[roll(w->fleet.busy_count)];
    bool well = roll(4) > 0;

    if (well) {
        fleet_clear(&w->fleet, node);
        w->judge.faulty[node] = false;
    }
    fleet_end(&w->fleet, node, well, w->now);
    w->judge.repairing[node] = false;
    w->judge.ended_at[node] = w->now;
}

static void walk_guard(struct walk *w)
{
    char why[ADMISSION_TEXT_MAX];

    w->trips += fleet_look(&w->fleet, &w->policy, kinds, w->now, why);
    if (w->fleet.breaker_open && roll(60) == 0) {
        fleet_reset(&w->fleet, w->now);
    }
    if (roll(200) == 0) {
        fleet_stop(&w->fleet, !w->fleet.stopped, w->now);
    }
    w->judge.open = w->fleet.breaker_open;
    w->judge.stopped = w->fleet.stopped;
}

static void walk_step(struct walk *w)
{
    uint32_t node = (uint32_t)roll(w->fleet.count);

    w->now += (int64_t)roll(roll(50) == 0 ? 86400 : 120);
    /* quiet days and storms */
    w->calm = roll(2000) == 0 ? roll(64) : w->calm;
    switch (roll(10)) {
    case 0:
        if (roll(w->calm + 1) > 0) {
            break;
        }
        fleet_fault(&w->fleet, node, 1 + (uint32_t)roll(KINDS - 1), w->now);
        w->judge.faulty[node] = true;
        break;
    case 1:
        for (int i = 0; i < 20 && !w->fleet.nodes[node].faulty; i++) {
            node = (uint32_t)roll(w->fleet.count);
        }
        fleet_clear(&w->fleet, node);
        w->judge.faulty[node] = false;
        break;
    case 2:
    case 3:
        if (roll(w->slow) == 0) {
            walk_end(w);
        }
        break;
    default:
        /* where something is wrong most of the time, or nothing would ever be tried */
        for (int i = 0; i < 20 && !w->fleet.nodes[node].faulty; i++) {
            node = (uint32_t)roll(w->fleet.count);
        }
        walk_start(w, node);
    }
    walk_guard(w);
}

/* eager: as many starts an hour as there are nodes, so that other limits bind. */
static void walk_run(size_t nodes, size_t steps, uint64_t seed, bool eager)
{
    struct walk w = {.policy = automatic(), .now = 1000000, .calm = 16, .slow = eager ? 40 : 2};

    /* These two would hold nearly everything in such a fleet; the rest is what is walked into. */
    w.policy.lemon_incidents = 1000;
    w.policy.same_kind_min = 1000;
    w.policy.starts_percent = eager ? 100 : 1;
    dice = seed == 0 ? 88172645463325252u : seed; /* xorshift never leaves zero */
    lay_out(&w.fleet, nodes);
    judge_init(&w.judge, nodes, steps);
    w.judge.starts_share = eager ? 1 : 0.01;
    for (size_t i = 0; i < steps; i++) {
        walk_step(&w);
    }
    cr_log_info("%zu nodes, %zu steps: %llu tries, %llu starts, %llu trips", nodes, steps,
                (unsigned long long)w.tries, (unsigned long long)w.starts,
                (unsigned long long)w.trips);
    cr_assert_gt(w.tries, steps / 100, "%zu nodes, seed %llu", nodes, (unsigned long long)seed);
    cr_assert_gt(w.starts, 0, "%zu nodes, seed %llu", nodes, (unsigned long long)seed);
    judge_free(&w.judge);
    fleet_free(&w.fleet);
}

Test(repair_sim, R7_R8_R9_R11_R13_no_limit_is_exceeded_in_a_random_walk, .timeout = 600)
{
    static const size_t sizes[] = {16, 128, 1000};
    size_t steps = (size_t)setting("MUSTER_SIM_STEPS", 200000) / (2 * COUNTOF(sizes));

    for (size_t i = 0; i < COUNTOF(sizes); i++) {
        walk_run(sizes[i], steps, setting("MUSTER_SIM_SEED", 88172645463325252u) + i, false);
        walk_run(sizes[i], steps, setting("MUSTER_SIM_SEED", 88172645463325252u) - i, true);
    }
    if (getenv("MUSTER_SIM_NODES") != NULL) {
        walk_run((size_t)setting("MUSTER_SIM_NODES", 10000), steps / 4, 7, true);
    }
}

/* ------------------------------------------------------------------ public failures, played again
 */
static bool may_start(struct fleet *fleet, const struct policy *policy, uint32_t node,
                      enum repair_action action, int64_t at)
{
    struct admission_counters c =
        fleet_counters(fleet, policy, &kinds[fleet->nodes[node].kind], node, action, at);
    struct admission admission;

    admission_decide(policy, &c, &admission);
    return admission.count == 0;
}

/* A check that flags every node, over so many seconds; gives the starts that it causes. */
static int bad_check(size_t nodes, int64_t seconds)
{
    struct policy policy = automatic();
    struct fleet fleet;
    char why[ADMISSION_TEXT_MAX];
    int starts = 0;

    lay_out(&fleet, nodes);
    for (size_t i = 0; i < nodes; i++) {
        /* spread over the racks, as chance would have it */
        uint32_t node = (uint32_t)((i * 613) % nodes);
        int64_t at = 1000000 + seconds * (int64_t)i / (int64_t)nodes;
        fleet_fault(&fleet, node, 1, at);
        (void)fleet_look(&fleet, &policy, kinds, at, why);
        for (size_t j = 0; j <= i; j++) {
            uint32_t candidate = (uint32_t)((j * 613) % nodes);
            if (!fleet.nodes[candidate].repairing && j + 40 > i &&
                may_start(&fleet, &policy, candidate, ACTION_REBOOT, at)) {
                fleet_start(&fleet, candidate, ACTION_REBOOT, at);
                starts++;
            }
        }
    }
    fleet_free(&fleet);
    return starts;
}

/* Karpenter 2811: a component marked healthy nodes unhealthy, and far too many went. */
Test(repair_sim, R9_a_check_that_flags_every_node_starts_six_repairs_at_most)
{
    static const int64_t spans[] = {10, 300, 600, 1800, 3600};

    for (size_t i = 0; i < COUNTOF(spans); i++) {
        int starts = bad_check(1000, spans[i]);
        cr_assert_leq(starts, 6, "over %d s: %d", (int)spans[i], starts);
    }
}

/* NVSentinel 450: days of old events were replayed when the breaker was reset. */
Test(repair_sim, R5_R9_a_reset_replays_nothing)
{
    struct policy policy = automatic();
    struct fleet fleet;
    char why[ADMISSION_TEXT_MAX];

    lay_out(&fleet, 16);
    for (uint32_t i = 4; i < 8; i++) {
        fleet_fault(&fleet, i, 1 + i % 3, 1000);
    }
    cr_assert(fleet_look(&fleet, &policy, kinds, 1000, why), "a quarter within a minute");
    for (uint32_t i = 5; i < 8; i++) {
        fleet_clear(&fleet, i);
    }
    fleet_reset(&fleet, 90000);
    for (int64_t at = 90000; at < 90000 + 7 * 86400; at += 3600) {
        cr_assert_not(may_start(&fleet, &policy, 4, ACTION_REBOOT, at), "what waited stays");
    }
    fleet_fault(&fleet, 12, 1, 200000);
    cr_assert(may_start(&fleet, &policy, 12, ACTION_REBOOT, 200100), "what comes later goes on");
    fleet_free(&fleet);
}

/* NVSentinel 1543: the reboot itself brought the event back, and so on for ever. */
Test(repair_sim, R11_a_fault_that_returns_after_each_reboot_is_left_to_a_person)
{
    struct policy policy = automatic();
    struct fleet fleet;
    int starts = 0;

    lay_out(&fleet, 1000);
    for (int64_t at = 1000; at < 7 * 86400; at += 600) {
        fleet_fault(&fleet, 500, 1, at);
        if (may_start(&fleet, &policy, 500, ACTION_REBOOT, at)) {
            starts++;
            fleet_start(&fleet, 500, ACTION_REBOOT, at);
            fleet_clear(&fleet, 500);
            fleet_end(&fleet, 500, true, at + 300);
        }
    }
    cr_assert_eq(starts, 2);
    fleet_free(&fleet);
}

/* OpenShift 1975296: nodes under repair were counted healthy, so the limit was void. */
Test(repair_sim, R7_nodes_under_repair_count_as_down)
{
    struct policy policy = automatic();
    struct fleet fleet;

    policy.concurrency_percent = 100;
    policy.starts_min = 1000;
    policy.domain_max = 1000;
    policy.same_kind_min = 1000;
    lay_out(&fleet, 50);
    uint32_t started = 0;
    for (uint32_t i = 4; i < 50; i++) {
        fleet_fault(&fleet, i, 1, 1000);
        if (may_start(&fleet, &policy, i, ACTION_REBOOT, 1000)) {
            fleet_start(&fleet, i, ACTION_REBOOT, 1000);
            fleet_clear(&fleet, i); /* the health check is content; the node is away all the same */
            started++;
        }
    }
    cr_assert_lt(started, 10, "a fifth of 50");
    cr_assert_gt(started, 0);
    fleet_free(&fleet);
}

/* Kubernetes 30536: the master was cut off from its nodes and evicted everything. */
Test(repair_sim, R10_five_hundred_silent_of_five_hundred_start_nothing)
{
    struct policy policy = automatic();
    struct fleet fleet;

    lay_out(&fleet, 500);
    for (uint32_t i = 0; i < 500; i++) {
        fleet_silence(&fleet, i, true);
        fleet_fault(&fleet, i, 1, 1000);
    }
    for (uint32_t i = 0; i < 500; i++) {
        cr_assert_not(may_start(&fleet, &policy, i, ACTION_REBOOT, 5000));
    }
    for (uint32_t i = 0; i < 500; i++) {
        fleet_silence(&fleet, i, false);
        fleet_clear(&fleet, i);
    }
    fleet_free(&fleet);
}

/* Half a cluster behind one switch is no 90 %: three silent neighbours are enough. */
Test(repair_sim, R10_three_silent_neighbours_are_a_shared_cause)
{
    struct policy policy = automatic();
    struct fleet fleet;

    lay_out(&fleet, 500);
    for (uint32_t i = 64; i < 67; i++) {
        fleet_silence(&fleet, i, true);
    }
    fleet_fault(&fleet, 70, 1, 1000);
    fleet_fault(&fleet, 200, 1, 1000);
    cr_assert_not(may_start(&fleet, &policy, 70, ACTION_REBOOT, 1100), "the same leaf");
    cr_assert(may_start(&fleet, &policy, 200, ACTION_REBOOT, 1100), "another leaf");
    fleet_free(&fleet);
}

/* S3 2017: more capacity went than the service could lose. */
Test(repair_sim, R8_the_last_healthy_node_of_a_role_and_its_neighbours_are_left)
{
    struct policy policy = automatic();
    struct fleet fleet;

    lay_out(&fleet, 500);
    fleet.nodes[1].rack = 900; /* the other login node stands elsewhere */
    fleet.nodes[1].leaf = 900;
    fleet_fault(&fleet, 0, 1, 1000);
    cr_assert(may_start(&fleet, &policy, 0, ACTION_REBOOT, 1000));
    fleet_start(&fleet, 0, ACTION_REBOOT, 1000);
    fleet_fault(&fleet, 1, 2, 1000);
    cr_assert_not(may_start(&fleet, &policy, 1, ACTION_REBOOT, 1000), "the other is away");
    fleet_fault(&fleet, 5, 2, 1000);
    cr_assert_not(may_start(&fleet, &policy, 5, ACTION_REBOOT, 1000), "one of a leaf at a time");
    fleet_free(&fleet);
}

/* R18: the same trace live and on trial gives the same decisions. */
Test(repair_sim, R18_a_trial_decides_as_the_live_policy)
{
    struct policy live = automatic();
    struct policy trial = automatic();
    struct fleet fleet;

    trial.dry_run = true;
    lay_out(&fleet, 100);
    dice = 42;
    for (int64_t at = 1000; at < 200000; at += (int64_t)roll(600)) {
        uint32_t node = (uint32_t)roll(100);
        fleet_fault(&fleet, node, 1 + (uint32_t)roll(KINDS - 1), at);
        bool yes = may_start(&fleet, &live, node, ACTION_REBOOT, at);
        cr_assert_eq(yes, may_start(&fleet, &trial, node, ACTION_REBOOT, at));
        if (roll(3) == 0) {
            fleet_clear(&fleet, node);
        }
    }
    fleet_free(&fleet);
}

/* Two neighbours speak within seconds: the switch is at fault, not the first of them. */
Test(repair_sim, R8_a_shared_cause_is_waited_for)
{
    struct policy policy = automatic();
    struct fleet fleet;

    lay_out(&fleet, 500);
    fleet_fault(&fleet, 100, 4, 1000); /* ib_link */
    cr_assert_not(may_start(&fleet, &policy, 100, ACTION_REBOOT, 1089));
    cr_assert(may_start(&fleet, &policy, 100, ACTION_REBOOT, 1090));
    fleet_free(&fleet);
}
