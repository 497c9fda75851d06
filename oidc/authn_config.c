/* Kubernetes' AuthenticationConfiguration: judged as kube-apiserver would, and used by our
 * verifier. */
#include "oidc/authn_config.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <string.h>

#include "oidc/authn_decode.h"
#include "oidc/jose.h"
#include "oidc/yaml_read.h"

struct judging {
    struct arena *arena;
    struct authn_config *config;
    const struct authn_document *document;
    struct str service_account_issuer;
    const char *path; /* jwt[0] */
};

/* ------------------------------------------------------------------ small helpers */
static void complain(struct judging *judging, const char *field, const char *code,
                     const char *message)
{
    authn_error(judging->config, arena_printf(judging->arena, "%s.%s", judging->path, field), code,
                message);
}

/* What kube-apiserver would load although no login could succeed. */
static void complain_own(struct judging *judging, const char *field, const char *message)
{
    size_t before = judging->config->error_count;
    complain(judging, field, "invalid", message);
    judging->config->own_count += judging->config->error_count - before;
}

static void warn(struct judging *judging, const char *field, const char *message)
{
    struct authn_config *config = judging->config;
    if (config->warning_count < AUTHN_PROBLEMS_MAX) {
        config->warnings[config->warning_count++] = (struct authn_problem){
            arena_printf(judging->arena, "%s.%s", judging->path, field), "unwise", message};
    }
}

static struct str trim_slashes(struct str url)
{
    while (url.len > 0 && url.ptr[url.len - 1] == '/') {
        url.len--;
    }
    return url;
}

/* Compiles; a failure is complained of. `wanted` says which types may come out. */
static const struct cel *compile(struct judging *judging, struct str text, enum cel_env env,
                                 const char *field)
{
    bool unknown = false;
    const char *error = "";
    const struct cel *cel = cel_compile(judging->arena, text, env, &unknown, &error);
    if (cel == NULL) {
        complain(judging, field, unknown ? "not_supported" : "invalid",
                 arena_printf(judging->arena, "the expression does not compile: %s", error));
    }
    return cel;
}

static const struct cel *compile_rule(struct judging *judging, struct str text, enum cel_env env,
                                      const char *field)
{
    const struct cel *cel = compile(judging, text, env, field);
    if (cel != NULL && cel_type(cel) != CEL_BOOL) {
        complain(judging, field, "invalid", "must evaluate to bool");
    }
    return cel;
}

static bool is_open(enum cel_kind kind)
{
    return kind == CEL_DYN || kind == CEL_ANY;
}

/* A name must be able to come out: kube-apiserver loads others and then refuses each login. */
static const struct cel *compile_name(struct judging *judging, struct str text, bool list,
                                      const char *field)
{
    const struct cel *cel = compile(judging, text, CEL_ENV_CLAIMS, field);
    if (cel == NULL) {
        return NULL;
    }
    enum cel_kind kind = cel_type(cel);
    enum cel_kind item = cel_item_type(cel);
    bool listed = list && kind == CEL_LIST && (item == CEL_STRING || is_open(item));
    if (!listed && kind != CEL_STRING && !is_open(kind)) {
        complain_own(judging, field,
                     list ? "must evaluate to a text or a list of texts: no login would succeed"
                          : "must evaluate to a text: no login would succeed");
    }
    return cel;
}

/* ------------------------------------------------------------------ issuer */
static void judge_url(struct judging *judging, struct str url)
{
    const char *problem = oidc_url_problem(url);
    if (url.len == 0) {
        complain(judging, "issuer.url", "required", "URL is required");
        return;
    }
    if (problem != NULL) {
        complain(judging, "issuer.url", "invalid", problem);
    }
    if (judging->service_account_issuer.len > 0 && str_eq(url, judging->service_account_issuer)) {
        /* The path is the one that kube-apiserver gives. */
        authn_error(judging->config, "issuer.url", "invalid",
                    arena_printf(judging->arena,
                                 "%s: URL must not be the issuer of service account tokens",
                                 judging->path));
    }
    if (oidc_issuer_is_template(url)) {
        complain_own(judging, "issuer.url",
                     "URL stands for several tenants of Entra and is the iss of no token: name one "
                     "tenant");
    }
    for (size_t i = 0; i < judging->document->jwt_count; i++) {
        const struct str other = judging->document->jwt[i].issuer.url;
        if (other.ptr == url.ptr) {
            break;
        }
        if (str_eq(other, url)) {
            complain(judging, "issuer.url", "duplicate", "another issuer has this URL");
        }
    }
}

