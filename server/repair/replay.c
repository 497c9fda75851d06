/* Plays real faults against a policy: the clock stops at each fault and every five minutes between.
 */
#include "server/repair/replay.h"

#include "base/cleanup.h"
#include "server/repair/fleet.h"

#define TICK 300
#define LOOKS_MAX 200000 /* a fifth of a second */
#define QUIET 600        /* that proves a repair */
#define RESET_AFTER (4 * 3600)
#define DAY 86400
#define THURSDAY 3 /* 1970-01-01; Monday is 0 */

struct play {
    const struct policy *policy;
    struct fleet fleet;
    struct fleet_kind *kinds; /* by the fault's place, from 1 */
    uint32_t *kind_of;        /* the same kind has one number */
    struct replay_fault *faults;
    size_t count;
    size_t came; /* faults up to here have come */
    int64_t *ends_at;
    int64_t reset_at;
    size_t looks; /* left; so that no fleet keeps a server's thread */
    struct replay_sum *sum;
};

static uint32_t kind_of(const struct play *play, size_t place)
{
    const struct replay_fault *f = &play->faults[place];

    for (size_t i = 0; i < place; i++) {
        if (str_eq(play->faults[i].check_id, f->check_id) &&
            str_eq(play->faults[i].code, f->code)) {
            return play->kind_of[i];
        }
    }
    return (uint32_t)place + 1;
}

static void fault_comes(struct play *play, size_t place)
{
    struct replay_fault *f = &play->faults[place];
    struct fleet_node *n = &play->fleet.nodes[f->node];

    n->rack = f->rack;
    n->leaf = f->leaf;
    n->off = f->off;
    fleet_fault(&play->fleet, f->node, play->kind_of[place], f->at);
}

/* Bits of the reasons against it; 0 = it would start. */
static unsigned reasons_of(struct play *play, size_t place, int64_t now)
{
    const struct replay_fault *f = &play->faults[place];
    struct admission_counters c = fleet_counters(&play->fleet, play->policy,
                                                 &play->kinds[place + 1], f->node, f->action, now);
    struct admission admission;
    int64_t local = now + f->offset;
    unsigned reasons = 0;

    c.weekday = (int)((local / DAY + THURSDAY) % 7);
    c.minute = (int)(local % DAY / 60);
    admission_decide(play->policy, &c, &admission);
    for (size_t i = 0; i < admission.count; i++) {
        reasons |= 1u << admission.reasons[i].code;
    }
    return reasons;
}

static void close_fault(struct play *play, size_t place)
{
    struct replay_fault *f = &play->faults[place];

    if (play->fleet.nodes[f->node].kind == play->kind_of[place]) {
        fleet_clear(&play->fleet, f->node);
    }
}

/* What has run its time ends well. */
static void end_repairs(struct play *play, int64_t now)
{
    for (size_t i = 0; i < play->came; i++) {
        struct replay_fault *f = &play->faults[i];
        if (f->end == REPLAY_STARTED && play->ends_at[i] != FLEET_NEVER &&
            play->ends_at[i] <= now) {
            close_fault(play, i);
            fleet_end(&play->fleet, f->node, true, play->ends_at[i]);
            play->ends_at[i] = FLEET_NEVER;
        }
    }
}

/* Reasons that no waiting ends: the fault stays with a person. */
#define FOR_GOOD                                                               \
    (1u << ADMIT_AUTOMATION_OFF | 1u << ADMIT_WARN_ONLY | 1u << ADMIT_ACTION | \
     1u << ADMIT_NODE_OFF | 1u << ADMIT_WAITED)

