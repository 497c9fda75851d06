/* Encrypted tokens (JWE): opened with our own private keys, behind a short list of algorithms. */
#include "oidc/jwe.h"

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/rsa.h>
#include <string.h>

#include "base/crypto.h"
#include "oidc/jose.h"
#include "oidc/jwe_content.h"
#include "oidc/jwk_parts.h"

#define PARTS 5
#define KEYS_MAX 16
#define RSA_BITS_MIN 2048
#define SECRET_MAX 66 /* an ECDH secret on P-521 */
#define OTHER_MAX 512

struct jwe_key {
    bool rsa;
    struct str kid; /* empty = none */
    struct str alg; /* empty = any that fits */
    struct str crv;
    EVP_PKEY *pkey;
};

struct jwe_keys {
    struct arena *arena;
    struct jwe_key items[KEYS_MAX];
    size_t count;
};

struct jwe_alg {
    const char *name;
    bool rsa;
    const char *digest; /* of RSA-OAEP and its MGF1 */
    size_t wrap_len;    /* bytes of the key that wraps; 0 = the agreed key is used as it is */
};

static const struct jwe_alg algs[] = {
    {"RSA-OAEP", true, "SHA1", 0},       {"RSA-OAEP-256", true, "SHA256", 0},
    {"ECDH-ES", false, NULL, 0},         {"ECDH-ES+A128KW", false, NULL, 16},
    {"ECDH-ES+A192KW", false, NULL, 24}, {"ECDH-ES+A256KW", false, NULL, 32},
};

/* A token taken apart. */
struct opening {
    struct arena *arena;
    const json_t *header;
    const struct jwe_alg *alg;
    const struct jwe_enc *enc;
    struct str wrapped;
    struct jwe_sealed sealed;
};

/* ------------------------------------------------------------------ keys */
static bool push_number(OSSL_PARAM_BLD *builder, const json_t *item, const char *name,
                        const char *param, BIGNUM **keep)
{
    struct jwk_part part;
    if (!jwk_read_part(item, name, &part)) {
        return false;
    }
    *keep = BN_bin2bn(part.bytes, (int)part.len, NULL);
    OPENSSL_cleanse(&part, sizeof(part));
    return *keep != NULL && OSSL_PARAM_BLD_push_BN(builder, param, *keep) == 1;
}

static EVP_PKEY *read_rsa(const json_t *item)
{
    static const char *const names[][2] = {
        {"n", OSSL_PKEY_PARAM_RSA_N},          {"e", OSSL_PKEY_PARAM_RSA_E},
        {"d", OSSL_PKEY_PARAM_RSA_D},          {"p", OSSL_PKEY_PARAM_RSA_FACTOR1},
        {"q", OSSL_PKEY_PARAM_RSA_FACTOR2},    {"dp", OSSL_PKEY_PARAM_RSA_EXPONENT1},
        {"dq", OSSL_PKEY_PARAM_RSA_EXPONENT2}, {"qi", OSSL_PKEY_PARAM_RSA_COEFFICIENT1}};
    BIGNUM *numbers[COUNTOF(names)] = {NULL};
    OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
    bool good = builder != NULL;
    for (size_t i = 0; good && i < COUNTOF(names); i++) {
        good = push_number(builder, item, names[i][0], names[i][1], &numbers[i]);
    }
    EVP_PKEY *pkey = good ? jwk_build_key("RSA", builder, EVP_PKEY_KEYPAIR) : NULL;
    if (pkey != NULL && EVP_PKEY_get_bits(pkey) < RSA_BITS_MIN) {
        EVP_PKEY_free(pkey);
        pkey = NULL;
    }
    OSSL_PARAM_BLD_free(builder);
    for (size_t i = 0; i < COUNTOF(names); i++) {
        BN_clear_free(numbers[i]);
    }
    return pkey;
}

static EVP_PKEY *read_ec(const json_t *item, struct str crv, bool private)
{
    BIGNUM *secret = NULL;
    uint8_t point[JWK_POINT_MAX];
    OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
    bool good = builder != NULL && jwk_push_point(builder, item, crv, point) &&
                (!private || push_number(builder, item, "d", OSSL_PKEY_PARAM_PRIV_KEY, &secret));
    EVP_PKEY *pkey =
        good ? jwk_build_key("EC", builder, private ? EVP_PKEY_KEYPAIR : EVP_PKEY_PUBLIC_KEY)
             : NULL;
    OSSL_PARAM_BLD_free(builder);
    BN_clear_free(secret);
    return pkey;
}