static void judge_discovery(struct judging *judging, const struct authn_issuer *issuer)
{
    struct str url = issuer->discovery_url;
    const char *problem = oidc_url_problem(url);
    if (url.len == 0) {
        return;
    }
    if (str_eq(trim_slashes(url), trim_slashes(issuer->url))) {
        complain(judging, "issuer.discoveryURL", "invalid",
                 "discoveryURL must be different from URL");
    }
    if (problem != NULL) {
        complain(judging, "issuer.discoveryURL", "invalid", problem);
    }
    for (size_t i = 0; i < judging->document->jwt_count; i++) {
        const struct str other = judging->document->jwt[i].issuer.discovery_url;
        if (other.ptr == url.ptr) {
            break;
        }
        if (str_eq(other, url)) {
            complain(judging, "issuer.discoveryURL", "duplicate", "another issuer has this URL");
        }
    }
}

static void judge_audiences(struct judging *judging, const struct authn_issuer *issuer)
{
    const struct str_list *list = &issuer->audiences;
    bool any = str_eq(issuer->match_policy, STR("MatchAny"));
    if (list->count == 0) {
        complain(judging, "issuer.audiences", "required", "at least one audience is required");
    }
    for (size_t i = 0; i < list->count; i++) {
        const char *field = arena_printf(judging->arena, "issuer.audiences[%zu]", i);
        if (list->items[i].len == 0) {
            complain(judging, field, "required", "an audience must not be empty");
        }
        for (size_t k = 0; k < i; k++) {
            if (list->items[i].len > 0 && str_eq(list->items[i], list->items[k])) {
                complain(judging, field, "duplicate", "the audience is listed twice");
                break;
            }
        }
    }
    if (list->count > 1 && !any) {
        complain(judging, "issuer.audienceMatchPolicy", "invalid",
                 "audienceMatchPolicy must be MatchAny for multiple audiences");
    } else if (issuer->match_policy.len > 0 && !any) {
        complain(judging, "issuer.audienceMatchPolicy", "invalid",
                 "audienceMatchPolicy must be empty or MatchAny for single audience");
    }
}

static bool is_pem(struct str text)
{
    BIO *bio = text.len < AUTHN_MAX_BYTES ? BIO_new_mem_buf(text.ptr, (int)text.len) : NULL;
    X509 *certificate = bio != NULL ? PEM_read_bio_X509(bio, NULL, NULL, NULL) : NULL;
    bool good = certificate != NULL;
    X509_free(certificate);
    BIO_free(bio);
    ERR_clear_error();
    return good;
}

static void judge_issuer(struct judging *judging, const struct authn_issuer *issuer)
{
    judge_url(judging, issuer->url);
    judge_discovery(judging, issuer);
    judge_audiences(judging, issuer);
    if (issuer->certificate_authority.len > 0 && !is_pem(issuer->certificate_authority)) {
        complain(judging, "issuer.certificateAuthority", "invalid",
                 "certificateAuthority must be certificates in PEM");
    }
    if (issuer->egress.len > 0 && !str_eq(issuer->egress, STR("controlplane")) &&
        !str_eq(issuer->egress, STR("cluster"))) {
        complain(judging, "issuer.egressSelectorType", "invalid",
                 "egress selector must be either controlplane or cluster");
    }
}

/* ------------------------------------------------------------------ rules */
static bool stands_before(struct str text, const char *base, size_t stride, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct str other;
        memcpy(&other, base + i * stride, sizeof(other));
        if (str_eq(other, text)) {
            return true;
        }
    }
    return false;
}

