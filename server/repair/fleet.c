/* The counters of admission, kept as things happen. */
#include "server/repair/fleet.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define HOUR 3600
#define DAY 86400
#define WEEK (7 * DAY)
#define ONE_INCIDENT 600 /* what comes within ten minutes is one incident with several faces */

void fleet_init(struct fleet *fleet, size_t count)
{
    *fleet = (struct fleet){.count = count,
                            .nodes = calloc(count + 1, sizeof *fleet->nodes),
                            .busy = calloc(count + 1, sizeof *fleet->busy),
                            .breaker_reset_at = FLEET_NEVER,
                            .baseline_at = FLEET_NEVER};
    if (fleet->nodes == NULL || fleet->busy == NULL) {
        abort();
    }
    for (size_t i = 0; i < count; i++) {
        fleet->nodes[i].ended_at = FLEET_NEVER;
    }
}

void fleet_free(struct fleet *fleet)
{
    free(fleet->nodes);
    free(fleet->busy);
    free(fleet->starts.items);
    free(fleet->faults.items);
    *fleet = (struct fleet){0};
}

static void add_moment(struct fleet_moments *list, struct fleet_moment moment)
{
    if (list->count == list->cap) {
        list->cap = list->cap == 0 ? 256 : list->cap * 2;
        list->items = reallocarray(list->items, list->cap, sizeof *list->items);
        if (list->items == NULL) {
            abort();
        }
    }
    list->items[list->count++] = moment;
}

static int64_t windows_longest(const struct policy *policy)
{
    int64_t longest = policy->same_kind_seconds > policy->breaker_seconds
                          ? policy->same_kind_seconds
                          : policy->breaker_seconds;

    return longest > HOUR ? longest : HOUR;
}

/* Forgets what no window reaches any more. */
static void advance(struct fleet_moments *list, int64_t oldest)
{
    while (list->first < list->count && list->items[list->first].at <= oldest) {
        list->first++;
    }
}

static bool is_down(const struct fleet_node *node)
{
    return node->faulty || node->repairing;
}

static void remember_incident(struct fleet_node *node, int64_t at)
{
    if (node->incidents_count > 0 &&
        at - node->incidents[node->incidents_count - 1] < ONE_INCIDENT) {
        return;
    }
    if (node->incidents_count == FLEET_INCIDENTS) {
        memmove(node->incidents, node->incidents + 1,
                (FLEET_INCIDENTS - 1) * sizeof node->incidents[0]);
        node->incidents_count--;
    }
    node->incidents[node->incidents_count++] = at;
}

void fleet_fault(struct fleet *fleet, uint32_t node, uint32_t kind, int64_t at)
{
    struct fleet_node *n = &fleet->nodes[node];

    assert(node < fleet->count);
    if (n->faulty) {
        return;
    }
    fleet->down += is_down(n) ? 0 : 1;
    n->faulty = true;
    n->kind = kind;
    n->fault_at = at;
    n->proposed_at = at;
    remember_incident(n, at);
    add_moment(&fleet->faults, (struct fleet_moment){at, node, kind});
}

void fleet_clear(struct fleet *fleet, uint32_t node)
{
    struct fleet_node *n = &fleet->nodes[node];

    if (n->faulty) {
        n->faulty = false;
        fleet->down -= is_down(n) ? 0 : 1;
    }
}

void fleet_silence(struct fleet *fleet, uint32_t node, bool silent)
{
    struct fleet_node *n = &fleet->nodes[node];

    fleet->silent += (silent ? 1 : 0) - (n->silent ? 1 : 0);
    n->silent = silent;
}

