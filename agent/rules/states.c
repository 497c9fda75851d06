/* What turns findings of a look at the node into told faults, as a table. */
#include "agent/rules/states.h"

#include <string.h>

#define HOUR 3600

/*
 * Where the numbers come from: a Slurm node shows NOT_RESPONDING after each resume until the next
 * ping, so three looks a minute apart; a clock is given a quarter of an hour to be set; a service
 * three looks, because systemd itself starts it again; links and PCIe as in NVSentinel and gpud; a
 * process in state D five minutes, as gpud and Meta's gcm.
 */
/* clang-format off */
const struct state_row state_rows[] = {
    /* source, check, code, kind, raise, clear, window, grace, instead of NVML */
    {"slurm", "slurm_node_state", NULL, STATE_READING, 3, 2, 60, GRACE_BOOT, false},
    {"slurm", "telemetry", "no_answer", STATE_READING, 3, 1, 60, GRACE_NONE, false},
    {"chrony", "clock", NULL, STATE_READING, 15, 2, 60, GRACE_BOOT, false},
    {"chrony", "telemetry", "no_answer", STATE_READING, 3, 1, 60, GRACE_NONE, false},
    {"smart", "disk_nvme", "no_answer", STATE_READING, 2, 1, 600, GRACE_NONE, false},
    {"smart", "disk_nvme", NULL, STATE_READING, 1, 1, 600, GRACE_NONE, false},
    {"smart", "disk_ata", "no_answer", STATE_READING, 2, 1, 600, GRACE_NONE, false},
    {"smart", "disk_ata", NULL, STATE_READING, 1, 1, 600, GRACE_NONE, false},
    {"services", "service", "nvidia", STATE_READING, 3, 2, 30, GRACE_DRIVER, false},
    {"services", "service", NULL, STATE_READING, 3, 2, 30, GRACE_BOOT, false},
    {"services", "telemetry", "no_answer", STATE_READING, 3, 1, 30, GRACE_NONE, false},
    {"fabric_manager", "nvswitch_sxid", NULL, STATE_EVENT, 1, 0, 10, GRACE_NONE, false},
    {"fabric_manager", "fabric_manager", NULL, STATE_EVENT, 1, 0, 10, GRACE_NONE, false},
    {"dcgm", "gpu_row_remap", NULL, STATE_READING, 2, 2, 30, GRACE_DRIVER, true},
    {"dcgm", "gpu_ecc", "dbe", STATE_READING, 2, 2, 30, GRACE_DRIVER, true},
    {"dcgm", "gpu_recovery_action", NULL, STATE_READING, 2, 2, 30, GRACE_DRIVER, true},
    {"dcgm", "telemetry", NULL, STATE_READING, 3, 2, 30, GRACE_DRIVER, false},
    {"dcgm", "gpu_", NULL, STATE_EVENT, 1, 0, 30, GRACE_NONE, false},
    {"pcie", "pcie_aer", "correctable_rate", STATE_READING, 1, 6, 600, GRACE_BOOT, false},
    {"pcie", "pcie_aer", NULL, STATE_EVENT, 1, 0, 60, GRACE_BOOT, false},
    {"pcie", "pcie_link", NULL, STATE_READING, 3, 2, 60, GRACE_BOOT, false},
    {"edac", "memory_ecc", NULL, STATE_EVENT, 1, 0, 60, GRACE_NONE, false},
    {"processes", "process_zombies", NULL, STATE_READING, 5, 2, 60, GRACE_NONE, false},
    {"processes", "process_blocked", NULL, STATE_READING, 1, 2, 60, GRACE_NONE, false},
    {"processes", "fd_exhaustion", NULL, STATE_READING, 2, 2, 60, GRACE_NONE, false},
    {"processes", "pid_exhaustion", NULL, STATE_READING, 2, 2, 60, GRACE_NONE, false},
    {"mounts", "fs_readonly", NULL, STATE_READING, 2, 1, 30, GRACE_NONE, false},
    {"mounts", "mount_hung", NULL, STATE_READING, 3, 2, 30, GRACE_NONE, false},
    {"links", "ib_link", "flap", STATE_READING, 1, 20, HOUR, GRACE_BOOT, false},
    {"links", "ib_link", "symbol", STATE_READING, 1, 20, HOUR, GRACE_BOOT, false},
    {"links", "ib_link", "recovery", STATE_READING, 2, 20, 60, GRACE_BOOT, false},
    {"links", "ib_link", "integrity", STATE_READING, 1, 20, HOUR, GRACE_BOOT, false},
    {"links", "ib_link", "overrun", STATE_READING, 1, 20, HOUR, GRACE_BOOT, false},
    {"links", "eth_link", "flap", STATE_READING, 1, 20, HOUR, GRACE_BOOT, false},
    {"links", "eth_link", "crc", STATE_READING, 1, 20, HOUR, GRACE_BOOT, false},
    {"expected", "gpu_count", NULL, STATE_READING, 3, 2, 30, GRACE_DRIVER, false},
    {"expected", "nic_count", NULL, STATE_READING, 3, 2, 30, GRACE_BOOT, false},
    {"expected", "ib_link", "rate", STATE_READING, 3, 2, 30, GRACE_BOOT, false},
    {"expected", "ib_link", "expected", STATE_READING, 8, 20, 30, GRACE_BOOT, false},
    {"expected", "eth_link", "expected", STATE_READING, 8, 20, 30, GRACE_BOOT, false},
};
/* clang-format on */
const size_t state_row_count = sizeof(state_rows) / sizeof(state_rows[0]);

const char *finding_fold(const struct finding *finding)
{
    return finding->fold_code[0] != '\0' ? finding->fold_code : finding->code;
}

const struct state_row *state_row_find(const char *source, const char *check, const char *code)
{
    for (size_t i = 0; i < state_row_count; i++) {
        const struct state_row *row = &state_rows[i];
        bool family = row->check[strlen(row->check) - 1] == '_';
        bool same = family ? strncmp(row->check, check, strlen(row->check)) == 0
                           : strcmp(row->check, check) == 0;

        if (same && strcmp(row->source, source) == 0 &&
            (row->code == NULL || strncmp(row->code, code, strlen(row->code)) == 0)) {
            return row;
        }
    }
    return NULL;
}
