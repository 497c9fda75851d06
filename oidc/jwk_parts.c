/* The members of a JSON Web Key as bytes, and OpenSSL keys built from them. */
#include "oidc/jwk_parts.h"

#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <string.h>

#include "base/crypto.h"
#include "oidc/jose.h"

#define COORDINATE_MAX 66 /* P-521 */

bool jwk_read_part(const json_t *item, const char *name, struct jwk_part *ret)
{
    const json_t *value = json_object_get(item, name);
    return json_is_string(value) &&
           crypto_unb64(jose_text(value), ret->bytes, sizeof(ret->bytes), &ret->len) &&
           ret->len > 0;
}

EVP_PKEY *jwk_build_key(const char *type, OSSL_PARAM_BLD *builder, int selection)
{
    EVP_PKEY *pkey = NULL;
    OSSL_PARAM *params = OSSL_PARAM_BLD_to_param(builder);
    EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(NULL, type, NULL);
    bool made = params != NULL && ctx != NULL && EVP_PKEY_fromdata_init(ctx) == 1 &&
                EVP_PKEY_fromdata(ctx, &pkey, selection, params) == 1;
    EVP_PKEY_CTX_free(ctx);
    OSSL_PARAM_free(params);
    if (made && EVP_PKEY_is_a(pkey, "EC")) {
        EVP_PKEY_CTX *check = EVP_PKEY_CTX_new_from_pkey(NULL, pkey, NULL);
        made = check != NULL && EVP_PKEY_public_check(check) == 1;
        EVP_PKEY_CTX_free(check);
    }
    if (!made) {
        EVP_PKEY_free(pkey);
        pkey = NULL;
        ERR_clear_error();
    }
    return pkey;
}

size_t jwk_curve_size(struct str crv)
{
    return str_eq_c(crv, "P-256")   ? 32
           : str_eq_c(crv, "P-384") ? 48
           : str_eq_c(crv, "P-521") ? COORDINATE_MAX
                                    : 0;
}

bool jwk_push_point(OSSL_PARAM_BLD *builder, const json_t *item, struct str crv,
                    uint8_t point[JWK_POINT_MAX])
{
    struct jwk_part x;
    struct jwk_part y;
    size_t size = jwk_curve_size(crv);
    if (size == 0 || !jwk_read_part(item, "x", &x) || !jwk_read_part(item, "y", &y) ||
        x.len != size || y.len != size) {
        return false;
    }
    point[0] = POINT_CONVERSION_UNCOMPRESSED;
    memcpy(point + 1, x.bytes, size);
    memcpy(point + 1 + size, y.bytes, size);
    return OSSL_PARAM_BLD_push_utf8_string(builder, OSSL_PKEY_PARAM_GROUP_NAME, crv.ptr, crv.len) ==
               1 &&
           OSSL_PARAM_BLD_push_octet_string(builder, OSSL_PKEY_PARAM_PUB_KEY, point,
                                            1 + 2 * size) == 1;
}
