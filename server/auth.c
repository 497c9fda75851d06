/* Who is calling: tokens, cookies, the cache of credentials, and the rules for browsers. */
#include "server/auth.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/map.h"
#include "server/perms.h"

#define ENTRY_LIFE_US (60 * (int64_t)1000000)
/* A fleet that came at once must not be looked up at once again: lives differ by up to a quarter.
 */
#define ENTRY_SPREAD_US (15 * (int64_t)1000000)
#define TOUCH_LIFE_US (300 * (int64_t)1000000)
#define TOUCHED_MAX 8192

/* ------------------------------------------------------------------ the token of a request */

static bool is_token(struct str token)
{
    static const char *const prefixes[] = {AUTH_PREFIX_SERVICE, AUTH_PREFIX_AGENT,
                                           AUTH_PREFIX_SESSION, AUTH_PREFIX_PERSON};
    if (token.len > AUTH_TOKEN_MAX) {
        return false;
    }
    for (size_t i = 0; i < token.len; i++) {
        char c = token.ptr[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '-' || c == '_')) {
            return false;
        }
    }
    for (size_t i = 0; i < COUNTOF(prefixes); i++) {
        struct str prefix = str_of(prefixes[i]);
        if (str_starts(token, prefix) && token.len > prefix.len) {
            return true;
        }
    }
    return false;
}

/* The beginning of {" in base64url, and parts; the verifier says what is wrong with the rest. */
static bool is_jwt(struct str token)
{
    return str_starts(token, STR("eyJ")) && str_find(token, STR("."), 0) > 0;
}

/* The value of a cookie; an empty str when it is absent or stands twice. */
static struct str find_cookie(struct str cookies, const char *name)
{
    struct str found = {0};
    struct str part;
    while (str_split(&cookies, ';', &part)) {
        struct str key;
        part = str_trim(part);
        if (!str_split(&part, '=', &key) || !str_eq_c(key, name)) {
            continue;
        }
        if (found.ptr != NULL) {
            return (struct str){0};
        }
        found = part.ptr != NULL ? part : STR("");
    }
    return found;
}

enum err auth_token(struct str authorization, struct str cookie, bool secure,
                    enum auth_source *ret_source, struct str *ret_token)
{
    if (authorization.ptr != NULL) {
        struct str rest = str_trim(authorization);
        struct str scheme;
        if (!str_split(&rest, ' ', &scheme) || !str_eq_nocase(scheme, STR("Bearer"))) {
            return ERR_UNAUTHENTICATED;
        }
        struct str token = str_trim(rest);
        if (is_jwt(token)) {
            *ret_source = AUTH_ISSUER;
            *ret_token = token;
            return ERR_NONE;
        }
        /* A session lives in its cookie only: taken as Bearer it would pass by the browser's rules.
         */
        if (!is_token(token) || str_starts(token, STR(AUTH_PREFIX_SESSION))) {
            return ERR_UNAUTHENTICATED;
        }
        *ret_source = AUTH_BEARER;
        *ret_token = token;
        return ERR_NONE;
    }
    struct str token = find_cookie(cookie, secure ? AUTH_COOKIE_TLS : AUTH_COOKIE_PLAIN);
    if (is_token(token) && str_starts(token, STR(AUTH_PREFIX_SESSION))) {
        *ret_source = AUTH_COOKIE;
        *ret_token = token;
    } else {
        *ret_source = AUTH_NONE;
        *ret_token = (struct str){0};
    }
    return ERR_NONE;
}

/* ------------------------------------------------------------------ the cache */

struct auth_cache {
    struct map *entries;
    struct map *touched; /* sessions and service tokens: until when, as int64_t */
    int64_t epoch;
};

struct entry {
    struct caller caller; /* its texts are in `text`, one behind the other */
    int64_t until_us;     /* monotonic */
    char text[];
};

struct auth_cache *auth_cache_new(void)
{
    struct auth_cache *cache = calloc(1, sizeof(*cache));
    if (cache == NULL) {
        abort();
    }
    cache->entries = map_new(free);
    cache->touched = map_new(free);
    return cache;
}

void auth_cache_free(struct auth_cache *cache)
{
    if (cache != NULL) {
        map_free(cache->entries);
        map_free(cache->touched);
        free(cache);
    }
}

static void drop_all(struct auth_cache *cache)
{
    map_free(cache->entries);
    cache->entries = map_new(free);
}

static struct str key_of(const uint8_t hash[32])
{
    return (struct str){(const char *)hash, 32};
}

