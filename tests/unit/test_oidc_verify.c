/* Promises of oidc/verify.h; the many cases of tokens are in tests/oidc. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/crypto.h"
#include "oidc/verify.h"

#define NOW 1796000000

static struct arena *arena;
static struct ed25519 *key;
static struct jwk_set *keys;
static struct oidc_issuer issuer;

static void set_up(void)
{
    static struct str audiences[] = {{"app", 3}};
    uint8_t public[ED25519_PUBLIC_LEN];
    char x[64];
    char text[256];
    const char *error = "";
    arena = arena_new(JOSE_ARENA_CAP);
    key = ed25519_new();
    ed25519_public(key, public);
    crypto_b64(public, sizeof(public), x);
    (void)snprintf(text, sizeof(text),
                   "{\"keys\":[{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"kid\":\"k\",\"x\":\"%s\"}]}",
                   x);
    keys = jwk_set_parse(str_of(text), &error);
    cr_assert_not_null(keys, "%s", error);
    oidc_issuer_init(&issuer);
    issuer.url = STR("https://i.test");
    issuer.audiences = (struct str_list){audiences, 1};
    issuer.username.path[0] = STR("sub");
    issuer.username.path_len = 1;
    issuer.groups.path[0] = STR("groups");
    issuer.groups.path_len = 1;
}

static void tear_down(void)
{
    jwk_set_free(keys);
    ed25519_free(key);
    arena_free(arena);
}

TestSuite(oidc_verify, .init = set_up, .fini = tear_down);

static void add_part(struct buf *token, struct str bytes)
{
    char *text = arena_alloc(arena, crypto_b64_len(bytes.len) + 1);
    crypto_b64(bytes.ptr, bytes.len, text);
    buf_add_c(token, text);
}

/* A signed token with the standard claims and these more. */
static struct str sign(const char *more)
{
    uint8_t signature[ED25519_SIGNATURE_LEN];
    CLEANUP(buf_free) struct buf token = {0};
    char *claims = arena_printf(arena,
                                "{\"iss\":\"https://i.test\",\"sub\":\"u\",\"aud\":\"app\","
                                "\"iat\":%d,\"exp\":%d%s}",
                                NOW, NOW + 600, more);
    add_part(&token, STR("{\"alg\":\"EdDSA\",\"kid\":\"k\"}"));
    buf_add_char(&token, '.');
    add_part(&token, str_of(claims));
    ed25519_sign(key, buf_str(&token), signature);
    buf_add_char(&token, '.');
    add_part(&token, (struct str){(const char *)signature, sizeof(signature)});
    return str_of(arena_strndup(arena, token.ptr, token.len));
}

static struct oidc_verdict judge(struct str token)
{
    struct oidc_question question = {.use = OIDC_ID_TOKEN, .now_s = NOW};
    struct oidc_verdict verdict;
    oidc_verify(arena, &issuer, keys, token, &question, &verdict);
    return verdict;
}

Test(oidc_verify, a_good_token_gives_names_and_what_the_audit_needs)
{
    struct oidc_verdict verdict = judge(sign(",\"groups\":[\"a\",\"\",\"a\",\"b\"],\"jti\":\"j\""));
    cr_assert_eq(verdict.reason, OIDC_OK, "%s", verdict.detail);
    cr_assert_eq(verdict.stopped, OIDC_CHECK_COUNT);
    cr_assert(str_eq_c(verdict.username, "u") && str_eq_c(verdict.subject, "u"));
    cr_assert(verdict.groups.count == 2 && str_eq_c(verdict.groups.items[1], "b"));
    cr_assert(str_eq_c(verdict.kid, "k") && str_eq_c(verdict.alg, "EdDSA"));
    cr_assert(str_eq_c(verdict.jti, "j") && str_eq_c(verdict.issuer, "https://i.test"));
    cr_assert_eq(verdict.exp_s, NOW + 600);
}

Test(oidc_verify, a_refusal_names_the_check_that_stopped_it)
{
    struct str token = sign("");
    char *byte = (char *)(uintptr_t)token.ptr + token.len - 20;
    *byte = *byte == 'A' ? 'B' : 'A';
    struct oidc_verdict verdict = judge(token);
    cr_assert_eq(verdict.reason, OIDC_BAD_SIGNATURE);
    cr_assert_eq(verdict.stopped, OIDC_CHECK_SIGNATURE);
    cr_assert_eq(verdict.username.len, 0, "nothing is taken from it");
    verdict = judge(STR("x"));
    cr_assert_eq(verdict.stopped, OIDC_CHECK_FORMAT);
}

Test(oidc_verify, algorithms_of_the_issuer_bind)
{
    issuer.algs = JOSE_ALG_BIT(JOSE_RS256);
    cr_assert_eq(judge(sign("")).reason, OIDC_ALG_NOT_ALLOWED);
}

Test(oidc_verify, a_common_token_takes_little_memory)
{
    struct str token = sign(",\"groups\":[\"a\",\"b\"]");
    size_t before = arena_used(arena);
    cr_assert_eq(judge(token).reason, OIDC_OK);
    cr_assert_leq(arena_used(arena) - before, 32768);
}

Test(oidc_verify, too_many_groups_are_refused_and_not_cut)
{
    CLEANUP(buf_free) struct buf more = {0};
    buf_add_c(&more, ",\"groups\":[\"g\"");
    for (size_t i = 0; i < 1000; i++) {
        buf_printf(&more, ",\"g%zu\"", i);
    }
    buf_add_c(&more, "]");
    cr_assert_eq(judge(sign(more.ptr)).reason, OIDC_GROUPS_OVERAGE);
}

Test(oidc_verify, the_issuer_is_found_by_what_the_token_says)
{
    struct oidc_issuer issuers[2] = {issuer, issuer};
    issuers[0].url = STR("https://other.test");
    struct str token = sign("");
    cr_assert_eq(oidc_find_issuer(arena, issuers, 2, NULL, token), &issuers[1]);
    cr_assert_null(oidc_find_issuer(arena, issuers, 1, NULL, token));
    cr_assert_null(oidc_find_issuer(arena, issuers, 2, NULL, STR("x.y.z")));
}

Test(oidc_verify, every_check_has_a_line_for_people)
{
    for (size_t i = 0; i < OIDC_CHECK_COUNT; i++) {
        cr_assert(oidc_checks[i].word != NULL && strlen(oidc_checks[i].help) > 5);
    }
}
