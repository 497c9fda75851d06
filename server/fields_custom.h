/* Bodies of an org's own checks and of what its nodes should have. */
#ifndef SERVER_FIELDS_CUSTOM_H
#define SERVER_FIELDS_CUSTOM_H

#include "base/decode.h"
#include "base/str.h"

/* Also a change, where name, kind and place do not exist. */
struct custom_check_in {
    struct str name;
    struct str title;
    struct str kind;
    struct str cluster_id;
    struct str gpu_type;
    struct str severity;
    struct str action;
    struct str mode;
    struct str definition; /* JSON, made canonical by the handler */
    struct str reason;
    int64_t shadow_seconds;
    bool has_name;
    bool has_title;
    bool has_kind;
    bool has_cluster_id;
    bool has_gpu_type;
    bool has_severity;
    bool has_action;
    bool has_mode;
    bool has_definition;
    bool has_reason;
    bool has_shadow_seconds;
};
extern const struct field custom_check_body[];
extern const struct field custom_check_update_body[];
extern const struct field custom_check_try_body[];

/* The two forms of a definition, decoded from its text. */
struct metric_definition {
    struct str metric;
    struct str comparison; /* above, below */
    double threshold;
    double clear_threshold;
    int64_t for_seconds;
    bool has_clear_threshold;
    bool has_for_seconds;
};
extern const struct field metric_definition_fields[];

struct command_definition {
    struct str_list argv;
    struct str script;
    struct str user;
    int64_t interval_seconds;
    int64_t timeout_seconds;
    int64_t output_bytes;
    int64_t raise_after;
    int64_t clear_after;
    bool has_argv;
    bool has_script;
    bool has_user;
    bool has_interval_seconds;
    bool has_timeout_seconds;
    bool has_output_bytes;
    bool has_raise_after;
    bool has_clear_after;
};
extern const struct field command_definition_fields[];

struct expectation_in {
    struct str cluster_id;
    struct str gpu_type;
    struct str node_id;
    struct str ports;
    struct str reason;
    int64_t gpus;
    int64_t port_gbps;
    bool has_cluster_id;
    bool has_gpu_type;
    bool has_node_id;
    bool has_ports;
    bool has_reason;
    bool has_gpus;
    bool has_port_gbps;
    bool null_ports;
    bool null_gpus;
    bool null_port_gbps;
};
extern const struct field expectation_body[];
extern const struct field expectation_update_body[];

/* The place whose effective values are asked for. */
struct check_place_query {
    struct str cluster_id;
    struct str gpu_type;
    struct str node_id;
    bool has_cluster_id;
    bool has_gpu_type;
    bool has_node_id;
};
extern const struct field check_place_query[];

#endif
