/* Issuers of ours written as Kubernetes' AuthenticationConfiguration. */
#include "oidc/authn_render.h"

#include <string.h>

#include "base/encode.h"

struct writing {
    struct arena *arena;
    struct buf *out;
    const struct oidc_issuer *issuer;
    struct buf expression;
};

/* A JSON string is a YAML string in double quotes; CEL reads it the same. */
static void add_quoted(struct buf *out, struct str text)
{
    struct enc enc;
    enc_init(&enc, out);
    enc_str(&enc, text);
}

static void add_line(struct writing *writing, const char *key, struct str value)
{
    buf_add_c(writing->out, key);
    add_quoted(writing->out, value);
    buf_add_c(writing->out, "\n");
}

static void add_list(struct buf *out, const struct str_list *list)
{
    buf_add_c(out, "[");
    for (size_t i = 0; i < list->count; i++) {
        buf_add_c(out, i > 0 ? ", " : "");
        add_quoted(out, list->items[i]);
    }
    buf_add_c(out, "]");
}

/* Writes what was gathered in expression as a rule. */
static void add_rule(struct writing *writing, const char *message)
{
    add_line(writing, "  - expression: ", buf_str(&writing->expression));
    if (message != NULL) {
        add_line(writing, "    message: ", str_of(message));
    }
    buf_clear(&writing->expression);
}

static void add_issuer(struct writing *writing, struct str url)
{
    const struct oidc_issuer *issuer = writing->issuer;
    add_line(writing, "- issuer:\n    url: ", url);
    if (issuer->discovery_url.len > 0) {
        add_line(writing, "    discoveryURL: ", issuer->discovery_url);
    }
    if (issuer->ca_certificate.len > 0) {
        add_line(writing, "    certificateAuthority: ", issuer->ca_certificate);
    }
    buf_add_c(writing->out, "    audiences: ");
    add_list(writing->out, &issuer->audiences);
    buf_add_c(writing->out,
              issuer->audiences.count > 1 ? "\n    audienceMatchPolicy: MatchAny\n" : "\n");
}

static void add_email_rules(struct writing *writing)
{
    const struct oidc_issuer *issuer = writing->issuer;
    struct buf *expression = &writing->expression;
    bool is_name = issuer->username.path_len == 1 && str_eq_c(issuer->username.path[0], "email");
    bool lenient = (issuer->quirks & OIDC_QUIRK_EMAIL_VERIFIED_ABSENT) != 0;
    if (!is_name && issuer->allowed_domains.count == 0) {
        return;
    }
    buf_printf(expression, "claims.?email_verified.orValue(%s) == true",
               lenient ? "true" : "false");
    add_rule(writing, "the email address is not verified");
    if (issuer->allowed_domains.count > 0) {
        buf_add_c(expression, "string(claims.email).split('@').size() == 2 && "
                              "string(claims.email).split('@')[1].lowerAscii() in ");
        add_list(expression, &issuer->allowed_domains);
        add_rule(writing, "the email domain is not allowed");
    }
}

static void add_claim_rules(struct writing *writing)
{
    const struct oidc_issuer *issuer = writing->issuer;
    struct buf *expression = &writing->expression;
    struct str client = issuer->client_id;
    struct str_list parties = client.len > 0 ? (struct str_list){&client, 1} : issuer->audiences;
    buf_add_c(writing->out, "  claimValidationRules:\n");
    buf_add_c(expression, "!has(claims.azp) || claims.azp in ");
    add_list(expression, &parties);
    add_rule(writing, "the token was issued to another client");
    buf_printf(expression, "!has(claims.iat) || claims.exp - claims.iat <= %lld",
               (long long)issuer->max_lifetime_s);
    add_rule(writing, "the token lives too long");
    for (size_t i = 0; i < issuer->required_count; i++) {
        add_line(writing, "  - claim: ", issuer->required[i].name);
        add_line(writing, "    requiredValue: ", issuer->required[i].value);
    }
    add_email_rules(writing);
    if (issuer->groups.path_len == 1 && str_eq_c(issuer->groups.path[0], "groups")) {
        buf_add_c(expression, "!has(claims.hasgroups) || has(claims.groups)");
        add_rule(writing, "the groups did not fit into the token");
    }
}

