/* The symmetric half of JWE: content encryption and key wrap (RFC 7518 4.4 and 5). */
#ifndef OIDC_JWE_CONTENT_H
#define OIDC_JWE_CONTENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

#define JWE_CEK_MAX 64

struct jwe_enc {
    const char *name;
    size_t cek_len;
    const char *cipher; /* OpenSSL's name */
    const char *digest; /* NULL = GCM */
};

/* NULL for an enc that is not allowed. */
const struct jwe_enc *jwe_enc_find(struct str name);

struct jwe_sealed {
    struct str aad; /* the header as it stands in the token */
    struct str iv;
    struct str ciphertext;
    struct str tag;
};

/* Writes at most ciphertext.len bytes to out. False for whatever is not exactly right. */
bool jwe_decrypt_content(const struct jwe_enc *enc, const uint8_t *cek,
                         const struct jwe_sealed *sealed, uint8_t *out, size_t *ret_len) MUST_CHECK;
/* AES Key Wrap (RFC 3394); wrapped must have exactly cek_len + 8 bytes. */
bool jwe_unwrap(const uint8_t *kek, size_t kek_len, struct str wrapped, uint8_t *cek,
                size_t cek_len) MUST_CHECK;

#endif
