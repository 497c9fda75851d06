/* The server's own keys: files in keys_dir, read once and kept. */
#include "server/keys.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/map.h"

#define KEY_LEN 32
#define MAC_LEN 16
#define FILE_MAX 4096
/* Replicas' clocks may differ a little. */
#define FUTURE_MAX_US (INT64_C(5) * 1000000)
/* Parts this use of the key from any other. */
#define NONCE_LABEL "muster-agent-nonce"

struct keys {
    char *dir;
    uint8_t server[KEY_LEN];
    pthread_mutex_t lock; /* of clusters */
    struct map *clusters; /* name of the file -> struct ed25519 */
};

static bool path_of(const struct keys *keys, const char *name, char path[PATH_MAX])
{
    int len = snprintf(path, PATH_MAX, "%s/%s", keys->dir, name);
    return len > 0 && len < PATH_MAX;
}

/* Reads the key's 32 bytes; with `create` a missing file is made first. 0 or an errno. */
static int load_key(const struct keys *keys, const char *name, bool create, uint8_t key[KEY_LEN])
{
    char path[PATH_MAX];
    if (!path_of(keys, name, path)) {
        return ENAMETOOLONG;
    }
    CLEANUP(buf_free) struct buf data = {0};
    int failed = file_read(path, FILE_MAX, &data);
    if (failed == ENOENT && create) {
        uint8_t fresh[KEY_LEN];
        crypto_random(fresh, sizeof fresh);
        failed = file_create_durable(path, (struct str){(const char *)fresh, sizeof fresh}, 0600);
        /* Another replica may have been first: its key counts. */
        if (failed == 0 || failed == EEXIST) {
            failed = file_read(path, FILE_MAX, &data);
        }
        explicit_bzero(fresh, sizeof fresh);
    }
    if (failed == 0 && data.len != KEY_LEN) {
        failed = EINVAL;
    }
    if (failed == 0) {
        memcpy(key, data.ptr, KEY_LEN);
        explicit_bzero(data.ptr, data.len);
    }
    return failed;
}

static void free_cluster_key(void *key)
{
    ed25519_free(key);
}

struct keys *keys_open(const char *dir, char *error, size_t error_cap)
{
    struct keys *keys = calloc(1, sizeof *keys);
    if (keys == NULL) {
        abort();
    }
    keys->dir = strdup(dir);
    keys->clusters = map_new(free_cluster_key);
    pthread_mutex_init(&keys->lock, NULL);
    if (keys->dir == NULL) {
        abort();
    }
    int failed = file_make_dirs(dir, 0700);
    if (failed == 0) {
        failed = load_key(keys, "server.key", true, keys->server);
    }
    if (failed != 0) {
        (void)snprintf(error, error_cap,
                       "keys_dir: %s/server.key cannot be used: %s. It is a file of 32 bytes, "
                       "readable by the server's user.",
                       dir, strerror(failed));
        keys_close(keys);
        return NULL;
    }
    return keys;
}

void keys_close(struct keys *keys)
{
    if (keys == NULL) {
        return;
    }
    map_free(keys->clusters);
    pthread_mutex_destroy(&keys->lock);
    explicit_bzero(keys->server, sizeof keys->server);
    free(keys->dir);
    free(keys);
}

/* The first key's name has no number. */
static void name_of(const struct uuid *cluster, int64_t n, char *name, size_t cap)
{
    char id[UUID_TEXT_LEN + 1];
    uuid_format(cluster, id);
    if (n <= 1) {
        (void)snprintf(name, cap, "%s.ed25519", id);
    } else {
        (void)snprintf(name, cap, "%s.%lld.ed25519", id, (long long)n);
    }
}

static struct ed25519 *load_cluster_key(const struct keys *keys, const char *name, bool create)
{
    uint8_t seed[KEY_LEN];
    int failed = load_key(keys, name, create, seed);
    struct ed25519 *key = failed == 0 ? ed25519_import(seed) : NULL;
    explicit_bzero(seed, sizeof seed);
    if (key == NULL && (create || failed != ENOENT)) {
        log_error("keys_dir: %s/%s cannot be used: %s", keys->dir, name,
                  failed == 0 ? "it is no Ed25519 key" : strerror(failed));
    }
    return key;
}

