/* The keeper of issuers: a thread that reads them when they changed, and has their keys fetched
 * when they are due. */
#include "server/issuers.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "db/db.h"
#include "server/config.h"
#include "server/follow.h"
#include "server/issuer_documents.h"
#include "server/issuer_fetch.h"
#include "server/outbound.h"

#define BUSY_TURN_US 250000 /* while requests wait for another replica's fetch */
#define WAIT_MAX_US 8000000 /* above the 5 s of a fetch */
#define KEYS_LIFE_US \
    (86400 * INT64_C(1000000)) /* stale keys are used so long after they were had */
#define ENTRY_ARENA_CAP ((size_t)4 << 20)

/* An issuer as the keeper sees it; in the map by id, never removed, so that a pulse stays valid. */
struct watch {
    struct issuer_pulse pulse;
    struct uuid org;
    struct uuid id;
    int64_t due_us; /* monotonic */
    bool busy;      /* some replica fetches */
    bool listed;    /* in the newest table */
    bool wanted;    /* a request waits for it */
};

static struct {
    pthread_t thread;
    pthread_mutex_t lock; /* of the next four */
    pthread_cond_t more;
    bool stop;
    bool poked;
    struct issuer_wait *waits;
    struct issuer_table *table;
    struct map *watches; /* the keeper's own */
    struct db_conn *conn;
    bool failing;
    bool running;
} keeper = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ------------------------------------------------------------------ the table */

static void release_entry(struct issuer_entry *entry)
{
    if (atomic_fetch_sub(&entry->holders, 1) == 1) {
        jwk_set_free(entry->keys);
        arena_free(entry->arena);
        free(entry);
    }
}

struct issuer_table *issuers_hold(void)
{
    pthread_mutex_lock(&keeper.lock);
    struct issuer_table *table = keeper.table;
    if (table != NULL) {
        atomic_fetch_add(&table->holders, 1);
    }
    pthread_mutex_unlock(&keeper.lock);
    return table;
}

void issuers_release(struct issuer_table *table)
{
    if (table == NULL || atomic_fetch_sub(&table->holders, 1) != 1) {
        return;
    }
    for (size_t i = 0; i < table->count; i++) {
        release_entry(table->entries[i]);
    }
    free(table);
}

void issuers_releasep(struct issuer_table **table)
{
    issuers_release(*table);
}

bool issuer_has_keys(const struct issuer_entry *entry)
{
    return entry->keys != NULL && clock_mono_us() < atomic_load(&entry->keys_until_us);
}

static void poke(void)
{
    pthread_mutex_lock(&keeper.lock);
    keeper.poked = true;
    pthread_cond_signal(&keeper.more);
    pthread_mutex_unlock(&keeper.lock);
}

bool issuers_wait(struct issuer_wait *wait, const struct issuer_entry *entry)
{
    int64_t now_us = clock_mono_us();
    int64_t pause_us = config.issuer_refetch_seconds * 1000000;
    int64_t tried_us = atomic_load(&entry->pulse->tried_us);
    if (!atomic_load(&entry->pulse->fetching) && tried_us != INT64_MIN &&
        now_us - tried_us < pause_us) {
        return false;
    }
    wait->issuer = entry->id;
    wait->since_us = now_us;
    pthread_mutex_lock(&keeper.lock);
    bool taken = keeper.running && !keeper.stop;
    if (taken) {
        wait->next = keeper.waits;
        keeper.waits = wait;
        keeper.poked = true;
        pthread_cond_signal(&keeper.more);
    }
    pthread_mutex_unlock(&keeper.lock);
    return taken;
}

/* ------------------------------------------------------------------ reading */

/* The discovery document is optional: keys that were had speak for themselves. */
static void read_discovery(struct issuer_entry *entry, struct str text, bool own_algorithms)
{
    const char *detail = NULL;
    if (text.len > 0) {
        entry->has_discovery = oidc_discovery_read(entry->arena, &entry->issuer, text, true,
                                                   &entry->discovery, &detail) == OIDC_OK;
    }
    if (!own_algorithms) {
        entry->issuer.algs = JOSE_ALG_BIT(JOSE_RS256) |
                             (entry->has_discovery ? entry->discovery.algs : JOSE_ALGS_ALL);
    }
}