static void judge_claim_rule(struct judging *judging, const struct authn_jwt *jwt, size_t i,
                             struct oidc_issuer *issuer)
{
    const struct authn_claim_rule *rule = &jwt->claim_rules[i];
    const char *at = arena_printf(judging->arena, "claimValidationRules[%zu]", i);
    const char *claim = arena_printf(judging->arena, "%s.claim", at);
    const char *expression = arena_printf(judging->arena, "%s.expression", at);
    size_t stride = sizeof(*rule);
    if (rule->claim.len > 0 && rule->expression.len > 0) {
        complain(judging, at, "invalid", "claim and expression can't both be set");
        return;
    }
    if (rule->claim.len == 0 && rule->expression.len == 0) {
        complain(judging, at, "required", "claim or expression is required");
        return;
    }
    if (rule->claim.len > 0) {
        if (rule->message.len > 0) {
            complain(judging, arena_printf(judging->arena, "%s.message", at), "invalid",
                     "may not be specified when claim is set");
        }
        if (stands_before(rule->claim, (const char *)&jwt->claim_rules->claim, stride, i)) {
            complain(judging, claim, "duplicate", "another rule is about this claim");
        }
        issuer->required[issuer->required_count++] =
            (struct oidc_pair){rule->claim, rule->required_value};
        return;
    }
    if (rule->required_value.len > 0) {
        complain(judging, arena_printf(judging->arena, "%s.requiredValue", at), "invalid",
                 "may not be specified when expression is set");
    }
    if (stands_before(rule->expression, (const char *)&jwt->claim_rules->expression, stride, i)) {
        complain(judging, expression, "duplicate", "another rule is the same");
    }
    const struct cel *cel = compile_rule(judging, rule->expression, CEL_ENV_CLAIMS, expression);
    issuer->claim_rules[issuer->claim_rule_count++] =
        (struct oidc_rule){cel, rule->expression, rule->message};
}

static void judge_user_rule(struct judging *judging, const struct authn_jwt *jwt, size_t i,
                            struct oidc_issuer *issuer)
{
    const struct authn_user_rule *rule = &jwt->user_rules[i];
    const char *field = arena_printf(judging->arena, "userValidationRules[%zu].expression", i);
    if (rule->expression.len == 0) {
        complain(judging, field, "required", "expression is required");
        return;
    }
    if (stands_before(rule->expression, (const char *)&jwt->user_rules->expression, sizeof(*rule),
                      i)) {
        complain(judging, field, "duplicate", "another rule is the same");
    }
    const struct cel *cel = compile_rule(judging, rule->expression, CEL_ENV_USER, field);
    issuer->user_rules[issuer->user_rule_count++] =
        (struct oidc_rule){cel, rule->expression, rule->message};
}

/* ------------------------------------------------------------------ mappings */
static void judge_mapping(struct judging *judging, const struct authn_mapping *mapping,
                          const char *name, bool list, struct oidc_mapping *ret)
{
    const char *at = arena_printf(judging->arena, "claimMappings.%s", name);
    const char *prefix = arena_printf(judging->arena, "%s.prefix", at);
    bool is_uid = strcmp(name, "uid") == 0;
    if (mapping->claim.len > 0 && mapping->expression.len > 0) {
        complain(judging, at, "invalid", "claim and expression can't both be set");
        return;
    }
    if (mapping->expression.len > 0) {
        if (mapping->has_prefix) {
            complain(judging, prefix, "invalid", "may not be specified when expression is set");
        }
        ret->expression = compile_name(judging, mapping->expression, list,
                                       arena_printf(judging->arena, "%s.expression", at));
        return;
    }
    if (mapping->claim.len == 0) {
        if (!list && !is_uid) {
            complain(judging, at, "required", "claim or expression is required");
        } else if (mapping->has_prefix && mapping->prefix.len > 0) {
            complain(judging, prefix, "invalid", "may not be specified when claim is not set");
        }
        return;
    }
    if (!is_uid && !mapping->has_prefix) {
        complain(judging, prefix, "required",
                 "prefix is required when claim is set. It can be set to an empty string to "
                 "disable prefixing");
    }
    ret->path[0] = mapping->claim;
    ret->path_len = 1;
    ret->prefix = mapping->prefix;
}

/* acme.io/foo: a DNS name, a slash, and a path of harmless characters. */
static bool is_domain_path(struct str key)
{
    ptrdiff_t slash = str_find(key, STR("/"), 0);
    if (slash <= 0 || (size_t)slash + 1 == key.len ||
        !str_is_host_name((struct str){key.ptr, (size_t)slash})) {
        return false;
    }
    for (size_t i = (size_t)slash + 1; i < key.len; i++) {
        char c = key.ptr[i];
        bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                    strchr("/-._~!$&'()*+,;=:%", c) != NULL;
        if (!good || c == '\0') {
            return false;
        }
    }
    return true;
}

static bool is_lower(struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] >= 'A' && text.ptr[i] <= 'Z') {
            return false;
        }
    }
    return true;
}

