/* What the checks of a token share. */
#ifndef OIDC_VERIFY_INTERNAL_H
#define OIDC_VERIFY_INTERNAL_H

#include "oidc/verify.h"

#define OIDC_NAME_MAX 2048 /* bytes; a longer one would not fit PostgreSQL's index of names */
#define OIDC_GROUP_MAX 1024
#define OIDC_GROUPS_MAX 1000

struct checking {
    struct arena *arena;
    const struct oidc_issuer *issuer;
    const struct jwk_set *keys;
    const struct oidc_question *question;
    struct jws jws;
    const json_t *claims;
    struct cel_run run; /* its arena is NULL when the issuer has no expression */
    struct oidc_verdict *verdict;
};

enum oidc_reason refuse(struct checking *checking, enum oidc_reason reason, const char *format, ...)
    PRINTF_LIKE(3, 4);
void add_warning(struct checking *checking, const char *text);
/* A text claim, copied: claim_missing, or claim_type for another type, the empty text and control
 * characters. */
enum oidc_reason read_claim(struct checking *checking, const char *name,
                            struct str *ret) MUST_CHECK;
/* The same where it may be missing: *ret is empty then. */
enum oidc_reason read_optional(struct checking *checking, const char *name,
                               struct str *ret) MUST_CHECK;
bool list_has(const struct str_list *list, struct str item);

/* Checks, one each of OIDC_CHECK_TABLE. */
enum oidc_reason check_time(struct checking *checking) MUST_CHECK;
enum oidc_reason check_required(struct checking *checking) MUST_CHECK;
enum oidc_reason check_email(struct checking *checking) MUST_CHECK;
enum oidc_reason check_username(struct checking *checking) MUST_CHECK;
enum oidc_reason check_groups(struct checking *checking) MUST_CHECK;
enum oidc_reason check_reserved(struct checking *checking) MUST_CHECK;
enum oidc_reason check_user(struct checking *checking) MUST_CHECK;

#endif
