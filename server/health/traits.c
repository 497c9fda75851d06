/* What checks have to do with each other: one row for each that does not stand alone. */
#include "server/health/traits.h"

#include <pthread.h>
#include <string.h>

#include "base/buf.h"

/* clang-format off */
const struct catalog_trait catalog_traits[] = {
    {"gpu_lost", "gpu", CATALOG_CAUSE, 0},
    {"gpu_count", "gpu", CATALOG_NODE, CATALOG_GRACE},
    {"gpu_unresponsive", "gpu", CATALOG_ECHO, 0},
    {"gpu_xid", "gpu", CATALOG_CAUSE, CATALOG_COUNTS},
    {"gpu_recovery_action", "gpu", CATALOG_ECHO, 0},
    {"gpu_gsp", "gpu", CATALOG_CAUSE, CATALOG_COUNTS},
    {"gpu_init", "gpu", CATALOG_CAUSE, 0},
    {"gpu_ecc", "gpu", CATALOG_CAUSE, 0},
    {"gpu_row_remap", "gpu", CATALOG_ECHO, 0},
    {"gpu_page_retirement", "gpu", CATALOG_ECHO, 0},
    {"gpu_nvlink", "gpu", CATALOG_NODE, CATALOG_COUNTS},
    {"gpu_nvlink5", "gpu", CATALOG_CAUSE, CATALOG_COUNTS},
    {"nvswitch_sxid", "gpu", CATALOG_CAUSE, CATALOG_SETTLES},
    {"fabric_manager", "gpu", CATALOG_NODE, CATALOG_SETTLES | CATALOG_GRACE},
    {"gpu_pcie", "gpu", CATALOG_ECHO, 0},
    {"gpu_thermal", "cooling", CATALOG_CAUSE, CATALOG_SHARED | CATALOG_COUNTS},
    {"gpu_power_brake", "power", CATALOG_CAUSE, CATALOG_SETTLES | CATALOG_SHARED | CATALOG_COUNTS},
    {"gpu_clocks", "power", CATALOG_ECHO, CATALOG_COUNTS},
    {"gpu_sensor", "gpu", CATALOG_ECHO, CATALOG_COUNTS},
    {"driver_mismatch", "gpu", CATALOG_CAUSE, CATALOG_GRACE},
    {"driver_not_loaded", "gpu", CATALOG_NODE, CATALOG_GRACE},
    {"telemetry", "*", CATALOG_NODE, 0},
    {"nccl", NULL, CATALOG_CAUSE, CATALOG_COUNTS},
    {"peermem", NULL, CATALOG_CAUSE, CATALOG_COUNTS},
    {"pcie_aer", "gpu", CATALOG_CAUSE, CATALOG_COUNTS},
    {"nic_mlx5", "network", CATALOG_CAUSE, CATALOG_NETWORK},
    {"nic_watchdog", "network", CATALOG_CAUSE, CATALOG_SHARED | CATALOG_NETWORK | CATALOG_COUNTS},
    {"ib_link", "network", CATALOG_NODE, CATALOG_SETTLES | CATALOG_SHARED | CATALOG_NETWORK | CATALOG_COUNTS},
    {"eth_link", "network", CATALOG_NODE, CATALOG_SETTLES | CATALOG_SHARED | CATALOG_NETWORK | CATALOG_COUNTS},
    {"disk_nvme", "disk", CATALOG_CAUSE, 0},
    {"disk_io", "disk", CATALOG_ECHO, CATALOG_COUNTS},
    {"fs_readonly", "disk", CATALOG_NODE, CATALOG_SETTLES},
    {"fs_error", "disk", CATALOG_NODE, CATALOG_SETTLES | CATALOG_COUNTS},
    {"nfs", "files", CATALOG_CAUSE, CATALOG_SETTLES | CATALOG_SHARED | CATALOG_COUNTS},
    {"memory_ecc", NULL, CATALOG_CAUSE, CATALOG_COUNTS},
    {"oom", NULL, CATALOG_CAUSE, CATALOG_COUNTS},
    {"kernel_hung_task", "*", CATALOG_NODE, 0},
    {"kernel_soft_lockup", "kernel", CATALOG_CAUSE, CATALOG_COUNTS},
    {"kernel_panic", "kernel", CATALOG_CAUSE, 0},
    {"kernel_oops", "kernel", CATALOG_CAUSE, 0},
    {"clock", NULL, CATALOG_CAUSE, CATALOG_SHARED},
    {"service", "*", CATALOG_NODE, CATALOG_GRACE},
    {"slurm_node_state", "*", CATALOG_NODE, CATALOG_SETTLES | CATALOG_GRACE},
    {"agent.dropped", NULL, CATALOG_CAUSE, CATALOG_FIXED},
    {"agent.kmsg_lost", NULL, CATALOG_CAUSE, CATALOG_COUNTS},
    {"agent.kmsg_overflow", NULL, CATALOG_CAUSE, CATALOG_COUNTS},
    {"node_key", NULL, CATALOG_CAUSE, CATALOG_FIXED},
    {"common_cause", NULL, CATALOG_CAUSE, CATALOG_FIXED},
    {"reported", NULL, CATALOG_CAUSE, CATALOG_FIXED},
    {"nic_count", "network", CATALOG_NODE, CATALOG_GRACE},
    {"disk_ata", "disk", CATALOG_CAUSE, 0},
    {"mount_hung", "files", CATALOG_NODE, CATALOG_SETTLES | CATALOG_SHARED},
    {"process_blocked", "*", CATALOG_NODE, 0},
};
/* clang-format on */
const size_t catalog_trait_count = sizeof(catalog_traits) / sizeof(catalog_traits[0]);

