/* The checks the agent knows: the names that appear as check_id, and how each one's incidents end.
 */
#ifndef AGENT_RULES_CHECKS_H
#define AGENT_RULES_CHECKS_H

#include <stddef.h>

#include "base/str.h"

struct check_row {
    const char *id;
    const char *title;
    const char *clear_rule; /* in words, for people */
};

extern const struct check_row check_rows[];
extern const size_t check_row_count;

const struct check_row *check_find(struct str id); /* NULL = not known */

#endif
