/* From checked headers to a route and a known caller who may use it. */
#include <string.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/log.h"
#include "server/bearer.h"
#include "server/client.h"
#include "server/config.h"
#include "server/exchange.h"
#include "server/follow.h"
#include "server/http.h"
#include "server/network.h"
#include "server/reply.h"

#define BODY_CAP_DEFAULT ((size_t)64 * 1024)
#define HOUR_US (3600 * (int64_t)1000000)
/* auth_lookup ends a session 8 h after it was seen last; seen_at is written at most every 5 min. */
#define SESSION_IDLE_US (8 * HOUR_US)
#define SESSION_TOUCH_US (300 * (int64_t)1000000)

void exchange_refuse(struct exchange *ex, enum err err, const char *sentence)
{
    (void)fail(&ex->rq, err, "%s", sentence);
    ex->stage = STAGE_ANSWER;
}

/* ------------------------------------------------------------------ where it comes from */

static void take_address(struct exchange *ex)
{
    struct request *rq = &ex->rq;
    const struct client *client = ex->client;
    bool tls = http_is_tls(loop_http(rq->loop));
    rq->address = (struct str){client->address, client->address_len};
    rq->secure = tls;
    if (client->proxy) {
        struct network_client who =
            network_client_of(rq->address, tls, ex->headers[HEADER_FORWARDED_FOR],
                              ex->headers[HEADER_FORWARDED_PROTO], config.trusted_proxies);
        rq->address = who.address;
        rq->secure = who.secure;
    }
}

static bool is_probe(struct str path)
{
    return str_eq_c(path, "/healthz") || str_eq_c(path, "/readyz");
}

/* Plain http carries tokens in the open: served only where the installation's owner allowed it. */
static bool needs_tls(const struct exchange *ex)
{
    const struct request *rq = &ex->rq;
    if (rq->secure || is_probe(rq->path)) {
        return false;
    }
    return ex->client->proxy ? !networks_hold(config.insecure_http_from, rq->address)
                             : !ex->client->insecure_allowed;
}

static void take_basics(struct exchange *ex)
{
    struct uuid id;
    ex->rq.cookies = ex->headers[HEADER_COOKIE];
    ex->rq.user_agent = ex->headers[HEADER_USER_AGENT];
    ex->rq.hook_id = ex->headers[HEADER_HOOK_ID];
    ex->rq.hook_at = ex->headers[HEADER_HOOK_AT];
    ex->rq.hook_signature = ex->headers[HEADER_HOOK_SIGNATURE];
    if (!uuid_parse(ex->headers[HEADER_REQUEST_ID], &id)) {
        id = uuid_v7();
    }
    uuid_format(&id, ex->rq.id);
}

bool exchange_wants_html(const struct exchange *ex)
{
    return str_find(ex->headers[HEADER_ACCEPT], STR("text/html"), 0) >= 0;
}

/* ------------------------------------------------------------------ the route */

size_t exchange_body_cap(const struct exchange *ex)
{
    const struct route *route = ex->rq.route;
    return route != NULL && route->body_cap != 0 ? route->body_cap : BODY_CAP_DEFAULT;
}

static bool find_route(struct exchange *ex)
{
    struct request *rq = &ex->rq;
    uint64_t length = 0;
    rq->route = route_find(rq->method, rq->path, rq->path_ids, &ex->allow);
    if (rq->route == NULL) {
        exchange_refuse(ex, ex->allow != 0 ? ERR_METHOD_NOT_ALLOWED : ERR_NOT_FOUND,
                        ex->allow != 0
                            ? "The Allow header names the methods."
                            : "Check the address; another organization's things are not shown.");
        return false;
    }
    ex->route_index = (int)(rq->route - routes);
    if (ex->headers[HEADER_CONTENT_LENGTH].ptr != NULL &&
        str_parse_u64(ex->headers[HEADER_CONTENT_LENGTH], 0, INT64_MAX, &length) &&
        length > exchange_body_cap(ex)) {
        (void)fail(rq, ERR_TOO_LARGE, "The body may have at most %zu bytes.",
                   exchange_body_cap(ex));
        ex->stage = STAGE_ANSWER;
        return false;
    }
    return true;
}

static bool is_safe_method(struct str method)
{
    return str_eq_c(method, "GET") || str_eq_c(method, "HEAD");
}

/* Changes that a browser asks for with a cookie, or to get one, come from our own pages only. */
static bool check_browser(struct exchange *ex)
{
    const struct auth_browser browser = {
        .content_type = ex->headers[HEADER_CONTENT_TYPE],
        .sec_fetch_site = ex->headers[HEADER_SEC_FETCH_SITE],
        .origin = ex->headers[HEADER_ORIGIN],
        .host = ex->headers[HEADER_HOST],
    };
    bool from_browser = browser.sec_fetch_site.ptr != NULL || browser.origin.ptr != NULL;
    bool matters = ex->cookie || (ex->rq.route->perm == PERM_PUBLIC && from_browser);
    if (is_safe_method(ex->rq.method) || !matters) {
        return true;
    }
    enum err err = auth_same_origin(&browser, ex->rq.secure);
    if (err != ERR_NONE) {
        exchange_refuse(ex, err,
                        err == ERR_MEDIA_TYPE
                            ? "Send Content-Type: application/json; a cookie alone changes nothing."
                            : "Changes with a cookie are taken from this server's own pages only.");
    }
    return err == ERR_NONE;
}