static struct str keep_text(struct arena *arena, struct str text)
{
    return (struct str){arena_strndup(arena, text.ptr, text.len), text.len};
}

static bool fill_entry(struct issuer_entry *entry, const struct db_rows *rows)
{
    struct decode_errors errors = {0};
    const char *detail = "";
    const char *keys_error = NULL;
    const struct oidc_issuer_source source = {
        .text = keep_text(entry->arena, db_text(rows, 0, db_rows_col(rows, "source"))),
        .allow_private = true, /* what is fetched is checked when it is connected to */
    };
    if (oidc_issuer_read(entry->arena, &source, &entry->issuer, &errors, &detail) != ERR_NONE) {
        return false;
    }
    entry->version = db_i64(rows, 0, db_rows_col(rows, "version"));
    entry->keys_version = db_i64(rows, 0, db_rows_col(rows, "keys_version"));
    entry->sign_in = db_bool(rows, 0, db_rows_col(rows, "sign_in"));
    entry->bearer = db_bool(rows, 0, db_rows_col(rows, "bearer"));
    entry->not_before_us = db_time_us(rows, 0, db_rows_col(rows, "not_before"));
    read_discovery(entry, keep_text(entry->arena, db_text(rows, 0, db_rows_col(rows, "discovery"))),
                   db_bool(rows, 0, db_rows_col(rows, "own_algorithms")));
    struct str keys = db_text(rows, 0, db_rows_col(rows, "keys"));
    if (keys.len > 0) {
        entry->keys = jwk_set_parse(keys, &keys_error);
    }
    return true;
}

/* NULL when it cannot be read; it is tried again with the next turn. */
static struct issuer_entry *read_entry(const struct watch *watch)
{
    struct db_args args = {0};
    struct db_rows *rows = NULL;
    struct issuer_entry *entry = calloc(1, sizeof(*entry));
    if (entry == NULL) {
        abort();
    }
    entry->arena = arena_new(ENTRY_ARENA_CAP);
    entry->org = watch->org;
    entry->id = watch->id;
    entry->pulse = (struct issuer_pulse *)(uintptr_t)&watch->pulse;
    atomic_store(&entry->holders, 1);
    db_arg_uuid(&args, entry->arena, &watch->id);
    bool good = db_exec(keeper.conn, SQL_ISSUER_READ, &watch->org, &args, &rows) == ERR_NONE &&
                db_rows_count(rows) == 1 && fill_entry(entry, rows);
    db_rows_free(rows);
    if (!good) {
        char id[UUID_TEXT_LEN + 1];
        uuid_format(&watch->id, id);
        log_warning("issuer %s cannot be read", id);
        release_entry(entry);
        return NULL;
    }
    return entry;
}

static struct watch *find_watch(const struct uuid *org, const struct uuid *id)
{
    struct str key = {(const char *)id->bytes, sizeof(id->bytes)};
    struct watch *watch = map_get(keeper.watches, key);
    if (watch == NULL) {
        watch = calloc(1, sizeof(*watch));
        if (watch == NULL) {
            abort();
        }
        watch->org = *org;
        watch->id = *id;
        atomic_store(&watch->pulse.tried_us, INT64_MIN);
        map_put(keeper.watches, key, watch);
    }
    return watch;
}

static struct issuer_entry *find_entry(const struct issuer_table *table, const struct uuid *id,
                                       int64_t version, int64_t keys_version)
{
    for (size_t i = 0; table != NULL && i < table->count; i++) {
        struct issuer_entry *entry = table->entries[i];
        if (uuid_eq(&entry->id, id) && entry->version == version &&
            entry->keys_version == keys_version) {
            atomic_fetch_add(&entry->holders, 1);
            return entry;
        }
    }
    return NULL;
}

