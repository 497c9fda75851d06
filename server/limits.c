/* How much each credential, org and address may ask for: buckets in memory, shared by the loops. */
#include "server/limits.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"

#define SHARDS 16
#define SHARD_MAX 8192 /* buckets; what is full again needs none */
#define KEY_MAX 80
#define WINDOW_US ((int64_t)LIMITS_WINDOW_S * 1000000)

static const char *const names[LIMIT_COUNT] = {
#define LIMIT_NAME(sym, name) [sym] = name,
    LIMIT_TABLE(LIMIT_NAME)
#undef LIMIT_NAME
};

/*
 * The generic cell rate algorithm: of a bucket only the instant is kept at which it is full again.
 * Each request moves it by the time that one takes to come back; more than a minute ahead of now,
 * the bucket is empty.
 */
struct shard {
    pthread_mutex_t lock;
    struct map *full_at; /* key -> int64_t monotonic microseconds */
};

struct limits {
    int64_t per_minute[LIMIT_COUNT];
    struct shard shards[SHARDS];
};

const char *limit_name(enum limit limit)
{
    return names[limit];
}

struct limits *limits_new(const int64_t per_minute[LIMIT_COUNT])
{
    struct limits *limits = calloc(1, sizeof(*limits));
    if (limits == NULL) {
        abort();
    }
    memcpy(limits->per_minute, per_minute, sizeof(limits->per_minute));
    for (size_t i = 0; i < SHARDS; i++) {
        (void)pthread_mutex_init(&limits->shards[i].lock, NULL);
        limits->shards[i].full_at = map_new(free);
    }
    return limits;
}

void limits_free(struct limits *limits)
{
    for (size_t i = 0; limits != NULL && i < SHARDS; i++) {
        map_free(limits->shards[i].full_at);
        (void)pthread_mutex_destroy(&limits->shards[i].lock);
    }
    free(limits);
}

static bool is_in_use(struct str key, void *value, void *ctx)
{
    const int64_t *full_at = value;
    const int64_t *now_us = ctx;
    (void)key;
    return *full_at > *now_us;
}

/* A table that is full of buckets in use begins anew: too much is let through rather than a caller
 * kept out for others' sake. */
static void make_room(struct shard *shard, int64_t now_us)
{
    if (map_count(shard->full_at) < SHARD_MAX) {
        return;
    }
    map_each(shard->full_at, is_in_use, &now_us);
    if (map_count(shard->full_at) >= SHARD_MAX) {
        map_free(shard->full_at);
        shard->full_at = map_new(free);
    }
}

static int64_t *find_bucket(struct shard *shard, struct str key, int64_t now_us)
{
    int64_t *full_at = map_get(shard->full_at, key);
    if (full_at == NULL) {
        make_room(shard, now_us);
        full_at = calloc(1, sizeof(*full_at));
        if (full_at == NULL) {
            abort();
        }
        *full_at = now_us;
        map_put(shard->full_at, key, full_at);
    }
    return full_at;
}

static int64_t seconds_up(int64_t us)
{
    return us <= 0 ? 0 : (us + 999999) / 1000000;
}

bool limits_take(struct limits *limits, enum limit limit, const void *key, size_t key_len,
                 int64_t now_us, struct limits_taken *taken)
{
    int64_t quota = limits->per_minute[limit];
    char text[KEY_MAX];
    if (quota == 0 || key_len >= sizeof(text)) {
        return true;
    }
    text[0] = (char)limit;
    memcpy(text + 1, key, key_len);
    /* The ends of ids and addresses differ most. */
    struct shard *shard = &limits->shards[(unsigned char)text[key_len] % SHARDS];
    int64_t step_us = WINDOW_US / quota;
    pthread_mutex_lock(&shard->lock);
    int64_t *full_at = find_bucket(shard, (struct str){text, key_len + 1}, now_us);
    int64_t before = *full_at > now_us ? *full_at : now_us;
    bool good = before + step_us - now_us <= WINDOW_US;
    int64_t after = good ? before + step_us : before;
    *full_at = after;
    pthread_mutex_unlock(&shard->lock);
    taken->of[limit].used = true;
    taken->of[limit].refused = !good;
    taken->of[limit].quota = quota;
    taken->of[limit].left = (WINDOW_US - (after - now_us)) / step_us;
    taken->of[limit].full_in_s = seconds_up(after - now_us);
    taken->of[limit].wait_s = good ? 0 : seconds_up(before + step_us - now_us - WINDOW_US);
    return good;
}

bool limits_take_address(struct limits *limits, enum limit limit, const struct uuid *scope,
                         struct str address, int64_t now_us, struct limits_taken *taken)
{
    static const struct uuid none;
    char text[INET6_ADDRSTRLEN];
    char key[sizeof(none.bytes) + sizeof(text)];
    struct in6_addr six;
    size_t len = address.len < sizeof(text) ? address.len : sizeof(text) - 1;
    memcpy(text, address.ptr != NULL ? address.ptr : "", len);
    text[len] = '\0';
    if (inet_pton(AF_INET6, text, &six) == 1 && !IN6_IS_ADDR_V4MAPPED(&six)) {
        len = 8;
        memcpy(text, six.s6_addr, len);
    }
    memcpy(key, scope != NULL ? scope->bytes : none.bytes, sizeof(none.bytes));
    memcpy(key + sizeof(none.bytes), text, len);
    return limits_take(limits, limit, key, sizeof(none.bytes) + len, now_us, taken);
}