void fleet_start(struct fleet *fleet, uint32_t node, enum repair_action action, int64_t at)
{
    struct fleet_node *n = &fleet->nodes[node];

    assert(!n->repairing);
    fleet->down += is_down(n) ? 0 : 1;
    n->repairing = true;
    fleet->running++;
    fleet->busy[fleet->busy_count++] = node;
    if (n->attempts_count == FLEET_ATTEMPTS) {
        memmove(n->attempts, n->attempts + 1, (FLEET_ATTEMPTS - 1) * sizeof n->attempts[0]);
        n->attempts_count--;
    }
    n->attempts[n->attempts_count++] = (struct fleet_attempt){at, n->kind, action};
    add_moment(&fleet->starts, (struct fleet_moment){at, node, n->kind});
}

static void remember_end(struct fleet *fleet, bool well, int64_t at)
{
    if (fleet->ended_count == 5) {
        memmove(fleet->ended, fleet->ended + 1, 4 * sizeof fleet->ended[0]);
        fleet->ended_count--;
    }
    fleet->ended[fleet->ended_count++] = (struct fleet_end){at, well};
}

void fleet_end(struct fleet *fleet, uint32_t node, bool well, int64_t at)
{
    struct fleet_node *n = &fleet->nodes[node];
    size_t place = 0;

    assert(n->repairing);
    while (fleet->busy[place] != node) {
        place++;
        assert(place < fleet->busy_count);
    }
    fleet->busy[place] = fleet->busy[--fleet->busy_count];
    n->repairing = false;
    n->ended_at = at;
    n->proposed_at = at; /* what is still wrong is proposed anew */
    fleet->running--;
    fleet->down -= is_down(n) ? 0 : 1;
    remember_end(fleet, well, at);
}

/* ------------------------------------------------------------------ counting */

static bool are_neighbours(const struct fleet_node *a, const struct fleet_node *b)
{
    return (a->rack != 0 && a->rack == b->rack) || (a->leaf != 0 && a->leaf == b->leaf);
}

static int64_t count_attempts(const struct fleet_node *node, enum repair_action action, int64_t at)
{
    int64_t count = 0;

    for (size_t i = 0; i < node->attempts_count; i++) {
        const struct fleet_attempt *a = &node->attempts[i];
        count += a->action == action && a->kind == node->kind && a->at > at - WEEK;
    }
    return count;
}

/* Nodes, not faults: one that repeats counts once. More than enough is not counted. */
static int64_t count_kind(const struct fleet *fleet, uint32_t kind, int64_t since, int64_t enough)
{
    const struct fleet_moments *list = &fleet->faults;
    int64_t count = 0;

    for (size_t i = list->first; i < list->count && count < enough; i++) {
        const struct fleet_moment *m = &list->items[i];
        bool again = false;
        if (m->at <= since || m->kind != kind) {
            continue;
        }
        for (size_t j = i + 1; j < list->count && !again; j++) {
            again = list->items[j].node == m->node && list->items[j].kind == kind;
        }
        count += !again;
    }
    return count;
}

static int64_t count_silent_neighbours(const struct fleet *fleet, const struct fleet_node *node)
{
    int64_t count = 0;

    for (size_t i = 0; fleet->silent > 0 && i < fleet->count; i++) {
        count += fleet->nodes[i].silent && are_neighbours(node, &fleet->nodes[i]);
    }
    return count;
}

static bool is_last_of_role(const struct fleet *fleet, uint32_t node)
{
    uint32_t role = fleet->nodes[node].role;

    for (uint32_t i = 0; role != 0 && i < fleet->count; i++) {
        const struct fleet_node *n = &fleet->nodes[i];
        if (i != node && n->role == role && !is_down(n) && !n->silent) {
            return false;
        }
    }
    return role != 0;
}

