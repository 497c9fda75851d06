/* Hashes, randomness, base64url, AES-256-GCM and Ed25519 on OpenSSL 3. */
#include "base/crypto.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

void crypto_random(void *data, size_t len)
{
    char *at = data;

    while (len > 0) {
        ssize_t got = getrandom(at, len, 0);

        if (got < 0) {
            if (errno == EINTR) {
                continue;
            }
            abort();
        }
        at += got;
        len -= (size_t)got;
    }
}

/* Fetched once: OpenSSL 3 otherwise looks the algorithm up under a lock at each call. */
static EVP_MD *sha256;

static void fetch_sha256(void)
{
    sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
    if (sha256 == NULL) {
        abort();
    }
}

void crypto_sha256(struct str data, uint8_t hash[SHA256_LEN])
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    unsigned len = 0;

    (void)pthread_once(&once, fetch_sha256);
    if (EVP_Digest(data.ptr, data.len, hash, &len, sha256, NULL) != 1 || len != SHA256_LEN) {
        abort();
    }
}

void crypto_hmac_sha256(struct str key, struct str data, uint8_t mac[SHA256_LEN])
{
    size_t len = 0;

    if (EVP_Q_mac(NULL, "HMAC", NULL, "SHA256", NULL, key.ptr, key.len, (const uint8_t *)data.ptr,
                  data.len, mac, SHA256_LEN, &len) == NULL ||
        len != SHA256_LEN) {
        abort();
    }
}

bool crypto_equal(const void *a, const void *b, size_t len)
{
    return CRYPTO_memcmp(a, b, len) == 0;
}

void crypto_hex(const uint8_t *data, size_t len, char *text)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < len; i++) {
        text[2 * i] = digits[data[i] >> 4];
        text[2 * i + 1] = digits[data[i] & 0x0f];
    }
    text[2 * len] = '\0';
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool crypto_unhex(struct str text, uint8_t *data, size_t len)
{
    if (text.len / 2 != len || text.len % 2 != 0) {
        return false;
    }
    for (size_t i = 0; i < text.len; i++) {
        if (hex_value(text.ptr[i]) < 0) {
            return false;
        }
    }
    for (size_t i = 0; i < len; i++) {
        data[i] = (uint8_t)((unsigned)hex_value(text.ptr[2 * i]) << 4 |
                            (unsigned)hex_value(text.ptr[2 * i + 1]));
    }
    return true;
}

/* Three bytes make four characters; one or two left bytes make two or three (RFC 4648 5). */
size_t crypto_b64_len(size_t len)
{
    return len / 3 * 4 + (len % 3 == 0 ? 0 : len % 3 + 1);
}

void crypto_b64(const void *data, size_t len, char *text)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    const uint8_t *bytes = data;
    uint32_t bits = 0;
    unsigned count = 0;

    for (size_t i = 0; i < len; i++) {
        bits = bits << 8 | bytes[i];
        count += 8;
        while (count >= 6) {
            count -= 6;
            *text++ = alphabet[bits >> count & 0x3f];
        }
    }
    if (count > 0) {
        *text++ = alphabet[bits << (6 - count) & 0x3f];
    }
    *text = '\0';
}

static int b64_value(char c)
{
    if (c >= 'A' && c <= 'Z') {
        return c - 'A';
    }
    if (c >= 'a' && c <= 'z') {
        return c - 'a' + 26;
    }
    if (c >= '0' && c <= '9') {
        return c - '0' + 52;
    }
    if (c == '-') {
        return 62;
    }
    return c == '_' ? 63 : -1;
}

bool crypto_unb64(struct str text, void *data, size_t cap, size_t *ret_len)
{
    uint8_t *bytes = data;
    size_t len = text.len / 4 * 3 + (text.len % 4 == 0 ? 0 : text.len % 4 - 1);
    size_t used = 0;
    uint32_t bits = 0;
    unsigned count = 0;

    if (text.len % 4 == 1 || len > cap) {
        return false;
    }
    for (size_t i = 0; i < text.len; i++) {
        int value = b64_value(text.ptr[i]);

        if (value < 0) {
            return false;
        }
        bits = bits << 6 | (uint32_t)value;
        count += 6;
        if (count >= 8) {
            count -= 8;
            bytes[used++] = (uint8_t)(bits >> count);
        }
    }
    /* Two texts for the same bytes would let one token have two spellings. */
    if ((bits & ((1U << count) - 1)) != 0) {
        return false;
    }
    *ret_len = used;
    return true;
}

size_t crypto_base64_len(size_t len)
{
    return (len + 2) / 3 * 4;
}

void crypto_base64(const void *data, size_t len, char *text)
{
    assert(len <= INT_MAX / 2);
    (void)EVP_EncodeBlock((uint8_t *)text, data, (int)len);
    text[crypto_base64_len(len)] = '\0';
}

/* ------------------------------------------------------------------ AES-256-GCM */

#define NONCE_LEN 12
#define TAG_LEN 16
_Static_assert(NONCE_LEN + TAG_LEN == CRYPTO_SEAL_EXTRA, "what a seal adds");

static void free_cipher(EVP_CIPHER_CTX **ctx)
{
    EVP_CIPHER_CTX_free(*ctx);
}

/* Begins in one direction; what is sealed is far below what an int counts. */
static EVP_CIPHER_CTX *begin_cipher(const uint8_t key[CRYPTO_KEY_LEN], const uint8_t *nonce,
                                    struct str bound, size_t len, int encrypt)
{
    EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
    int done = 0;