static struct str keep_text(struct arena *arena, const json_t *item, const char *name)
{
    struct str text = jose_text(json_object_get(item, name));
    return (struct str){arena_strndup(arena, text.len > 0 ? text.ptr : "", text.len), text.len};
}

static bool read_key(struct arena *arena, const json_t *item, struct jwe_key *ret)
{
    struct str kty = jose_text(json_object_get(item, "kty"));
    const json_t *use = json_object_get(item, "use");
    *ret = (struct jwe_key){.rsa = str_eq(kty, STR("RSA")),
                            .kid = keep_text(arena, item, "kid"),
                            .alg = keep_text(arena, item, "alg"),
                            .crv = keep_text(arena, item, "crv")};
    if (use != NULL && !str_eq(jose_text(use), STR("enc"))) {
        return false;
    }
    if (ret->rsa) {
        ret->pkey = read_rsa(item);
    } else if (str_eq(kty, STR("EC"))) {
        ret->pkey = read_ec(item, ret->crv, true);
    }
    return ret->pkey != NULL;
}

void jwe_keys_free(struct jwe_keys *keys)
{
    if (keys != NULL) {
        for (size_t i = 0; i < keys->count; i++) {
            EVP_PKEY_free(keys->items[i].pkey);
        }
        arena_free(keys->arena);
        free(keys);
    }
}

struct jwe_keys *jwe_keys_parse(struct str text, const char **ret_error)
{
    struct jwe_keys *keys = calloc(1, sizeof(*keys));
    const char *why = "";
    if (keys == NULL) {
        abort();
    }
    keys->arena = arena_new(1U << 20);
    json_t *root = text.len <= 65536 ? jose_read_object(keys->arena, text, &why) : NULL;
    const json_t *list = json_object_get(root, "keys");
    size_t count = json_array_size(list);
    bool good = count > 0 && count <= KEYS_MAX;
    *ret_error = "The private keys must be a JSON object with 1 to 16 keys, of at most 64 KiB.";
    for (size_t i = 0; good && i < count; i++) {
        good = read_key(keys->arena, json_array_get(list, i), &keys->items[i]);
        keys->count += good;
        *ret_error = "A private key must be RSA of at least 2048 bits with all its parts, or EC on "
                     "P-256, P-384 or P-521, with use enc or none.";
    }
    json_decref(root);
    if (!good) {
        jwe_keys_free(keys);
        return NULL;
    }
    return keys;
}

/* ------------------------------------------------------------------ the content key */
static bool open_oaep(const struct opening *opening, const struct jwe_key *key, uint8_t *cek)
{
    uint8_t out[JWK_PART_MAX];
    size_t len = sizeof(out);
    EVP_MD *digest = EVP_MD_fetch(NULL, opening->alg->digest, NULL);
    EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new(key->pkey, NULL);
    bool good = digest != NULL && ctx != NULL && EVP_PKEY_decrypt_init(ctx) == 1 &&
                EVP_PKEY_CTX_set_rsa_padding(ctx, RSA_PKCS1_OAEP_PADDING) == 1 &&
                EVP_PKEY_CTX_set_rsa_oaep_md(ctx, digest) == 1 &&
                EVP_PKEY_CTX_set_rsa_mgf1_md(ctx, digest) == 1 &&
                EVP_PKEY_decrypt(ctx, out, &len, (const uint8_t *)opening->wrapped.ptr,
                                 opening->wrapped.len) == 1 &&
                len == opening->enc->cek_len;
    EVP_PKEY_CTX_free(ctx);
    EVP_MD_free(digest);
    if (good) {
        memcpy(cek, out, len);
    }
    OPENSSL_cleanse(out, sizeof(out));
    return good;
}

static void add_u32(struct str *other, char *buf, uint64_t value)
{
    for (int shift = 24; shift >= 0; shift -= 8) {
        buf[other->len++] = (char)(value >> shift & 0xff);
    }
}

/* One length-prefixed field of the KDF's input; false when it does not fit. */
static bool add_field(struct str *other, char *buf, struct str field)
{
    if (field.len > OTHER_MAX - other->len - 8) {
        return false;
    }
    add_u32(other, buf, field.len);
    if (field.len > 0) {
        memcpy(buf + other->len, field.ptr, field.len);
    }
    other->len += field.len;
    return true;
}

/* An optional base64url member of the header. */
static bool read_party(const struct opening *opening, const char *name, struct str *ret)
{
    const json_t *value = json_object_get(opening->header, name);
    struct str text = jose_text(value);
    size_t len = 0;
    *ret = (struct str){"", 0};
    if (value == NULL) {
        return true;
    }
    char *bytes = arena_alloc(opening->arena, text.len + 1);
    if (!json_is_string(value) || !crypto_unb64(text, bytes, text.len, &len)) {
        return false;
    }
    *ret = (struct str){bytes, len};
    return true;
}

