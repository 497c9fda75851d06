/* What bodies about stops and breakers decode into; policies' own are in server/repair/policy.h. */
#ifndef SERVER_FIELDS_POLICY_H
#define SERVER_FIELDS_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/decode.h"
#include "base/str.h"

struct guard_comment_in {
    struct str comment;
    bool has_comment;
};
extern const struct field guard_comment_body[]; /* stop, allow */
extern const struct field guard_reset_body[];   /* the comment is required */

#define REPAIR_BATCH_MAX 25 /* nobody reads the plans of more */

struct repair_batch_in {
    struct str_list node_ids; /* at least one: none named is nobody */
    struct str action;
    struct str reason;
    int64_t expected_count;
    bool has_node_ids;
    bool has_action;
    bool has_reason;
    bool has_expected_count;
};
extern const struct field repair_batch_body[];

struct dry_run_query {
    bool dry_run;
    bool has_dry_run;
};
extern const struct field dry_run_query[];

#endif
