/* Promises of oidc/jwk.h, oidc/alg.h and oidc/reason.h. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/crypto.h"
#include "oidc/jwk.h"

/* P-256's generator, and a made-up odd modulus of 2048 bits without small factors is not needed:
 * Ed25519 takes any 32 bytes. */
#define ED \
    "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\"}"
#define EC_XY                                                \
    "\"x\":\"axfR8uEsQkf4vOblY6RA8ncDfYEt6zOg9KE5RdiYwpY\"," \
    "\"y\":\"T-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfU\""

static struct jwk_set *parse(const char *keys)
{
    CLEANUP(buf_free) struct buf text = {0};
    const char *error = "";
    buf_printf(&text, "{\"keys\":[%s]}", keys);
    struct jwk_set *set = jwk_set_parse(buf_str(&text), &error);
    cr_assert_not_null(set, "%s", error);
    return set;
}

Test(oidc_jwk, usable_keys_know_what_they_may_check)
{
    struct jwk_set *set = parse(ED ",{\"kty\":\"EC\",\"crv\":\"P-256\",\"kid\":\"e\"," EC_XY "}");
    cr_assert_eq(set->count, 2);
    cr_assert_eq(set->keys[0].algs, JOSE_ALG_BIT(JOSE_EDDSA));
    cr_assert_not(set->keys[0].has_kid);
    cr_assert_eq(set->keys[1].algs, JOSE_ALG_BIT(JOSE_ES256));
    cr_assert(str_eq_c(set->keys[1].kid, "e"));
    jwk_set_free(set);
}

Test(oidc_jwk, a_key_that_cannot_be_used_is_left_out_with_its_reason)
{
    static const struct {
        const char *key;
        enum jwk_skip skip;
    } rows[] = {
        {"null", JWK_SKIP_NOT_OBJECT},
        {"\"x\"", JWK_SKIP_NOT_OBJECT},
        {"{}", JWK_SKIP_KTY},
        {"{\"kty\":\"AKP\"}", JWK_SKIP_KTY},
        {"{\"kty\":[\"RSA\"]}", JWK_SKIP_KTY},
        {"{\"kty\":\"OKP\",\"crv\":\"Ed448\"}", JWK_SKIP_CRV},
        {"{\"kty\":\"EC\",\"crv\":\"secp256k1\"," EC_XY "}", JWK_SKIP_CRV},
        {"{\"kty\":\"EC\",\"crv\":\"P-256\",\"use\":\"enc\"," EC_XY "}", JWK_SKIP_USE},
        {"{\"kty\":\"EC\",\"crv\":\"P-256\",\"key_ops\":[\"sign\"]," EC_XY "}", JWK_SKIP_KEY_OPS},
        {"{\"kty\":\"EC\",\"crv\":\"P-256\",\"key_ops\":\"verify\"," EC_XY "}", JWK_SKIP_KEY_OPS},
        {"{\"kty\":\"EC\",\"crv\":\"P-256\",\"alg\":\"ES384\"," EC_XY "}", JWK_SKIP_ALG},
        {"{\"kty\":\"EC\",\"crv\":\"P-256\",\"d\":\"AA\"," EC_XY "}", JWK_SKIP_SECRET},
        {"{\"kty\":\"oct\",\"k\":\"AAAA\"}", JWK_SKIP_SECRET},
        {"{\"kty\":\"EC\",\"crv\":\"P-384\"," EC_XY "}", JWK_SKIP_MALFORMED},
        {"{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"AA\",\"y\":\"AA\"}", JWK_SKIP_MALFORMED},
        {"{\"kty\":\"RSA\",\"n\":\"AQAB\"}", JWK_SKIP_MALFORMED},
        {"{\"kty\":\"RSA\",\"n\":\"AQAB\",\"e\":\"AQAB\"}", JWK_SKIP_WEAK},
        {"{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"AAAA\"}", JWK_SKIP_MALFORMED},
        {"{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"AAAA\",\"kid\":7}", JWK_SKIP_MALFORMED},
    };
    for (size_t i = 0; i < COUNTOF(rows); i++) {
        char keys[1024];
        (void)snprintf(keys, sizeof(keys), "%s," ED, rows[i].key);
        struct jwk_set *set = parse(keys);
        cr_assert_eq(set->count, 1, "row %zu: the sound key stays", i);
        cr_assert_eq(set->skipped_count, 1);
        cr_expect_eq(set->skipped[0].skip, rows[i].skip, "row %zu: %s", i,
                     jwk_skip_word(set->skipped[0].skip));
        cr_expect(strlen(set->skipped[0].detail) > 0, "row %zu", i);
        jwk_set_free(set);
    }
}

