/* The executor of provisioners: its orders are carried out by loops/drive_ironic.c. */
#include "server/repair/executors/executor.h"

#include "server/repair/work.h"

static const char *ironic_plan(enum repair_action action)
{
    switch (action) {
    case ACTION_POWER_CYCLE:
        return "Ironic powers the machine off and, after a rest, on again.";
    case ACTION_REPROVISION:
        return "Ironic installs the machine anew with the image it has. The node joins again with "
               "another key.";
    case ACTION_FAILOVER:
        return "Ironic installs a spare under the node's name. Then the present machine is powered "
               "off, retired and set aside; its disks are left as they are.";
    case ACTION_REMOVE:
        return "Ironic retires the machine and undeploys it; its disks are cleaned where Ironic "
               "cleans. The node's keys end.";
    case ACTION_RESET_GPU:
    case ACTION_REBOOT:
    case ACTION_COUNT:
        break;
    }
    return "Ironic carries it out.";
}

/* It needs no agent. */
static bool ironic_probe(const struct repair_work *work, const char **ret_why)
{
    (void)work;
    (void)ret_why;
    return true;
}

static enum act_result ironic_act(struct db_conn *conn, struct arena *arena, const struct uuid *org,
                                  const struct repair_work *work)
{
    return executor_order(conn, arena, org, work, "{}");
}

/* A boot proves a power cycle. It proves no installation: the machine may have booted by itself. */
static enum watch_result ironic_watch(const struct repair_work *work)
{
    struct repair_work alone = *work;

    alone.rebooted = work->rebooted && work->action == ACTION_POWER_CYCLE;
    return executor_watch_order(&alone);
}

const struct executor executor_ironic = {
    .name = "ironic",
    .who = "Ironic",
    .actions = 1u << ACTION_POWER_CYCLE | 1u << ACTION_REPROVISION | 1u << ACTION_FAILOVER |
               1u << ACTION_REMOVE,
    .plan = ironic_plan,
    .probe = ironic_probe,
    .act = ironic_act,
    .watch = ironic_watch,
};