bool auth_cache_get(struct auth_cache *cache, const uint8_t hash[32], int64_t epoch,
                    struct caller *ret_caller)
{
    if (epoch == 0) {
        return false;
    }
    if (cache->epoch != epoch) {
        drop_all(cache);
        cache->epoch = epoch;
        return false;
    }
    struct entry *entry = map_get(cache->entries, key_of(hash));
    if (entry == NULL) {
        return false;
    }
    if (clock_mono_us() >= entry->until_us || clock_wall_us() >= entry->caller.expires_us) {
        (void)map_remove(cache->entries, key_of(hash));
        return false;
    }
    *ret_caller = entry->caller;
    return true;
}

static void keep_text(struct str *text, char **at)
{
    if (text->len > 0) {
        memcpy(*at, text->ptr, text->len);
    }
    text->ptr = *at;
    *at += text->len;
}

void auth_cache_put(struct auth_cache *cache, const uint8_t hash[32], int64_t epoch,
                    const struct caller *caller)
{
    if (epoch == 0 || epoch != cache->epoch ||
        (caller->kind != CALLER_AGENT && caller->kind != CALLER_SERVICE &&
         caller->kind != CALLER_TOKEN)) {
        return;
    }
    if (map_count(cache->entries) >= AUTH_CACHE_MAX) {
        drop_all(cache);
    }
    struct entry *entry =
        calloc(1, sizeof(*entry) + caller->name.len + caller->grants.len + caller->issuer.len +
                      caller->subject.len + caller->suspend_reason.len + 1);
    if (entry == NULL) {
        abort();
    }
    char *at = entry->text;
    entry->caller = *caller;
    entry->until_us = clock_mono_us() + ENTRY_LIFE_US - ENTRY_SPREAD_US * hash[0] / UINT8_MAX;
    keep_text(&entry->caller.name, &at);
    keep_text(&entry->caller.grants, &at);
    keep_text(&entry->caller.issuer, &at);
    keep_text(&entry->caller.subject, &at);
    keep_text(&entry->caller.suspend_reason, &at);
    map_put(cache->entries, key_of(hash), entry);
}

bool auth_touch_due(struct auth_cache *cache, const uint8_t hash[32])
{
    int64_t now_us = clock_mono_us();
    int64_t *until_us = map_get(cache->touched, key_of(hash));
    if (until_us != NULL && now_us < *until_us) {
        return false;
    }
    if (map_count(cache->touched) >= TOUCHED_MAX) {
        map_free(cache->touched);
        cache->touched = map_new(free);
    }
    until_us = calloc(1, sizeof(*until_us));
    if (until_us == NULL) {
        abort();
    }
    *until_us = now_us + TOUCH_LIFE_US;
    map_put(cache->touched, key_of(hash), until_us);
    return true;
}

/* ------------------------------------------------------------------ callers and permissions */

/* The roles in PostgreSQL's text of an array of plain words, "{admin,viewer}". Unknown ones are
 * those of a newer server: they grant nothing here. */
static unsigned read_roles(struct str text)
{
    unsigned roles = 0;
    if (text.len >= 2 && text.ptr[0] == '{') {
        struct str rest = {text.ptr + 1, text.len - 2};
        struct str name;
        while (str_split(&rest, ',', &name)) {
            unsigned role = 0;
            if (role_parse(name, &role)) {
                roles |= role;
            }
        }
    }
    return roles;
}

static bool read_kind(struct str kind, enum caller_kind *ret_kind)
{
    static const struct {
        const char *name;
        enum caller_kind kind;
    } kinds[] = {{"session", CALLER_SESSION},
                 {"service", CALLER_SERVICE},
                 {"agent", CALLER_AGENT},
                 {"token", CALLER_TOKEN}};
    for (size_t i = 0; i < COUNTOF(kinds); i++) {
        if (str_eq_c(kind, kinds[i].name)) {
            *ret_kind = kinds[i].kind;
            return true;
        }
    }
    return false;
}

bool auth_caller_read(struct arena *arena, const struct db_rows *rows, struct caller *ret_caller)
{
    struct caller caller = {0};
    if (db_rows_count(rows) == 0 ||
        !read_kind(db_text(rows, 0, db_rows_col(rows, "kind")), &caller.kind) ||
        !db_uuid(rows, 0, db_rows_col(rows, "org_id"), &caller.org) ||
        !db_uuid(rows, 0, db_rows_col(rows, "credential_id"), &caller.credential_id) ||
        !db_uuid(rows, 0, db_rows_col(rows, "subject_id"), &caller.subject_id)) {
        return false;
    }
    struct str name = db_text(rows, 0, db_rows_col(rows, "name"));
    int suspended = db_rows_col(rows, "suspended");
    caller.name = (struct str){arena_strndup(arena, name.ptr, name.len), name.len};
    (void)db_uuid(rows, 0, db_rows_col(rows, "node_id"), &caller.node_id);
    (void)db_uuid(rows, 0, db_rows_col(rows, "cluster_id"), &caller.cluster_id);
    caller.expires_us = db_time_us(rows, 0, db_rows_col(rows, "expires_at"));
    caller.suspended = !db_is_null(rows, 0, suspended);
    if (caller.suspended) {
        struct str reason = db_text(rows, 0, suspended);
        caller.suspend_reason =
            (struct str){arena_strndup(arena, reason.ptr, reason.len), reason.len};
    }
    if (caller.kind == CALLER_AGENT) {
        caller.perms = PERM_AGENT;
    } else {
        caller.platform_admin = db_bool(rows, 0, db_rows_col(rows, "platform_admin"));
        caller.roles = read_roles(db_text(rows, 0, db_rows_col(rows, "roles")));
        caller.perms = perms_of(caller.roles, caller.platform_admin);
        struct str grants = db_text(rows, 0, db_rows_col(rows, "grants"));
        caller.grants = (struct str){arena_strndup(arena, grants.ptr, grants.len), grants.len};
    }
    *ret_caller = caller;
    return true;
}

