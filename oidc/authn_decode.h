/* An AuthenticationConfiguration as it is written, decoded strictly. */
#ifndef OIDC_AUTHN_DECODE_H
#define OIDC_AUTHN_DECODE_H

#include "oidc/authn_config.h"

struct authn_issuer {
    struct str url;
    struct str discovery_url;
    struct str certificate_authority;
    struct str_list audiences;
    struct str match_policy;
    struct str egress;
};

struct authn_claim_rule {
    struct str claim;
    struct str required_value;
    struct str expression;
    struct str message;
};

struct authn_user_rule {
    struct str expression;
    struct str message;
};

struct authn_mapping {
    struct str claim;
    struct str prefix;
    bool has_prefix;
    struct str expression;
};

struct authn_extra {
    struct str key;
    struct str expression;
};

struct authn_jwt {
    struct authn_issuer issuer;
    struct authn_claim_rule *claim_rules;
    size_t claim_rule_count;
    struct authn_mapping username;
    struct authn_mapping groups;
    struct authn_mapping uid;
    struct authn_extra *extra;
    size_t extra_count;
    struct authn_user_rule *user_rules;
    size_t user_rule_count;
};

struct authn_condition {
    struct str path;
};

struct authn_anonymous {
    bool enabled;
    struct authn_condition *conditions;
    size_t condition_count;
};

struct authn_document {
    struct str api_version;
    struct str kind;
    struct authn_jwt *jwt;
    size_t jwt_count;
    bool has_anonymous;
    struct authn_anonymous anonymous;
};

/* Unknown fields, wrong types and items past a bound become errors in config. */
void authn_decode(struct arena *arena, const json_t *root, struct authn_document *ret,
                  struct authn_config *config);
void authn_error(struct authn_config *config, const char *field, const char *code,
                 const char *message);

#endif