/* RFC 7518 4.6.2: the single-step KDF of NIST SP 800-56A with SHA-256. */
static bool derive_key(const struct opening *opening, uint8_t *secret, size_t secret_len,
                       uint8_t *key, size_t key_len)
{
    char buf[OTHER_MAX];
    struct str other = {buf, 0};
    struct str apu;
    struct str apv;
    const char *id = opening->alg->wrap_len > 0 ? opening->alg->name : opening->enc->name;
    if (!read_party(opening, "apu", &apu) || !read_party(opening, "apv", &apv) ||
        !add_field(&other, buf, str_of(id)) || !add_field(&other, buf, apu) ||
        !add_field(&other, buf, apv)) {
        return false;
    }
    add_u32(&other, buf, (uint64_t)key_len * 8);
    EVP_KDF *kdf = EVP_KDF_fetch(NULL, "SSKDF", NULL);
    EVP_KDF_CTX *ctx = kdf != NULL ? EVP_KDF_CTX_new(kdf) : NULL;
    char digest[] = "SHA256";
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SECRET, secret, secret_len),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, buf, other.len),
        OSSL_PARAM_construct_end(),
    };
    bool good = ctx != NULL && EVP_KDF_derive(ctx, key, key_len, params) == 1;
    EVP_KDF_CTX_free(ctx);
    EVP_KDF_free(kdf);
    return good;
}

static bool agree(const struct opening *opening, const struct jwe_key *key, uint8_t *secret,
                  size_t *ret_len)
{
    const json_t *epk = json_object_get(opening->header, "epk");
    if (!str_eq(jose_text(json_object_get(epk, "kty")), STR("EC")) ||
        !str_eq(jose_text(json_object_get(epk, "crv")), key->crv)) {
        return false;
    }
    /* The point is checked to lie on the curve: no invalid-curve attack on our key. */
    EVP_PKEY *peer = read_ec(epk, key->crv, false);
    EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new(key->pkey, NULL);
    *ret_len = SECRET_MAX;
    bool good = peer != NULL && ctx != NULL && EVP_PKEY_derive_init(ctx) == 1 &&
                EVP_PKEY_derive_set_peer(ctx, peer) == 1 &&
                EVP_PKEY_derive(ctx, secret, ret_len) == 1;
    EVP_PKEY_CTX_free(ctx);
    EVP_PKEY_free(peer);
    return good;
}

static bool open_ecdh(const struct opening *opening, const struct jwe_key *key, uint8_t *cek)
{
    uint8_t secret[SECRET_MAX];
    uint8_t wrap[32];
    size_t secret_len = 0;
    size_t wrap_len = opening->alg->wrap_len;
    bool good = agree(opening, key, secret, &secret_len);
    if (good && wrap_len == 0) {
        good = opening->wrapped.len == 0 &&
               derive_key(opening, secret, secret_len, cek, opening->enc->cek_len);
    } else if (good) {
        good = derive_key(opening, secret, secret_len, wrap, wrap_len) &&
               jwe_unwrap(wrap, wrap_len, opening->wrapped, cek, opening->enc->cek_len);
    }
    OPENSSL_cleanse(secret, sizeof(secret));
    OPENSSL_cleanse(wrap, sizeof(wrap));
    return good;
}

/* ------------------------------------------------------------------ the token */
bool jwe_is_one(struct str token)
{
    size_t dots = 0;
    size_t end = token.len > JOSE_TOKEN_MAX ? JOSE_TOKEN_MAX : token.len;
    for (size_t i = 0; i < end && dots < PARTS; i++) {
        dots += token.ptr[i] == '.';
    }
    return dots == PARTS - 1 && token.len <= JOSE_TOKEN_MAX;
}

static enum oidc_reason split_parts(struct opening *opening, struct str token,
                                    struct str *ret_header, const char **ret_detail)
{
    struct str decoded[PARTS];
    size_t begin = 0;
    for (size_t i = 0; i < PARTS; i++) {
        ptrdiff_t dot = str_find(token, STR("."), begin);
        size_t end = dot >= 0 ? (size_t)dot : token.len;
        char *bytes = arena_alloc(opening->arena, end - begin + 1);
        struct str part = {token.ptr + begin, end - begin};
        size_t len;
        if (!crypto_unb64(part, bytes, part.len, &len)) {
            *ret_detail = "A part of the encrypted token is not base64url without padding.";
            return OIDC_BAD_FORMAT;
        }
        decoded[i] = (struct str){bytes, len};
        if (i == 0) {
            opening->sealed.aad = part;
        }
        begin = end + 1;
    }
    *ret_header = decoded[0];
    opening->wrapped = decoded[1];
    opening->sealed.iv = decoded[2];
    opening->sealed.ciphertext = decoded[3];
    opening->sealed.tag = decoded[4];
    return OIDC_OK;
}

