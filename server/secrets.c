/* Secrets at rest: AES-256-GCM in two layers, and the files of the master key. */
#include "server/secrets.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"

#define FILE_MAX 4096
#define FORMAT 1
#define HEAD_LEN 5 /* format, version in big endian */
#define PLACE_MAX 256
#define MASTER_FILE "master.key"
#define PREVIOUS_FILE "master.previous.key"

struct master {
    struct secrets_master_id id;
    uint8_t key[CRYPTO_KEY_LEN];
};

struct secrets {
    char *dir;
    pthread_mutex_t lock; /* of all below */
    struct master present;
    struct master previous;
    bool has_previous;
};

/* ------------------------------------------------------------------ files */

static bool path_of(const struct secrets *secrets, const char *name, char path[PATH_MAX])
{
    int len = snprintf(path, PATH_MAX, "%s/%s", secrets->dir, name);
    return len > 0 && len < PATH_MAX;
}

static int load_master(const struct secrets *secrets, const char *name, struct master *ret_master)
{
    char path[PATH_MAX];
    CLEANUP(buf_free) struct buf data = {0};
    uint8_t hash[SHA256_LEN];
    int failed = path_of(secrets, name, path) ? file_read(path, FILE_MAX, &data) : ENAMETOOLONG;
    if (failed == 0 && data.len != CRYPTO_KEY_LEN) {
        failed = EINVAL;
    }
    if (failed == 0) {
        memcpy(ret_master->key, data.ptr, CRYPTO_KEY_LEN);
        crypto_sha256(buf_str(&data), hash);
        memcpy(ret_master->id.bytes, hash, SECRETS_MASTER_ID_LEN);
        explicit_bzero(data.ptr, data.len);
    }
    return failed;
}

/* EEXIST when there is one: another replica was first, its key counts. */
static int create_master(const struct secrets *secrets)
{
    char path[PATH_MAX];
    uint8_t fresh[CRYPTO_KEY_LEN];
    if (!path_of(secrets, MASTER_FILE, path)) {
        return ENAMETOOLONG;
    }
    crypto_random(fresh, sizeof fresh);
    int failed = file_create_durable(path, (struct str){(const char *)fresh, sizeof fresh}, 0600);
    explicit_bzero(fresh, sizeof fresh);
    return failed;
}

/* With the lock held. What is known is kept when a file cannot be read now. */
static int reload(struct secrets *secrets)
{
    struct master read;
    int failed = load_master(secrets, MASTER_FILE, &read);
    if (failed != 0) {
        return failed;
    }
    secrets->present = read;
    failed = load_master(secrets, PREVIOUS_FILE, &read);
    if (failed == 0) {
        secrets->previous = read;
        secrets->has_previous = true;
    }
    explicit_bzero(&read, sizeof read);
    return failed == ENOENT ? 0 : failed;
}

struct secrets *secrets_open(const char *dir, char *error, size_t error_cap)
{
    struct secrets *secrets = calloc(1, sizeof *secrets);
    if (secrets == NULL || (secrets->dir = strdup(dir)) == NULL) {
        abort();
    }
    pthread_mutex_init(&secrets->lock, NULL);
    int failed = file_make_dirs(dir, 0700);
    if (failed == 0) {
        failed = reload(secrets);
    }
    if (failed == ENOENT) {
        failed = create_master(secrets);
        failed = failed == 0 || failed == EEXIST ? reload(secrets) : failed;
    }
    if (failed != 0) {
        (void)snprintf(error, error_cap,
                       "keys_dir: %s/" MASTER_FILE " cannot be used: %s. It is a file of 32 bytes, "
                       "readable by the server's user.",
                       dir, strerrordesc_np(failed));
        secrets_close(secrets);
        return NULL;
    }
    return secrets;
}

void secrets_close(struct secrets *secrets)
{
    if (secrets == NULL) {
        return;
    }
    pthread_mutex_destroy(&secrets->lock);
    explicit_bzero(&secrets->present, sizeof secrets->present);
    explicit_bzero(&secrets->previous, sizeof secrets->previous);
    free(secrets->dir);
    free(secrets);
}

/* ------------------------------------------------------------------ master keys */

