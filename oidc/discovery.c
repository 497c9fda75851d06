/* An issuer's discovery document, read and compared; fetching it is somebody else's work. */
#include "oidc/discovery.h"

#include <stddef.h>
#include <string.h>

#include "oidc/jose.h"

#define ADDRESS_MAX 2048

struct address {
    const char *name;
    size_t offset;
    bool required;
};

#define AT(member) offsetof(struct oidc_discovery, member)
static const struct address addresses[] = {
    {"jwks_uri", AT(jwks_uri), true},
    {"authorization_endpoint", AT(authorization_endpoint), false},
    {"token_endpoint", AT(token_endpoint), false},
    {"userinfo_endpoint", AT(userinfo_endpoint), false},
    {"end_session_endpoint", AT(end_session_endpoint), false},
    {"device_authorization_endpoint", AT(device_authorization_endpoint), false},
    {"revocation_endpoint", AT(revocation_endpoint), false},
};

const char *oidc_discovery_url(struct arena *arena, struct str issuer)
{
    if (issuer.len > 0 && issuer.ptr[issuer.len - 1] == '/') {
        issuer.len--;
    }
    return arena_printf(arena, "%.*s/.well-known/openid-configuration", STR_FMT(issuer));
}

/* A query is allowed here, unlike in an issuer (Azure AD B2C puts its policy there). */
static bool is_address(struct str url, bool allow_http)
{
    bool scheme =
        str_starts(url, STR("https://")) || (allow_http && str_starts(url, STR("http://")));
    bool plain = url.len <= ADDRESS_MAX && jose_text_is_plain(url);
    return scheme && plain && str_find(url, STR(" "), 0) < 0 && str_find(url, STR("\\"), 0) < 0 &&
           str_find(url, STR("#"), 0) < 0;
}

static bool read_addresses(struct arena *arena, const json_t *root, bool allow_http,
                           struct oidc_discovery *ret, const char **ret_detail)
{
    for (size_t i = 0; i < COUNTOF(addresses); i++) {
        const json_t *value = json_object_get(root, addresses[i].name);
        struct str text = jose_text(value);
        if (value == NULL && !addresses[i].required) {
            continue;
        }
        if (!json_is_string(value) || !is_address(text, allow_http)) {
            *ret_detail = arena_printf(
                arena, "The discovery document's %s is not an https address.", addresses[i].name);
            return false;
        }
        struct str copy = {arena_strndup(arena, text.ptr, text.len), text.len};
        memcpy((char *)ret + addresses[i].offset, &copy, sizeof(copy));
    }
    return true;
}

static bool lists(const json_t *root, const char *name, const char *word)
{
    const json_t *list = json_object_get(root, name);
    for (size_t i = 0; i < json_array_size(list); i++) {
        if (str_eq_c(jose_text(json_array_get(list, i)), word)) {
            return true;
        }
    }
    return false;
}

static unsigned read_algs(const json_t *root)
{
    unsigned algs = JOSE_ALG_BIT(JOSE_RS256); /* every issuer must have it (Discovery 3) */
    for (unsigned i = 0; i < JOSE_ALG_COUNT; i++) {
        if (lists(root, "id_token_signing_alg_values_supported", jose_algs[i].name)) {
            algs |= JOSE_ALG_BIT(i);
        }
    }
    return algs;
}

static bool is_own(const struct oidc_issuer *issuer, struct str named)
{
    bool template = issuer->entra_tenants.count > 0 && oidc_issuer_is_template(issuer->url) &&
                    oidc_issuer_is_template(named);
    return str_eq(named, issuer->url) || template;
}

enum oidc_reason oidc_discovery_read(struct arena *arena, const struct oidc_issuer *issuer,
                                     struct str text, bool allow_http, struct oidc_discovery *ret,
                                     const char **ret_detail)
{
    const char *why = "it is too large";
    *ret = (struct oidc_discovery){0};
    json_t *root = text.len <= DISCOVERY_MAX_BYTES ? jose_read_object(arena, text, &why) : NULL;
    if (root == NULL) {
        *ret_detail =
            arena_printf(arena, "The discovery document is not acceptable JSON: %s.", why);
        return OIDC_IDP_UNAVAILABLE;
    }
    enum oidc_reason reason = OIDC_OK;
    struct str named = jose_text(json_object_get(root, "issuer"));
    if (!is_own(issuer, named)) {
        *ret_detail = arena_printf(
            arena, "The discovery document is that of \"%s\"; the issuer is \"%s\", byte for byte.",
            jose_quote(arena, named), jose_quote(arena, issuer->url));
        reason = OIDC_ISS_MISMATCH;
    } else if (!read_addresses(arena, root, allow_http, ret, ret_detail)) {
        reason = OIDC_IDP_UNAVAILABLE;
    }
    ret->algs = read_algs(root);
    ret->announces_iss =
        json_is_true(json_object_get(root, "authorization_response_iss_parameter_supported"));
    ret->announces_s256 = lists(root, "code_challenge_methods_supported", "S256");
    ret->announces_backchannel_logout =
        json_is_true(json_object_get(root, "backchannel_logout_supported"));
    const char *methods = "token_endpoint_auth_methods_supported";
    ret->client_post = lists(root, methods, "client_secret_post");
    ret->client_basic = json_array_size(json_object_get(root, methods)) == 0 ||
                        lists(root, methods, "client_secret_basic");
    json_decref(root);
    return reason;
}
