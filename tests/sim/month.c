/* A month of a cluster under the default policy and the real admission code, on a virtual clock:
 * sim-month [nodes [seeds]]. */
#include "tests/sim/month.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "server/repair/fleet.h"

#define DAY 86400
#define DAYS 30
#define TICK 60
#define LEMONS 0.015 /* of the nodes, twelve times as often: bench/sim.json, heterogeneity */
#define LEMON_FACTOR 12
#define SITE 0.9 /* a site between a mature and a typical one */

enum phase { IDLE, FAULTY, DRAINING, ACTING, WITH_PERSON };

struct node {
    enum phase phase;
    size_t kind;
    enum month_cure cure;
    enum repair_action action;
    int64_t until; /* of the phase */
    int64_t since; /* the fault came */
    bool lemon;
};

struct month {
    struct fleet fleet;
    struct policy policy;
    struct fleet_kind *kinds;
    struct node *nodes;
    size_t count;
    int64_t now;
    double incidents;
    double faults;
    double acts[ACTION_COUNT];
    double cured[ACTION_COUNT];
    double people;
    double trips;
    double drain_s;
    double lost_s;
    double most;
};

static uint64_t dice;

static double roll(void)
{
    dice ^= dice << 13;
    dice ^= dice >> 7;
    dice ^= dice << 17;
    return (double)(dice >> 11) * 0x1p-53;
}

/* Log-normal by its median and 95 % point. */
static int64_t draw(double p50, double p95)
{
    double normal = sqrt(-2 * log(roll() + 1e-300)) * cos(6.283185307179586 * roll());

    return (int64_t)(p50 * exp(normal * log(p95 / p50) / 1.6448536));
}

static int64_t action_time(enum repair_action action)
{
    switch (action) {
    case ACTION_RESET_GPU:
        return draw(45, 180) + draw(600, 1500);
    case ACTION_REBOOT:
        return draw(480, 1080) + draw(600, 1500);
    case ACTION_POWER_CYCLE:
    case ACTION_REPROVISION:
    case ACTION_FAILOVER:
    case ACTION_REMOVE:
    case ACTION_COUNT:
        break;
    }
    return draw(600, 1500) + draw(600, 1500);
}

static void to_person(struct month *m, struct node *n)
{
    m->people++;
    n->phase = WITH_PERSON;
    n->until = m->now + draw(5400, 28800) + draw(3 * DAY, 14 * DAY);
}

static enum month_cure draw_cure(const struct month_kind *kind)
{
    double left = roll();

    for (int i = 0; i < CURE_COUNT; i++) {
        left -= kind->cure[i];
        if (left <= 0) {
            return (enum month_cure)i;
        }
    }
    return CURE_REPLACE;
}

static void fault(struct month *m, size_t place, size_t kind)
{
    struct node *n = &m->nodes[place];
    const struct month_kind *k = &month_kinds[kind];

    m->incidents++;
    if (!k->node_fault || n->phase != IDLE) {
        return;
    }
    m->faults++;
    n->kind = kind;
    n->cure = draw_cure(k);
    n->action = k->action;
    n->since = m->now;
    n->phase = FAULTY;
    fleet_fault(&m->fleet, (uint32_t)place, (uint32_t)kind + 1, m->now);
    if (k->action == ACTION_FAILOVER || k->action == ACTION_REMOVE) {
        to_person(m, n);
    } else if (n->cure == CURE_SELF) {
        n->until = m->now + draw(1200, 21600);
    }
}

static void well(struct month *m, size_t place)
{
    struct node *n = &m->nodes[place];

    m->lost_s += (double)(m->now - n->since);
    fleet_clear(&m->fleet, (uint32_t)place);
    n->phase = IDLE;
}

static bool cures(enum repair_action action, enum month_cure cure)
{
    static const enum month_cure most[ACTION_COUNT] = {
        [ACTION_RESET_GPU] = CURE_RESET,
        [ACTION_REBOOT] = CURE_REBOOT,
        [ACTION_POWER_CYCLE] = CURE_POWER,
    };

    return cure <= most[action];
}

static void try_to_start(struct month *m, size_t place)
{
    struct node *n = &m->nodes[place];
    struct admission admission;

    if (n->cure == CURE_SELF && m->now >= n->until) {
        well(m, place);
        return;
    }
    struct admission_counters c = fleet_counters(&m->fleet, &m->policy, &m->kinds[n->kind + 1],
                                                 (uint32_t)place, n->action, m->now);
    admission_decide(&m->policy, &c, &admission);
    if (admission.count > 0) {
        for (size_t i = 0; i < admission.count; i++) {
            enum admission_code code = admission.reasons[i].code;
            if (code == ADMIT_BUDGET || code == ADMIT_LEMON || code == ADMIT_WAITED) {
                to_person(m, n);
                return;
            }
        }
        return;
    }
    fleet_start(&m->fleet, (uint32_t)place, n->action, m->now);
    m->most = fmax(m->most, (double)m->fleet.running);
    n->phase = DRAINING;
    n->until = m->now;
    if (roll() >= month_kinds[n->kind].job_kill) {
        int64_t wait = draw(5400, 259200);
        n->until = m->now + (wait < 7 * DAY ? wait : 7 * DAY);
        m->drain_s += (double)(n->until - m->now);
    }
}

static void end_act(struct month *m, size_t place)
{
    struct node *n = &m->nodes[place];
    bool good = cures(n->action, n->cure);

    m->acts[n->action]++;
    m->cured[n->action] += good;
    if (good) {
        well(m, place);
    }
    fleet_end(&m->fleet, (uint32_t)place, good, m->now);
    if (!good) {
        int next = action_info(n->action)->next;
        n->phase = FAULTY;
        if (next < 0) {
            to_person(m, n);
        } else {
            n->action = (enum repair_action)next;
        }
    }
}

