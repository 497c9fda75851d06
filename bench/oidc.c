/* Times whole checks of one ID token with its key in memory: bench-oidc ALG SECONDS. */
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "oidc/verify.h"

#define NOW 1796000000
#define SIGNATURE_MAX 512

static void add_b64(struct buf *out, const void *data, size_t len)
{
    char text[2048];
    if (crypto_b64_len(len) >= sizeof(text)) {
        abort();
    }
    crypto_b64(data, len, text);
    buf_add_c(out, text);
}

static EVP_PKEY *make_key(enum jose_alg alg)
{
    EVP_PKEY *pkey = jose_algs[alg].kty == JOSE_RSA  ? EVP_RSA_gen(2048)
                     : jose_algs[alg].kty == JOSE_EC ? EVP_EC_gen(jose_algs[alg].crv)
                                                     : EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    if (pkey == NULL) {
        abort();
    }
    return pkey;
}

static void add_number(struct buf *out, EVP_PKEY *pkey, const char *name, const char *param)
{
    uint8_t bytes[512];
    BIGNUM *number = NULL;
    if (EVP_PKEY_get_bn_param(pkey, param, &number) != 1) {
        abort();
    }
    /* Coordinates have the curve's full length; RSA numbers have no leading zeros. */
    int len = EVP_PKEY_is_a(pkey, "EC") ? (EVP_PKEY_get_bits(pkey) + 7) / 8 : BN_num_bytes(number);
    (void)BN_bn2binpad(number, bytes, len);
    buf_printf(out, ",\"%s\":\"", name);
    add_b64(out, bytes, (size_t)len);
    buf_add_c(out, "\"");
    BN_free(number);
}

static struct jwk_set *publish(EVP_PKEY *pkey, enum jose_alg alg)
{
    CLEANUP(buf_free) struct buf text = {0};
    const char *error = "";
    static const char *const names[] = {"RSA", "EC", "OKP"};
    buf_printf(&text, "{\"keys\":[{\"kid\":\"k\",\"kty\":\"%s\"", names[jose_algs[alg].kty]);
    if (jose_algs[alg].kty == JOSE_RSA) {
        add_number(&text, pkey, "n", OSSL_PKEY_PARAM_RSA_N);
        add_number(&text, pkey, "e", OSSL_PKEY_PARAM_RSA_E);
    } else if (jose_algs[alg].kty == JOSE_EC) {
        buf_printf(&text, ",\"crv\":\"%s\"", jose_algs[alg].crv);
        add_number(&text, pkey, "x", OSSL_PKEY_PARAM_EC_PUB_X);
        add_number(&text, pkey, "y", OSSL_PKEY_PARAM_EC_PUB_Y);
    } else {
        uint8_t public[ED25519_PUBLIC_LEN];
        size_t len = sizeof(public);
        (void)EVP_PKEY_get_raw_public_key(pkey, public, &len);
        buf_add_c(&text, ",\"crv\":\"Ed25519\",\"x\":\"");
        add_b64(&text, public, len);
        buf_add_c(&text, "\"");
    }
    buf_add_c(&text, "}]}");
    struct jwk_set *keys = jwk_set_parse(buf_str(&text), &error);
    if (keys == NULL || keys->count != 1) {
        abort();
    }
    return keys;
}

/* DER to r || s. */
static size_t flatten(const uint8_t *der, size_t der_len, int half, uint8_t *out)
{
    ECDSA_SIG *pair = d2i_ECDSA_SIG(NULL, &der, (long)der_len);
    if (pair == NULL) {
        abort();
    }
    (void)BN_bn2binpad(ECDSA_SIG_get0_r(pair), out, half);
    (void)BN_bn2binpad(ECDSA_SIG_get0_s(pair), out + half, half);
    ECDSA_SIG_free(pair);
    return 2 * (size_t)half;
}