Test(oidc_jwk, a_point_off_its_curve_is_forgeable)
{
    struct jwk_set *set = parse("{\"kty\":\"EC\",\"crv\":\"P-256\","
                                "\"x\":\"axfR8uEsQkf4vOblY6RA8ncDfYEt6zOg9KE5RdiYwpY\","
                                "\"y\":\"T-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfY\"}");
    cr_assert_eq(set->skipped[0].skip, JWK_SKIP_FORGEABLE);
    jwk_set_free(set);
}

Test(oidc_jwk, only_so_many_keys_are_looked_at)
{
    CLEANUP(buf_free) struct buf keys = {0};
    for (size_t i = 0; i < 2 * JWK_SET_MAX_KEYS; i++) {
        buf_printf(&keys, "%s%s", i > 0 ? "," : "", ED);
    }
    struct jwk_set *set = parse(keys.ptr);
    cr_assert_eq(set->count, JWK_SET_MAX_KEYS);
    cr_assert_eq(set->skipped_count, 1);
    cr_assert_eq(set->skipped[0].skip, JWK_SKIP_TOO_MANY);
    jwk_set_free(set);
}

Test(oidc_jwk, keys_that_share_their_kid_are_counted)
{
    const char *twice = "{\"kty\":\"EC\",\"crv\":\"P-256\",\"kid\":\"e\"," EC_XY "},"
                        "{\"kty\":\"EC\",\"crv\":\"P-256\",\"kid\":\"e\"," EC_XY "}";
    struct jwk_set *set = parse(twice);
    cr_assert_eq(set->count, 2);
    cr_assert_eq(set->duplicate_kids, 1);
    jwk_set_free(set);
}

Test(oidc_jwk, a_text_that_is_no_set_is_refused)
{
    static const char *const bad[] = {
        "", "x", "[]", "{}", "{\"keys\":{}}", "{\"keys\":[],\"keys\":[]}", "{\"keys\":[]} x"};
    for (size_t i = 0; i < COUNTOF(bad); i++) {
        const char *error = NULL;
        cr_expect_null(jwk_set_parse(str_of(bad[i]), &error), "row %zu", i);
        cr_expect_not_null(error);
    }
    struct jwk_set *empty = parse("");
    cr_assert_eq(empty->count, 0);
    jwk_set_free(empty);
}

Test(oidc_jwk, algorithms_are_found_by_their_exact_name)
{
    enum jose_alg alg;
    for (unsigned i = 0; i < JOSE_ALG_COUNT; i++) {
        cr_assert(jose_alg_find(str_of(jose_algs[i].name), &alg) && alg == i);
    }
    cr_assert_not(jose_alg_find(STR("rs256"), &alg));
    cr_assert_not(jose_alg_find(STR("HS256"), &alg));
    cr_assert_not(jose_alg_find(STR("none"), &alg));
    cr_assert_not(jose_alg_find(STR(""), &alg));
}

Test(oidc_jwk, reason_codes_are_the_closed_list)
{
    static const char *const codes =
        "ok bad_format too_large crit_unsupported alg_not_allowed alg_key_mismatch key_not_found "
        "weak_key bad_signature iss_mismatch aud_mismatch azp_mismatch typ_mismatch exp_missing "
        "expired not_yet_valid iat_future lifetime_too_long nonce_mismatch state_mismatch replay "
        "claim_missing claim_type required_claim email_unverified groups_overage "
        "username_invalid reserved_name tenant_not_allowed idp_unavailable ";
    CLEANUP(buf_free) struct buf all = {0};
    for (unsigned i = 0; i < OIDC_REASON_COUNT; i++) {
        buf_printf(&all, "%s ", oidc_reason_code((enum oidc_reason)i));
        cr_assert(strlen(oidc_reason_help((enum oidc_reason)i)) > 10);
    }
    cr_assert_str_eq(all.ptr, codes);
}
