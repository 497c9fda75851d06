/* Promises of oidc/discovery.h. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "oidc/alg.h"
#include "oidc/discovery.h"

#define ISSUER "https://idp.example.test"

static struct arena *arena;
static struct oidc_issuer issuer;

static void make_arena(void)
{
    arena = arena_new(4U << 20);
    oidc_issuer_init(&issuer);
    issuer.url = STR(ISSUER);
}

static void drop_arena(void)
{
    arena_free(arena);
}

TestSuite(oidc_discovery, .init = make_arena, .fini = drop_arena);

static enum oidc_reason read_document(const char *text, struct oidc_discovery *ret)
{
    const char *detail = NULL;
    enum oidc_reason reason =
        oidc_discovery_read(arena, &issuer, str_of(text), false, ret, &detail);
    cr_assert(reason == OIDC_OK || detail != NULL);
    return reason;
}

Test(oidc_discovery, what_is_announced_is_read)
{
    struct oidc_discovery found;
    const char *text = "{\"issuer\":\"" ISSUER "\",\"jwks_uri\":\"" ISSUER "/keys?p=1\","
                       "\"token_endpoint\":\"" ISSUER "/token\","
                       "\"id_token_signing_alg_values_supported\":[\"ES256\",\"HS256\",\"none\"],"
                       "\"code_challenge_methods_supported\":[\"plain\",\"S256\"],"
                       "\"authorization_response_iss_parameter_supported\":true}";
    cr_assert_eq(read_document(text, &found), OIDC_OK);
    cr_assert(str_eq_c(found.jwks_uri, ISSUER "/keys?p=1"));
    cr_assert(str_eq_c(found.token_endpoint, ISSUER "/token"));
    cr_assert_eq(found.authorization_endpoint.len, 0);
    cr_assert_eq(found.algs, JOSE_ALG_BIT(JOSE_RS256) | JOSE_ALG_BIT(JOSE_ES256));
    cr_assert(found.announces_iss && found.announces_s256 && !found.announces_backchannel_logout);
}

/* discovery-issuer-mixup */
Test(oidc_discovery, a_document_of_another_issuer_is_never_used)
{
    static const char *const others[] = {"https://evil.example.test", ISSUER "/", "",
                                         "HTTPS://idp.example.test"};
    for (size_t i = 0; i < COUNTOF(others); i++) {
        struct oidc_discovery found;
        char text[256];
        (void)snprintf(text, sizeof(text), "{\"issuer\":\"%s\",\"jwks_uri\":\"" ISSUER "/k\"}",
                       others[i]);
        cr_expect_eq(read_document(text, &found), OIDC_ISS_MISMATCH, "%s", others[i]);
    }
    struct oidc_discovery found;
    cr_assert_eq(read_document("{\"jwks_uri\":\"" ISSUER "/k\"}", &found), OIDC_ISS_MISMATCH);
}

Test(oidc_discovery, documents_that_cannot_be_used)
{
    static const char *const bad[] = {
        "<html>",
        "[]",
        "{\"issuer\":\"" ISSUER "\"}",
        "{\"issuer\":\"" ISSUER "\",\"jwks_uri\":\"http://idp.example.test/k\"}",
        "{\"issuer\":\"" ISSUER "\",\"jwks_uri\":7}",
        "{\"issuer\":\"" ISSUER "\",\"jwks_uri\":\"" ISSUER
        "/k\",\"token_endpoint\":\"file:///x\"}",
        "{\"issuer\":\"" ISSUER "\",\"issuer\":\"" ISSUER "\",\"jwks_uri\":\"" ISSUER "/k\"}",
    };
    for (size_t i = 0; i < COUNTOF(bad); i++) {
        struct oidc_discovery found;
        cr_expect_eq(read_document(bad[i], &found), OIDC_IDP_UNAVAILABLE, "row %zu", i);
    }
}

Test(oidc_discovery, the_template_of_entra_is_its_own_only_with_listed_tenants)
{
    struct oidc_discovery found;
    struct str tenants[] = {STR("11111111-1111-1111-1111-111111111111")};
    const char *text = "{\"issuer\":\"https://login.microsoftonline.com/{tenantid}/v2.0\","
                       "\"jwks_uri\":\"https://login.microsoftonline.com/common/keys\"}";
    issuer.url = STR("https://login.microsoftonline.com/common/v2.0");
    cr_assert_eq(read_document(text, &found), OIDC_ISS_MISMATCH);
    issuer.entra_tenants = (struct str_list){tenants, 1};
    cr_assert_eq(read_document(text, &found), OIDC_OK);
}

/* iss-trailing-slash-auth0 */
Test(oidc_discovery, one_slash_at_the_end_is_left_out_of_the_address)
{
    cr_assert_str_eq(oidc_discovery_url(arena, STR("https://t.auth0.test/")),
                     "https://t.auth0.test/.well-known/openid-configuration");
    cr_assert_str_eq(oidc_discovery_url(arena, STR("https://o.okta.test/oauth2/default")),
                     "https://o.okta.test/oauth2/default/.well-known/openid-configuration");
}