static bool same_id(const struct secrets_master_id *a, const struct secrets_master_id *b)
{
    return memcmp(a->bytes, b->bytes, SECRETS_MASTER_ID_LEN) == 0;
}

bool secrets_master(struct secrets *secrets, bool fresh, struct secrets_master_id *ret_id)
{
    pthread_mutex_lock(&secrets->lock);
    int failed = fresh ? reload(secrets) : 0;
    *ret_id = secrets->present.id;
    pthread_mutex_unlock(&secrets->lock);
    if (failed != 0) {
        log_error("keys_dir: %s/" MASTER_FILE " cannot be read: %s", secrets->dir,
                  strerrordesc_np(failed));
    }
    return failed == 0;
}

/* With the lock held. */
static bool copy_known(const struct secrets *secrets, const struct secrets_master_id *id,
                       struct master *ret_master)
{
    if (same_id(id, &secrets->present.id)) {
        *ret_master = secrets->present;
        return true;
    }
    if (secrets->has_previous && same_id(id, &secrets->previous.id)) {
        *ret_master = secrets->previous;
        return true;
    }
    return false;
}

/* A master key that is not known may have come with a rotation. */
static bool find_master(struct secrets *secrets, const struct secrets_master_id *id,
                        struct master *ret_master)
{
    pthread_mutex_lock(&secrets->lock);
    bool found = copy_known(secrets, id, ret_master) ||
                 (reload(secrets) == 0 && copy_known(secrets, id, ret_master));
    pthread_mutex_unlock(&secrets->lock);
    return found;
}

bool secrets_has_master(struct secrets *secrets, const struct secrets_master_id *id)
{
    struct master master;
    bool found = find_master(secrets, id, &master);
    explicit_bzero(&master, sizeof master);
    return found;
}

/* ------------------------------------------------------------------ keys of orgs */

static void bind_key_place(const struct uuid *org, int64_t version, char text[PLACE_MAX])
{
    char id[UUID_TEXT_LEN + 1];
    uuid_format(org, id);
    (void)snprintf(text, PLACE_MAX, "%s|org_key|%lld", id, (long long)version);
}

void secret_key_make(const struct uuid *org, int64_t version, struct secret_key *ret_key)
{
    assert(version > 0 && version <= INT32_MAX);
    ret_key->org = *org;
    ret_key->version = version;
    crypto_random(ret_key->bytes, sizeof ret_key->bytes);
}

void secret_key_clear(struct secret_key *key)
{
    explicit_bzero(key, sizeof *key);
}

void secret_key_wrap(struct secrets *secrets, const struct secret_key *key,
                     struct secret_wrapped *ret_wrapped)
{
    char place[PLACE_MAX];
    struct str bytes = {(const char *)key->bytes, sizeof key->bytes};
    bind_key_place(&key->org, key->version, place);
    pthread_mutex_lock(&secrets->lock);
    ret_wrapped->master = secrets->present.id;
    crypto_seal(secrets->present.key, str_of(place), bytes, ret_wrapped->bytes);
    pthread_mutex_unlock(&secrets->lock);
}

bool secret_key_unwrap(struct secrets *secrets, const struct uuid *org, int64_t version,
                       const struct secret_wrapped *wrapped, struct secret_key *ret_key)
{
    char place[PLACE_MAX];
    char id[2 * SECRETS_MASTER_ID_LEN + 1];
    struct master master;
    bind_key_place(org, version, place);
    crypto_hex(wrapped->master.bytes, SECRETS_MASTER_ID_LEN, id);
    if (!find_master(secrets, &wrapped->master, &master)) {
        log_error("a key of the database is wrapped by the master key %s, which is not in %s. Put "
                  "the master.key that belongs to this database there.",
                  id, secrets->dir);
        return false;
    }
    bool good = crypto_unseal(master.key, str_of(place),
                              (struct str){(const char *)wrapped->bytes, sizeof wrapped->bytes},
                              ret_key->bytes);
    explicit_bzero(&master, sizeof master);
    if (!good) {
        log_error("a key in the database (%s) was changed or moved", place);
        return false;
    }
    ret_key->org = *org;
    ret_key->version = version;
    return true;
}

/* ------------------------------------------------------------------ secrets */

