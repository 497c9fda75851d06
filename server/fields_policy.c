/* The tables of fields of stops, breakers and trial runs. */
#include "server/fields_policy.h"

#include <stddef.h>

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
    ROW(FIELD_STR, guard_comment_in, comment, 0, 0, 4095),
    END,
};

const struct field guard_reset_body[] = {
    ROW(FIELD_STR, guard_comment_in, comment, FIELD_REQUIRED, 1, 4095),
    END,
};

const struct field dry_run_query[] = {
    ROW(FIELD_BOOL, dry_run_query, dry_run, 0, 0, 0),
    END,
};
/* clang-format on */