/* With keys->lock held; the key stays in the map. */
static struct ed25519 *find_cluster_key(struct keys *keys, const struct uuid *cluster, int64_t n,
                                        bool create)
{
    char name[UUID_TEXT_LEN + 40];
    name_of(cluster, n, name, sizeof name);
    struct ed25519 *key = map_get(keys->clusters, str_of(name));
    if (key == NULL) {
        key = load_cluster_key(keys, name, create);
        if (key != NULL) {
            map_put(keys->clusters, str_of(name), key);
        }
    }
    return key;
}

bool keys_cluster_public(struct keys *keys, const struct uuid *cluster, int64_t n, bool create,
                         uint8_t ret_public[ED25519_PUBLIC_LEN])
{
    pthread_mutex_lock(&keys->lock);
    struct ed25519 *key = find_cluster_key(keys, cluster, n, create);
    if (key != NULL) {
        ed25519_public(key, ret_public);
    }
    pthread_mutex_unlock(&keys->lock);
    return key != NULL;
}

bool keys_cluster_sign(struct keys *keys, const struct uuid *cluster, int64_t n, struct str data,
                       uint8_t signature[ED25519_SIGNATURE_LEN])
{
    pthread_mutex_lock(&keys->lock);
    struct ed25519 *key = find_cluster_key(keys, cluster, n, false);
    if (key != NULL) {
        ed25519_sign(key, data, signature);
    }
    pthread_mutex_unlock(&keys->lock);
    return key != NULL;
}

void keys_cluster_retire(struct keys *keys, const struct uuid *cluster, int64_t n)
{
    char name[UUID_TEXT_LEN + 40];
    char path[PATH_MAX];
    name_of(cluster, n, name, sizeof name);
    pthread_mutex_lock(&keys->lock);
    (void)map_remove(keys->clusters, str_of(name));
    pthread_mutex_unlock(&keys->lock);
    if (path_of(keys, name, path) && unlink(path) != 0 && errno != ENOENT) {
        log_error("keys_dir: %s cannot be removed: %s", path, strerror(errno));
    }
}

/* ------------------------------------------------------------------------------- nonces */

struct nonce {
    uint8_t time[8]; /* big endian microseconds */
    uint8_t random[8];
    uint8_t mac[MAC_LEN];
};
_Static_assert(sizeof(struct nonce) == KEYS_NONCE_LEN, "no padding");

static void seal(const struct keys *keys, const struct uuid *node, const struct nonce *nonce,
                 uint8_t mac[MAC_LEN])
{
    char text[sizeof NONCE_LABEL + sizeof node->bytes + 16];
    uint8_t full[SHA256_LEN];
    char *at = text;
    at = mempcpy(at, NONCE_LABEL, sizeof NONCE_LABEL);
    at = mempcpy(at, node->bytes, sizeof node->bytes);
    at = mempcpy(at, nonce->time, sizeof nonce->time);
    at = mempcpy(at, nonce->random, sizeof nonce->random);
    crypto_hmac_sha256((struct str){(const char *)keys->server, sizeof keys->server},
                       (struct str){text, (size_t)(at - text)}, full);
    memcpy(mac, full, MAC_LEN);
}

void keys_seal_nonce(const struct keys *keys, const struct uuid *node,
                     char text[KEYS_NONCE_TEXT_LEN + 1])
{
    struct nonce nonce;
    uint64_t now_us = (uint64_t)clock_wall_us();
    for (size_t i = 0; i < sizeof nonce.time; i++) {
        nonce.time[i] = (uint8_t)(now_us >> (56 - 8 * i));
    }
    crypto_random(nonce.random, sizeof nonce.random);
    seal(keys, node, &nonce, nonce.mac);
    crypto_b64(&nonce, sizeof nonce, text);
}

bool keys_check_nonce(const struct keys *keys, const struct uuid *node, struct str text)
{
    struct nonce nonce;
    uint8_t mac[MAC_LEN];
    size_t len = 0;
    if (!crypto_unb64(text, &nonce, sizeof nonce, &len) || len != sizeof nonce) {
        return false;
    }
    seal(keys, node, &nonce, mac);
    if (!crypto_equal(mac, nonce.mac, sizeof mac)) {
        return false;
    }
    uint64_t sealed_us = 0;
    for (size_t i = 0; i < sizeof nonce.time; i++) {
        sealed_us = sealed_us << 8 | nonce.time[i];
    }
    int64_t age_us = clock_wall_us() - (int64_t)sealed_us;
    return age_us >= -FUTURE_MAX_US && age_us <= KEYS_NONCE_LIFE_S * INT64_C(1000000);
}
