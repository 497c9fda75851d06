/* One JSON Web Key judged and made ready for OpenSSL. */
#include "oidc/jwk_import.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>

#include "base/crypto.h"
#include "oidc/jwk_parts.h"

#define RSA_BITS_MIN 2048 /* NIST SP 800-131A */
#define RSA_BITS_MAX 8192 /* more would only cost time */
#define RSA_EXPONENT_BYTES 8
#define KID_MAX 1024

/* True when the residue lies in the group that 65537 generates modulo the prime. */
static bool is_power_of_65537(unsigned residue, unsigned prime)
{
    unsigned power = 1;
    do {
        if (power == residue) {
            return true;
        }
        power = power * (65537U % prime) % prime;
    } while (power != 1);
    return false;
}

static const uint8_t small_primes[] = {
    3,  5,  7,  11, 13, 17,  19,  23,  29,  31,  37,  41,  43,  47,  53,  59,  61,  67,  71,
    73, 79, 83, 89, 97, 101, 103, 107, 109, 113, 127, 131, 137, 139, 149, 151, 157, 163, 167};

/* Nemec et al. 2017, 3.1: such primes are k * M + (65537^a mod M), so the modulus is a power of
 * 65537 modulo every small prime; a sound modulus passes for an infinitesimal share. */
static bool is_roca(const BIGNUM *n)
{
    bool marked = true;
    for (size_t i = 0; marked && i < COUNTOF(small_primes); i++) {
        marked = is_power_of_65537((unsigned)BN_mod_word(n, small_primes[i]), small_primes[i]);
    }
    return marked;
}

static bool has_small_factor(const BIGNUM *n)
{
    bool found = !BN_is_odd(n);
    for (size_t i = 0; !found && i < COUNTOF(small_primes); i++) {
        found = BN_mod_word(n, small_primes[i]) == 0;
    }
    return found;
}

static enum jwk_skip judge_rsa(const BIGNUM *n, const BIGNUM *e, struct arena *arena,
                               const char **ret_detail)
{
    if (BN_num_bits(n) < RSA_BITS_MIN || BN_num_bits(n) > RSA_BITS_MAX) {
        *ret_detail = arena_printf(arena, "RSA of %d bits; %d to %d are accepted.", BN_num_bits(n),
                                   RSA_BITS_MIN, RSA_BITS_MAX);
        return JWK_SKIP_WEAK;
    }
    if (!BN_is_odd(e) || BN_is_one(e)) {
        *ret_detail = "The RSA exponent must be odd and at least 3.";
        return JWK_SKIP_FORGEABLE;
    }
    if (has_small_factor(n) || is_roca(n)) {
        *ret_detail = "The modulus has a small factor or a broken generator's mark (ROCA).";
        return JWK_SKIP_FORGEABLE;
    }
    return JWK_SKIP_NONE;
}

static enum jwk_skip import_rsa(struct arena *arena, const json_t *item, struct jwk *ret,
                                const char **ret_detail)
{
    struct jwk_part modulus;
    struct jwk_part exponent;
    if (!jwk_read_part(item, "n", &modulus) || !jwk_read_part(item, "e", &exponent) ||
        exponent.len > RSA_EXPONENT_BYTES) {
        *ret_detail = "n and e must be base64url numbers.";
        return JWK_SKIP_MALFORMED;
    }
    BIGNUM *n = BN_bin2bn(modulus.bytes, (int)modulus.len, NULL);
    BIGNUM *e = BN_bin2bn(exponent.bytes, (int)exponent.len, NULL);
    OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
    if (n == NULL || e == NULL || builder == NULL) {
        abort();
    }
    enum jwk_skip skip = judge_rsa(n, e, arena, ret_detail);
    if (skip == JWK_SKIP_NONE) {
        (void)OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_N, n);
        (void)OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_E, e);
        ret->pkey = jwk_build_key("RSA", builder, EVP_PKEY_PUBLIC_KEY);
        if (ret->pkey == NULL) {
            *ret_detail = "OpenSSL does not take it as an RSA key.";
            skip = JWK_SKIP_FORGEABLE;
        }
    }
    OSSL_PARAM_BLD_free(builder);
    BN_free(n);
    BN_free(e);
    return skip;
}

static enum jwk_skip import_ec(const json_t *item, struct str crv, struct jwk *ret,
                               const char **ret_detail)
{
    OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
    enum jwk_skip skip = JWK_SKIP_NONE;
    uint8_t point[JWK_POINT_MAX];
    if (builder == NULL) {
        abort();
    }
    if (!jwk_push_point(builder, item, crv, point)) {
        *ret_detail =
            "x and y must be base64url of the curve's full length."; /* RFC 7518 6.2.1.2 */
        skip = JWK_SKIP_MALFORMED;
    } else {
        ret->pkey = jwk_build_key("EC", builder, EVP_PKEY_PUBLIC_KEY);
        if (ret->pkey == NULL) {
            *ret_detail = "The point is not on the curve.";
            skip = JWK_SKIP_FORGEABLE;
        }
    }
    OSSL_PARAM_BLD_free(builder);
    return skip;
}

