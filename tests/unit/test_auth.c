/* Tokens, the cache of callers, and the rules for browsers. */
#include <criterion/criterion.h>

#include <string.h>

#include "base/clock.h"
#include "server/auth.h"

#define SECOND ((int64_t)1000000)

/* ------------------------------------------------------------------ tokens */

Test(auth, takes_a_bearer_token_in_any_spelling_of_the_scheme)
{
    static const char *const headers[] = {"Bearer mst_abc", "bearer mst_abc", "BEARER   mst_abc ",
                                          " Bearer mst_abc"};
    for (size_t i = 0; i < COUNTOF(headers); i++) {
        enum auth_source source = AUTH_NONE;
        struct str token = {0};
        cr_assert_eq(auth_token(str_of(headers[i]), STR(""), false, &source, &token), ERR_NONE,
                     "case %zu", i);
        cr_assert_eq(source, AUTH_BEARER, "case %zu", i);
        cr_assert(str_eq_c(token, "mst_abc"), "case %zu", i);
    }
}

Test(auth, refuses_what_is_no_bearer_token_of_ours)
{
    static const char *const headers[] = {
        "",
        "Bearer",
        "Bearer ",
        "Basic bXN0Og==",
        "Bearer mst_",
        "Bearer abc",
        "Bearer mst_a b",
        "Bearer mst_a'--",
        "mst_abc",
        "Bearer mjt_abc",
        "Bearer mss_abc",
        "Bearer msl_abc",
        "Bearermst_abc",
        "Bearer mst_a\xc3\xa9",
    };
    for (size_t i = 0; i < COUNTOF(headers); i++) {
        enum auth_source source = AUTH_NONE;
        struct str token = {0};
        cr_assert_eq(auth_token(str_of(headers[i]), STR(""), false, &source, &token),
                     ERR_UNAUTHENTICATED, "case %zu", i);
    }
}

Test(auth, a_bad_header_is_not_made_good_by_a_cookie)
{
    enum auth_source source = AUTH_NONE;
    struct str token = {0};
    cr_assert_eq(auth_token(STR("Bearer x"), STR("muster_session=mss_abc"), false, &source, &token),
                 ERR_UNAUTHENTICATED);
}

Test(auth, reads_the_cookie_of_the_transport)
{
    static const struct {
        const char *cookie;
        bool secure;
        const char *token; /* NULL = none */
    } cases[] = {
        {"muster_session=mss_abc", false, "mss_abc"},
        {"a=b; muster_session=mss_abc; c=d", false, "mss_abc"},
        {"__Host-muster=mss_abc", true, "mss_abc"},
        {"muster_session=mss_abc", true, NULL},
        {"__Host-muster=mss_abc", false, NULL},
        {"muster_session=mst_abc", false, NULL},
        {"muster_session=", false, NULL},
        {"xmuster_session=mss_abc", false, NULL},
        {"muster_session=mss_abc; muster_session=mss_def", false, NULL},
        {"", false, NULL},
    };
    for (size_t i = 0; i < COUNTOF(cases); i++) {
        enum auth_source source = AUTH_BEARER;
        struct str token = {0};
        struct str none = {0};
        cr_assert_eq(auth_token(none, str_of(cases[i].cookie), cases[i].secure, &source, &token),
                     ERR_NONE, "case %zu", i);
        cr_assert_eq(source, cases[i].token != NULL ? AUTH_COOKIE : AUTH_NONE, "case %zu", i);
        cr_assert(cases[i].token == NULL || str_eq_c(token, cases[i].token), "case %zu", i);
    }
}

Test(auth, a_token_longer_than_ours_is_none)
{
    char header[AUTH_TOKEN_MAX + 40];
    enum auth_source source = AUTH_NONE;
    struct str token = {0};
    memset(header, 'a', sizeof(header));
    memcpy(header, "Bearer mst_", 11);
    cr_assert_eq(
        auth_token((struct str){header, 7 + AUTH_TOKEN_MAX}, STR(""), false, &source, &token),
        ERR_NONE);
    cr_assert_eq(
        auth_token((struct str){header, 8 + AUTH_TOKEN_MAX}, STR(""), false, &source, &token),
        ERR_UNAUTHENTICATED);
}