static bool is_of_domain(struct str key, const char *domain)
{
    ptrdiff_t slash = str_find(key, STR("/"), 0);
    struct str host = {key.ptr, slash > 0 ? (size_t)slash : 0};
    struct str name = str_of(domain);
    return str_eq(host, name) || (host.len > name.len && str_ends(host, name) &&
                                  host.ptr[host.len - name.len - 1] == '.');
}

static void judge_extra(struct judging *judging, const struct authn_jwt *jwt, size_t i,
                        struct oidc_issuer *issuer)
{
    const struct authn_extra *extra = &jwt->extra[i];
    const char *key = arena_printf(judging->arena, "claimMappings.extra[%zu].key", i);
    const char *value = arena_printf(judging->arena, "claimMappings.extra[%zu].valueExpression", i);
    if (extra->key.len == 0) {
        complain(judging, key, "required", "key is required");
    } else if (!is_lower(extra->key)) {
        complain(judging, key, "invalid", "must be lowercase");
    } else if (!is_domain_path(extra->key)) {
        complain(judging, key, "invalid",
                 "must be a domain-prefixed path (such as \"acme.io/foo\")");
    } else if (is_of_domain(extra->key, "k8s.io") || is_of_domain(extra->key, "kubernetes.io")) {
        complain(judging, key, "invalid",
                 "k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use");
    }
    if (extra->key.len > 0 &&
        stands_before(extra->key, (const char *)&jwt->extra->key, sizeof(*extra), i)) {
        complain(judging, key, "duplicate", "another extra has this key");
    }
    if (extra->expression.len == 0) {
        complain(judging, value, "required", "valueExpression is required");
        return;
    }
    const struct cel *cel = compile_name(judging, extra->expression, true, value);
    issuer->extra[issuer->extra_count++] = (struct oidc_extra){extra->key, cel};
}

/* A user name from the email address needs a look at whether the address was verified. */
static void judge_email(struct judging *judging, const struct oidc_issuer *issuer)
{
    const struct cel *username = issuer->username.expression;
    if (username == NULL || !cel_uses_claim(username, "email")) {
        return;
    }
    bool used = cel_uses_claim(username, "email_verified");
    for (size_t i = 0; i < issuer->extra_count; i++) {
        const struct cel *cel = issuer->extra[i].expression;
        used = used || (cel != NULL && cel_uses_claim(cel, "email_verified"));
    }
    for (size_t i = 0; i < issuer->claim_rule_count; i++) {
        const struct cel *cel = issuer->claim_rules[i].expression;
        used = used || (cel != NULL && cel_uses_claim(cel, "email_verified"));
    }
    if (!used) {
        complain(judging, "claimMappings.username.expression", "invalid",
                 "claims.email_verified must be used in claimMappings.username.expression or "
                 "claimMappings.extra[*].valueExpression or claimValidationRules[*].expression "
                 "when claims.email is used in claimMappings.username.expression");
    }
}

/* Without a prefix a token may carry Kubernetes' own names. */
static void judge_prefixes(struct judging *judging, const struct authn_jwt *jwt)
{
    bool guarded = false;
    for (size_t i = 0; i < jwt->user_rule_count; i++) {
        guarded = guarded || str_find(jwt->user_rules[i].expression, STR("system:"), 0) >= 0;
    }
    if (guarded) {
        return;
    }
    if (jwt->username.claim.len > 0 && jwt->username.has_prefix && jwt->username.prefix.len == 0) {
        warn(judging, "claimMappings.username.prefix",
             "without a prefix or a user rule against system: a token may name a system user");
    }
    if (jwt->groups.claim.len > 0 && jwt->groups.has_prefix && jwt->groups.prefix.len == 0) {
        warn(judging, "claimMappings.groups.prefix",
             "without a prefix or a user rule against system: a token with the group "
             "system:masters rules the cluster");
    }
}