static void bind_place(const struct secret_key *key, const struct secret_place *place,
                       char text[PLACE_MAX])
{
    char org[UUID_TEXT_LEN + 1];
    char id[UUID_TEXT_LEN + 1];
    uuid_format(&key->org, org);
    uuid_format(&place->id, id);
    int len = snprintf(text, PLACE_MAX, "%s|%s|%s", org, place->table, id);
    assert(len > 0 && len < PLACE_MAX);
}

struct str secret_seal(const struct secret_key *key, const struct secret_place *place,
                       struct str plain, struct arena *arena)
{
    char bound[PLACE_MAX];
    assert(plain.len <= SECRET_PLAIN_MAX);
    size_t len = HEAD_LEN + plain.len + CRYPTO_SEAL_EXTRA;
    uint8_t *sealed = arena_alloc(arena, len);
    sealed[0] = FORMAT;
    for (size_t i = 1; i < HEAD_LEN; i++) {
        sealed[i] = (uint8_t)((uint64_t)key->version >> (8 * (HEAD_LEN - 1 - i)));
    }
    bind_place(key, place, bound);
    crypto_seal(key->bytes, str_of(bound), plain, sealed + HEAD_LEN);
    return (struct str){(const char *)sealed, len};
}

int64_t secret_version(struct str sealed)
{
    int64_t version = 0;
    if (sealed.len < HEAD_LEN + CRYPTO_SEAL_EXTRA || sealed.ptr[0] != FORMAT) {
        return 0;
    }
    for (size_t i = 1; i < HEAD_LEN; i++) {
        version = version << 8 | (uint8_t)sealed.ptr[i];
    }
    return version;
}

bool secret_unseal(const struct secret_key *key, const struct secret_place *place,
                   struct str sealed, struct arena *arena, struct str *ret_plain)
{
    char bound[PLACE_MAX];
    if (secret_version(sealed) != key->version ||
        sealed.len > HEAD_LEN + SECRET_PLAIN_MAX + CRYPTO_SEAL_EXTRA) {
        return false;
    }
    struct str body = {sealed.ptr + HEAD_LEN, sealed.len - HEAD_LEN};
    size_t len = body.len - CRYPTO_SEAL_EXTRA;
    /* With a NUL behind it, as texts of the arena have. */
    uint8_t *plain = arena_zalloc(arena, len + 1);
    bind_place(key, place, bound);
    if (!crypto_unseal(key->bytes, str_of(bound), body, plain)) {
        return false;
    }
    *ret_plain = (struct str){(const char *)plain, len};
    return true;
}

/* ------------------------------------------------------------------ rotation */

int secrets_rotate_begin(struct secrets *secrets)
{
    char present[PATH_MAX];
    char previous[PATH_MAX];
    uint8_t fresh[CRYPTO_KEY_LEN];
    struct master old;
    if (!path_of(secrets, MASTER_FILE, present) || !path_of(secrets, PREVIOUS_FILE, previous)) {
        return ENAMETOOLONG;
    }
    pthread_mutex_lock(&secrets->lock);
    int failed = load_master(secrets, PREVIOUS_FILE, &old);
    if (failed == ENOENT) {
        /* The copy first: at no moment is the key that wraps today in no file. */
        failed = file_write_durable(
            previous, (struct str){(const char *)secrets->present.key, CRYPTO_KEY_LEN}, 0600);
        old = secrets->present;
    }
    if (failed == 0 && same_id(&old.id, &secrets->present.id)) {
        crypto_random(fresh, sizeof fresh);
        failed = file_write_durable(present, (struct str){(const char *)fresh, sizeof fresh}, 0600);
        explicit_bzero(fresh, sizeof fresh);
    }
    if (failed == 0) {
        failed = reload(secrets);
    }
    explicit_bzero(&old, sizeof old);
    pthread_mutex_unlock(&secrets->lock);
    return failed;
}

int secrets_rotate_end(struct secrets *secrets)
{
    char previous[PATH_MAX];
    if (!path_of(secrets, PREVIOUS_FILE, previous)) {
        return ENAMETOOLONG;
    }
    return unlink(previous) == 0 || errno == ENOENT ? 0 : errno;
}