    assert(len <= INT_MAX / 2 && bound.len <= INT_MAX / 2);
    if (ctx == NULL || EVP_CipherInit_ex(ctx, EVP_aes_256_gcm(), NULL, key, nonce, encrypt) != 1 ||
        (bound.len > 0 &&
         EVP_CipherUpdate(ctx, NULL, &done, (const uint8_t *)bound.ptr, (int)bound.len) != 1)) {
        abort();
    }
    return ctx;
}

void crypto_seal(const uint8_t key[CRYPTO_KEY_LEN], struct str bound, struct str plain,
                 uint8_t *sealed)
{
    uint8_t *body = sealed + NONCE_LEN;
    int done = 0;

    crypto_random(sealed, NONCE_LEN);
    CLEANUP(free_cipher) EVP_CIPHER_CTX *ctx = begin_cipher(key, sealed, bound, plain.len, 1);
    if ((plain.len > 0 &&
         EVP_CipherUpdate(ctx, body, &done, (const uint8_t *)plain.ptr, (int)plain.len) != 1) ||
        EVP_CipherFinal_ex(ctx, body + plain.len, &done) != 1 ||
        EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, TAG_LEN, body + plain.len) != 1) {
        abort();
    }
}

bool crypto_unseal(const uint8_t key[CRYPTO_KEY_LEN], struct str bound, struct str sealed,
                   uint8_t *plain)
{
    uint8_t tag[TAG_LEN];
    int done = 0;

    if (sealed.len < CRYPTO_SEAL_EXTRA) {
        return false;
    }
    size_t len = sealed.len - CRYPTO_SEAL_EXTRA;
    const uint8_t *from = (const uint8_t *)sealed.ptr;
    memcpy(tag, from + NONCE_LEN + len, TAG_LEN);
    CLEANUP(free_cipher) EVP_CIPHER_CTX *ctx = begin_cipher(key, from, bound, len, 0);
    bool good =
        (len == 0 || EVP_CipherUpdate(ctx, plain, &done, from + NONCE_LEN, (int)len) == 1) &&
        EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_TAG, TAG_LEN, tag) == 1 &&
        EVP_CipherFinal_ex(ctx, tag, &done) == 1;
    if (!good && len > 0) {
        explicit_bzero(plain, len);
    }
    return good;
}

void crypto_token(const char *prefix, char *text)
{
    char encoded[44];
    uint8_t secret[32];

    crypto_random(secret, sizeof(secret));
    crypto_b64(secret, sizeof(secret), encoded);
    (void)snprintf(text, strlen(prefix) + sizeof(encoded), "%s%s", prefix, encoded);
    OPENSSL_cleanse(secret, sizeof(secret));
    OPENSSL_cleanse(encoded, sizeof(encoded));
}

struct ed25519 {
    EVP_PKEY *pkey;
};

static struct ed25519 *wrap_key(EVP_PKEY *pkey)
{
    struct ed25519 *key = calloc(1, sizeof(*key));

    if (key == NULL) {
        abort();
    }
    key->pkey = pkey;
    return key;
}

struct ed25519 *ed25519_new(void)
{
    EVP_PKEY *pkey = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");

    if (pkey == NULL) {
        abort();
    }
    return wrap_key(pkey);
}

void ed25519_free(struct ed25519 *key)
{
    if (key == NULL) {
        return;
    }
    EVP_PKEY_free(key->pkey);
    free(key);
}

void ed25519_freep(struct ed25519 **key)
{
    ed25519_free(*key);
    *key = NULL;
}

void ed25519_public(const struct ed25519 *key, uint8_t public_key[ED25519_PUBLIC_LEN])
{
    size_t len = ED25519_PUBLIC_LEN;

    if (EVP_PKEY_get_raw_public_key(key->pkey, public_key, &len) != 1) {
        abort();
    }
}

void ed25519_sign(const struct ed25519 *key, struct str data, uint8_t sig[ED25519_SIGNATURE_LEN])
{
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    size_t len = ED25519_SIGNATURE_LEN;

    /* OpenSSL refuses a NULL message even when its length is 0. */
    if (ctx == NULL || EVP_DigestSignInit(ctx, NULL, NULL, NULL, key->pkey) != 1 ||
        EVP_DigestSign(ctx, sig, &len, (const uint8_t *)(data.ptr == NULL ? "" : data.ptr),
                       data.len) != 1) {
        abort();
    }
    EVP_MD_CTX_free(ctx);
}

bool ed25519_verify(const uint8_t public_key[ED25519_PUBLIC_LEN], struct str data,
                    const uint8_t sig[ED25519_SIGNATURE_LEN])
{
    EVP_PKEY *pkey =
        EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, public_key, ED25519_PUBLIC_LEN);
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool valid =
        pkey != NULL && ctx != NULL && EVP_DigestVerifyInit(ctx, NULL, NULL, NULL, pkey) == 1 &&
        EVP_DigestVerify(ctx, sig, ED25519_SIGNATURE_LEN,
                         (const uint8_t *)(data.ptr == NULL ? "" : data.ptr), data.len) == 1;

    EVP_MD_CTX_free(ctx);
    EVP_PKEY_free(pkey);
    return valid;
}

void ed25519_export(const struct ed25519 *key, uint8_t seed[32])
{
    size_t len = 32;

    if (EVP_PKEY_get_raw_private_key(key->pkey, seed, &len) != 1) {
        abort();
    }
}

struct ed25519 *ed25519_import(const uint8_t seed[32])
{
    EVP_PKEY *pkey = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, seed, 32);

    return pkey == NULL ? NULL : wrap_key(pkey);
}