/* ------------------------------------------------------------------ the caller */

/* Who is nobody yet is counted by address. */
static bool take_address_limits(struct exchange *ex, struct limits *limits, int64_t now_us)
{
    const struct request *rq = &ex->rq;
    unsigned flags = rq->route->flags;
    if ((flags & ROUTE_LOGOUT) != 0) {
        /* Both: ids of issuers that do not exist would give as many buckets as one likes. */
        return limits_take_address(limits, LIMIT_LOGOUT, &rq->path_ids[0], rq->address, now_us,
                                   &ex->limits) &&
               limits_take_address(limits, LIMIT_LOGOUT_ADDRESS, NULL, rq->address, now_us,
                                   &ex->limits);
    }
    if ((flags & (ROUTE_SIGN_IN | ROUTE_JOIN)) == 0) {
        return true;
    }
    return limits_take_address(limits, (flags & ROUTE_JOIN) != 0 ? LIMIT_JOIN : LIMIT_SIGN_IN, NULL,
                               rq->address, now_us, &ex->limits);
}

/* What one caller takes must leave the others theirs. Agents are held by the interval they are
 * told.
 */
static bool take_limits(struct exchange *ex)
{
    struct limits *limits = loop_slot(ex->rq.loop, LOOP_SLOT_LIMITS);
    const struct caller *caller = &ex->rq.caller;
    int64_t now_us = clock_mono_us();
    if (caller->kind == CALLER_AGENT) {
        return true;
    }
    if (caller->kind != CALLER_NONE) {
        return limits_take(limits, LIMIT_CREDENTIAL, caller->credential_id.bytes,
                           sizeof(caller->credential_id.bytes), now_us, &ex->limits) &&
               limits_take(limits, LIMIT_ORG, caller->org.bytes, sizeof(caller->org.bytes), now_us,
                           &ex->limits);
    }
    return take_address_limits(ex, limits, now_us);
}

static void refuse_limit(struct exchange *ex)
{
    for (int i = 0; i < LIMIT_COUNT; i++) {
        if (ex->limits.of[i].refused) {
            ex->rq.retry_after_s = (int)ex->limits.of[i].wait_s;
        }
    }
    exchange_refuse(ex, ERR_RATE_LIMITED,
                    "Wait for the seconds in Retry-After, then go on more slowly.");
}

/* Agents go on: what they see is kept, and orders wait (repair_stop of db/sql/repair.sql). */
static bool is_suspended(const struct request *rq)
{
    return rq->caller.suspended && rq->caller.kind != CALLER_AGENT &&
           (rq->route->flags & ROUTE_SUSPENDED) == 0;
}

void exchange_permit(struct exchange *ex)
{
    struct request *rq = &ex->rq;
    if (!take_limits(ex)) {
        refuse_limit(ex);
        return;
    }
    if (is_suspended(rq)) {
        (void)fail(rq, ERR_ORG_SUSPENDED,
                   "It was suspended: %.*s. Nodes go on reporting and no repair starts. Ask an "
                   "administrator of the platform to resume it.",
                   STR_FMT(rq->caller.suspend_reason));
        ex->stage = STAGE_ANSWER;
        return;
    }
    enum err err = auth_permit_scoped(rq->arena, &rq->caller, rq->route->perm,
                                      (rq->route->flags & ROUTE_ORG) != 0, &rq->scope);
    if (err == ERR_NONE) {
        ex->stage = STAGE_BODY;
        return;
    }
    exchange_refuse(ex, err,
                    err == ERR_FORBIDDEN
                        ? "Your roles do not include this; an administrator can grant it."
                        : "Sign in, or send Authorization: Bearer with a token.");
}

struct touch {
    struct db_call call;
    struct arena *arena;
};

static void on_touched(struct db_call *call, enum err err, const struct db_rows *rows)
{
    struct touch *use = call->ctx;
    (void)rows;
    if (err != ERR_NONE) {
        log_debug("a credential's last use could not be written: %s", err_info(err)->title);
    }
    arena_free(use->arena);
}

