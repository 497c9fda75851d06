/* Bodies of what an org sets about checks. */
#ifndef SERVER_FIELDS_CHECKS_H
#define SERVER_FIELDS_CHECKS_H

#include "base/decode.h"
#include "base/str.h"

/* A dry run takes the same, and none is stored. */
struct check_override_in {
    struct str check_id;
    struct str cluster_id;
    struct str gpu_type;
    struct str mode;
    struct str severity;
    struct str action;
    struct str reason;
    int64_t threshold;
    int64_t looks;
    int64_t clear_looks;
    int64_t shadow_seconds;
    bool has_check_id;
    bool has_cluster_id;
    bool has_gpu_type;
    bool has_mode;
    bool has_severity;
    bool has_action;
    bool has_reason;
    bool has_threshold;
    bool has_looks;
    bool has_clear_looks;
    bool has_shadow_seconds;
};
extern const struct field check_override_body[];
extern const struct field check_override_try_body[];

struct check_override_update_in {
    struct str mode;
    struct str severity;
    struct str action;
    struct str reason;
    int64_t threshold;
    int64_t looks;
    int64_t clear_looks;
    int64_t shadow_seconds;
    bool has_mode;
    bool has_severity;
    bool has_action;
    bool has_reason;
    bool has_threshold;
    bool has_looks;
    bool has_clear_looks;
    bool has_shadow_seconds;
    bool null_mode;
    bool null_severity;
    bool null_action;
    bool null_threshold;
    bool null_looks;
    bool null_clear_looks;
};
extern const struct field check_override_update_body[];

/* Parts and machines by the beginning of their serial. */
struct serial_query {
    struct str q;
    int64_t count;
    bool has_q;
    bool has_count;
};
extern const struct field serial_query[];

#endif
