/* One signature against one key, on OpenSSL. */
#include "oidc/signature.h"

#include <assert.h>
#include <openssl/bn.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>
#include <pthread.h>
#include <stdlib.h>

#define EC_COORDINATE_MAX 66 /* P-521 */
#define DER_MAX 160          /* SEQUENCE of two INTEGERs of at most 67 bytes */

/* Fetched once: OpenSSL 3 otherwise looks an algorithm up under a lock at each use. */
static EVP_MD *digests[JOSE_ALG_COUNT];
static pthread_once_t digests_once = PTHREAD_ONCE_INIT;

static void fetch_digests(void)
{
    for (size_t i = 0; i < JOSE_ALG_COUNT; i++) {
        if (jose_algs[i].hash[0] != '\0') {
            digests[i] = EVP_MD_fetch(NULL, jose_algs[i].hash, NULL);
            if (digests[i] == NULL) {
                abort();
            }
        }
    }
}

/* r || s of exactly the curve's size (RFC 7518 3.4) as the DER that OpenSSL takes; 0 = refused. */
static size_t make_der(const EVP_PKEY *pkey, struct str signature, uint8_t der[DER_MAX])
{
    size_t half = ((size_t)EVP_PKEY_get_bits(pkey) + 7) / 8;
    if (half > EC_COORDINATE_MAX || signature.len != 2 * half) {
        return 0;
    }
    const uint8_t *bytes = (const uint8_t *)signature.ptr;
    ECDSA_SIG *pair = ECDSA_SIG_new();
    BIGNUM *r = BN_bin2bn(bytes, (int)half, NULL);
    BIGNUM *s = BN_bin2bn(bytes + half, (int)half, NULL);
    if (pair == NULL || r == NULL || s == NULL || ECDSA_SIG_set0(pair, r, s) != 1) {
        abort();
    }
    uint8_t *at = der;
    int len = i2d_ECDSA_SIG(pair, NULL);
    size_t made = 0;
    if (len > 0 && len <= DER_MAX) {
        made = (size_t)i2d_ECDSA_SIG(pair, &at);
    }
    ECDSA_SIG_free(pair);
    return made;
}

static bool set_padding(EVP_PKEY_CTX *ctx, const struct jose_alg_info *info)
{
    if (info->kty != JOSE_RSA) {
        return true;
    }
    if (!info->pss) {
        return EVP_PKEY_CTX_set_rsa_padding(ctx, RSA_PKCS1_PADDING) == 1;
    }
    /* RFC 7518 3.5: the salt is as long as the hash, MGF1 uses the same hash. */
    return EVP_PKEY_CTX_set_rsa_padding(ctx, RSA_PKCS1_PSS_PADDING) == 1 &&
           EVP_PKEY_CTX_set_rsa_pss_saltlen(ctx, RSA_PSS_SALTLEN_DIGEST) == 1;
}

static bool check_hashed(EVP_PKEY *pkey, enum jose_alg alg, struct str data, struct str signature)
{
    uint8_t hash[EVP_MAX_MD_SIZE];
    unsigned hash_len = 0;
    bool good = false;

    (void)pthread_once(&digests_once, fetch_digests);
    if (EVP_Digest(data.ptr, data.len, hash, &hash_len, digests[alg], NULL) != 1) {
        abort();
    }
    EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new(pkey, NULL);
    if (ctx != NULL && EVP_PKEY_verify_init(ctx) == 1 && set_padding(ctx, &jose_algs[alg]) &&
        EVP_PKEY_CTX_set_signature_md(ctx, digests[alg]) == 1) {
        good = EVP_PKEY_verify(ctx, (const uint8_t *)signature.ptr, signature.len, hash,
                               hash_len) == 1;
    }
    EVP_PKEY_CTX_free(ctx);
    return good;
}

static bool check_ed25519(EVP_PKEY *pkey, struct str data, struct str signature)
{
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool good = ctx != NULL && EVP_DigestVerifyInit(ctx, NULL, NULL, NULL, pkey) == 1 &&
                EVP_DigestVerify(ctx, (const uint8_t *)signature.ptr, signature.len,
                                 (const uint8_t *)data.ptr, data.len) == 1;
    EVP_MD_CTX_free(ctx);
    return good;
}

bool signature_check(const struct jwk *key, enum jose_alg alg, struct str data,
                     struct str signature)
{
    uint8_t der[DER_MAX];
    bool good;

    assert((key->algs & JOSE_ALG_BIT(alg)) != 0);
    if (key->kty == JOSE_OKP) {
        good = check_ed25519(key->pkey, data, signature);
    } else if (key->kty == JOSE_EC) {
        struct str encoded = {(const char *)der, make_der(key->pkey, signature, der)};
        good = encoded.len > 0 && check_hashed(key->pkey, alg, data, encoded);
    } else {
        /* RFC 8017 8.2.2: the signature is as long as the modulus. */
        good = signature.len == (size_t)EVP_PKEY_get_size(key->pkey) &&
               check_hashed(key->pkey, alg, data, signature);
    }
    if (!good) {
        ERR_clear_error();
    }
    return good;
}
