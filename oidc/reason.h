/* Why a token was refused: a closed list of codes that programs may switch on. */
#ifndef OIDC_REASON_H
#define OIDC_REASON_H

/*
 * X(symbol, code, what it means)
 * The codes never change. Some are given by callers only: state_mismatch and replay by a login or
 * a logout, idp_unavailable by whoever fetches keys.
 */
#define OIDC_REASON_TABLE(X)                                                                      \
    X(OIDC_BAD_FORMAT, "bad_format", "The token is not one compact, strictly encoded JWT.")       \
    X(OIDC_TOO_LARGE, "too_large", "The token is longer than 16 KiB.")                            \
    X(OIDC_CRIT_UNSUPPORTED, "crit_unsupported", "The header asks for an extension (crit, b64).") \
    X(OIDC_ALG_NOT_ALLOWED, "alg_not_allowed", "The algorithm is not one of the issuer's.")       \
    X(OIDC_ALG_KEY_MISMATCH, "alg_key_mismatch", "The key is not meant for this algorithm.")      \
    X(OIDC_KEY_NOT_FOUND, "key_not_found", "No usable key of the issuer has this key id.")        \
    X(OIDC_WEAK_KEY, "weak_key", "The key is too weak to be used.")                               \
    X(OIDC_BAD_SIGNATURE, "bad_signature", "The signature is wrong.")                             \
    X(OIDC_ISS_MISMATCH, "iss_mismatch", "iss is not the issuer, byte for byte.")                 \
    X(OIDC_AUD_MISMATCH, "aud_mismatch", "The token is for another audience.")                    \
    X(OIDC_AZP_MISMATCH, "azp_mismatch", "The token was issued to another client.")               \
    X(OIDC_TYP_MISMATCH, "typ_mismatch", "This type of token is not accepted here.")              \
    X(OIDC_EXP_MISSING, "exp_missing", "The token has no end (exp).")                             \
    X(OIDC_EXPIRED, "expired", "The token's time is over.")                                       \
    X(OIDC_NOT_YET_VALID, "not_yet_valid", "The token's time has not begun (nbf).")               \
    X(OIDC_IAT_FUTURE, "iat_future", "The token was issued in the future.")                       \
    X(OIDC_LIFETIME_TOO_LONG, "lifetime_too_long", "The token lives longer than allowed.")        \
    X(OIDC_NONCE_MISMATCH, "nonce_mismatch", "nonce is not the one that was sent.")               \
    X(OIDC_STATE_MISMATCH, "state_mismatch", "The answer belongs to no login of this browser.")   \
    X(OIDC_REPLAY, "replay", "This token was used before.")                                       \
    X(OIDC_CLAIM_MISSING, "claim_missing", "A claim that is needed is not there.")                \
    X(OIDC_CLAIM_TYPE, "claim_type", "A claim has a wrong type or value.")                        \
    X(OIDC_REQUIRED_CLAIM, "required_claim", "A claim has not the value that is required.")       \
    X(OIDC_EMAIL_UNVERIFIED, "email_unverified", "The email address is not verified.")            \
    X(OIDC_GROUPS_OVERAGE, "groups_overage", "The groups did not fit into the token.")            \
    X(OIDC_USERNAME_INVALID, "username_invalid", "No acceptable user name comes out.")            \
    X(OIDC_RESERVED_NAME, "reserved_name", "A name begins with system:, which is reserved.")      \
    X(OIDC_TENANT_NOT_ALLOWED, "tenant_not_allowed", "The tenant is not on the list.")            \
    X(OIDC_IDP_UNAVAILABLE, "idp_unavailable", "The issuer's keys cannot be had at present.")

#define OIDC_REASON_ENUM(sym, code, help) sym,
enum oidc_reason { OIDC_OK = 0, OIDC_REASON_TABLE(OIDC_REASON_ENUM) OIDC_REASON_COUNT };
#undef OIDC_REASON_ENUM

/* "ok" for OIDC_OK. Never NULL. */
const char *oidc_reason_code(enum oidc_reason reason);
/* One sentence. Never NULL. */
const char *oidc_reason_help(enum oidc_reason reason);

#endif
