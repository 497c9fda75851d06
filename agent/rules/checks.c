/* The checks the agent knows: the names that appear as check_id, and how each one's incidents end.
 */
#include "agent/rules/checks.h"

#define BY_ACTION                                                                                  \
    "by what it asks for: a reset's when the driver or the agent says it was done, a reboot's by " \
    "a new boot without a new event, a removal's by a person, else after an hour of quiet"
#define NEW_BOOT "by a new boot without a new event"
#define STATE "when the reading is good again"

const struct check_row check_rows[] = {
    {"gpu_lost", "GPU off the bus", NEW_BOOT},
    {"gpu_xid", "Xid of a GPU", BY_ACTION},
    {"gpu_ecc", "GPU memory errors", BY_ACTION},
    {"gpu_row_remap", "GPU memory row remapping", BY_ACTION},
    {"gpu_page_retirement", "GPU memory page retirement", BY_ACTION},
    {"gpu_gsp", "GPU system processor", BY_ACTION},
    {"gpu_init", "GPU initialisation", NEW_BOOT},
    {"gpu_nvlink", "NVLink", BY_ACTION},
    {"gpu_nvlink5", "NVLink 5", BY_ACTION},
    {"gpu_recovery_action", "Recovery the driver asks for", "when the driver asks for none"},
    {"gpu_unresponsive", "GPU driver does not answer", "when a probe is answered again"},
    {"gpu_count", "Number of GPUs", STATE},
    {"gpu_sensor", "GPU readings", STATE},
    {"gpu_thermal", "GPU thermal slowdown", STATE},
    {"gpu_power_brake", "GPU power brake", STATE},
    {"gpu_clocks", "GPU clocks", STATE},
    {"gpu_pcie", "GPU's PCIe link", STATE},
    {"driver_mismatch", "NVIDIA driver versions", "when host tools reach the driver again"},
    {"driver_not_loaded", "NVIDIA driver loaded", STATE},
    {"nvswitch_sxid", "SXid of an NVSwitch", BY_ACTION},
    {"fabric_manager", "Fabric manager", BY_ACTION},
    {"telemetry", "Readings of other tools", STATE},
    {"pcie_aer", "PCIe errors", BY_ACTION},
    {"pcie_link", "PCIe link", STATE},
    {"nic_mlx5", "NVIDIA network adapter", BY_ACTION},
    {"nic_watchdog", "Network adapter", "after an hour of quiet"},
    {"ib_link", "InfiniBand link", STATE},
    {"eth_link", "Ethernet link", "when the reading is good again, else after a day of quiet"},
    {"nic_count", "Network ports", STATE},
    {"disk_nvme", "NVMe disk", BY_ACTION},
    {"disk_ata", "ATA disk", STATE},
    {"disk_io", "Block device", "after an hour of quiet"},
    {"disk_full", "Space on a file system", STATE},
    {"fs_readonly", "Read-only file system", NEW_BOOT},
    {"fs_error", "Damaged file system", "after a day of quiet"},
    {"mount_hung", "Mount that does not answer", STATE},
    {"nfs", "NFS server", "when the server answers again"},
    {"memory_ecc", "Host memory errors", BY_ACTION},
    {"oom", "Out of memory", "after an hour of quiet"},
    {"fd_exhaustion", "File descriptors", NEW_BOOT},
    {"pid_exhaustion", "Process numbers", STATE},
    {"process_zombies", "Zombie processes", STATE},
    {"process_blocked", "Processes that hang", STATE},
    {"kernel_hung_task", "Blocked task", BY_ACTION},
    {"kernel_soft_lockup", "Stuck CPU", BY_ACTION},
    {"kernel_panic", "Kernel panic", NEW_BOOT},
    {"kernel_oops", "Kernel bug", NEW_BOOT},
    {"nccl", "NCCL", "after an hour of quiet"},
    {"peermem", "Peer memory", "after an hour of quiet"},
    {"clock", "Clock", STATE},
    {"service", "Node services", STATE},
    {"slurm_node_state", "Slurm's state of the node", STATE},
    {"agent.dropped", "Events dropped by the agent", "after an hour of quiet"},
    {"agent.settings", "Settings that the agent cannot use", "after an hour of quiet"},
    {"agent.kmsg_lost", "Kernel lines lost", "after an hour of quiet"},
    {"agent.kmsg_overflow", "Kernel lines beyond the agent's budget", "after an hour of quiet"},
};
const size_t check_row_count = sizeof(check_rows) / sizeof(check_rows[0]);

const struct check_row *check_find(struct str id)
{
    for (size_t i = 0; i < check_row_count; i++) {
        if (str_eq_c(id, check_rows[i].id)) {
            return &check_rows[i];
        }
    }
    return NULL;
}
