/* Roles and what each of them may do: one table. */
#ifndef SERVER_PERMS_H
#define SERVER_PERMS_H

#include <stdbool.h>

#include "base/str.h"
#include "server/request.h"

/* X(symbol, name, what it is for) */
/* clang-format off */
#define ROLE_TABLE(X) \
    X(ROLE_VIEWER, "viewer", "Sees everything but settings and the audit log; changes nothing.") \
    X(ROLE_OPERATOR, "operator", "Works on nodes: cordons them, reports faults, asks for repairs; starts none.") \
    X(ROLE_APPROVER, "approver", "Decides on repairs, and may stop them all.") \
    X(ROLE_SCRIPT_AUTHOR, "script_author", "Writes checks that run on nodes.") \
    X(ROLE_ADMIN, "admin", "Does all of that, and decides who may do what: members, tokens, providers, settings.") \
    X(ROLE_AUDITOR, "auditor", "Sees what a viewer sees, the audit log and the identity providers; changes nothing.")
/* clang-format on */
enum role_bit {
#define ROLE_BIT(sym, name, words) sym##_BIT,
    ROLE_TABLE(ROLE_BIT)
#undef ROLE_BIT
        ROLE_COUNT
};
enum role {
#define ROLE_VALUE(sym, name, words) sym = 1 << sym##_BIT,
    ROLE_TABLE(ROLE_VALUE)
#undef ROLE_VALUE
};

bool role_parse(struct str name, unsigned *ret_role) MUST_CHECK; /* one bit */
const char *role_name(enum role_bit bit);
const char *perm_name(enum perm_bit bit);
/* Sentences for people. */
const char *role_words(enum role_bit bit);
const char *perm_words(enum perm_bit bit);
/* Union of what the roles may do (bits of enum perm). PERM_PLATFORM only with platform_admin. */
unsigned perms_of(unsigned roles, bool platform_admin);

#endif
