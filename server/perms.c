/* Roles and what each of them may do: one table. */
#include "server/perms.h"

static const char *const perm_names[PERM_COUNT] = {
#define PERM_NAME(sym, name, words) [sym##_BIT] = name,
    PERM_TABLE(PERM_NAME)
#undef PERM_NAME
};

static const char *const role_names[ROLE_COUNT] = {
#define ROLE_NAME(sym, name, words) [sym##_BIT] = name,
    ROLE_TABLE(ROLE_NAME)
#undef ROLE_NAME
};

static const char *const perm_sentences[PERM_COUNT] = {
#define PERM_WORDS(sym, name, words) [sym##_BIT] = words,
    PERM_TABLE(PERM_WORDS)
#undef PERM_WORDS
};

static const char *const role_sentences[ROLE_COUNT] = {
#define ROLE_WORDS(sym, name, words) [sym##_BIT] = words,
    ROLE_TABLE(ROLE_WORDS)
#undef ROLE_WORDS
};

#define READS (PERM_SESSION | PERM_CLUSTER_READ)

/* clang-format off */
static const unsigned role_perms[ROLE_COUNT] = {
    [ROLE_VIEWER_BIT] = READS,
    [ROLE_OPERATOR_BIT] = READS | PERM_NODE_WRITE | PERM_INCIDENT_WRITE | PERM_REPAIR_REQUEST,
    [ROLE_APPROVER_BIT] = READS | PERM_REPAIR_REQUEST | PERM_REPAIR_DECIDE,
    [ROLE_SCRIPT_AUTHOR_BIT] = READS | PERM_SCRIPT_WRITE,
    [ROLE_ADMIN_BIT] = READS | PERM_CLUSTER_WRITE | PERM_NODE_WRITE | PERM_INCIDENT_WRITE | PERM_REPAIR_REQUEST |
                       PERM_REPAIR_DECIDE | PERM_TOKEN_WRITE | PERM_ORG_WRITE | PERM_AUDIT_READ |
                       PERM_MEMBER_WRITE | PERM_ISSUER_READ | PERM_ISSUER_WRITE | PERM_WEBHOOK_WRITE |
                       PERM_SCRIPT_WRITE,
    [ROLE_AUDITOR_BIT] = READS | PERM_AUDIT_READ | PERM_ISSUER_READ,
};
/* clang-format on */

bool role_parse(struct str name, unsigned *ret_role)
{
    for (size_t i = 0; i < ROLE_COUNT; i++) {
        if (str_eq_c(name, role_names[i])) {
            *ret_role = 1u << i;
            return true;
        }
    }
    return false;
}

const char *role_name(enum role_bit bit)
{
    return role_names[bit];
}

const char *perm_name(enum perm_bit bit)
{
    return perm_names[bit];
}

const char *role_words(enum role_bit bit)
{
    return role_sentences[bit];
}

const char *perm_words(enum perm_bit bit)
{
    return perm_sentences[bit];
}

unsigned perms_of(unsigned roles, bool platform_admin)
{
    unsigned perms = PERM_SESSION;
    for (size_t i = 0; i < ROLE_COUNT; i++) {
        if ((roles & (1u << i)) != 0) {
            perms |= role_perms[i];
        }
    }
    return platform_admin ? perms | PERM_PLATFORM : perms;
}
