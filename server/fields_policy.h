/* What bodies about stops and breakers decode into; policies' own are in server/repair/policy.h. */
#ifndef SERVER_FIELDS_POLICY_H
#define SERVER_FIELDS_POLICY_H

#include <stdbool.h>

#include "base/decode.h"
#include "base/str.h"

struct guard_comment_in {
    struct str comment;
    bool has_comment;
};
extern const struct field guard_comment_body[]; /* stop, allow */
extern const struct field guard_reset_body[];   /* the comment is required */

struct dry_run_query {
    bool dry_run;
    bool has_dry_run;
};
extern const struct field dry_run_query[];

#endif