/* Keeps a used session alive, and says of a service token when it was used; nobody waits for it. */
static void touch(struct exchange *ex, struct auth_cache *cache)
{
    struct request *rq = &ex->rq;
    bool session = rq->caller.kind == CALLER_SESSION;
    if (rq->caller.kind == CALLER_AGENT || rq->caller.kind == CALLER_TOKEN ||
        (session && rq->caller.expires_us - clock_wall_us() > SESSION_IDLE_US - SESSION_TOUCH_US) ||
        !auth_touch_due(cache, rq->token_hash)) {
        return;
    }
    struct arena *arena = arena_new((size_t)64 * 1024);
    struct touch *use = arena_zalloc(arena, sizeof(*use));
    *use = (struct touch){
        .arena = arena,
        .call = {.sql = session ? SQL_SESSION_TOUCH : SQL_SERVICE_TOKEN_TOUCH,
                 .verb = true,
                 .has_org = true,
                 .org = rq->caller.org,
                 .done = on_touched,
                 .ctx = use},
    };
    db_arg_uuid(&use->call.args, arena, &rq->caller.credential_id);
    db_submit(loop_db(rq->loop), &use->call);
}

static void on_caller(struct db_call *call, enum err err, const struct db_rows *rows)
{
    struct exchange *ex = call->ctx;
    struct request *rq = &ex->rq;
    struct auth_cache *cache = loop_slot(rq->loop, LOOP_SLOT_AUTH);
    if (err != ERR_NONE) {
        reply_database_failed(rq, err);
        ex->stage = STAGE_ANSWER;
    } else if (!auth_caller_read(rq->arena, rows, &rq->caller)) {
        rq->caller = (struct caller){0};
        exchange_refuse(ex, ERR_UNAUTHENTICATED,
                        "The token or session is not known, revoked or expired.");
    } else {
        auth_cache_put(cache, rq->token_hash, follow_auth_epoch(loop_follow(rq->loop)),
                       &rq->caller);
        touch(ex, cache);
        exchange_permit(ex);
    }
    request_resume(rq);
}

/* What the cache told is its own only until the next call. */
static void keep_text(struct arena *arena, struct str *text)
{
    text->ptr = arena_strndup(arena, text->ptr, text->len);
}

static void look_up_caller(struct exchange *ex, enum auth_source source, struct str token)
{
    struct request *rq = &ex->rq;
    struct auth_cache *cache = loop_slot(rq->loop, LOOP_SLOT_AUTH);
    crypto_sha256(token, rq->token_hash);
    if (auth_cache_get(cache, rq->token_hash, follow_auth_epoch(loop_follow(rq->loop)),
                       &rq->caller)) {
        keep_text(rq->arena, &rq->caller.name);
        keep_text(rq->arena, &rq->caller.grants);
        keep_text(rq->arena, &rq->caller.issuer);
        keep_text(rq->arena, &rq->caller.subject);
        keep_text(rq->arena, &rq->caller.suspend_reason);
        touch(ex, cache);
        exchange_permit(ex);
        return;
    }
    if (source == AUTH_ISSUER) {
        bearer_admit(ex, token);
        return;
    }
    ex->call = (struct db_call){.sql = SQL_AUTH_LOOKUP, .done = on_caller, .ctx = ex};
    db_arg_bytes(&ex->call.args, rq->arena, rq->token_hash, sizeof(rq->token_hash));
    request_suspend(rq);
    db_submit(loop_db(rq->loop), &ex->call);
}

static void find_caller(struct exchange *ex)
{
    enum auth_source source = AUTH_NONE;
    struct str token = {0};
    enum err err = auth_token(ex->headers[HEADER_AUTHORIZATION], ex->headers[HEADER_COOKIE],
                              ex->rq.secure, &source, &token);
    ex->cookie = source == AUTH_COOKIE;
    ex->rq.bearer = source == AUTH_BEARER;
    if (ex->rq.route->perm == PERM_PUBLIC) {
        if (!take_limits(ex)) {
            refuse_limit(ex);
        } else if (check_browser(ex)) {
            ex->stage = STAGE_BODY;
        }
        return;
    }
    if (err != ERR_NONE) {
        exchange_refuse(ex, err, "The Authorization header holds no token of this server.");
    } else if (source == AUTH_NONE) {
        exchange_permit(ex);
    } else if (check_browser(ex)) {
        look_up_caller(ex, source, token);
    }
}

void exchange_admit(struct exchange *ex)
{
    take_address(ex);
    if (loop_db(ex->rq.loop) == NULL) {
        take_basics(ex);
        exchange_refuse(ex, ERR_UNAVAILABLE, "The server is stopping; try again.");
        return;
    }
    if (needs_tls(ex)) {
        take_basics(ex);
        exchange_refuse(
            ex, ERR_TLS_REQUIRED,
            "Plain http is served to insecure_http_from only. Use https, set tls_certificate and "
            "tls_key, or put a TLS proxy in front.");
        return;
    }
    if (is_safe_method(ex->rq.method) && exchange_serve_file(ex)) {
        ex->stage = STAGE_ANSWER;
        return;
    }
    take_basics(ex);
    if (find_route(ex)) {
        find_caller(ex);
    }
}