/* has() of each step, then the list with the prefix before each name. */
static void add_nested_groups(struct writing *writing)
{
    const struct oidc_mapping *groups = &writing->issuer->groups;
    struct buf *expression = &writing->expression;
    CLEANUP(buf_free) struct buf path = {0};
    buf_add_c(&path, "claims");
    for (size_t i = 0; i < groups->path_len; i++) {
        buf_printf(expression, "%s", i > 0 ? " && " : "");
        add_quoted(expression, groups->path[i]);
        buf_printf(expression, " in %s", path.ptr);
        buf_add_c(&path, "[");
        add_quoted(&path, groups->path[i]);
        buf_add_c(&path, "]");
    }
    buf_printf(expression, " ? dyn(%s).map(g, ", path.ptr);
    add_quoted(expression, groups->prefix);
    buf_add_c(expression, " + string(g)) : []");
    add_line(writing, "    groups:\n      expression: ", buf_str(expression));
    buf_clear(expression);
}

static void add_mappings(struct writing *writing)
{
    const struct oidc_issuer *issuer = writing->issuer;
    add_line(writing, "  claimMappings:\n    username:\n      claim: ", issuer->username.path[0]);
    add_line(writing, "      prefix: ", issuer->username.prefix);
    if (issuer->groups.path_len == 1) {
        add_line(writing, "    groups:\n      claim: ", issuer->groups.path[0]);
        add_line(writing, "      prefix: ", issuer->groups.prefix);
    } else if (issuer->groups.path_len > 1) {
        add_nested_groups(writing);
    }
}

static void add_user_rules(struct writing *writing)
{
    buf_add_c(writing->out, "  userValidationRules:\n");
    buf_add_c(&writing->expression, "!user.username.startsWith('system:')");
    add_rule(writing, "system: is reserved");
    buf_add_c(&writing->expression, "user.groups.all(g, !g.startsWith('system:'))");
    add_rule(writing, "system: is reserved");
}

static void add_entry(struct writing *writing, struct str url)
{
    add_issuer(writing, url);
    add_claim_rules(writing);
    add_mappings(writing);
    add_user_rules(writing);
}

static const char *find_obstacle(struct arena *arena, const struct oidc_issuer *issuer)
{
    bool groups = issuer->groups.path_len > 0;
    if (issuer->username.prefix.len == 0 || (groups && issuer->groups.prefix.len == 0)) {
        return arena_printf(arena,
                            "%.*s: username_prefix and groups_prefix are needed for "
                            "Kubernetes, so that no token can name another issuer's groups.",
                            STR_FMT(issuer->url));
    }
    if (oidc_issuer_is_template(issuer->url) && issuer->entra_tenants.count == 0) {
        return arena_printf(arena, "%.*s: list the tenants in entra_tenants.",
                            STR_FMT(issuer->url));
    }
    return NULL;
}

const char *authn_config_render(struct arena *arena, const struct oidc_issuer *issuers,
                                size_t count, struct buf *out)
{
    for (size_t i = 0; i < count; i++) {
        const char *obstacle = find_obstacle(arena, &issuers[i]);
        if (obstacle != NULL) {
            return obstacle;
        }
    }
    buf_printf(out,
               "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n"
               "jwt:%s\n",
               count == 0 ? " []" : "");
    for (size_t i = 0; i < count; i++) {
        struct writing writing = {.arena = arena, .out = out, .issuer = &issuers[i]};
        if (!oidc_issuer_is_template(issuers[i].url)) {
            add_entry(&writing, issuers[i].url);
        } else {
            for (size_t k = 0; k < issuers[i].entra_tenants.count; k++) {
                add_entry(&writing, oidc_issuer_of_tenant(arena, issuers[i].url,
                                                          issuers[i].entra_tenants.items[k]));
            }
        }
        buf_free(&writing.expression);
    }
    return NULL;
}