/* Ages become instants of this machine's clock. */
static void note_head(struct watch *watch, struct issuer_entry *entry, const struct db_rows *rows,
                      int row)
{
    int64_t now_us = clock_mono_us();
    int fetched = db_rows_col(rows, "fetched_ago");
    int tried = db_rows_col(rows, "tried_ago");
    int expires = db_rows_col(rows, "expires_in");
    watch->listed = true;
    watch->busy = db_bool(rows, row, db_rows_col(rows, "busy"));
    watch->due_us = db_is_null(rows, row, expires) ? now_us : now_us + db_i64(rows, row, expires);
    atomic_store(&watch->pulse.tried_us,
                 db_is_null(rows, row, tried) ? INT64_MIN : now_us - db_i64(rows, row, tried));
    if (entry != NULL) {
        atomic_store(&entry->keys_until_us,
                     db_is_null(rows, row, fetched)
                         ? 0
                         : now_us - db_i64(rows, row, fetched) + KEYS_LIFE_US);
    }
}

static struct issuer_table *build_table(const struct db_rows *rows, const struct issuer_table *old)
{
    int count = db_rows_count(rows);
    struct issuer_table *table =
        calloc(1, sizeof(*table) + (size_t)count * sizeof(table->entries[0]));
    if (table == NULL) {
        abort();
    }
    atomic_store(&table->holders, 1);
    for (int i = 0; i < count; i++) {
        struct uuid org;
        struct uuid id;
        if (!db_uuid(rows, i, db_rows_col(rows, "org_id"), &org) ||
            !db_uuid(rows, i, db_rows_col(rows, "id"), &id)) {
            continue;
        }
        struct watch *watch = find_watch(&org, &id);
        struct issuer_entry *entry =
            find_entry(old, &id, db_i64(rows, i, db_rows_col(rows, "version")),
                       db_i64(rows, i, db_rows_col(rows, "keys_version")));
        if (entry == NULL) {
            entry = read_entry(watch);
        }
        note_head(watch, entry, rows, i);
        if (entry != NULL) {
            table->entries[table->count++] = entry;
        }
    }
    return table;
}

static bool unlist(struct str key, void *value, void *ctx)
{
    struct watch *watch = value;
    (void)key;
    (void)ctx;
    watch->listed = false;
    watch->wanted = false;
    return true;
}

/* False while the database is away: the table stays, and what is due waits. */
static bool read_all(void)
{
    static const struct db_args none = {0};
    struct db_rows *rows = NULL;
    enum err err = db_exec(keeper.conn, SQL_ISSUER_HEADS, NULL, &none, &rows);
    if (err != ERR_NONE) {
        if (!keeper.failing) {
            log_warning("issuers cannot be read: %s", db_conn_error(keeper.conn));
        }
        keeper.failing = true;
        return false;
    }
    keeper.failing = false;
    map_each(keeper.watches, unlist, NULL);
    struct issuer_table *fresh = build_table(rows, keeper.table);
    db_rows_free(rows);
    pthread_mutex_lock(&keeper.lock);
    struct issuer_table *old = keeper.table;
    keeper.table = fresh;
    pthread_mutex_unlock(&keeper.lock);
    issuers_release(old);
    return true;
}

/* ------------------------------------------------------------------ what is due */

static void on_fetched(void *ctx)
{
    struct issuer_pulse *pulse = ctx;
    atomic_store(&pulse->fetching, false);
    poke();
}

static bool fetch_due(struct str key, void *value, void *ctx)
{
    struct watch *watch = value;
    int64_t now_us = clock_mono_us();
    int64_t tried_us = atomic_load(&watch->pulse.tried_us);
    int64_t pause_us = config.issuer_refetch_seconds * 1000000;
    (void)key;
    (void)ctx;
    if (!watch->listed || atomic_load(&watch->pulse.fetching) ||
        (!watch->wanted && watch->due_us > now_us) ||
        (tried_us != INT64_MIN && now_us - tried_us < pause_us)) {
        return true;
    }
    atomic_store(&watch->pulse.fetching, true);
    const struct issuer_fetch fetch = {watch->org, watch->id, on_fetched, &watch->pulse};
    if (!issuer_fetch_start(&fetch)) {
        atomic_store(&watch->pulse.fetching, false);
    }
    return true;
}

