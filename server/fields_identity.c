/* The tables of fields of the audit log, tokens and members: their order is that of a statement's
 * parameters. */
#include "server/fields_identity.h"

#include <stddef.h>

#include "server/perms.h"

#define ROLE_WORD(sym, name, words) name,
static const char *const roles[] = {ROLE_TABLE(ROLE_WORD) NULL};
#undef ROLE_WORD
#define YEAR_S 31536000
#define DAY_S 86400

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

const struct field audit_download_query[] = {
    ROW(FIELD_STR, audit_download_query, ticket, FIELD_REQUIRED, 1, 1023, NULL),
    END,
};

const struct field audit_export_query[] = {
    ROW(FIELD_I64, audit_export_query, after, 0, 0, INT64_MAX, NULL),
    ROW(FIELD_I64, audit_export_query, limit, 0, 1, AUDIT_EXPORT_MAX, NULL),
    END,
};
const struct field service_token_body[] = {
    ROW(FIELD_STR, service_token_in, name, FIELD_REQUIRED, 1, 255, NULL),
    ROW(FIELD_ENUM, service_token_in, role, FIELD_REQUIRED, 0, 0, roles),
    {"expires_in_seconds", FIELD_I64, offsetof(struct service_token_in, expires_in_seconds),
     offsetof(struct service_token_in, has_expires_in_seconds), FIELD_NULLABLE, 1, 10LL * YEAR_S, NULL,
     offsetof(struct service_token_in, null_expires_in_seconds)},
    ROW(FIELD_UUID, service_token_in, cluster_id, FIELD_NULLABLE, 0, 0, NULL),
    END,
};

const struct field member_create_body[] = {
    ROW(FIELD_STR, member_in, name, 0, 1, 255, NULL),
    ROW(FIELD_ENUM, member_in, role, FIELD_REQUIRED, 0, 0, roles),
    ROW(FIELD_UUID, member_in, project_id, FIELD_NULLABLE, 0, 0, NULL),
    ROW(FIELD_UUID, member_in, cluster_id, FIELD_NULLABLE, 0, 0, NULL),
    ROW(FIELD_UUID, member_in, person_id, 0, 0, 0, NULL),
    ROW(FIELD_UUID, member_in, issuer_id, 0, 0, 0, NULL),
    ROW(FIELD_STR, member_in, group, 0, 1, 1024, NULL),
    END,
};

const struct field issuer_discover_body[] = {
    ROW(FIELD_STR, issuer_discover_in, issuer, FIELD_REQUIRED, 1, 512, NULL),
    ROW(FIELD_STR, issuer_discover_in, ca_certificate, FIELD_NULLABLE | FIELD_LINES, 1, 16384, NULL),
    ROW(FIELD_STR, issuer_discover_in, discovery_url, FIELD_NULLABLE, 1, 1024, NULL),
    ROW(FIELD_STR_LIST, issuer_discover_in, entra_tenants, 0, 0, 100, NULL),
    END,
};

/* Longer than the verifier takes, so that it says so itself. */
const struct field issuer_test_token_body[] = {
    ROW(FIELD_STR, issuer_test_token_in, token, FIELD_REQUIRED, 1, 32768, NULL),
    END,
};

const struct field revoke_key_body[] = {
    ROW(FIELD_STR, revoke_key_in, reason, FIELD_LINES, 0, 1023, NULL),
    END,
};

const struct field org_suspend_body[] = {
    ROW(FIELD_STR, org_suspend_in, reason, FIELD_REQUIRED | FIELD_LINES, 1, 1000, NULL),
    END,
};

const struct field device_code_body[] = {
    ROW(FIELD_STR, device_code_in, client, FIELD_REQUIRED, 1, 255, NULL),
    END,
};

const struct field device_token_body[] = {
    ROW(FIELD_STR, device_token_in, device_code, FIELD_REQUIRED, 1, 127, NULL),
    END,
};

static const char *const decisions[] = {"approve", "deny", NULL};
const struct field device_decide_body[] = {
    ROW(FIELD_ENUM, device_decide_in, decision, FIELD_REQUIRED, 0, 0, decisions),
    END,
};

const struct field token_rotate_body[] = {
    ROW(FIELD_I64, token_rotate_in, overlap_seconds, 0, 0, 7 * DAY_S, NULL),
    END,
};

const struct field sign_in_options_query[] = {
    ROW(FIELD_STR, sign_in_options_query, org, 0, 1, 63, NULL),
    END,
};

const struct field sign_in_start_query[] = {
    ROW(FIELD_STR, sign_in_start_query, return_to, 0, 0, 2048, NULL),
    END,
};
/* clang-format on */
