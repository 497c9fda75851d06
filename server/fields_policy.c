/* The tables of fields of stops, breakers and trial runs. */
#include "server/fields_policy.h"

#include <stddef.h>

/* Removing nodes is done one by one. */
static const char *const actions[] = {"reset_gpu",   "reboot",   "power_cycle",
                                      "reprovision", "failover", NULL};

#define ROW(type, s, member, flags, min, max)                                                    \
    {                                                                                            \
#member, type, offsetof(struct s, member), offsetof(struct s, has_##member), flags, min, \
            max, NULL                                                                            \
    }
#define END                                  \
    {                                        \
        NULL, FIELD_STR, 0, 0, 0, 0, 0, NULL \
    }

/* clang-format off */
const struct field guard_comment_body[] = {
    ROW(FIELD_STR, guard_comment_in, comment, FIELD_LINES, 0, 4095),
    END,
};

const struct field guard_reset_body[] = {
    ROW(FIELD_STR, guard_comment_in, comment, FIELD_REQUIRED | FIELD_LINES, 1, 4095),
    END,
};

const struct field repair_batch_body[] = {
    ROW(FIELD_STR_LIST, repair_batch_in, node_ids, FIELD_REQUIRED, 1, REPAIR_BATCH_MAX),
    {"action", FIELD_ENUM, offsetof(struct repair_batch_in, action), offsetof(struct repair_batch_in, has_action), FIELD_REQUIRED, 0, 0, actions},
    ROW(FIELD_STR, repair_batch_in, reason, FIELD_REQUIRED | FIELD_LINES, 1, 1023),
    ROW(FIELD_I64, repair_batch_in, expected_count, FIELD_REQUIRED, 1, REPAIR_BATCH_MAX),
    END,
};

const struct field dry_run_query[] = {
    ROW(FIELD_BOOL, dry_run_query, dry_run, 0, 0, 0),
    END,
};
/* clang-format on */
