/* Log lines that mean something, as a table. */
#include "agent/rules/patterns.h"

#define I SEVERITY_INFO
#define W SEVERITY_WARNING
#define C SEVERITY_CRITICAL
#define HOUR 3600
#define DAY 86400

/* Texts are those of the drivers' and the kernel's own sources; the first row that fits wins. */
/* clang-format off */
const struct pattern patterns[] = {
    /* NVIDIA's driver */
    {"NVRM: GPU %p: GPU has fallen off the bus*", NULL, "gpu_lost", NULL, C, ACTION_REBOOT, true, CLEARS_NEW_BOOT, 0, 1, DEVICE_GPU, REFINE_LOST, "GPU fell off the bus"},
    {"NVRM: The NVIDIA GPU %p*fallen off the bus*", NULL, "gpu_lost", NULL, C, ACTION_REBOOT, true, CLEARS_NEW_BOOT, 0, 1, DEVICE_GPU, REFINE_LOST, "GPU fell off the bus"},
    {"NVRM: GPU at PCI:%p: *", NULL, "gpu_lost", NULL, I, ACTION_NONE, false, CLEARS_QUIET, HOUR, 1, DEVICE_GPU, REFINE_CONTEXT, "identity of a GPU"},
    {"nvidia %p: Direct firmware load for nvidia/* failed*", NULL, "gpu_init", "RmInitAdapter", C, ACTION_REPROVISION, true, CLEARS_NEW_BOOT, 0, 1, DEVICE_GPU, REFINE_NONE, "GPU firmware file is missing"},
    {"NVRM: RmFetchGspRmImages: No firmware image found*", NULL, "gpu_init", "RmInitAdapter", C, ACTION_REPROVISION, true, CLEARS_NEW_BOOT, 0, 0, DEVICE_NONE, REFINE_JOIN, "GPU firmware file is missing"},
    {"NVRM: GPU %p: RmInitAdapter failed*", NULL, "gpu_init", "RmInitAdapter", C, ACTION_REBOOT, true, CLEARS_NEW_BOOT, 0, 1, DEVICE_GPU, REFINE_INIT, "GPU could not be initialised"},
    {"NVRM: GPU %p: rm_init_adapter failed*", NULL, "gpu_init", "RmInitAdapter", C, ACTION_REBOOT, true, CLEARS_NEW_BOOT, 0, 1, DEVICE_GPU, REFINE_JOIN, "GPU could not be initialised"},
    {"NVRM: API mismatch: *", NULL, "driver_mismatch", NULL, C, ACTION_REBOOT, true, CLEARS_EVENT, 0, 0, DEVICE_NONE, REFINE_MISMATCH, "NVIDIA libraries and kernel module have different versions"},
    {"NVRM: knvlink*PostRxDet*failed*", NULL, "gpu_nvlink", "post_rx_detect", C, ACTION_REBOOT, true, CLEARS_NEW_BOOT, 0, 0, DEVICE_NONE, REFINE_NONE, "NVLink detection failed when the driver was loaded"},
    {"NVRM: *GSP_RM_*", NULL, "gpu_gsp", NULL, I, ACTION_NONE, false, CLEARS_QUIET, HOUR, 0, DEVICE_NONE, REFINE_JOIN, "GSP call history"},
    {"nvidia-peermem *ERROR detected invalid context*", NULL, "peermem", NULL, I, ACTION_NONE, false, CLEARS_QUIET, HOUR, 0, DEVICE_NONE, REFINE_NONE, "peer memory was used after its process ended"},
    {"*]: segfault at * in libnccl*", NULL, "nccl", "segfault", I, ACTION_NONE, false, CLEARS_QUIET, HOUR, 0, DEVICE_NONE, REFINE_NONE, "an application crashed inside NCCL"},

    /* PCI Express */
    {"pcieport %p: AER: *Uncorrect*(Fatal) error*", NULL, "pcie_aer", "fatal", C, ACTION_REBOOT, true, CLEARS_NEW_BOOT, 0, 1, DEVICE_PCI, REFINE_AER, "fatal PCIe error on a port"},
    {"pcieport %p: PCIe Bus Error: severity=Uncorrect*(Fatal)*", NULL, "pcie_aer", "fatal", C, ACTION_REBOOT, true, CLEARS_NEW_BOOT, 0, 1, DEVICE_PCI, REFINE_AER, "fatal PCIe error on a port"},
    {"pcieport %p: *Surprise Down Error*", NULL, "pcie_aer", "fatal", C, ACTION_REBOOT, true, CLEARS_NEW_BOOT, 0, 1, DEVICE_PCI, REFINE_AER, "a device vanished from a PCIe port"},
    {"pcieport %p: AER: *Uncorrect*(Non-Fatal) error*", NULL, "pcie_aer", "nonfatal", W, ACTION_NONE, false, CLEARS_QUIET, HOUR, 1, DEVICE_PCI, REFINE_NONE, "uncorrected PCIe error on a port"},
    {"pcieport %p: PCIe Bus Error: severity=Uncorrect*(Non-Fatal)*", NULL, "pcie_aer", "nonfatal", W, ACTION_NONE, false, CLEARS_QUIET, HOUR, 1, DEVICE_PCI, REFINE_JOIN, "uncorrected PCIe error on a port"},
    {"pcieport %p: AER: *Correct*error*", NULL, "pcie_aer", "correctable", I, ACTION_NONE, false, CLEARS_QUIET, HOUR, 1, DEVICE_PCI, REFINE_NONE, "corrected PCIe errors on a port"},
    {"pcieport %p: PCIe Bus Error: severity=Correct*", NULL, "pcie_aer", "correctable", I, ACTION_NONE, false, CLEARS_QUIET, HOUR, 1, DEVICE_PCI, REFINE_JOIN, "corrected PCIe errors on a port"},

    /* Network adapters */
    {"mlx5_core %p: *device's health compromised*", NULL, "nic_mlx5", "health", C, ACTION_REBOOT, true, CLEARS_NEW_BOOT, 0, 1, DEVICE_PCI, REFINE_NONE, "network adapter's firmware stopped answering"},
    {"mlx5_core*synd %x: unrecoverable hardware error*", NULL, "nic_mlx5", "synd $1", C, ACTION_FAILOVER, true, CLEARS_PERSON, 0, 0, DEVICE_NONE, REFINE_NONE, "network adapter reports an unrecoverable hardware error"},
    {"mlx5_core %p: *mlx5_pcie_event*Detected insufficient power on the PCIe slot*", NULL, "nic_mlx5", "slot_power", W, ACTION_NONE, false, CLEARS_QUIET, DAY, 1, DEVICE_PCI, REFINE_NONE, "network adapter's slot gives too little power"},
    {"mlx5_*Port module event[error]: module %d, *High Temperature*", NULL, "nic_mlx5", "module_temp", W, ACTION_NONE, false, CLEARS_QUIET, HOUR, 0, DEVICE_NONE, REFINE_NONE, "an optical module is too hot"},
    {"mlx5_*ACCESS_REG(*failed*", NULL, "nic_mlx5", "access_reg", I, ACTION_NONE, false, CLEARS_QUIET, DAY, 0, DEVICE_NONE, REFINE_NONE, "a register of the network adapter may not be read"},
    {"mlx5_core %p: *timeout. Will cause a leak of a command resource*", NULL, "nic_mlx5", "cmd_timeout", W, ACTION_NONE, false, CLEARS_QUIET, HOUR, 1, DEVICE_PCI, REFINE_NONE, "network adapter's firmware command timed out"},
    {"mlx5_core %p %w: NETDEV WATCHDOG: *transmit queue*timed out*", NULL, "nic_mlx5", "netdev_watchdog", W, ACTION_NONE, false, CLEARS_QUIET, HOUR, 1, DEVICE_PCI, REFINE_NONE, "network adapter's transmit queue timed out"},
    {"NETDEV WATCHDOG: %w (mlx5_core): transmit queue*timed out*", NULL, "nic_mlx5", "netdev_watchdog", W, ACTION_NONE, false, CLEARS_QUIET, HOUR, 1, DEVICE_NAME, REFINE_NONE, "network adapter's transmit queue timed out"},
    {"NETDEV WATCHDOG: %w (%w): transmit queue*timed out*", NULL, "nic_watchdog", "netdev_watchdog", W, ACTION_NONE, false, CLEARS_QUIET, HOUR, 1, DEVICE_NAME, REFINE_NONE, "network adapter's transmit queue timed out"},

    /* Kernel */
    {"*BUG: soft lockup - CPU#%d stuck for %ds!*", NULL, "kernel_soft_lockup", NULL, W, ACTION_NONE, false, CLEARS_QUIET, HOUR, 0, DEVICE_NONE, REFINE_SOFT_LOCKUP, "a CPU was stuck in the kernel"},
    {"RIP: *mlx5e_*", NULL, "nic_mlx5", "napi_lockup", C, ACTION_REBOOT, true, CLEARS_NEW_BOOT, 0, 0, DEVICE_NONE, REFINE_NIC_LOCKUP, "a CPU is stuck in the network adapter's driver"},
    {"INFO: task *:%d blocked for more than %d seconds*", NULL, "kernel_hung_task", NULL, W, ACTION_NONE, false, CLEARS_QUIET, HOUR, 0, DEVICE_NONE, REFINE_HUNG_TASK, "a task is blocked in the kernel"},
    {"Kernel panic - not syncing*", NULL, "kernel_panic", NULL, C, ACTION_REBOOT, true, CLEARS_NEW_BOOT, 0, 0, DEVICE_NONE, REFINE_NONE, "the kernel panicked"},
    {"kernel BUG at *", NULL, "kernel_oops", "bug", C, ACTION_REBOOT, true, CLEARS_NEW_BOOT, 0, 0, DEVICE_NONE, REFINE_NONE, "the kernel met a bug in itself"},
    {"BUG: unable to handle *", NULL, "kernel_oops", "oops", C, ACTION_REBOOT, true, CLEARS_NEW_BOOT, 0, 0, DEVICE_NONE, REFINE_NONE, "the kernel met a bug in itself"},
    {"oom-kill:constraint=CONSTRAINT_NONE,*global_oom*", NULL, "oom", "global", W, ACTION_NONE, false, CLEARS_QUIET, HOUR, 0, DEVICE_NONE, REFINE_NONE, "the host ran out of memory"},
    {"oom-kill:constraint=*", NULL, "oom", "memcg", I, ACTION_NONE, false, CLEARS_QUIET, HOUR, 0, DEVICE_NONE, REFINE_NONE, "a job reached its own memory limit"},
    {"VFS: file-max limit %d reached*", NULL, "fd_exhaustion", NULL, C, ACTION_REBOOT, true, CLEARS_NEW_BOOT, 0, 0, DEVICE_NONE, REFINE_NONE, "no process can open files any more"},

    /* Memory */
    {"EDAC MC%d: %d CE *on %s*", NULL, "memory_ecc", "ce $2", I, ACTION_NONE, false, CLEARS_QUIET, DAY, 3, DEVICE_NAME, REFINE_EDAC, "corrected memory errors"},
    {"EDAC MC%d: %d UE *on %s*", NULL, "memory_ecc", "ue $2", C, ACTION_REBOOT, true, CLEARS_NEW_BOOT, 0, 3, DEVICE_NAME, REFINE_EDAC, "uncorrected memory errors"},
    {"mce: [Hardware Error]: CPU %d: Machine Check: %d Bank %d: %x*", NULL, "memory_ecc", "mce", I, ACTION_NONE, false, CLEARS_QUIET, DAY, 0, DEVICE_NONE, REFINE_MCE, "machine check"},
    {"mce: [Hardware Error]: Machine check events logged*", NULL, "memory_ecc", "mce", I, ACTION_NONE, false, CLEARS_QUIET, DAY, 0, DEVICE_NONE, REFINE_MCE, "machine check"},
    {"*[Hardware Error]: event severity: fatal*", NULL, "memory_ecc", "cper_fatal", C, ACTION_REBOOT, true, CLEARS_NEW_BOOT, 0, 0, DEVICE_NONE, REFINE_NONE, "the firmware reports a fatal hardware error"},
    {"*[Hardware Error]: event severity: recoverable*", NULL, "memory_ecc", "cper_recoverable", W, ACTION_NONE, false, CLEARS_QUIET, DAY, 0, DEVICE_NONE, REFINE_NONE, "the firmware reports a recoverable hardware error"},
    {"*[Hardware Error]: event severity: corrected*", NULL, "memory_ecc", "cper_corrected", I, ACTION_NONE, false, CLEARS_QUIET, DAY, 0, DEVICE_NONE, REFINE_NONE, "the firmware reports a corrected hardware error"},

    /* Disks and file systems */
    {"nvme %w: Disabling device after reset failure*", NULL, "disk_nvme", "disabled", C, ACTION_FAILOVER, true, CLEARS_NEW_BOOT, 0, 1, DEVICE_NAME, REFINE_NONE, "NVMe disk was disabled after a failed reset"},
    {"nvme %w: Removing after probe failure*", NULL, "disk_nvme", "disabled", C, ACTION_FAILOVER, true, CLEARS_NEW_BOOT, 0, 1, DEVICE_NAME, REFINE_NONE, "NVMe disk was removed after a failed probe"},
    {"block %w: no available path - failing I/O*", NULL, "disk_nvme", "no_path", C, ACTION_FAILOVER, true, CLEARS_NEW_BOOT, 0, 1, DEVICE_NAME, REFINE_NONE, "NVMe disk has no path left"},
    {"nvme %w: I/O *timeout, reset controller*", NULL, "disk_nvme", "timeout", W, ACTION_NONE, false, CLEARS_QUIET, HOUR, 1, DEVICE_NAME, REFINE_NONE, "NVMe disk timed out and is being reset"},
    {"nvme %w: controller is down; will reset*", NULL, "disk_nvme", "timeout", W, ACTION_NONE, false, CLEARS_QUIET, HOUR, 1, DEVICE_NAME, REFINE_NONE, "NVMe disk went down and is being reset"},
    {"Buffer I/O error on dev %w, *", NULL, "disk_io", "buffer_io", W, ACTION_NONE, false, CLEARS_QUIET, HOUR, 1, DEVICE_NAME, REFINE_BUFFER_IO, "reads or writes fail on a block device"},
    {"EXT4-fs (%w): Remounting filesystem read-only*", NULL, "fs_readonly", NULL, C, ACTION_REBOOT, true, CLEARS_NEW_BOOT, 0, 1, DEVICE_NAME, REFINE_NONE, "file system became read-only"},
    {"EXT4-fs error (device %w)*", NULL, "fs_error", "ext4", W, ACTION_NONE, false, CLEARS_QUIET, DAY, 1, DEVICE_NAME, REFINE_NONE, "file system is damaged"},
    {"XFS (%w): *Shutting down filesystem*", NULL, "fs_readonly", "xfs_shutdown", C, ACTION_REBOOT, true, CLEARS_NEW_BOOT, 0, 1, DEVICE_NAME, REFINE_NONE, "file system was shut down"},
    {"BTRFS*(device %w): forced readonly*", NULL, "fs_readonly", NULL, C, ACTION_REBOOT, true, CLEARS_NEW_BOOT, 0, 1, DEVICE_NAME, REFINE_NONE, "file system became read-only"},
    {"nfs: server %s not responding*", NULL, "nfs", "not_responding", W, ACTION_NONE, false, CLEARS_EVENT, 0, 1, DEVICE_NAME, REFINE_NONE, "NFS server does not answer"},
    {"nfs: server %s OK", NULL, "nfs", "recovered", I, ACTION_NONE, false, CLEARS_EVENT, 0, 1, DEVICE_NAME, REFINE_CLEAR, "NFS server answers again"},

    /* Services, by the name they log under */
    {"*[NV_WARN_NOTHING_TO_DO]*", "nv-fabricmanager", "fabric_manager", "nothing_to_do", W, ACTION_NONE, false, CLEARS_QUIET, HOUR, 0, DEVICE_NONE, REFINE_NO_SWITCH, "fabric manager found no NVSwitch"},
    {"nvidia-fabricmanager.service: Control process exited*", "systemd", "fabric_manager", "unit_failed", W, ACTION_NONE, false, CLEARS_QUIET, HOUR, 0, DEVICE_NONE, REFINE_JOIN, "fabric manager did not start"},
    {"(?i)%w: lost carrier", "systemd-networkd", "ib_link", "flap", I, ACTION_NONE, false, CLEARS_QUIET, DAY, 1, DEVICE_NAME, REFINE_FLAP, "network link lost its carrier"},
};
/* clang-format on */
const size_t pattern_count = sizeof(patterns) / sizeof(patterns[0]);
