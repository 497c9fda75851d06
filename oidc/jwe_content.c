/* The symmetric half of JWE: content encryption and key wrap (RFC 7518 4.4 and 5). */
#include "oidc/jwe_content.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string.h>

#include "base/crypto.h"

#define GCM_IV 12
#define GCM_TAG 16
#define CBC_IV 16

static const struct jwe_enc encs[] = {
    {"A128GCM", 16, "AES-128-GCM", NULL},           {"A192GCM", 24, "AES-192-GCM", NULL},
    {"A256GCM", 32, "AES-256-GCM", NULL},           {"A128CBC-HS256", 32, "AES-128-CBC", "SHA256"},
    {"A192CBC-HS384", 48, "AES-192-CBC", "SHA384"}, {"A256CBC-HS512", 64, "AES-256-CBC", "SHA512"},
};

const struct jwe_enc *jwe_enc_find(struct str name)
{
    for (size_t i = 0; i < COUNTOF(encs); i++) {
        if (str_eq_c(name, encs[i].name)) {
            return &encs[i];
        }
    }
    return NULL;
}

static const uint8_t *bytes_of(struct str text)
{
    return (const uint8_t *)text.ptr;
}

static bool decrypt_gcm(const EVP_CIPHER *cipher, const uint8_t *cek,
                        const struct jwe_sealed *sealed, uint8_t *out, size_t *ret_len)
{
    int len = 0;
    int rest = 0;
    uint8_t tag[GCM_TAG];
    if (sealed->iv.len != GCM_IV || sealed->tag.len != GCM_TAG) {
        return false;
    }
    memcpy(tag, sealed->tag.ptr, GCM_TAG);
    EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
    bool good =
        ctx != NULL && EVP_DecryptInit_ex(ctx, cipher, NULL, cek, bytes_of(sealed->iv)) == 1 &&
        EVP_DecryptUpdate(ctx, NULL, &len, bytes_of(sealed->aad), (int)sealed->aad.len) == 1 &&
        EVP_DecryptUpdate(ctx, out, &len, bytes_of(sealed->ciphertext),
                          (int)sealed->ciphertext.len) == 1 &&
        EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_GCM_SET_TAG, GCM_TAG, tag) == 1 &&
        EVP_DecryptFinal_ex(ctx, out + len, &rest) == 1;
    EVP_CIPHER_CTX_free(ctx);
    *ret_len = good ? (size_t)len + (size_t)rest : 0;
    return good;
}

/* RFC 7518 5.2.2.2: the tag is the first half of HMAC(AAD || IV || ciphertext || bits of AAD). */
static bool tag_is_right(const struct jwe_enc *enc, const uint8_t *mac_key,
                         const struct jwe_sealed *sealed)
{
    uint8_t bits[8];
    uint8_t mac[EVP_MAX_MD_SIZE];
    unsigned mac_len = 0;
    uint64_t aad_bits = (uint64_t)sealed->aad.len * 8;
    size_t half = enc->cek_len / 2;
    struct {
        char bytes[16384 * 2];
        size_t len;
    } input = {.len = 0};
    const struct str parts[] = {sealed->aad, sealed->iv, sealed->ciphertext, {(char *)bits, 8}};
    for (size_t i = 0; i < sizeof(bits); i++) {
        bits[i] = (uint8_t)(aad_bits >> (56 - 8 * i));
    }
    for (size_t i = 0; i < COUNTOF(parts); i++) {
        if (parts[i].len > sizeof(input.bytes) - input.len) {
            return false;
        }
        memcpy(input.bytes + input.len, parts[i].ptr, parts[i].len);
        input.len += parts[i].len;
    }
    const EVP_MD *digest = EVP_get_digestbyname(enc->digest);
    return digest != NULL &&
           HMAC(digest, mac_key, (int)half, (const uint8_t *)input.bytes, input.len, mac,
                &mac_len) != NULL &&
           mac_len == 2 * half && sealed->tag.len == half &&
           crypto_equal(mac, sealed->tag.ptr, half);
}

static bool decrypt_cbc(const struct jwe_enc *enc, const EVP_CIPHER *cipher, const uint8_t *cek,
                        const struct jwe_sealed *sealed, uint8_t *out, size_t *ret_len)
{
    int len = 0;
    int rest = 0;
    if (sealed->iv.len != CBC_IV || sealed->ciphertext.len % CBC_IV != 0 ||
        !tag_is_right(enc, cek, sealed)) {
        return false;
    }
    EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
    bool good =
        ctx != NULL &&
        EVP_DecryptInit_ex(ctx, cipher, NULL, cek + enc->cek_len / 2, bytes_of(sealed->iv)) == 1 &&
        EVP_DecryptUpdate(ctx, out, &len, bytes_of(sealed->ciphertext),
                          (int)sealed->ciphertext.len) == 1 &&
        EVP_DecryptFinal_ex(ctx, out + len, &rest) == 1;
    EVP_CIPHER_CTX_free(ctx);
    *ret_len = good ? (size_t)len + (size_t)rest : 0;
    return good;
}

bool jwe_decrypt_content(const struct jwe_enc *enc, const uint8_t *cek,
                         const struct jwe_sealed *sealed, uint8_t *out, size_t *ret_len)
{
    EVP_CIPHER *cipher = EVP_CIPHER_fetch(NULL, enc->cipher, NULL);
    bool good = cipher != NULL && sealed->ciphertext.len > 0 &&
                (enc->digest == NULL ? decrypt_gcm(cipher, cek, sealed, out, ret_len)
                                     : decrypt_cbc(enc, cipher, cek, sealed, out, ret_len));
    EVP_CIPHER_free(cipher);
    return good;
}

bool jwe_unwrap(const uint8_t *kek, size_t kek_len, struct str wrapped, uint8_t *cek,
                size_t cek_len)
{
    int len = 0;
    int rest = 0;
    uint8_t out[JWE_CEK_MAX + 16];
    /* An overlong key never reaches the cipher (CVE-2026-53938 was such an overflow). */
    if (wrapped.len != cek_len + 8 || cek_len > JWE_CEK_MAX) {
        return false;
    }
    EVP_CIPHER *cipher = EVP_CIPHER_fetch(NULL,
                                          kek_len == 16   ? "AES-128-WRAP"
                                          : kek_len == 24 ? "AES-192-WRAP"
                                                          : "AES-256-WRAP",
                                          NULL);
    EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
    bool good = cipher != NULL && ctx != NULL;
    if (good) {
        EVP_CIPHER_CTX_set_flags(ctx, EVP_CIPHER_CTX_FLAG_WRAP_ALLOW);
        good = EVP_DecryptInit_ex(ctx, cipher, NULL, kek, NULL) == 1 &&
               EVP_DecryptUpdate(ctx, out, &len, bytes_of(wrapped), (int)wrapped.len) == 1 &&
               EVP_DecryptFinal_ex(ctx, out + len, &rest) == 1 &&
               (size_t)len + (size_t)rest == cek_len;
    }
    EVP_CIPHER_CTX_free(ctx);
    EVP_CIPHER_free(cipher);
    if (good) {
        memcpy(cek, out, cek_len);
    }
    return good;
}
