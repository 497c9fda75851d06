/* The tables of fields of an org's own checks: the order of rows is the order of a statement's
 * parameters. */
#include "server/fields_custom.h"

#include <stddef.h>

static const char *const kinds[] = {"command", "metric", NULL};
static const char *const modes[] = {"live", "shadow", "off", NULL};
static const char *const severities[] = {"info", "warning", "critical", NULL};
static const char *const actions[] = {"none",        "reset_gpu", "reboot", "power_cycle",
                                      "reprovision", "failover",  "remove", NULL};
static const char *const comparisons[] = {"above", "below", NULL};
/* As agent/custom/metric.c evaluates them. */
static const char *const metrics[] = {
    "cpu_ratio",      "mem_ratio", "disk_ratio",    "net_rx_mbps", "net_tx_mbps", "fabric_rx_mbps",
    "fabric_tx_mbps", "gpu_util",  "gpu_mem_ratio", "gpu_temp_c",  "gpu_power_w", NULL};

#define REQUIRED FIELD_REQUIRED
#define ROW(type, s, member, flags, min, max, names)                                             \
    {                                                                                            \
#member, type, offsetof(struct s, member), offsetof(struct s, has_##member), flags, min, \
            max, names                                                                           \
    }
#define PLAIN(type, s, member, min, max, names)                                       \
    {                                                                                 \
#member, type, offsetof(struct s, member), 0, FIELD_REQUIRED, min, max, names \
    }
#define NULLABLE_ROW(type, s, member, min, max, names)                               \
    {                                                                                \
#member, type, offsetof(struct s, member), offsetof(struct s, has_##member), \
            FIELD_NULLABLE, min, max, names, offsetof(struct s, null_##member)       \
    }
#define END                                  \
    {                                        \
        NULL, FIELD_STR, 0, 0, 0, 0, 0, NULL \
    }

/* A month of trial at most. */
#define SHADOW_MAX 2592000

/* clang-format off */
#define RULE(required)                                                                             \
    ROW(FIELD_ENUM, custom_check_in, severity, required, 0, 0, severities),                        \
    ROW(FIELD_ENUM, custom_check_in, action, 0, 0, 0, actions),                                    \
    ROW(FIELD_ENUM, custom_check_in, mode, 0, 0, 0, modes),                                        \
    ROW(FIELD_JSON, custom_check_in, definition, required | FIELD_OBJECT, 0, 12288, NULL),         \
    ROW(FIELD_I64, custom_check_in, shadow_seconds, 0, 0, SHADOW_MAX, NULL),                       \
    ROW(FIELD_STR, custom_check_in, reason, FIELD_LINES, 0, 1023, NULL)

const struct field custom_check_body[] = {
    ROW(FIELD_NAME, custom_check_in, name, REQUIRED, 1, 40, NULL),
    ROW(FIELD_STR, custom_check_in, title, 0, 0, 255, NULL),
    ROW(FIELD_ENUM, custom_check_in, kind, REQUIRED, 0, 0, kinds),
    ROW(FIELD_UUID, custom_check_in, cluster_id, FIELD_NULLABLE, 0, 0, NULL),
    ROW(FIELD_STR, custom_check_in, gpu_type, 0, 0, 255, NULL),
    RULE(REQUIRED),
    END,
};

const struct field custom_check_update_body[] = {
    ROW(FIELD_STR, custom_check_in, title, 0, 0, 255, NULL),
    RULE(0),
    END,
};

const struct field custom_check_try_body[] = {
    ROW(FIELD_UUID, custom_check_in, cluster_id, FIELD_NULLABLE, 0, 0, NULL),
    ROW(FIELD_STR, custom_check_in, gpu_type, 0, 0, 255, NULL),
    ROW(FIELD_JSON, custom_check_in, definition, REQUIRED | FIELD_OBJECT, 0, 12288, NULL),
    END,
};

const struct field metric_definition_fields[] = {
    PLAIN(FIELD_ENUM, metric_definition, metric, 0, 0, metrics),
    PLAIN(FIELD_ENUM, metric_definition, comparison, 0, 0, comparisons),
    PLAIN(FIELD_DOUBLE, metric_definition, threshold, -1000000, 1000000000, NULL),
    ROW(FIELD_DOUBLE, metric_definition, clear_threshold, 0, -1000000, 1000000000, NULL),
    ROW(FIELD_I64, metric_definition, for_seconds, 0, 0, 86400, NULL),
    END,
};

const struct field command_definition_fields[] = {
    ROW(FIELD_STR_LIST, command_definition, argv, FIELD_LINES, 1, 32, NULL),
    ROW(FIELD_STR, command_definition, script, FIELD_LINES, 1, 4096, NULL),
    ROW(FIELD_STR, command_definition, user, 0, 1, 32, NULL),
    ROW(FIELD_I64, command_definition, interval_seconds, 0, 10, 86400, NULL),
    ROW(FIELD_I64, command_definition, timeout_seconds, 0, 1, 300, NULL),
    ROW(FIELD_I64, command_definition, output_bytes, 0, 256, 16384, NULL),
    ROW(FIELD_I64, command_definition, raise_after, 0, 1, 100, NULL),
    ROW(FIELD_I64, command_definition, clear_after, 0, 1, 100, NULL),
    END,
};

#define EXPECTED(row)                                                                              \
    row(FIELD_I64, expectation_in, gpus, 0, 64, NULL),                                             \
    row(FIELD_STR, expectation_in, ports, 1, 1024, NULL),                                          \
    row(FIELD_I64, expectation_in, port_gbps, 0, 10000, NULL)

const struct field expectation_body[] = {
    ROW(FIELD_UUID, expectation_in, cluster_id, FIELD_NULLABLE, 0, 0, NULL),
    ROW(FIELD_STR, expectation_in, gpu_type, 0, 0, 255, NULL),
    ROW(FIELD_UUID, expectation_in, node_id, FIELD_NULLABLE, 0, 0, NULL),
    EXPECTED(NULLABLE_ROW),
    ROW(FIELD_STR, expectation_in, reason, FIELD_LINES, 0, 1023, NULL),
    END,
};

const struct field expectation_update_body[] = {
    EXPECTED(NULLABLE_ROW),
    ROW(FIELD_STR, expectation_in, reason, FIELD_LINES, 0, 1023, NULL),
    END,
};

const struct field check_place_query[] = {
    ROW(FIELD_UUID, check_place_query, cluster_id, 0, 0, 0, NULL),
    ROW(FIELD_STR, check_place_query, gpu_type, 0, 0, 255, NULL),
    ROW(FIELD_UUID, check_place_query, node_id, 0, 0, 0, NULL),
    END,
};
/* clang-format on */
