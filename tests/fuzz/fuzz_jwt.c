/* Fuzzes tokens: as they stand, and as signed claims, so that the checks behind the signature run.
 */
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <string.h>

#include "base/crypto.h"
#include "oidc/verify.h"

#define NOW 1796000000

static struct ed25519 *key;
static struct jwk_set *keys;
static struct oidc_issuer issuer;
static struct arena *lasting;

static void set_up(void)
{
    static const uint8_t seed[32] = {1, 2, 3};
    static struct str audiences[] = {{"app", 3}};
    static struct str tenants[] = {{"11111111-1111-1111-1111-111111111111", 36}};
    static struct oidc_rule rules[1];
    uint8_t public[ED25519_PUBLIC_LEN];
    char x[64];
    char text[256];
    bool unknown;
    const char *error = "";
    key = ed25519_import(seed);
    ed25519_public(key, public);
    crypto_b64(public, sizeof(public), x);
    (void)snprintf(text, sizeof(text),
                   "{\"keys\":[{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"kid\":\"k\",\"x\":\"%s\"}]}",
                   x);
    keys = jwk_set_parse(str_of(text), &error);
    lasting = arena_new(1U << 20);
    oidc_issuer_init(&issuer);
    issuer.url = STR("https://login.microsoftonline.com/common/v2.0");
    issuer.audiences = (struct str_list){audiences, 1};
    issuer.entra_tenants = (struct str_list){tenants, 1};
    issuer.username.path[0] = STR("email");
    issuer.username.path_len = 1;
    issuer.groups.expression =
        cel_compile(lasting, STR("dyn(claims.groups).filter(g, g != 'x').map(g, g + '.')"),
                    CEL_ENV_CLAIMS, &unknown, &error);
    rules[0].expression =
        cel_compile(lasting, STR("!has(claims.azp) || claims.azp in ['app', 'x']"), CEL_ENV_CLAIMS,
                    &unknown, &error);
    rules[0].text = STR("azp");
    issuer.claim_rules = rules;
    issuer.claim_rule_count = 1;
    FUZZ_CHECK(keys != NULL && issuer.groups.expression != NULL && rules[0].expression != NULL);
}

static void add_part(struct buf *token, struct str bytes)
{
    char *text = malloc(crypto_b64_len(bytes.len) + 1);
    FUZZ_CHECK(text != NULL);
    crypto_b64(bytes.ptr, bytes.len, text);
    buf_add_c(token, text);
    free(text);
}

static void sign(struct buf *token, struct str claims)
{
    uint8_t signature[ED25519_SIGNATURE_LEN];
    add_part(token, STR("{\"alg\":\"EdDSA\",\"kid\":\"k\"}"));
    buf_add_char(token, '.');
    add_part(token, claims);
    ed25519_sign(key, buf_str(token), signature);
    buf_add_char(token, '.');
    add_part(token, (struct str){(const char *)signature, sizeof(signature)});
}

static void judge(struct str token)
{
    struct oidc_question question = {.use = OIDC_ID_TOKEN, .now_s = NOW};
    struct oidc_verdict verdict;
    struct arena *arena = arena_new(JOSE_ARENA_CAP);
    oidc_verify(arena, &issuer, keys, token, &question, &verdict);
    FUZZ_CHECK((verdict.reason == OIDC_OK) == (verdict.stopped == OIDC_CHECK_COUNT));
    if (verdict.reason == OIDC_OK) {
        FUZZ_CHECK(verdict.username.len > 0 && jose_text_is_plain(verdict.username));
        FUZZ_CHECK(verdict.exp_s > NOW - 60);
        for (size_t i = 0; i < verdict.groups.count; i++) {
            FUZZ_CHECK(jose_text_is_plain(verdict.groups.items[i]));
            FUZZ_CHECK(!str_starts(verdict.groups.items[i], STR("system:")));
        }
    } else {
        FUZZ_CHECK(verdict.detail != NULL && verdict.detail[0] != '\0');
        FUZZ_CHECK(jose_text_is_plain(str_of(verdict.detail)));
    }
    arena_free(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    if (key == NULL) {
        set_up();
    }
    judge(text);
    if (size < 8192) {
        struct buf token = {0};
        sign(&token, text);
        judge(buf_str(&token));
        buf_free(&token);
    }
    return 0;
}
