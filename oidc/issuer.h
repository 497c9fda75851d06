/* What is known of one issuer: where its tokens come from, for whom, and how names are made. */
#ifndef OIDC_ISSUER_H
#define OIDC_ISSUER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/decode.h"
#include "oidc/cel.h"

#define OIDC_LEEWAY_S 60      /* RFC 7519 4.1.4: "no more than a few minutes" */
#define OIDC_LIFETIME_S 86400 /* unless the issuer says otherwise */
#define OIDC_LIFETIME_MAX_S 31536000
#define OIDC_CONFIG_MAX_BYTES 65536
#define OIDC_PATH_MAX 8

struct oidc_pair {
    struct str name;
    struct str value;
};

/* Where a name comes from; path_len 0 and no expression = not mapped. */
struct oidc_mapping {
    struct str path[OIDC_PATH_MAX]; /* one claim, or a way down into objects */
    size_t path_len;
    const struct cel *expression;
    struct str prefix;
};

struct oidc_extra {
    struct str key;
    const struct cel *expression;
};

/* An expression that must be true. */
struct oidc_rule {
    const struct cel *expression;
    struct str text;
    struct str message; /* may be empty */
};

enum oidc_quirk {
    OIDC_QUIRK_EMAIL_VERIFIED_ABSENT = 1 << 0, /* a missing email_verified counts as true */
    OIDC_QUIRK_EMAIL_VERIFIED_STRING = 1 << 1, /* "true" counts as true */
};

struct oidc_issuer {
    struct str url;
    struct str_list audiences;
    struct str client_id; /* the client that logs people in; empty = any of the audiences */
    int64_t leeway_s;     /* 0 to 60 */
    int64_t max_lifetime_s;
    struct str discovery_url;  /* may be empty */
    struct str ca_certificate; /* PEM; may be empty */
    struct oidc_mapping username;
    struct oidc_mapping groups;
    struct oidc_mapping uid;
    struct oidc_pair *required;
    size_t required_count;
    struct str_list entra_tenants;   /* not empty: iss follows Entra's template */
    struct str_list allowed_domains; /* not empty: the email's domain must be one of them */
    struct oidc_rule *claim_rules;   /* from here on only from an AuthenticationConfiguration */
    size_t claim_rule_count;
    struct oidc_rule *user_rules;
    size_t user_rule_count;
    struct oidc_extra *extra;
    size_t extra_count;
    unsigned algs;       /* JOSE_ALG_BIT of each; see oidc/alg.h */
    unsigned quirks;     /* enum oidc_quirk */
    bool for_kubernetes; /* warn where kube-apiserver would decide otherwise */
};

/* All fields off, the defaults for times and algorithms. */
void oidc_issuer_init(struct oidc_issuer *issuer);

/* The CEL function in one of the issuer's expressions that is not run here; NULL when all can be.
 */
const char *oidc_issuer_not_run(const struct oidc_issuer *issuer);

struct oidc_issuer_source {
    struct str text;      /* a JSON object of at most 64 KiB; must outlive the call only */
    struct str client_id; /* goes before the text's, and stands in for missing audiences */
    bool allow_private;   /* an operator named this host: plain http, and private literal addresses,
                             are refused otherwise */
};

/* Reads an issuer as the API takes it (docs/oidc.md lists the fields). Returns as decode_body does;
 * client_id must outlive *ret, other texts live in the arena. */
enum err oidc_issuer_read(struct arena *arena, const struct oidc_issuer_source *source,
                          struct oidc_issuer *ret, struct decode_errors *errors,
                          const char **ret_detail) MUST_CHECK;

/*
 * The form of an issuer's or a discovery URL, as kube-apiserver wants it: https, a host, no user,
 * query or fragment. NULL when it is good, else a static sentence.
 */
const char *oidc_url_problem(struct str url) MUST_CHECK;
/* True when the host of a well-formed URL is a literal address outside the public ranges. */
bool oidc_url_is_private(struct str url);

/* Splits a path such as realm_access.roles or resource_access["my.app"].roles; false when it is
 * malformed or deeper than OIDC_PATH_MAX. The parts point into the text. */
bool oidc_path_parse(struct str text, struct oidc_mapping *ret) MUST_CHECK;

/* The URL with this tenant in its template's place; the URL itself when it is no template. */
struct str oidc_issuer_of_tenant(struct arena *arena, struct str url, struct str tenant);
/* True for an Entra URL that stands for several tenants; it never is the iss of a token. */
bool oidc_issuer_is_template(struct str url);
/*
 * Compares iss with the issuer, byte for byte. Two exceptions: Google's old name without https, and
 * Entra's template ({tenantid}, common, organizations or consumers in the URL), which fits when the
 * tenant that the token names in tid is put in. tid may be empty.
 */
bool oidc_issuer_matches(const struct oidc_issuer *issuer, struct str iss, struct str tid);

#endif