static bool look_at_fault(struct play *play, size_t place, int64_t now)
{
    struct replay_fault *f = &play->faults[place];

    if (f->end != REPLAY_HELD || play->fleet.nodes[f->node].repairing) {
        return f->end == REPLAY_HELD;
    }
    if (f->closed_at <= now) {
        f->end = REPLAY_CLOSED;
        close_fault(play, place);
        return false;
    }
    if ((f->reasons & FOR_GOOD) != 0 || play->looks == 0) {
        return true;
    }
    play->looks--;
    f->reasons = reasons_of(play, place, now);
    if (f->reasons != 0) {
        return true;
    }
    f->end = REPLAY_STARTED;
    f->started_at = now;
    play->ends_at[place] = now + action_info(f->action)->seconds_expected + QUIET;
    fleet_start(&play->fleet, f->node, f->action, now);
    play->sum->starts++;
    play->sum->busy += f->busy;
    play->sum->by_action[f->action]++;
    return false;
}

/* One moment; false when nothing waits or runs that time alone could change. */
static bool look(struct play *play, int64_t now)
{
    char why[ADMISSION_TEXT_MAX];
    bool waits = play->fleet.busy_count > 0;

    end_repairs(play, now);
    if (play->fleet.breaker_open && now >= play->reset_at) {
        fleet_reset(&play->fleet, now);
    }
    if (fleet_look(&play->fleet, play->policy, play->kinds, now, why)) {
        play->sum->trips++;
        play->reset_at = now + RESET_AFTER;
    }
    for (size_t i = 0; i < play->came; i++) {
        waits = look_at_fault(play, i, now) || waits;
    }
    return waits;
}

static bool hopeless(const struct play *play)
{
    bool all = play->fleet.busy_count == 0 || play->looks == 0;

    for (size_t i = 0; i < play->came && all; i++) {
        all = play->looks == 0 || play->faults[i].end != REPLAY_HELD ||
              (play->faults[i].reasons & FOR_GOOD) != 0;
    }
    return all;
}

static void play_all(struct play *play, int64_t until)
{
    int64_t now = play->faults[0].at;

    while (now <= until) {
        while (play->came < play->count && play->faults[play->came].at <= now) {
            fault_comes(play, play->came++);
        }
        bool waits = look(play, now) && !hopeless(play);
        if (play->came == play->count && !waits) {
            break;
        }
        int64_t next = play->came < play->count ? play->faults[play->came].at : INT64_MAX;
        now = waits && now + TICK < next ? now + TICK : next;
    }
}

static void sum_up(const struct replay_fault *faults, size_t count, struct replay_sum *sum)
{
    for (size_t i = 0; i < count; i++) {
        sum->closed += faults[i].end == REPLAY_CLOSED;
        for (unsigned code = 0; code < ADMIT_CODE_COUNT && faults[i].end != REPLAY_STARTED;
             code++) {
            sum->by_reason[code] += (faults[i].reasons & (1u << code)) != 0;
        }
    }
}

void replay_cluster(struct arena *arena, const struct policy *policy, size_t nodes,
                    struct replay_fault *faults, size_t count, struct replay_sum *sum)
{
    struct play play = {.policy = policy,
                        .faults = faults,
                        .count = count,
                        .kinds = arena_zalloc(arena, (count + 1) * sizeof *play.kinds),
                        .kind_of = arena_zalloc(arena, (count + 1) * sizeof *play.kind_of),
                        .ends_at = arena_zalloc(arena, (count + 1) * sizeof *play.ends_at),
                        .looks = LOOKS_MAX,
                        .sum = sum};

    if (count == 0) {
        return;
    }
    fleet_init(&play.fleet, nodes);
    for (size_t i = 0; i < count; i++) {
        play.kind_of[i] = kind_of(&play, i);
        play.kinds[i + 1] = (struct fleet_kind){faults[i].check_id, faults[i].code};
        faults[i].end = REPLAY_HELD;
        faults[i].reasons = 0;
    }
    play_all(&play, faults[count - 1].at + DAY);
    sum_up(faults, count, sum);
    sum->cut = sum->cut || play.looks == 0;
    fleet_free(&play.fleet);
}