struct admission_counters fleet_counters(struct fleet *fleet, const struct policy *policy,
                                         const struct fleet_kind *kind, uint32_t node,
                                         enum repair_action action, int64_t at)
{
    const struct fleet_node *n = &fleet->nodes[node];
    struct admission_counters c = {
        .action = action,
        .mode = policy_mode_for(policy, kind->check_id, kind->code),
        .nodes = (int64_t)fleet->count,
        .down = fleet->down,
        .running = fleet->running,
        .seen = (int64_t)fleet->count,
        .silent = fleet->silent,
        .domain_silent = count_silent_neighbours(fleet, n),
        .attempt = count_attempts(n, action, at) + 1,
        .fault_seconds_ago = n->faulty ? at - n->fault_at : -1,
        .ended_seconds_ago = n->ended_at == FLEET_NEVER ? -1 : at - n->ended_at,
        .stopped = fleet->stopped ? REACH_CLUSTER : REACH_NONE,
        .breaker_open = fleet->breaker_open ? REACH_CLUSTER : REACH_NONE,
        .waited = n->proposed_at <= fleet->baseline_at,
        .shared_cause = admission_shared_cause(kind->check_id),
        .reinstallable = admission_reinstallable(kind->check_id),
        .spares = 1,
        .last_of_role = is_last_of_role(fleet, node),
        .has_executor = true,
        .node_joined = true,
        .auto_repair = !n->off,
    };

    advance(&fleet->starts, at - HOUR);
    advance(&fleet->faults, at - windows_longest(policy));
    c.starts = (int64_t)(fleet->starts.count - fleet->starts.first);
    c.same_kind = count_kind(fleet, n->kind, at - policy->same_kind_seconds,
                             admission_same_kind_hold(policy, c.nodes));
    for (size_t i = 0; i < n->incidents_count; i++) {
        c.incidents += n->incidents[i] > at - policy->lemon_days * DAY;
    }
    for (size_t i = 0; i < fleet->busy_count; i++) {
        c.domain_running +=
            fleet->busy[i] != node && are_neighbours(n, &fleet->nodes[fleet->busy[i]]);
    }
    return c;
}

/* ------------------------------------------------------------------ the breaker */

static int64_t count_newly_unhealthy(const struct fleet *fleet, const struct fleet_kind *kinds,
                                     int64_t since, const struct policy *policy)
{
    int64_t nodes = (int64_t)fleet->count;
    const struct fleet_moments *list = &fleet->faults;
    int64_t count = 0;

    for (size_t i = list->count; i > list->first && list->items[i - 1].at > since; i--) {
        const struct fleet_moment *m = &list->items[i - 1];
        bool again = false;
        for (size_t j = i; j < list->count && !again; j++) {
            again = list->items[j].node == m->node;
        }
        count += !again && !admission_shared_cause(kinds[m->kind].check_id);
        if (count >= policy->breaker_floor && count * 100 >= nodes * policy->breaker_percent) {
            break;
        }
    }
    return count;
}

bool fleet_look(struct fleet *fleet, const struct policy *policy, const struct fleet_kind *kinds,
                int64_t at, char ret_text[ADMISSION_TEXT_MAX])
{
    int64_t since = at - policy->breaker_seconds;
    struct breaker_counters c = {.nodes = (int64_t)fleet->count,
                                 .automatic_ended = (int64_t)fleet->ended_count};

    if (fleet->breaker_open) {
        return false;
    }
    c.newly_unhealthy = count_newly_unhealthy(
        fleet, kinds, since > fleet->breaker_reset_at ? since : fleet->breaker_reset_at, policy);
    for (size_t i = 0; i < fleet->ended_count; i++) {
        c.automatic_failed +=
            !fleet->ended[i].well && fleet->ended[i].at > at - BREAKER_FAILURES_SECONDS;
    }
    fleet->breaker_open = breaker_trips(policy, &c, ret_text);
    return fleet->breaker_open;
}

void fleet_reset(struct fleet *fleet, int64_t at)
{
    fleet->breaker_open = false;
    fleet->breaker_reset_at = at;
    fleet->baseline_at = at;
    fleet->ended_count = 0;
}

void fleet_stop(struct fleet *fleet, bool stopped, int64_t at)
{
    if (fleet->stopped && !stopped) {
        fleet->baseline_at = at;
    }
    fleet->stopped = stopped;
}
