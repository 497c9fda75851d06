/* The tables of fields of checks: the order of rows is the order of a statement's parameters. */
#include "server/fields_checks.h"

#include <stddef.h>

static const char *const modes[] = {"live", "shadow", "off", NULL};
static const char *const severities[] = {"info", "warning", "critical", NULL};
static const char *const actions[] = {"none",        "reset_gpu", "reboot", "power_cycle",
                                      "reprovision", "failover",  "remove", NULL};

#define REQUIRED FIELD_REQUIRED
#define ROW(type, s, member, flags, min, max, names)                                             \
    {                                                                                            \
#member, type, offsetof(struct s, member), offsetof(struct s, has_##member), flags, min, \
            max, names                                                                           \
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
#define PLACE                                                                                      \
    ROW(FIELD_STR, check_override_in, check_id, REQUIRED, 1, 63, NULL),                            \
    ROW(FIELD_UUID, check_override_in, cluster_id, FIELD_NULLABLE, 0, 0, NULL),                    \
    ROW(FIELD_STR, check_override_in, gpu_type, 0, 0, 255, NULL),                                  \
    ROW(FIELD_ENUM, check_override_in, mode, FIELD_NULLABLE, 0, 0, modes),                         \
    ROW(FIELD_ENUM, check_override_in, severity, FIELD_NULLABLE, 0, 0, severities),                \
    ROW(FIELD_ENUM, check_override_in, action, FIELD_NULLABLE, 0, 0, actions),                     \
    ROW(FIELD_I64, check_override_in, threshold, 0, 1, 1000000, NULL),                             \
    ROW(FIELD_I64, check_override_in, looks, 0, 1, 200, NULL),                                     \
    ROW(FIELD_I64, check_override_in, clear_looks, 0, 1, 200, NULL)

const struct field check_override_body[] = {
    PLACE,
    ROW(FIELD_STR, check_override_in, reason, FIELD_LINES, 0, 1023, NULL),
    ROW(FIELD_I64, check_override_in, shadow_seconds, 0, 0, SHADOW_MAX, NULL),
    END,
};

const struct field check_override_try_body[] = {
    PLACE,
    END,
};

const struct field check_override_update_body[] = {
    NULLABLE_ROW(FIELD_ENUM, check_override_update_in, mode, 0, 0, modes),
    NULLABLE_ROW(FIELD_ENUM, check_override_update_in, severity, 0, 0, severities),
    NULLABLE_ROW(FIELD_ENUM, check_override_update_in, action, 0, 0, actions),
    NULLABLE_ROW(FIELD_I64, check_override_update_in, threshold, 1, 1000000, NULL),
    NULLABLE_ROW(FIELD_I64, check_override_update_in, looks, 1, 200, NULL),
    NULLABLE_ROW(FIELD_I64, check_override_update_in, clear_looks, 1, 200, NULL),
    ROW(FIELD_STR, check_override_update_in, reason, FIELD_LINES, 0, 1023, NULL),
    ROW(FIELD_I64, check_override_update_in, shadow_seconds, 0, 0, SHADOW_MAX, NULL),
    END,
};

const struct field serial_query[] = {
    ROW(FIELD_STR, serial_query, q, REQUIRED, 3, 127, NULL),
    ROW(FIELD_I64, serial_query, count, 0, 1, 200, NULL),
    END,
};
/* clang-format on */