static void sign(struct buf *token, EVP_PKEY *pkey, enum jose_alg alg)
{
    uint8_t made[SIGNATURE_MAX];
    uint8_t signature[SIGNATURE_MAX];
    size_t len = sizeof(made);
    EVP_PKEY_CTX *ctx = NULL;
    EVP_MD_CTX *md = EVP_MD_CTX_new();
    const char *hash = jose_algs[alg].hash[0] != '\0' ? jose_algs[alg].hash : NULL;
    if (md == NULL || EVP_DigestSignInit_ex(md, &ctx, hash, NULL, NULL, pkey, NULL) != 1 ||
        (jose_algs[alg].pss &&
         (EVP_PKEY_CTX_set_rsa_padding(ctx, RSA_PKCS1_PSS_PADDING) != 1 ||
          EVP_PKEY_CTX_set_rsa_pss_saltlen(ctx, RSA_PSS_SALTLEN_DIGEST) != 1)) ||
        EVP_DigestSign(md, made, &len, (const uint8_t *)token->ptr, token->len) != 1) {
        abort();
    }
    if (jose_algs[alg].kty == JOSE_EC) {
        len = flatten(made, len, (EVP_PKEY_get_bits(pkey) + 7) / 8, signature);
    } else {
        memcpy(signature, made, len);
    }
    EVP_MD_CTX_free(md);
    buf_add_char(token, '.');
    add_b64(token, signature, len);
}

static void make_token(struct buf *token, EVP_PKEY *pkey, enum jose_alg alg)
{
    CLEANUP(buf_free) struct buf text = {0};
    buf_printf(&text, "{\"alg\":\"%s\",\"kid\":\"k\",\"typ\":\"JWT\"}", jose_algs[alg].name);
    add_b64(token, text.ptr, text.len);
    buf_add_char(token, '.');
    buf_clear(&text);
    buf_printf(
        &text,
        "{\"iss\":\"https://idp.example.test\",\"sub\":\"00u1a2b3c4d5e6f7g8h9\","
        "\"aud\":\"muster\",\"iat\":%d,\"exp\":%d,\"auth_time\":%d,\"nonce\":\"n-0S6_WzA2Mj\","
        "\"name\":\"Anna Meyer\",\"email\":\"a.meyer@example.test\",\"email_verified\":true,"
        "\"azp\":\"muster\",\"groups\":[\"team-a\",\"team-b\",\"oncall\",\"ml\",\"everyone\"]}",
        NOW - 30, NOW + 3600, NOW - 60);
    add_b64(token, text.ptr, text.len);
    sign(token, pkey, alg);
}

static double cpu_seconds(void)
{
    struct timespec at;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &at);
    return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    enum jose_alg alg;
    double seconds;
    if (argc != 3 || !jose_alg_find(str_of(argv[1]), &alg) ||
        !str_parse_double(str_of(argv[2]), &seconds)) {
        (void)fprintf(stderr, "bench-oidc ALG SECONDS\n");
        return 2;
    }
    CLEANUP(buf_free) struct buf token = {0};
    struct str audience = STR("muster");
    struct oidc_issuer issuer;
    struct oidc_question question = {.use = OIDC_ID_TOKEN, .now_s = NOW};
    EVP_PKEY *pkey = make_key(alg);
    struct jwk_set *keys = publish(pkey, alg);
    make_token(&token, pkey, alg);
    oidc_issuer_init(&issuer);
    issuer.url = STR("https://idp.example.test");
    issuer.audiences = (struct str_list){&audience, 1};
    issuer.username = (struct oidc_mapping){.path = {STR("sub")}, .path_len = 1};
    issuer.groups = (struct oidc_mapping){.path = {STR("groups")}, .path_len = 1};
    struct arena *arena = arena_new(JOSE_ARENA_CAP);
    int64_t end_us = clock_mono_us() + (int64_t)(seconds * 1e6);
    double begun = cpu_seconds();
    uint64_t count = 0;
    while (clock_mono_us() < end_us) {
        struct oidc_verdict verdict;
        oidc_verify(arena, &issuer, keys, buf_str(&token), &question, &verdict);
        if (verdict.reason != OIDC_OK || verdict.groups.count != 5) {
            (void)fprintf(stderr, "bench-oidc: %s\n", verdict.detail);
            return 1;
        }
        arena_reset(arena);
        count++;
    }
    double used = cpu_seconds() - begun;
    (void)printf("{\"cpu_us\":%.2f,\"per_s\":%.0f}\n", used * 1e6 / (double)count,
                 (double)count / used);
    arena_free(arena);
    jwk_set_free(keys);
    EVP_PKEY_free(pkey);
    return 0;
}
