/* The executor of controllers: its orders are carried out by loops/drive_machines.c. */
#include "server/repair/executors/executor.h"

static const char *machine_plan(enum repair_action action)
{
    (void)action;
    return "The node's controller (BMC) powers it off and, once it was seen off, on again.";
}

/* It needs no agent: that is what it is for. */
static bool machine_probe(const struct repair_work *work, const char **ret_why)
{
    (void)work;
    (void)ret_why;
    return true;
}

static enum act_result machine_act(struct db_conn *conn, struct arena *arena,
                                   const struct uuid *org, const struct repair_work *work)
{
    return executor_order(conn, arena, org, work, "{}");
}

const struct executor executor_machine = {
    .name = "machine",
    .who = "The machine's controller",
    .actions = 1u << ACTION_POWER_CYCLE,
    .plan = machine_plan,
    .probe = machine_probe,
    .act = machine_act,
    .watch = executor_watch_order,
};