static enum oidc_reason judge_header(struct opening *opening, const char **ret_detail)
{
    const json_t *header = opening->header;
    struct str alg = jose_text(json_object_get(header, "alg"));
    struct str enc = jose_text(json_object_get(header, "enc"));
    if (json_object_get(header, "crit") != NULL || json_object_get(header, "zip") != NULL ||
        json_object_get(header, "b64") != NULL) {
        *ret_detail = "The header has crit, zip or b64; no extension is supported.";
        return OIDC_CRIT_UNSUPPORTED;
    }
    for (size_t i = 0; i < COUNTOF(algs); i++) {
        if (str_eq_c(alg, algs[i].name)) {
            opening->alg = &algs[i];
        }
    }
    opening->enc = jwe_enc_find(enc);
    if (opening->alg == NULL || opening->enc == NULL) {
        *ret_detail =
            arena_printf(opening->arena, "Encryption with \"%s\" and \"%s\" is not accepted.",
                         jose_quote(opening->arena, alg), jose_quote(opening->arena, enc));
        return OIDC_ALG_NOT_ALLOWED;
    }
    return OIDC_OK;
}

static bool key_fits(const struct opening *opening, const struct jwe_key *key)
{
    const json_t *kid = json_object_get(opening->header, "kid");
    return key->rsa == opening->alg->rsa &&
           (key->alg.len == 0 || str_eq_c(key->alg, opening->alg->name)) &&
           (kid == NULL || key->kid.len == 0 || str_eq(jose_text(kid), key->kid));
}

static bool is_zero(const uint8_t *cek, size_t len)
{
    uint8_t any = 0;
    for (size_t i = 0; i < len; i++) {
        any |= cek[i];
    }
    return any == 0;
}

static enum oidc_reason open_with_keys(struct opening *opening, const struct jwe_keys *keys,
                                       struct str *ret_token, const char **ret_detail)
{
    uint8_t *out =
        arena_alloc(opening->arena, opening->sealed.ciphertext.len + EVP_MAX_BLOCK_LENGTH);
    bool found = false;
    bool good = false;
    size_t len = 0;
    for (size_t i = 0; keys != NULL && !good && i < keys->count; i++) {
        uint8_t cek[JWE_CEK_MAX];
        const struct jwe_key *key = &keys->items[i];
        if (!key_fits(opening, key)) {
            continue;
        }
        found = true;
        good = (key->rsa ? open_oaep(opening, key, cek) : open_ecdh(opening, key, cek)) &&
               !is_zero(cek, opening->enc->cek_len) &&
               jwe_decrypt_content(opening->enc, cek, &opening->sealed, out, &len);
        OPENSSL_cleanse(cek, sizeof(cek));
    }
    ERR_clear_error();
    if (!found) {
        *ret_detail = "The token is encrypted, and no private key of ours fits it.";
        return OIDC_KEY_NOT_FOUND;
    }
    if (!good) {
        *ret_detail = "The encrypted token cannot be opened.";
        return OIDC_BAD_SIGNATURE;
    }
    *ret_token = (struct str){(const char *)out, len};
    return OIDC_OK;
}

enum oidc_reason jwe_open(struct arena *arena, const struct jwe_keys *keys, struct str token,
                          struct str *ret_token, const char **ret_detail)
{
    struct opening opening = {.arena = arena};
    struct str text = {"", 0};
    const char *why = "";
    if (!jwe_is_one(token)) {
        *ret_detail = "An encrypted token has five parts and at most 16 KiB.";
        return OIDC_BAD_FORMAT;
    }
    enum oidc_reason reason = split_parts(&opening, token, &text, ret_detail);
    if (reason != OIDC_OK) {
        return reason;
    }
    json_t *header = jose_read_object(arena, text, &why);
    if (header == NULL) {
        *ret_detail = arena_printf(arena, "The header is not acceptable JSON: %s.", why);
        return OIDC_BAD_FORMAT;
    }
    opening.header = header;
    reason = judge_header(&opening, ret_detail);
    if (reason == OIDC_OK) {
        reason = open_with_keys(&opening, keys, ret_token, ret_detail);
    }
    json_decref(header);
    return reason;
}