static void step(struct month *m, size_t place)
{
    struct node *n = &m->nodes[place];

    switch (n->phase) {
    case FAULTY:
        try_to_start(m, place);
        break;
    case DRAINING:
        if (m->now >= n->until) {
            n->phase = ACTING;
            n->until = m->now + action_time(n->action);
        }
        break;
    case ACTING:
        if (m->now >= n->until) {
            end_act(m, place);
        }
        break;
    case WITH_PERSON:
        if (m->now >= n->until) {
            well(m, place);
        }
        break;
    case IDLE:
        break;
    }
}

/* A lemon is drawn as often as its factor says. */
static size_t draw_node(const struct month *m, bool lemons)
{
    for (;;) {
        size_t place = (size_t)(roll() * (double)m->count);
        if (m->nodes[place].lemon || !lemons || roll() < 1.0 / LEMON_FACTOR) {
            return place;
        }
    }
}

static void faults_of_tick(struct month *m)
{
    for (size_t kind = 0; kind < month_kinds_count; kind++) {
        double rate = month_kinds[kind].rate * SITE * (double)m->count / 1000 * TICK / DAY;
        rate *= month_kinds[kind].lemon ? 1 + LEMONS * (LEMON_FACTOR - 1) : 1;
        if (roll() < rate) {
            fault(m, draw_node(m, month_kinds[kind].lemon), kind);
        }
    }
}

static void set_up(struct month *m, size_t count)
{
    m->count = count;
    m->policy = policy_default(1800);
    m->policy.mode = POLICY_AUTOMATIC;
    m->nodes = calloc(count, sizeof *m->nodes);
    m->kinds = calloc(month_kinds_count + 1, sizeof *m->kinds);
    if (m->nodes == NULL || m->kinds == NULL) {
        abort();
    }
    fleet_init(&m->fleet, count);
    for (size_t i = 0; i < count; i++) {
        m->nodes[i].lemon = roll() < LEMONS;
        m->fleet.nodes[i].leaf = (uint32_t)(1 + i / 32);
    }
    for (size_t i = 0; i < month_kinds_count; i++) {
        m->kinds[i + 1] =
            (struct fleet_kind){str_of(month_kinds[i].check_id), str_of(month_kinds[i].code)};
    }
}

static void run_month(struct month *m, size_t count)
{
    char why[ADMISSION_TEXT_MAX];
    int64_t reset_at = 0;

    set_up(m, count);
    for (m->now = DAY; m->now < DAY + (int64_t)DAYS * DAY; m->now += TICK) {
        faults_of_tick(m);
        for (size_t i = 0; i < count; i++) {
            if (m->nodes[i].phase != IDLE) {
                step(m, i);
            }
        }
        if (fleet_look(&m->fleet, &m->policy, m->kinds, m->now, why)) {
            m->trips++;
            reset_at = m->now + 4 * 3600;
        }
        if (m->fleet.breaker_open && m->now >= reset_at) {
            fleet_reset(&m->fleet, m->now);
        }
    }
    for (size_t i = 0; i < count; i++) {
        m->lost_s += m->nodes[i].phase == IDLE ? 0 : (double)(m->now - m->nodes[i].since);
    }
    fleet_free(&m->fleet);
    free(m->nodes);
    free(m->kinds);
}

int main(int argc, char **argv)
{
    uint64_t count = 1000;
    uint64_t seeds = 6;
    struct month sum = {0};

    if ((argc > 1 && !str_parse_u64(str_of(argv[1]), 1, 100000, &count)) ||
        (argc > 2 && !str_parse_u64(str_of(argv[2]), 1, 1000, &seeds))) {
        (void)fprintf(stderr, "usage: sim-month [nodes [seeds]]\n");
        return 2;
    }
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        struct month m = {0};
        dice = seed * 0x9e3779b97f4a7c15u;
        run_month(&m, count);
        sum.incidents += m.incidents;
        sum.faults += m.faults;
        sum.people += m.people;
        sum.trips += m.trips;
        sum.drain_s += m.drain_s;
        sum.lost_s += m.lost_s;
        sum.most += m.most;
        for (size_t i = 0; i < ACTION_COUNT; i++) {
            sum.acts[i] += m.acts[i];
            sum.cured[i] += m.cured[i];
        }
    }
    double n = (double)seeds;
    printf("{\"nodes\":%llu,\"seeds\":%llu,\"incidents\":%.0f,\"node_faults\":%.0f,\"people\":%.0f,"
           "\"most_at_once\":%.1f,\"breaker_trips\":%.2f,\"drain_node_hours\":%.0f,"
           "\"lost_ratio\":%.4f",
           (unsigned long long)count, (unsigned long long)seeds, sum.incidents / n, sum.faults / n,
           sum.people / n, sum.most / n, sum.trips / n, sum.drain_s / n / 3600,
           sum.lost_s / n / ((double)count * DAYS * DAY));
    for (int i = ACTION_RESET_GPU; i <= ACTION_POWER_CYCLE; i++) {
        printf(",\"%s\":%.0f,\"%s_cured\":%.2f", action_info((enum repair_action)i)->name,
               sum.acts[i] / n, action_info((enum repair_action)i)->name,
               sum.acts[i] > 0 ? sum.cured[i] / sum.acts[i] : 0);
    }
    printf("}\n");
    return 0;
}
