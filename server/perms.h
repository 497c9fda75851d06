/* Roles and what each of them may do: one table. */
#ifndef SERVER_PERMS_H
#define SERVER_PERMS_H

#include <stdbool.h>

#include "base/str.h"
#include "server/request.h"

#define ROLE_TABLE(X)                      \
    X(ROLE_VIEWER, "viewer")               \
    X(ROLE_OPERATOR, "operator")           \
    X(ROLE_APPROVER, "approver")           \
    X(ROLE_SCRIPT_AUTHOR, "script_author") \
    X(ROLE_ADMIN, "admin")                 \
    X(ROLE_AUDITOR, "auditor")
enum role_bit {
#define ROLE_BIT(sym, name) sym##_BIT,
    ROLE_TABLE(ROLE_BIT)
#undef ROLE_BIT
        ROLE_COUNT
};
enum role {
#define ROLE_VALUE(sym, name) sym = 1 << sym##_BIT,
    ROLE_TABLE(ROLE_VALUE)
#undef ROLE_VALUE
};

bool role_parse(struct str name, unsigned *ret_role) MUST_CHECK; /* one bit */
const char *role_name(enum role_bit bit);
const char *perm_name(enum perm_bit bit);
/* Union of what the roles may do (bits of enum perm). PERM_PLATFORM only with platform_admin. */
unsigned perms_of(unsigned roles, bool platform_admin);

#endif
