/* Hashes, randomness, base64url, AES-256-GCM and Ed25519 on OpenSSL. */
#ifndef BASE_CRYPTO_H
#define BASE_CRYPTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

#define SHA256_LEN 32
#define ED25519_PUBLIC_LEN 32
#define ED25519_SIGNATURE_LEN 64

void crypto_random(void *data, size_t len); /* aborts when the system has no randomness */
void crypto_sha256(struct str data, uint8_t hash[SHA256_LEN]);
/* RFC 2104 with SHA-256. */
void crypto_hmac_sha256(struct str key, struct str data, uint8_t mac[SHA256_LEN]);
bool crypto_equal(const void *a, const void *b, size_t len);              /* constant time */
void crypto_hex(const uint8_t *data, size_t len, char *text);             /* 2 * len + 1 bytes */
bool crypto_unhex(struct str text, uint8_t *data, size_t len) MUST_CHECK; /* exactly len bytes */

/* base64url without padding (RFC 4648 5). */
size_t crypto_b64_len(size_t len);                         /* characters for len bytes */
void crypto_b64(const void *data, size_t len, char *text); /* crypto_b64_len(len) + 1 bytes */
/* Strict: no padding, no white space, unused bits zero. */
bool crypto_unb64(struct str text, void *data, size_t cap, size_t *ret_len) MUST_CHECK;

/* base64 with padding (RFC 4648 4), as HTTP's Basic authentication wants it. */
size_t crypto_base64_len(size_t len);
void crypto_base64(const void *data, size_t len, char *text); /* crypto_base64_len(len) + 1 bytes */

/*
 * AES-256-GCM with a random nonce: nonce, ciphertext and tag one behind the other, so that `sealed`
 * takes len + CRYPTO_SEAL_EXTRA bytes. `bound` is not in it and must be the same at both ends. With
 * one key at most 2^32 seals (NIST SP 800-38D 8.3).
 */
#define CRYPTO_KEY_LEN 32
#define CRYPTO_SEAL_EXTRA 28
void crypto_seal(const uint8_t key[CRYPTO_KEY_LEN], struct str bound, struct str plain,
                 uint8_t *sealed);
/* Into `plain`, sealed.len - CRYPTO_SEAL_EXTRA bytes. False when it is cut, changed, or was sealed
 * with another key or bound to something else; `plain` holds zeros then. */
bool crypto_unseal(const uint8_t key[CRYPTO_KEY_LEN], struct str bound, struct str sealed,
                   uint8_t *plain) MUST_CHECK;

/* An opaque token: prefix + 43 characters (256 bits). text holds strlen(prefix) + 44 bytes. */
void crypto_token(const char *prefix, char *text);

struct ed25519; /* a private key */
struct ed25519 *ed25519_new(void);
void ed25519_free(struct ed25519 *key);
void ed25519_freep(struct ed25519 **key);
void ed25519_public(const struct ed25519 *key, uint8_t public_key[ED25519_PUBLIC_LEN]);
void ed25519_sign(const struct ed25519 *key, struct str data, uint8_t sig[ED25519_SIGNATURE_LEN]);
bool ed25519_verify(const uint8_t public_key[ED25519_PUBLIC_LEN], struct str data,
                    const uint8_t sig[ED25519_SIGNATURE_LEN]) MUST_CHECK;
/* The private key's 32 raw bytes, to keep it in a file. */
void ed25519_export(const struct ed25519 *key, uint8_t seed[32]);
struct ed25519 *ed25519_import(const uint8_t seed[32]); /* NULL when refused */

#endif
