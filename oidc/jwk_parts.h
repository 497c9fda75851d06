/* The members of a JSON Web Key as bytes, and OpenSSL keys built from them. */
#ifndef OIDC_JWK_PARTS_H
#define OIDC_JWK_PARTS_H

#include <jansson.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

#define JWK_PART_MAX 1040 /* bytes of an 8192-bit number and a few zeros */
#define JWK_POINT_MAX 133 /* an uncompressed point of P-521 */

struct jwk_part {
    uint8_t bytes[JWK_PART_MAX];
    size_t len;
};

/* A base64url member; false when it is not there, empty or not strict. */
bool jwk_read_part(const json_t *item, const char *name, struct jwk_part *ret) MUST_CHECK;
/*
 * Makes a key from the builder's parameters; NULL when OpenSSL refuses. A point is checked to lie
 * on its curve. OpenSSL's check of RSA is left out, because it tests the modulus for primality: up
 * to a second for each key of a stranger's set.
 */
EVP_PKEY *jwk_build_key(const char *type, OSSL_PARAM_BLD *builder, int selection) MUST_CHECK;
/* Bytes of a coordinate of P-256, P-384 or P-521; 0 for another curve. */
size_t jwk_curve_size(struct str crv);
/* Adds curve and point; false when x and y are not there in the curve's full length. The builder
 * points into crv and point until the key is built. */
bool jwk_push_point(OSSL_PARAM_BLD *builder, const json_t *item, struct str crv,
                    uint8_t point[JWK_POINT_MAX]) MUST_CHECK;

#endif