enum err auth_permit(const struct caller *caller, unsigned perm)
{
    if (perm == PERM_PUBLIC) {
        return ERR_NONE;
    }
    if (caller->kind == CALLER_NONE) {
        return ERR_UNAUTHENTICATED;
    }
    return (caller->perms & perm) == perm ? ERR_NONE : ERR_FORBIDDEN;
}

/* Adds what an entry "role id parent" permits. */
static void add_grant(struct buf *scope, struct str entry, unsigned perm)
{
    struct str role_text;
    struct str id;
    struct str parent;
    unsigned role = 0;
    if (!str_split(&entry, ' ', &role_text) || !str_split(&entry, ' ', &id) ||
        !str_split(&entry, ' ', &parent) || id.len != UUID_TEXT_LEN ||
        !role_parse(role_text, &role) || (perms_of(role, false) & perm) != perm) {
        return;
    }
    buf_printf(scope, "%s%.*s", scope->len > 1 ? "," : "", STR_FMT(id));
    if (perm == PERM_CLUSTER_READ && parent.len == UUID_TEXT_LEN) {
        buf_printf(scope, ",%.*s", STR_FMT(parent));
    }
}

enum err auth_permit_scoped(struct arena *arena, const struct caller *caller, unsigned perm,
                            bool org_wide, const char **ret_scope)
{
    enum err err = auth_permit(caller, perm);
    *ret_scope = NULL;
    if (err != ERR_FORBIDDEN || org_wide || caller->grants.len == 0 || perm == PERM_AGENT) {
        return err;
    }
    CLEANUP(buf_free) struct buf scope = {0};
    struct str rest = caller->grants;
    struct str entry;
    buf_add_char(&scope, '{');
    while (str_split(&rest, ',', &entry)) {
        add_grant(&scope, entry, perm);
    }
    if (scope.len == 1) {
        return err;
    }
    buf_add_char(&scope, '}');
    *ret_scope = arena_strndup(arena, scope.ptr, scope.len);
    return ERR_NONE;
}

bool auth_in_scope(const char *scope, struct str id)
{
    return scope == NULL || (id.len == UUID_TEXT_LEN && str_find(str_of(scope), id, 0) >= 0);
}

/* ------------------------------------------------------------------ browsers */

static bool is_json_type(struct str content_type)
{
    struct str type;
    if (!str_split(&content_type, ';', &type)) {
        return false;
    }
    type = str_trim(type);
    return str_eq_nocase(type, STR("application/json")) ||
           str_eq_nocase(type, STR("application/merge-patch+json"));
}

static bool is_own_origin(const struct auth_browser *browser, bool secure)
{
    struct str scheme = secure ? STR("https://") : STR("http://");
    if (browser->host.len == 0 || !str_starts(browser->origin, scheme)) {
        return false;
    }
    struct str host = {browser->origin.ptr + scheme.len, browser->origin.len - scheme.len};
    return str_eq_nocase(host, browser->host);
}

enum err auth_same_origin(const struct auth_browser *browser, bool secure)
{
    if (!is_json_type(browser->content_type)) {
        return ERR_MEDIA_TYPE;
    }
    if (browser->sec_fetch_site.ptr != NULL) {
        return str_eq_c(browser->sec_fetch_site, "same-origin") ? ERR_NONE : ERR_FORBIDDEN;
    }
    return is_own_origin(browser, secure) ? ERR_NONE : ERR_FORBIDDEN;
}

void auth_cookie_set(struct request *rq, struct str token, int64_t max_age_s)
{
    const char *text =
        arena_printf(rq->arena, "%s=%.*s; Path=/; Max-Age=%lld; HttpOnly; SameSite=Lax%s",
                     rq->secure ? AUTH_COOKIE_TLS : AUTH_COOKIE_PLAIN, STR_FMT(token),
                     (long long)max_age_s, rq->secure ? "; Secure" : "");
    rq->set_cookie = str_of(text);
}