static struct watch *watch_of(const struct issuer_wait *wait)
{
    struct str key = {(const char *)wait->issuer.bytes, sizeof(wait->issuer.bytes)};
    return map_get(keeper.watches, key);
}

static void mark_wanted(const struct issuer_wait *waits)
{
    for (const struct issuer_wait *wait = waits; wait != NULL; wait = wait->next) {
        struct watch *watch = watch_of(wait);
        if (watch != NULL) {
            watch->wanted = true;
        }
    }
}

/* Those that have nothing to wait for go on; the others are put back. */
static bool answer_waits(struct issuer_wait *waits, bool all)
{
    bool some = false;
    while (waits != NULL) {
        struct issuer_wait *wait = waits;
        const struct watch *watch = watch_of(wait);
        waits = wait->next;
        bool late = clock_mono_us() - wait->since_us > WAIT_MAX_US;
        if (!all && !late && watch != NULL && watch->listed &&
            (atomic_load(&watch->pulse.fetching) || watch->busy)) {
            pthread_mutex_lock(&keeper.lock);
            wait->next = keeper.waits;
            keeper.waits = wait;
            pthread_mutex_unlock(&keeper.lock);
            some = true;
        } else {
            loop_post_task(wait->loop, &wait->task);
        }
    }
    return some;
}

static struct issuer_wait *take_waits(void)
{
    pthread_mutex_lock(&keeper.lock);
    struct issuer_wait *waits = keeper.waits;
    keeper.waits = NULL;
    pthread_mutex_unlock(&keeper.lock);
    return waits;
}

/* True while requests wait for somebody's fetch. */
static bool turn(void)
{
    struct issuer_wait *waits = take_waits();
    bool read = read_all();
    if (read) {
        mark_wanted(waits);
        map_each(keeper.watches, fetch_due, NULL);
    }
    return answer_waits(waits, !read);
}

/* False = stop. */
static bool rest(int64_t us)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t nsec = until.tv_nsec + us % 1000000 * 1000;
    until.tv_sec += us / 1000000 + nsec / 1000000000;
    until.tv_nsec = (long)(nsec % 1000000000);
    pthread_mutex_lock(&keeper.lock);
    while (!keeper.stop && !keeper.poked &&
           pthread_cond_timedwait(&keeper.more, &keeper.lock, &until) == 0) {
    }
    keeper.poked = false;
    bool go_on = !keeper.stop;
    pthread_mutex_unlock(&keeper.lock);
    return go_on;
}

/* What other replicas fetched is seen within. */
static int64_t turn_us(void)
{
    return config.loop_period_ms * 1000;
}

static void *keeper_main(void *arg)
{
    (void)arg;
    (void)pthread_setname_np(pthread_self(), "issuers");
    bool waiting = false;
    do {
        waiting = turn();
    } while (rest(waiting && BUSY_TURN_US < turn_us() ? BUSY_TURN_US : turn_us()));
    (void)answer_waits(take_waits(), true);
    return NULL;
}

/* ------------------------------------------------------------------ life */

static void on_follow(void *ctx, const struct follow_change *changes, size_t count, bool auth_moved)
{
    (void)ctx;
    (void)changes;
    (void)count;
    if (auth_moved) {
        poke();
    }
}

void issuers_start(struct follow *follow)
{
    pthread_condattr_t attr;
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&keeper.more, &attr);
    (void)pthread_condattr_destroy(&attr);
    keeper.watches = map_new(free);
    keeper.conn = db_conn_new(DB_LOOP);
    keeper.running = true;
    if (follow != NULL) {
        follow_subscribe(follow, on_follow, NULL);
    }
    if (pthread_create(&keeper.thread, NULL, keeper_main, NULL) != 0) {
        log_error("the thread that keeps issuers could not be started");
        exit(1);
    }
}

/* The table stays: a request that is still under way may hold it. */
void issuers_stop(void)
{
    pthread_mutex_lock(&keeper.lock);
    keeper.stop = true;
    pthread_cond_signal(&keeper.more);
    pthread_mutex_unlock(&keeper.lock);
    (void)pthread_join(keeper.thread, NULL);
    db_conn_free(keeper.conn);
    keeper.conn = NULL;
}
