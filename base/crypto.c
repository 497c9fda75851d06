/* Hashes, randomness, base64url and Ed25519 on OpenSSL 3. */
#include "base/crypto.h"

#include <errno.h>
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
