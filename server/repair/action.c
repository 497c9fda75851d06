/* The table of actions. */
#include "server/repair/action.h"

#include <assert.h>
#include <string.h>

/*
 * Attempts: two reboots and one of anything heavier in 7 days; more never helped in the cases
 * known. Reset, reboot and power cycle are one ladder; the others are chosen by the kind of fault.
 */
static const struct action_info infos[ACTION_COUNT] = {
    [ACTION_RESET_GPU] =
        {
            .name = "reset_gpu",
            .words = "reset GPU",
            .keeps =
                "The node stays up and its disks keep their data. Programs that use its GPUs end.",
            .seconds_expected = 60,
            .attempts_max = 2,
            .next = ACTION_REBOOT,
        },
    [ACTION_REBOOT] =
        {
            .name = "reboot",
            .words = "reboot",
            .keeps = "The disks keep their data. Every program on the node ends.",
            .seconds_expected = 420,
            .attempts_max = 2,
            .next = ACTION_POWER_CYCLE,
        },
    [ACTION_POWER_CYCLE] =
        {
            .name = "power_cycle",
            .words = "power cycle",
            .keeps =
                "The disks keep what was flushed to them. Every program on the node ends at once.",
            .seconds_expected = 600,
            .attempts_max = 1,
            .next = -1,
        },
    [ACTION_REPROVISION] =
        {
            .name = "reprovision",
            .words = "reprovision",
            .keeps = "The node keeps its name, its place and its hardware.",
            .loses = "All data on its local disks is lost.",
            .seconds_expected = 2700,
            .attempts_max = 1,
            .next = -1,
        },
    [ACTION_FAILOVER] =
        {
            .name = "failover",
            .words = "fail over",
            .keeps = "A spare node takes over the name and the work.",
            .loses = "Data on the old node's local disks stays behind.",
            .seconds_expected = 1800,
            .attempts_max = 1,
            .next = -1,
        },
    [ACTION_REMOVE] =
        {
            .name = "remove",
            .words = "remove",
            .keeps = "The hardware stays where it is.",
            .loses = "The node leaves the cluster, with all data on its local disks.",
            .seconds_expected = 300,
            .attempts_max = 1,
            .next = -1,
        },
};

const struct action_info *action_info(enum repair_action action)
{
    assert(action < ACTION_COUNT);
    return &infos[action];
}

bool action_parse(struct str name, enum repair_action *ret_action)
{
    for (size_t i = 0; i < ACTION_COUNT; i++) {
        if (str_eq_c(name, infos[i].name)) {
            *ret_action = (enum repair_action)i;
            return true;
        }
    }
    return false;
}

struct action_list action_list_of(unsigned mask)
{
    struct action_list list = {"{"};
    size_t used = 1;

    for (unsigned i = 0; i < ACTION_COUNT; i++) {
        if ((mask & (1u << i)) == 0) {
            continue;
        }
        size_t len = strlen(infos[i].name);
        assert(used + len + 3 <= sizeof list.text);
        if (used > 1) {
            list.text[used++] = ',';
        }
        memcpy(list.text + used, infos[i].name, len);
        used += len;
    }
    list.text[used] = '}';
    list.text[used + 1] = '\0';
    return list;
}

struct action_list action_list_last(void)
{
    unsigned mask = 0;

    for (unsigned i = 0; i < ACTION_COUNT; i++) {
        mask |= infos[i].next < 0 ? 1u << i : 0;
    }
    return action_list_of(mask);
}
