/* The tables of fields: the order of rows is the order of a statement's parameters. */
#include "server/fields.h"

#include <stddef.h>

static const char *const schedulers[] = {"slurm", "kubernetes", "none", NULL};
static const char *const node_states[] = {"pending",   "starting", "healthy", "unhealthy",
                                          "repairing", "paused",   "unknown", NULL};
static const char *const node_sorts[] = {"name", "-name", "state", NULL};
static const char *const device_types[] = {"gpu", "nic", "disk", NULL};
static const char *const severities[] = {"info", "warning", "critical", NULL};
static const char *const incident_states[] = {"open", "closed", NULL};

#define REQUIRED FIELD_REQUIRED
#define NULLABLE FIELD_NULLABLE
/* type, struct, member, flags, least, most, names: 0 and NULL where the type's own default is meant
 */
#define ROW(type, s, member, flags, min, max, names)                                             \
    {                                                                                            \
#member, type, offsetof(struct s, member), offsetof(struct s, has_##member), flags, min, \
            max, names                                                                           \
    }
/* The same for what is not text and may be null: null_x says so. */
#define NULLABLE_ROW(type, s, member, min, max)                                                \
    {                                                                                          \
#member, type, offsetof(struct s, member), offsetof(struct s, has_##member), NULLABLE, \
            min, max, NULL, offsetof(struct s, null_##member)                                  \
    }
#define END                                  \
    {                                        \
        NULL, FIELD_STR, 0, 0, 0, 0, 0, NULL \
    }

/* clang-format off */
const struct field session_create_body[] = {
    ROW(FIELD_STR, session_create_in, token, REQUIRED, 1, 127, NULL),
    END,
};

const struct field session_switch_body[] = {
    ROW(FIELD_UUID, session_switch_in, org_id, REQUIRED, 0, 0, NULL),
    END,
};

const struct field org_create_body[] = {
    ROW(FIELD_NAME, org_in, name, REQUIRED, 0, 0, NULL),
    ROW(FIELD_STR, org_in, title, 0, 0, 255, NULL),
    END,
};

const struct field org_update_body[] = {
    ROW(FIELD_STR, org_update_in, title, 0, 0, 255, NULL),
    END,
};

const struct field project_create_body[] = {
    ROW(FIELD_NAME, project_in, name, REQUIRED, 0, 0, NULL),
    ROW(FIELD_STR, project_in, title, 0, 0, 255, NULL),
    END,
};

const struct field project_update_body[] = {
    ROW(FIELD_NAME, project_in, name, 0, 0, 0, NULL),
    ROW(FIELD_STR, project_in, title, 0, 0, 255, NULL),
    END,
};

#define CLUSTER_SETTINGS                                                                           \
    ROW(FIELD_ENUM, cluster_in, scheduler, 0, 0, 0, schedulers),                                   \
    ROW(FIELD_STR, cluster_in, region, 0, 0, 255, NULL),                                           \
    ROW(FIELD_STR, cluster_in, gpu_type, 0, 0, 255, NULL),                                         \
    NULLABLE_ROW(FIELD_I64, cluster_in, gpus_per_node, 0, 64),                              \
    ROW(FIELD_STR, cluster_in, driver_version, 0, 0, 255, NULL),                                   \
    ROW(FIELD_STR, cluster_in, network, 0, 0, 255, NULL),                                          \
    ROW(FIELD_STR, cluster_in, os_image, 0, 0, 255, NULL),                                         \
    NULLABLE_ROW(FIELD_DOUBLE, cluster_in, billing_rate, 0, 1000000),                       \
    ROW(FIELD_STR, cluster_in, billing_currency, 0, 3, 3, NULL),                                   \
    ROW(FIELD_I64, cluster_in, healthy_delay_seconds, 0, 0, 86400, NULL),                          \
    ROW(FIELD_I64, cluster_in, begin_within_seconds, 0, 1, 86400, NULL),                           \
    ROW(FIELD_I64, cluster_in, rejoin_within_seconds, 0, 1, 86400, NULL)

const struct field cluster_create_body[] = {
    ROW(FIELD_UUID, cluster_in, project_id, REQUIRED, 0, 0, NULL),
    ROW(FIELD_NAME, cluster_in, name, REQUIRED, 0, 0, NULL),
    CLUSTER_SETTINGS,
    END,
};

const struct field cluster_update_body[] = {
    ROW(FIELD_UUID, cluster_in, project_id, 0, 0, 0, NULL),
    ROW(FIELD_NAME, cluster_in, name, 0, 0, 0, NULL),
    CLUSTER_SETTINGS,
    END,
};

const struct field node_create_body[] = {
    ROW(FIELD_HOST, node_create_in, name, REQUIRED, 0, 0, NULL),
    ROW(FIELD_STR, node_create_in, rack, 0, 0, 63, NULL),
    ROW(FIELD_STR, node_create_in, leaf, 0, 0, 63, NULL),
    ROW(FIELD_STR, node_create_in, partition, 0, 0, 63, NULL),
    NULLABLE_ROW(FIELD_I64, node_create_in, gpus_expected, 0, 64),
    END,
};

const struct field node_update_body[] = {
    ROW(FIELD_STR, node_update_in, rack, 0, 0, 63, NULL),
    ROW(FIELD_STR, node_update_in, leaf, 0, 0, 63, NULL),
    ROW(FIELD_STR, node_update_in, partition, 0, 0, 63, NULL),
    NULLABLE_ROW(FIELD_I64, node_update_in, gpus_expected, 0, 64),
    ROW(FIELD_BOOL, node_update_in, schedulable, 0, 0, 0, NULL),
    ROW(FIELD_BOOL, node_update_in, auto_repair, 0, 0, 0, NULL),
    NULLABLE_ROW(FIELD_TIME, node_update_in, paused_until, 0, 0),
    ROW(FIELD_STR, node_update_in, pdu, 0, 0, 63, NULL),
    ROW(FIELD_STR, node_update_in, file_server, 0, 0, 127, NULL),
    ROW(FIELD_STR, node_update_in, role, 0, 0, 63, NULL),
    END,
};

const struct field node_cordon_body[] = {
    ROW(FIELD_STR, node_cordon_in, comment, FIELD_LINES, 0, 1023, NULL),
    END,
};

const struct field device_create_body[] = {
    ROW(FIELD_ENUM, device_create_in, type, REQUIRED, 0, 0, device_types),
    ROW(FIELD_STR, device_create_in, serial, REQUIRED, 1, 127, NULL),
    ROW(FIELD_STR, device_create_in, pci, 0, 0, 63, NULL),
    ROW(FIELD_STR, device_create_in, model, 0, 0, 255, NULL),
    END,
};

const struct field device_update_body[] = {
    ROW(FIELD_STR, note_in, note, FIELD_LINES, 0, 1023, NULL),
    END,
};

const struct field incident_update_body[] = {
    ROW(FIELD_STR, note_in, note, FIELD_LINES, 0, 4095, NULL),
    END,
};

const struct field event_create_body[] = {
    ROW(FIELD_STR, event_create_in, summary, REQUIRED, 1, 1023, NULL),
    ROW(FIELD_UUID, event_create_in, node_id, NULLABLE, 0, 0, NULL),
    END,
};

const struct field incident_create_body[] = {
    ROW(FIELD_STR, incident_create_in, summary, REQUIRED, 1, 1023, NULL),
    ROW(FIELD_ENUM, incident_create_in, severity, REQUIRED, 0, 0, severities),
    ROW(FIELD_BOOL, incident_create_in, node_fault, 0, 0, 0, NULL),
    ROW(FIELD_STR, incident_create_in, device, 0, 0, 127, NULL),
    END,
};

static const char *const rejoins[] = {"ask", "auto", NULL};
const struct field join_token_body[] = {
    ROW(FIELD_I64, join_token_in, uses, 0, 1, 100000, NULL),
    ROW(FIELD_I64, join_token_in, expires_in_seconds, 0, 1, 86400, NULL),
    ROW(FIELD_HOST, join_token_in, host_name, NULLABLE, 0, 0, NULL),
    ROW(FIELD_STR, join_token_in, cidr, NULLABLE, 1, 49, NULL),
    ROW(FIELD_ENUM, join_token_in, rejoin, NULLABLE, 0, 0, rejoins),
    ROW(FIELD_I64, join_token_in, expires_in_days, 0, 1, 366, NULL),
    END,
};

const struct field cluster_query[] = {
    ROW(FIELD_UUID, cluster_query, project_id, 0, 0, 0, NULL),
    END,
};

#define NODE_FILTERS                                                                               \
    ROW(FIELD_STR_LIST, node_query, state, 0, 0, 7, node_states),                                  \
    ROW(FIELD_STR, node_query, q, 0, 0, 253, NULL),                                                \
    ROW(FIELD_BOOL, node_query, warning, 0, 0, 0, NULL),                                           \
    ROW(FIELD_STR, node_query, rack, 0, 0, 63, NULL),                                              \
    ROW(FIELD_STR, node_query, pdu, 0, 0, 63, NULL),                                               \
    ROW(FIELD_STR, node_query, file_server, 0, 0, 127, NULL)

const struct field node_query[] = {
    NODE_FILTERS,
    ROW(FIELD_ENUM, node_query, sort, 0, 0, 0, node_sorts),
    END,
};

const struct field node_filters[] = {
    NODE_FILTERS,
    END,
};

const struct field grid_query[] = {
    ROW(FIELD_BOOL, grid_query, ids, 0, 0, 0, NULL),
    END,
};

#define EVENT_FILTERS                                                                              \
    ROW(FIELD_UUID, event_query, node_id, 0, 0, 0, NULL),                                          \
    ROW(FIELD_STR_LIST, event_query, type, 0, 0, 50, NULL),                                        \
    ROW(FIELD_STR_LIST, event_query, severity, 0, 0, 3, severities),                               \
    ROW(FIELD_TIME, event_query, since, 0, 0, 0, NULL),                                            \
    ROW(FIELD_TIME, event_query, until, 0, 0, 0, NULL),                                            \
    ROW(FIELD_I64, event_query, after, 0, 0, INT64_MAX, NULL)

const struct field event_query[] = {
    ROW(FIELD_UUID, event_query, cluster_id, 0, 0, 0, NULL),
    EVENT_FILTERS,
    END,
};

const struct field cluster_event_query[] = {
    EVENT_FILTERS,
    END,
};

const struct field incident_query[] = {
    ROW(FIELD_UUID, incident_query, cluster_id, 0, 0, 0, NULL),
    ROW(FIELD_UUID, incident_query, node_id, 0, 0, 0, NULL),
    ROW(FIELD_ENUM, incident_query, state, 0, 0, 0, incident_states),
    ROW(FIELD_STR_LIST, incident_query, check_id, 0, 0, 50, NULL),
    ROW(FIELD_TIME, incident_query, since, 0, 0, 0, NULL),
    ROW(FIELD_TIME, incident_query, until, 0, 0, 0, NULL),
    ROW(FIELD_BOOL, incident_query, roots, 0, 0, 0, NULL),
    END,
};

#define SPAN                                                                                       \
    ROW(FIELD_TIME, span_query, since, 0, 0, 0, NULL),                                             \
    ROW(FIELD_TIME, span_query, until, 0, 0, 0, NULL)

const struct field history_query[] = {
    SPAN,
    ROW(FIELD_I64, span_query, step_seconds, 0, 1, 86400, NULL),
    END,
};

const struct field buckets_query[] = {
    SPAN,
    ROW(FIELD_I64, span_query, buckets, 0, 1, 400, NULL),
    END,
};

const struct field transitions_query[] = {
    SPAN,
    END,
};

const struct field as_of_query[] = {
    ROW(FIELD_TIME, as_of_query, at, REQUIRED, 0, 0, NULL),
    END,
};
/* clang-format on */