/* ------------------------------------------------------------------ the cache */

static struct auth_cache *cache;
static uint8_t hash[32];

static void setup(void)
{
    clock_test_set(1000 * SECOND);
    cache = auth_cache_new();
    memset(hash, 7, sizeof(hash));
}

static void teardown(void)
{
    auth_cache_free(cache);
    clock_test_off();
}

TestSuite(auth_cache, .init = setup, .fini = teardown);

static struct caller make_caller(enum caller_kind kind, int64_t life_s)
{
    return (struct caller){.kind = kind,
                           .name = STR("gpu-17"),
                           .perms = PERM_AGENT,
                           .expires_us = clock_wall_us() + life_s * SECOND};
}

/* The first look at an epoch empties the cache and remembers it. */
static void begin(int64_t epoch)
{
    struct caller caller;
    cr_assert_not(auth_cache_get(cache, hash, epoch, &caller));
}

Test(auth_cache, gives_back_agents_and_services)
{
    static const enum caller_kind kinds[] = {CALLER_AGENT, CALLER_SERVICE};
    begin(1);
    for (size_t i = 0; i < COUNTOF(kinds); i++) {
        struct caller caller = make_caller(kinds[i], 3600);
        struct caller found;
        auth_cache_put(cache, hash, 1, &caller);
        cr_assert(auth_cache_get(cache, hash, 1, &found));
        cr_assert_eq(found.kind, kinds[i]);
        cr_assert(str_eq_c(found.name, "gpu-17"));
    }
}

Test(auth_cache, does_not_keep_sessions)
{
    struct caller caller = make_caller(CALLER_SESSION, 3600);
    begin(1);
    auth_cache_put(cache, hash, 1, &caller);
    cr_assert_not(auth_cache_get(cache, hash, 1, &caller));
}

Test(auth_cache, forgets_after_a_minute)
{
    struct caller caller = make_caller(CALLER_AGENT, 3600);
    begin(1);
    auth_cache_put(cache, hash, 1, &caller);
    clock_test_advance(59 * SECOND);
    cr_assert(auth_cache_get(cache, hash, 1, &caller));
    clock_test_advance(1 * SECOND);
    cr_assert_not(auth_cache_get(cache, hash, 1, &caller));
}

Test(auth_cache, never_outlives_the_token)
{
    struct caller caller = make_caller(CALLER_AGENT, 5);
    begin(1);
    auth_cache_put(cache, hash, 1, &caller);
    clock_test_advance(4 * SECOND);
    cr_assert(auth_cache_get(cache, hash, 1, &caller));
    clock_test_advance(1 * SECOND);
    cr_assert_not(auth_cache_get(cache, hash, 1, &caller));
}

Test(auth_cache, forgets_all_when_the_epoch_moves)
{
    struct caller caller = make_caller(CALLER_SERVICE, 3600);
    begin(1);
    auth_cache_put(cache, hash, 1, &caller);
    cr_assert_not(auth_cache_get(cache, hash, 2, &caller));
    cr_assert_not(auth_cache_get(cache, hash, 2, &caller));
}

Test(auth_cache, does_not_take_what_was_looked_up_before_the_epoch_moved)
{
    struct caller caller = make_caller(CALLER_SERVICE, 3600);
    struct caller found;
    begin(1);
    begin(2);
    auth_cache_put(cache, hash, 1, &caller);
    cr_assert_not(auth_cache_get(cache, hash, 2, &found));
}

Test(auth_cache, keeps_nothing_while_the_epoch_is_unknown)
{
    struct caller caller = make_caller(CALLER_AGENT, 3600);
    struct caller found;
    auth_cache_put(cache, hash, 0, &caller);
    cr_assert_not(auth_cache_get(cache, hash, 0, &found));
}

