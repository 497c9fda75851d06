/* Kinds of failure, one table for C, HTTP and the problem pages. */
#ifndef BASE_ERR_H
#define BASE_ERR_H

/*
 * X(symbol, HTTP status, code, title)
 * `code` is what programs switch on and never changes; its problem page is
 * api/problems/<code with - for _>.md, served at /problems/<code with - for _>.
 * The title is constant for the kind; the sentence about this one case is the problem's detail.
 */
#define ERR_TABLE(X)                                                                             \
    X(ERR_BAD_JSON, 400, "bad_json", "The body is not valid JSON")                               \
    X(ERR_BAD_REQUEST, 400, "bad_request", "The request is malformed")                           \
    X(ERR_BAD_CURSOR, 400, "bad_cursor", "The cursor does not fit this list")                    \
    X(ERR_KEY_REQUIRED, 400, "idempotency_key_required", "An Idempotency-Key is required")       \
    X(ERR_AUTHORIZATION_PENDING, 400, "authorization_pending", "Nobody has decided yet")         \
    X(ERR_SLOW_DOWN, 400, "slow_down", "You ask too often")                                      \
    X(ERR_EXPIRED_TOKEN, 400, "expired_token", "This code is used or over its time")             \
    X(ERR_ACCESS_DENIED, 400, "access_denied", "The person said no")                             \
    X(ERR_UNAUTHENTICATED, 401, "unauthenticated", "Sign in or send a valid token")              \
    X(ERR_FORBIDDEN, 403, "forbidden", "You may not do this")                                    \
    X(ERR_ORG_SUSPENDED, 403, "org_suspended", "This organization is suspended")                 \
    X(ERR_TLS_REQUIRED, 403, "tls_required", "This address is served over TLS only")             \
    X(ERR_NOT_FOUND, 404, "not_found", "There is no such thing, or you may not see it")          \
    X(ERR_METHOD_NOT_ALLOWED, 405, "method_not_allowed", "This method is not offered here")      \
    X(ERR_CONFLICT, 409, "conflict", "The present state forbids this")                           \
    X(ERR_NAME_TAKEN, 409, "name_taken", "This name is taken")                                   \
    X(ERR_PLAN_CHANGED, 409, "plan_changed", "The plan changed since you saw it")                \
    X(ERR_KEY_IN_FLIGHT, 409, "key_in_flight", "A request with this key is still running")       \
    X(ERR_PRECONDITION_FAILED, 412, "precondition_failed", "It changed since you read it")       \
    X(ERR_TOO_LARGE, 413, "too_large", "The body is too large")                                  \
    X(ERR_URI_TOO_LONG, 414, "uri_too_long", "The address is too long")                          \
    X(ERR_MEDIA_TYPE, 415, "media_type", "This media type is not accepted")                      \
    X(ERR_INVALID_FIELDS, 422, "invalid_fields", "Some fields are not valid")                    \
    X(ERR_KEY_REUSED, 422, "idempotency_key_reused", "This key was used for another request")    \
    X(ERR_PRECONDITION_REQUIRED, 428, "precondition_required", "An If-Match header is required") \
    X(ERR_RATE_LIMITED, 429, "rate_limited", "Too many requests")                                \
    X(ERR_INTERNAL, 500, "internal", "Something failed on our side")                             \
    X(ERR_METHOD_UNKNOWN, 501, "method_unknown", "This method is not known")                     \
    X(ERR_UNAVAILABLE, 503, "unavailable", "The database or a dependency is not available")      \
    X(ERR_OVERLOADED, 503, "overloaded", "Too much work is waiting")

#define ERR_ENUM(sym, status, code, title) sym,
enum err { ERR_NONE = 0, ERR_TABLE(ERR_ENUM) ERR_COUNT };
#undef ERR_ENUM

struct err_info {
    int status;        /* HTTP status */
    const char *code;  /* lower_snake */
    const char *title; /* one sentence without a full stop */
};

/* The row of a kind; ERR_NONE and unknown values give the row of ERR_INTERNAL. Never NULL. */
const struct err_info *err_info(enum err err);

#endif
