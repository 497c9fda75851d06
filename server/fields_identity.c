/* The tables of fields of the audit log, tokens and members: their order is that of a statement's
 * parameters. */
#include "server/fields_identity.h"

#include <stddef.h>

#define ROW(type, s, member, flags, min, max, names)                                             \
    {                                                                                            \
#member, type, offsetof(struct s, member), offsetof(struct s, has_##member), flags, min, \
            max, names                                                                           \
    }
#define END                                  \
    {                                        \
        NULL, FIELD_STR, 0, 0, 0, 0, 0, NULL \
    }

/* clang-format off */
const struct field audit_query[] = {
    ROW(FIELD_STR, audit_query, actor, 0, 1, 255, NULL),
    ROW(FIELD_STR_LIST, audit_query, action, 0, 0, 50, NULL),
    ROW(FIELD_UUID, audit_query, target, 0, 0, 0, NULL),
    ROW(FIELD_TIME, audit_query, since, 0, 0, 0, NULL),
    ROW(FIELD_TIME, audit_query, until, 0, 0, 0, NULL),
    END,
};

const struct field audit_export_query[] = {
    ROW(FIELD_I64, audit_export_query, after, 0, 0, INT64_MAX, NULL),
    ROW(FIELD_I64, audit_export_query, limit, 0, 1, AUDIT_EXPORT_MAX, NULL),
    END,
};
/* clang-format on */
