/* Kubernetes' AuthenticationConfiguration: judged as kube-apiserver would, and used by our
 * verifier. */
#ifndef OIDC_AUTHN_CONFIG_H
#define OIDC_AUTHN_CONFIG_H

#include "oidc/issuer.h"

#define AUTHN_MAX_BYTES (512U << 10)
#define AUTHN_ARENA_CAP (256U << 20) /* a bound of what 512 KiB of expressions can become */
#define AUTHN_ISSUERS_MAX 64
#define AUTHN_PROBLEMS_MAX 64

/* What is wrong, with the path of the field: jwt[0].issuer.url. Codes: required, invalid,
 * duplicate, too_many, not_supported, unknown_field, wrong_type. */
struct authn_problem {
    const char *field;
    const char *code;
    const char *message;
};

struct authn_config {
    struct oidc_issuer *issuers;
    size_t issuer_count;
    struct authn_problem errors[AUTHN_PROBLEMS_MAX];
    size_t error_count;
    size_t own_count; /* of them, those that kube-apiserver does not make: it would load the file */
    struct authn_problem warnings[AUTHN_PROBLEMS_MAX]; /* accepted, but unwise */
    size_t warning_count;
};

/* True when a configuration text looks like an AuthenticationConfiguration and not like an issuer
 * of the API. */
bool authn_config_is_one(const json_t *root);
/* Reads JSON or YAML into one value; NULL with a sentence. Owned by the caller. */
json_t *authn_config_parse(struct arena *arena, struct str text, const char **ret_error) MUST_CHECK;

/*
 * Judges the configuration (apiVersion v1, v1beta1 and v1alpha1). True = kube-apiserver 1.36 would
 * take it. It is stricter than that server in what would load and then refuse every login: an Entra
 * URL of several tenants, and expressions that cannot give a name. service_account_issuer may be
 * empty. Texts live in the arena or in root, which must outlive *ret.
 */
bool authn_config_read(struct arena *arena, const json_t *root, struct str service_account_issuer,
                       struct authn_config *ret) MUST_CHECK;

#endif