const struct catalog_trait *catalog_trait_find(const char *check_id)
{
    static const struct catalog_trait alone = {.check_id = "", .reach = CATALOG_CAUSE};

    for (size_t i = 0; i < catalog_trait_count; i++) {
        if (strcmp(check_id, catalog_traits[i].check_id) == 0) {
            return &catalog_traits[i];
        }
    }
    return &alone;
}

/* clang-format off */
const struct catalog_looks catalog_looks[] = {
    {"gpu_count", 3, 2, 30},
    {"telemetry", 3, 1, 60},
    {"pcie_aer", 1, 6, 600},
    {"pcie_link", 3, 2, 60},
    {"nic_count", 3, 2, 30},
    {"ib_link", 1, 20, 3600},
    {"eth_link", 1, 20, 3600},
    {"disk_nvme", 1, 1, 600},
    {"disk_ata", 1, 1, 600},
    {"fs_readonly", 2, 1, 30},
    {"mount_hung", 3, 2, 30},
    {"fd_exhaustion", 2, 2, 60},
    {"pid_exhaustion", 2, 2, 60},
    {"process_zombies", 5, 2, 60},
    {"process_blocked", 1, 2, 60},
    {"clock", 15, 2, 60},
    {"service", 3, 2, 30},
    {"slurm_node_state", 3, 2, 60},
};
/* clang-format on */
const size_t catalog_looks_count = sizeof(catalog_looks) / sizeof(catalog_looks[0]);

const struct catalog_looks *catalog_looks_find(const char *check_id)
{
    for (size_t i = 0; i < catalog_looks_count; i++) {
        if (strcmp(check_id, catalog_looks[i].check_id) == 0) {
            return &catalog_looks[i];
        }
    }
    return NULL;
}

bool catalog_counts(const struct catalog_check *check)
{
    unsigned flags = catalog_trait_find(check->check_id)->flags;

    return (flags & CATALOG_FIXED) == 0 &&
           ((flags & CATALOG_COUNTS) != 0 || strcmp(check->clears, "quiet") == 0);
}

/* ------------------------------------------------------------------ as arrays of statements */

enum part { PART_CHECK, PART_FAMILY, PART_REACH };

static bool is_settable(const struct catalog_check *check)
{
    return (catalog_trait_find(check->check_id)->flags & CATALOG_FIXED) == 0;
}

/* What ends by quiet counts its events anyhow. */
static bool counts(const struct catalog_check *check)
{
    return catalog_counts(check);
}

static bool looks(const struct catalog_check *check)
{
    return catalog_looks_find(check->check_id) != NULL;
}

static bool acts(const struct catalog_check *check)
{
    return is_settable(check) && !str_eq_c(str_of(check->action), "none");
}

/* The rows that belong to it, as one text. */
static const char *make_list(bool (*belongs)(const struct catalog_check *check))
{
    struct buf text = {0};

    for (size_t i = 0; i < catalog_count; i++) {
        if (belongs(&catalog_checks[i])) {
            buf_printf(&text, "%s%s", text.len == 0 ? "{" : ",", catalog_checks[i].check_id);
        }
    }
    buf_add_char(&text, '}');
    buf_add_char(&text, '\0');
    return text.ptr;
}

/* The traits with a flag, as one text; flag 0 = those with a family. */
static const char *make_array(unsigned flag, enum part part)
{
    struct buf text = {0};

    for (size_t i = 0; i < catalog_trait_count; i++) {
        const struct catalog_trait *trait = &catalog_traits[i];

        if (flag == 0 ? trait->family == NULL : (trait->flags & flag) == 0) {
            continue;
        }
        buf_add_char(&text, text.len == 0 ? '{' : ',');
        if (part == PART_CHECK) {
            buf_add_c(&text, trait->check_id);
        } else if (part == PART_FAMILY) {
            buf_printf(&text, "\"%s\"", trait->family);
        } else {
            buf_printf(&text, "%d", (int)trait->reach);
        }
    }
    buf_add_char(&text, '}');
    buf_add_char(&text, '\0');
    return text.ptr;
}

static struct catalog_arrays arrays;

static void make_arrays(void)
{
    arrays = (struct catalog_arrays){
        .checks = make_array(0, PART_CHECK),
        .families = make_array(0, PART_FAMILY),
        .reaches = make_array(0, PART_REACH),
        .settling = make_array(CATALOG_SETTLES, PART_CHECK),
        .shared = make_array(CATALOG_SHARED, PART_CHECK),
        .network = make_array(CATALOG_NETWORK, PART_CHECK),
        .grace = make_array(CATALOG_GRACE, PART_CHECK),
        .settable = make_list(is_settable),
        .acting = make_list(acts),
        .counting = make_list(counts),
        .looking = make_list(looks),
    };
}

const struct catalog_arrays *catalog_arrays(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, make_arrays);
    return &arrays;
}