Test(auth_cache, touches_a_session_once_in_five_minutes)
{
    uint8_t other[32] = {1};
    cr_assert(auth_touch_due(cache, hash));
    cr_assert_not(auth_touch_due(cache, hash));
    cr_assert(auth_touch_due(cache, other));
    clock_test_advance(300 * SECOND);
    cr_assert(auth_touch_due(cache, hash));
}

/* ------------------------------------------------------------------ permissions and browsers */

Test(auth, a_caller_needs_the_permission)
{
    struct caller nobody = {0};
    struct caller viewer = {.kind = CALLER_SERVICE, .perms = PERM_SESSION | PERM_CLUSTER_READ};
    struct caller agent = {.kind = CALLER_AGENT, .perms = PERM_AGENT};
    cr_assert_eq(auth_permit(&nobody, PERM_PUBLIC), ERR_NONE);
    cr_assert_eq(auth_permit(&nobody, PERM_SESSION), ERR_UNAUTHENTICATED);
    cr_assert_eq(auth_permit(&viewer, PERM_CLUSTER_READ), ERR_NONE);
    cr_assert_eq(auth_permit(&viewer, PERM_NODE_WRITE), ERR_FORBIDDEN);
    cr_assert_eq(auth_permit(&agent, PERM_CLUSTER_READ), ERR_FORBIDDEN);
    cr_assert_eq(auth_permit(&agent, PERM_SESSION), ERR_FORBIDDEN);
}

Test(auth, a_change_by_cookie_is_json_from_our_own_pages)
{
    static const struct {
        const char *type;
        const char *site;   /* NULL = absent */
        const char *origin; /* NULL = absent */
        enum err wanted;
    } cases[] = {
        {"application/json", "same-origin", NULL, ERR_NONE},
        {"application/json; charset=utf-8", "same-origin", NULL, ERR_NONE},
        {"application/merge-patch+json", "same-origin", NULL, ERR_NONE},
        {"application/json", NULL, "http://muster.example:8080", ERR_NONE},
        {"application/json", "same-origin", "http://evil.example", ERR_NONE},
        {"application/json", "same-site", "http://muster.example:8080", ERR_FORBIDDEN},
        {"application/json", "cross-site", "http://muster.example:8080", ERR_FORBIDDEN},
        {"application/json", "none", NULL, ERR_FORBIDDEN},
        {"application/json", NULL, "http://muster.example", ERR_FORBIDDEN},
        {"application/json", NULL, "https://muster.example:8080", ERR_FORBIDDEN},
        {"application/json", NULL, "http://muster.example:8080.evil.example", ERR_FORBIDDEN},
        {"application/json", NULL, "null", ERR_FORBIDDEN},
        {"application/json", NULL, NULL, ERR_FORBIDDEN},
        {"text/plain", "same-origin", NULL, ERR_MEDIA_TYPE},
        {"application/x-www-form-urlencoded", "same-origin", NULL, ERR_MEDIA_TYPE},
        {"", "same-origin", NULL, ERR_MEDIA_TYPE},
    };
    for (size_t i = 0; i < COUNTOF(cases); i++) {
        struct auth_browser browser = {
            .content_type = str_of(cases[i].type),
            .sec_fetch_site = str_of(cases[i].site),
            .origin = str_of(cases[i].origin),
            .host = STR("muster.example:8080"),
        };
        cr_assert_eq(auth_same_origin(&browser, false), cases[i].wanted, "case %zu", i);
    }
}

Test(auth, cookies_are_named_by_the_transport)
{
    struct arena *arena = arena_new((size_t)64 * 1024);
    struct request rq = {.arena = arena, .secure = true};
    auth_cookie_set(&rq, STR("mss_abc"), 60);
    cr_assert(
        str_eq_c(rq.set_cookie,
                 "__Host-muster=mss_abc; Path=/; Max-Age=60; HttpOnly; SameSite=Lax; Secure"));
    rq.secure = false;
    auth_cookie_set(&rq, STR(""), 0);
    cr_assert(
        str_eq_c(rq.set_cookie, "muster_session=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax"));
    arena_free(arena);
}