static enum jwk_skip import_okp(const json_t *item, struct jwk *ret, const char **ret_detail)
{
    struct jwk_part x;
    if (jwk_read_part(item, "x", &x) && x.len == ED25519_PUBLIC_LEN) {
        ret->pkey = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, x.bytes, x.len);
    }
    if (ret->pkey == NULL) {
        ERR_clear_error();
        *ret_detail = "x must be 32 bytes of base64url.";
        return JWK_SKIP_MALFORMED;
    }
    return JWK_SKIP_NONE;
}

static bool lists_verify(const json_t *key_ops)
{
    size_t i;
    const json_t *op;
    json_array_foreach (key_ops, i, op) {
        if (json_is_string(op) && str_eq(jose_text(op), STR("verify"))) {
            return true;
        }
    }
    return false;
}

/* What the key says about its use; sets the algorithms it may check. */
static enum jwk_skip judge_use(struct arena *arena, const json_t *item, struct jwk *ret,
                               const char **ret_detail)
{
    const json_t *use = json_object_get(item, "use");
    const json_t *key_ops = json_object_get(item, "key_ops");
    const json_t *alg = json_object_get(item, "alg");
    enum jose_alg known;

    if (use != NULL && !str_eq(jose_text(use), STR("sig"))) {
        *ret_detail = "Its use is not sig.";
        return JWK_SKIP_USE;
    }
    if (key_ops != NULL && !lists_verify(key_ops)) {
        *ret_detail = "Its key_ops do not hold verify.";
        return JWK_SKIP_KEY_OPS;
    }
    if (alg == NULL) {
        return JWK_SKIP_NONE;
    }
    if (!jose_alg_find(jose_text(alg), &known) || (ret->algs & JOSE_ALG_BIT(known)) == 0) {
        *ret_detail = arena_printf(arena, "Its alg \"%s\" does not fit its type and curve.",
                                   jose_quote(arena, jose_text(alg)));
        return JWK_SKIP_ALG;
    }
    ret->algs = JOSE_ALG_BIT(known);
    return JWK_SKIP_NONE;
}

/* The type and the curve; everything else is unknown to us and left alone (RFC 7517 5). */
static enum jwk_skip judge_type(const json_t *item, struct jwk *ret, struct str *ret_crv,
                                const char **ret_detail)
{
    struct str kty = jose_text(json_object_get(item, "kty"));
    *ret_crv = (struct str){"", 0};
    if (json_object_get(item, "d") != NULL || json_object_get(item, "k") != NULL ||
        str_eq(kty, STR("oct"))) {
        *ret_detail = "It is a private or symmetric key: whoever published it must replace it.";
        return JWK_SKIP_SECRET;
    }
    if (str_eq(kty, STR("RSA"))) {
        ret->kty = JOSE_RSA;
    } else if (str_eq(kty, STR("EC")) || str_eq(kty, STR("OKP"))) {
        ret->kty = kty.len == 2 ? JOSE_EC : JOSE_OKP;
        *ret_crv = jose_text(json_object_get(item, "crv"));
    } else {
        *ret_detail = "Its type (kty) is not known.";
        return JWK_SKIP_KTY;
    }
    ret->algs = jose_algs_of_key(ret->kty, *ret_crv);
    if (ret->algs == 0) {
        *ret_detail = "Its curve (crv) is not one of P-256, P-384, P-521 and Ed25519.";
        return JWK_SKIP_CRV;
    }
    return JWK_SKIP_NONE;
}

enum jwk_skip jwk_import(struct arena *arena, const json_t *item, struct jwk *ret,
                         const char **ret_detail)
{
    struct str crv;
    const json_t *kid = json_object_get(item, "kid");
    struct str text = jose_text(kid);

    *ret = (struct jwk){.has_kid = kid != NULL};
    if (!json_is_object(item)) {
        *ret_detail = "It is not an object.";
        return JWK_SKIP_NOT_OBJECT;
    }
    if (kid != NULL && (!json_is_string(kid) || text.len > KID_MAX || !jose_text_is_plain(text))) {
        *ret_detail = "Its kid is not plain text of at most 1024 bytes.";
        return JWK_SKIP_MALFORMED;
    }
    ret->kid = (struct str){arena_strndup(arena, text.len > 0 ? text.ptr : "", text.len), text.len};
    enum jwk_skip skip = judge_type(item, ret, &crv, ret_detail);
    if (skip == JWK_SKIP_NONE) {
        skip = judge_use(arena, item, ret, ret_detail);
    }
    if (skip != JWK_SKIP_NONE) {
        return skip;
    }
    if (ret->kty == JOSE_RSA) {
        return import_rsa(arena, item, ret, ret_detail);
    }
    return ret->kty == JOSE_EC ? import_ec(item, crv, ret, ret_detail)
                               : import_okp(item, ret, ret_detail);
}
