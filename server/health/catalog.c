/* The checks that Muster knows, one row each. */
#include "server/health/catalog.h"

#define BOOT "Clears when the node has booted again and the fault did not return."
#define READ "Clears when the agent reads that the condition is gone."
#define HOUR "Clears after an hour without a new event."
#define DAY "Clears after a day without a new event."
#define HAND "Clears when a person closes it."
#define RESET \
    "Clears when the reset or reboot that it asks for is done and the fault did not return."

/* clang-format off */
const struct catalog_check catalog_checks[] = {
    /* GPUs */
    {"gpu_lost", "GPU off the bus", "kmsg", "passive", "critical", "reboot", true, "new_boot", 0, BOOT},
    {"gpu_count", "Number of GPUs", "gpu", "passive", "critical", "reboot", true, "event", 0, READ},
    {"gpu_unresponsive", "GPU driver answers", "gpu", "passive", "critical", "reboot", true, "event", 0, READ},
    {"gpu_xid", "Xid of a GPU", "kmsg", "passive", "critical", "reset_gpu", true, "event", 0, RESET},
    {"gpu_recovery_action", "Recovery that the driver asks for", "kmsg", "passive", "critical", "reboot", true, "event", 0, READ},
    {"gpu_gsp", "GPU system processor", "kmsg", "passive", "critical", "reset_gpu", true, "event", 0, RESET},
    {"gpu_init", "GPU initialisation", "kmsg", "passive", "critical", "reprovision", true, "new_boot", 0, BOOT},
    {"gpu_ecc", "GPU memory errors", "kmsg", "passive", "critical", "reset_gpu", true, "event", 0, RESET},
    {"gpu_row_remap", "GPU memory row remapping", "gpu", "passive", "critical", "remove", true, "event", 0, READ},
    {"gpu_page_retirement", "GPU memory page retirement", "gpu", "passive", "critical", "remove", true, "person", 0, HAND},
    {"gpu_nvlink", "NVLink", "kmsg", "passive", "critical", "reboot", true, "event", 0, RESET},
    {"gpu_nvlink5", "NVLink 5", "kmsg", "passive", "critical", "reset_gpu", true, "event", 0, RESET},
    {"nvswitch_sxid", "SXid of an NVSwitch", "kmsg", "passive", "critical", "reboot", true, "new_boot", 0, BOOT},
    {"fabric_manager", "Fabric manager", "fabric_manager", "passive", "critical", "remove", true, "person", 0, HAND},
    {"gpu_pcie", "PCIe link of a GPU", "gpu", "passive", "critical", "reboot", true, "event", 0, READ},
    {"gpu_thermal", "GPU thermal slowdown", "gpu", "passive", "critical", "failover", true, "event", 0, READ},
    {"gpu_power_brake", "GPU power brake", "gpu", "passive", "critical", "failover", true, "event", 0, READ},
    {"gpu_clocks", "GPU clocks", "gpu", "passive", "info", "none", false, "event", 0, READ},
    {"gpu_sensor", "GPU readings", "gpu", "passive", "info", "none", false, "event", 0, READ},
    {"driver_mismatch", "NVIDIA driver versions agree", "kmsg", "passive", "critical", "reboot", true, "event", 0, READ},
    {"driver_not_loaded", "NVIDIA driver is loaded", "gpu", "passive", "critical", "reboot", true, "event", 0, READ},
    {"telemetry", "Readings of other tools", "gpu", "passive", "info", "none", false, "event", 0, READ},
    {"nccl", "NCCL", "kmsg", "passive", "info", "none", false, "quiet", 3600, HOUR},
    {"peermem", "Peer memory", "kmsg", "passive", "info", "none", false, "quiet", 3600, HOUR},
    /* buses and networks */
    {"pcie_aer", "PCIe errors", "kmsg", "passive", "critical", "reboot", true, "new_boot", 0, BOOT},
    {"pcie_link", "PCIe link", "pcie", "passive", "warning", "none", false, "event", 0, READ},
    {"nic_count", "Network ports", "expected", "passive", "critical", "failover", true, "event", 0, READ},
    {"nic_mlx5", "NVIDIA network adapter", "kmsg", "passive", "critical", "reboot", true, "new_boot", 0, BOOT},
    {"nic_watchdog", "Network adapter", "kmsg", "passive", "warning", "none", false, "quiet", 3600, HOUR},
    {"ib_link", "InfiniBand link", "fabric", "passive", "critical", "failover", true, "event", 0, READ},
    {"eth_link", "Ethernet link", "links", "passive", "warning", "none", false, "quiet", 86400, DAY},
    /* disks and file systems */
    {"disk_nvme", "NVMe disk", "kmsg", "passive", "critical", "failover", true, "person", 0, HAND},
    {"disk_ata", "ATA disk", "smart", "passive", "critical", "remove", true, "event", 0, READ},
    {"disk_io", "Block device", "kmsg", "passive", "warning", "none", false, "quiet", 3600, HOUR},
    {"disk_full", "Space on a file system", "disk", "passive", "critical", "none", false, "event", 0, READ},
    {"fs_readonly", "Read-only file system", "kmsg", "passive", "critical", "reboot", true, "new_boot", 0, BOOT},
    {"fs_error", "Damaged file system", "kmsg", "passive", "warning", "none", false, "quiet", 86400, DAY},
    {"mount_hung", "Mount answers", "mounts", "passive", "warning", "none", false, "event", 0, READ},
    {"nfs", "NFS server", "kmsg", "passive", "warning", "none", false, "event", 0, READ},
    /* the host */
    {"memory_ecc", "Host memory errors", "kmsg", "passive", "warning", "none", false, "quiet", 86400, DAY},
    {"oom", "Out of memory", "kmsg", "passive", "warning", "none", false, "quiet", 3600, HOUR},
    {"fd_exhaustion", "File descriptors", "kmsg", "passive", "critical", "reboot", true, "new_boot", 0, BOOT},
    {"pid_exhaustion", "Process numbers", "processes", "passive", "critical", "reboot", true, "event", 0, READ},
    {"process_zombies", "Zombie processes", "processes", "passive", "warning", "none", false, "event", 0, READ},
    {"process_blocked", "Processes that hang", "processes", "passive", "warning", "none", false, "event", 0, READ},
    {"kernel_hung_task", "Blocked task", "kmsg", "passive", "critical", "reboot", true, "new_boot", 0, BOOT},
    {"kernel_soft_lockup", "Stuck CPU", "kmsg", "passive", "critical", "reboot", true, "new_boot", 0, BOOT},
    {"kernel_panic", "Kernel panic", "kmsg", "passive", "critical", "reboot", true, "new_boot", 0, BOOT},
    {"kernel_oops", "Kernel bug", "kmsg", "passive", "critical", "reboot", true, "new_boot", 0, BOOT},
    {"clock", "Clock", "chrony", "passive", "warning", "none", false, "event", 0, READ},
    {"service", "Node services", "services", "passive", "warning", "none", false, "event", 0, READ},
    {"slurm_node_state", "Slurm's state of the node", "slurm", "passive", "critical", "reprovision", true, "event", 0, READ},
    /* Muster itself */
    {"agent.dropped", "Events dropped by the agent", "agent", "passive", "warning", "none", false, "quiet", 3600, HOUR},
    {"agent.settings", "Settings that the agent cannot use", "agent", "passive", "info", "none", false, "quiet", 3600, HOUR},
    {"agent.kmsg_lost", "Kernel lines lost", "agent", "passive", "warning", "none", false, "quiet", 3600, HOUR},
    {"agent.kmsg_overflow", "Kernel lines beyond the agent's budget", "agent", "passive", "warning", "none", false, "quiet", 3600, HOUR},
    {"node_key", "Key of a node", "server", "passive", "critical", "none", false, "person", 0, HAND},
    {"common_cause", "Cause that many nodes share", "server", "passive", "critical", "none", false, "event", 0,
     "Clears when no incident or silent node of it is left."},
    {"reported", "Reported by a person", "person", "passive", "critical", "none", true, "person", 0, HAND},
};
/* clang-format on */
const size_t catalog_count = sizeof(catalog_checks) / sizeof(catalog_checks[0]);

const struct catalog_check *catalog_find(struct str check_id)
{
    for (size_t i = 0; i < catalog_count; i++) {
        if (str_eq_c(check_id, catalog_checks[i].check_id)) {
            return &catalog_checks[i];
        }
    }
    return NULL;
}