static void judge_jwt(struct judging *judging, const struct authn_jwt *jwt,
                      struct oidc_issuer *issuer)
{
    struct arena *arena = judging->arena;
    oidc_issuer_init(issuer);
    issuer->url = jwt->issuer.url;
    issuer->audiences = jwt->issuer.audiences;
    issuer->for_kubernetes = true;
    issuer->required = arena_zalloc(arena, (jwt->claim_rule_count + 1) * sizeof(*issuer->required));
    issuer->claim_rules =
        arena_zalloc(arena, (jwt->claim_rule_count + 1) * sizeof(*issuer->claim_rules));
    issuer->user_rules =
        arena_zalloc(arena, (jwt->user_rule_count + 1) * sizeof(*issuer->user_rules));
    issuer->extra = arena_zalloc(arena, (jwt->extra_count + 1) * sizeof(*issuer->extra));
    judge_issuer(judging, &jwt->issuer);
    for (size_t i = 0; i < jwt->claim_rule_count; i++) {
        judge_claim_rule(judging, jwt, i, issuer);
    }
    judge_mapping(judging, &jwt->username, "username", false, &issuer->username);
    judge_mapping(judging, &jwt->groups, "groups", true, &issuer->groups);
    judge_mapping(judging, &jwt->uid, "uid", false, &issuer->uid);
    for (size_t i = 0; i < jwt->extra_count; i++) {
        judge_extra(judging, jwt, i, issuer);
    }
    judge_email(judging, issuer);
    for (size_t i = 0; i < jwt->user_rule_count; i++) {
        judge_user_rule(judging, jwt, i, issuer);
    }
    judge_prefixes(judging, jwt);
}

/* ------------------------------------------------------------------ the whole */
static void judge_anonymous(struct judging *judging, const struct authn_anonymous *anonymous)
{
    if (anonymous->condition_count > 0 && !anonymous->enabled) {
        authn_error(judging->config, "anonymous.conditions", "invalid",
                    "enabled must be true when conditions are given");
    }
    for (size_t i = 0; i < anonymous->condition_count; i++) {
        if (anonymous->conditions[i].path.len == 0) {
            authn_error(judging->config,
                        arena_printf(judging->arena, "anonymous.conditions[%zu].path", i),
                        "required", "path is required");
        }
    }
}

static bool judge_version(struct authn_config *config, const struct authn_document *document)
{
    static const char *const versions[] = {"apiserver.config.k8s.io/v1",
                                           "apiserver.config.k8s.io/v1beta1",
                                           "apiserver.config.k8s.io/v1alpha1"};
    bool known = false;
    for (size_t i = 0; i < COUNTOF(versions); i++) {
        known = known || str_eq_c(document->api_version, versions[i]);
    }
    if (!known) {
        authn_error(config, "apiVersion", "not_supported",
                    "apiVersion must be apiserver.config.k8s.io/v1, v1beta1 or v1alpha1");
    }
    if (!str_eq_c(document->kind, "AuthenticationConfiguration")) {
        authn_error(config, "kind", "not_supported", "kind must be AuthenticationConfiguration");
    }
    return config->error_count == 0;
}

bool authn_config_is_one(const json_t *root)
{
    return json_object_get(root, "kind") != NULL || json_object_get(root, "apiVersion") != NULL ||
           json_object_get(root, "jwt") != NULL;
}

json_t *authn_config_parse(struct arena *arena, struct str text, const char **ret_error)
{
    if (text.len > AUTHN_MAX_BYTES) {
        *ret_error = "it has more than 512 KiB";
        return NULL;
    }
    struct str trimmed = str_trim(text);
    if (trimmed.len > 0 && trimmed.ptr[0] == '{') {
        json_t *root = jose_read_object(arena, text, ret_error);
        if (root != NULL) {
            return root;
        }
    }
    return yaml_read(arena, text, ret_error);
}

bool authn_config_read(struct arena *arena, const json_t *root, struct str service_account_issuer,
                       struct authn_config *ret)
{
    struct authn_document document;
    *ret = (struct authn_config){0};
    authn_decode(arena, root, &document, ret);
    if (ret->error_count > 0 || !judge_version(ret, &document)) {
        return false;
    }
    struct judging judging = {arena, ret, &document, service_account_issuer, ""};
    if (document.jwt_count > AUTHN_ISSUERS_MAX) {
        authn_error(ret, "jwt", "too_many", "must have at most 64 items");
        return false;
    }
    ret->issuers = arena_zalloc(arena, (document.jwt_count + 1) * sizeof(*ret->issuers));
    ret->issuer_count = document.jwt_count;
    for (size_t i = 0; i < document.jwt_count; i++) {
        judging.path = arena_printf(arena, "jwt[%zu]", i);
        judge_jwt(&judging, &document.jwt[i], &ret->issuers[i]);
    }
    judge_anonymous(&judging, &document.anonymous);
    return ret->error_count == 0;
}
