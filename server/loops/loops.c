/* The table of background loops. */
#include "server/loops/loops.h"

#include "server/follow.h"
#include "server/wake.h"

static const struct runner_spec *const specs[LOOPS_COUNT] = {
    &derive_nodes_loop, &close_incidents_loop, &propose_repairs_loop,
    &run_repairs_loop,  &roll_up_loop,         &maintain_loop,
};

static struct runner *runners[LOOPS_COUNT];

/* Changes that other replicas made, and requests of this one. */
static void on_follow(void *ctx, const struct follow_change *changes, size_t count, bool auth_moved)
{
    (void)ctx;
    (void)auth_moved;
    for (size_t i = 0; i < count; i++) {
        if (changes[i].events) {
            wake_org(&changes[i].head.org, WAKE_ANY);
        } else if (changes[i].commands) {
            wake_org(&changes[i].head.org, WAKE_REPAIR);
        }
    }
}

void loops_start(struct follow *follow)
{
    if (follow != NULL) {
        follow_subscribe(follow, on_follow, NULL);
    }
    for (size_t i = 0; i < LOOPS_COUNT; i++) {
        runners[i] = runner_start(specs[i], follow);
    }
}

void loops_stop(void)
{
    for (size_t i = 0; i < LOOPS_COUNT; i++) {
        runner_stop(runners[i]);
        runners[i] = NULL;
    }
}

size_t loops_read_status(struct runner_status status[LOOPS_COUNT])
{
    size_t count = 0;

    for (size_t i = 0; i < LOOPS_COUNT; i++) {
        if (runners[i] != NULL) {
            runner_read_status(runners[i], &status[count++]);
        }
    }
    return count;
}
