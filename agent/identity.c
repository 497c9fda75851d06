/* Who this node is to the server: its key pair and what the enrolment answered. */
#include "agent/identity.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/json_path.h"
#include "base/encode.h"
#include "base/file.h"

#define SEED_LEN 32
#define KEY_FILE_MAX 256
#define NODE_FILE_MAX 8192

static bool refuse(char *error, size_t error_cap, const char *path, const char *why)
{
    (void)snprintf(error, error_cap, "%.300s: %s", path, why);
    return false;
}

static void state_path(const char *state_dir, const char *name, char *path)
{
    (void)snprintf(path, PATH_MAX, "%.3072s/%s", state_dir, name);
}

/* 0, ENOENT, or another errno; EINVAL when the file holds no key. */
static int read_key(const char *path, struct ed25519 **ret_key)
{
    CLEANUP(buf_free) struct buf data = {0};
    uint8_t seed[SEED_LEN];
    size_t len;
    int failed = file_read(path, KEY_FILE_MAX, &data);

    if (failed != 0) {
        return failed;
    }
    if (!crypto_unb64(str_trim(buf_str(&data)), seed, sizeof(seed), &len) || len != SEED_LEN) {
        return EINVAL;
    }
    *ret_key = ed25519_import(seed);
    explicit_bzero(seed, sizeof(seed));
    explicit_bzero(data.ptr, data.len);
    return *ret_key == NULL ? EINVAL : 0;
}

static int write_key(const char *path, const struct ed25519 *key)
{
    uint8_t seed[SEED_LEN];
    char text[64];

    ed25519_export(key, seed);
    crypto_b64(seed, sizeof(seed), text);
    (void)strncat(text, "\n", sizeof(text) - strlen(text) - 1);
    int failed = file_write_durable(path, str_of(text), 0600);
    explicit_bzero(seed, sizeof(seed));
    explicit_bzero(text, sizeof(text));
    return failed;
}

static bool read_uuid(struct str json, const char *path, char *text)
{
    struct uuid uuid;
    struct str value;

    if (!json_path_text(json, path, &value) || !uuid_parse(value, &uuid)) {
        return false;
    }
    uuid_format(&uuid, text);
    return true;
}

/* The members that the enrolment's answer and the node file share. */
static bool read_members(struct str json, struct identity *identity)
{
    struct str key;
    size_t len;

    if (!json_path_i64(json, "command_key", &identity->command_key_n)) {
        identity->command_key_n = 1;
    }
    return read_uuid(json, "node_id", identity->node_id) &&
           read_uuid(json, "cluster_id", identity->cluster_id) &&
           read_uuid(json, "org_id", identity->org_id) &&
           json_path_i64(json, "generation", &identity->generation) &&
           json_path_text(json, "command_public_key", &key) &&
           crypto_unb64(key, identity->command_key, sizeof(identity->command_key), &len) &&
           len == ED25519_PUBLIC_LEN;
}

static bool make_key(const char *state_dir, struct identity *identity, char *error,
                     size_t error_cap)
{
    char path[PATH_MAX];
    int failed;

    state_path(state_dir, "agent.key.new", path);
    failed = read_key(path, &identity->key);
    if (failed == 0) {
        return true;
    }
    identity->key = ed25519_new();
    failed = write_key(path, identity->key);
    return failed == 0 || refuse(error, error_cap, path, strerrordesc_np(failed));
}

bool identity_load(const char *state_dir, struct identity *ret_identity, char *error,
                   size_t error_cap)
{
    CLEANUP(buf_free) struct buf data = {0};
    char path[PATH_MAX];
    int failed;

    *ret_identity = (struct identity){.key = NULL};
    failed = file_make_dirs(state_dir, 0700);
    if (failed != 0) {
        return refuse(error, error_cap, state_dir, strerrordesc_np(failed));
    }
    state_path(state_dir, "agent.key", path);
    failed = read_key(path, &ret_identity->key);
    if (failed == ENOENT) {
        return make_key(state_dir, ret_identity, error, error_cap);
    }
    if (failed != 0) {
        return refuse(error, error_cap, path,
                      failed == EINVAL ? "does not hold a key" : strerrordesc_np(failed));
    }
    state_path(state_dir, "node", path);
    failed = file_read(path, NODE_FILE_MAX, &data);
    if (failed != 0) {
        return refuse(error, error_cap, path, strerrordesc_np(failed));
    }
    if (!read_members(buf_str(&data), ret_identity)) {
        return refuse(error, error_cap, path, "does not hold what the enrolment answered");
    }
    ret_identity->enrolled = true;
    return true;
}

static void write_members(const struct identity *identity, struct buf *out)
{
    char key[64];
    struct enc enc;

    crypto_b64(identity->command_key, sizeof(identity->command_key), key);
    enc_init(&enc, out);
    enc_obj(&enc);
    enc_key(&enc, "node_id");
    enc_cstr(&enc, identity->node_id);
    enc_key(&enc, "cluster_id");
    enc_cstr(&enc, identity->cluster_id);
    enc_key(&enc, "org_id");
    enc_cstr(&enc, identity->org_id);
    enc_key(&enc, "generation");
    enc_i64(&enc, identity->generation);
    enc_key(&enc, "command_public_key");
    enc_cstr(&enc, key);
    enc_key(&enc, "command_key");
    enc_i64(&enc, identity->command_key_n);
    enc_obj_end(&enc);
    buf_add_char(out, '\n');
}

bool identity_follow_key(const char *state_dir, struct identity *identity, int64_t n,
                         struct str public_key, struct str signature, char *error, size_t error_cap)
{
    CLEANUP(buf_free) struct buf text = {0};
    struct identity next = *identity;
    uint8_t bytes[ED25519_SIGNATURE_LEN];
    char path[PATH_MAX];
    size_t key_len;
    size_t len;

    error[0] = '\0';
    if (n <= identity->command_key_n) {
        return false;
    }
    buf_printf(&text, "muster-command-key\n%s\n%lld\n%.*s", identity->cluster_id, (long long)n,
               STR_FMT(public_key));
    if (n != identity->command_key_n + 1 ||
        !crypto_unb64(public_key, next.command_key, sizeof(next.command_key), &key_len) ||
        key_len != sizeof(next.command_key) ||
        !crypto_unb64(signature, bytes, sizeof(bytes), &len) || len != sizeof(bytes) ||
        !ed25519_verify(identity->command_key, buf_str(&text), bytes)) {
        (void)snprintf(error, error_cap,
                       "number %lld is not signed by number %lld, the present one", (long long)n,
                       (long long)identity->command_key_n);
        return false;
    }
    next.command_key_n = n;
    buf_clear(&text);
    write_members(&next, &text);
    state_path(state_dir, "node", path);
    int failed = file_write_durable(path, buf_str(&text), 0600);
    if (failed != 0) {
        return refuse(error, error_cap, path, strerrordesc_np(failed));
    }
    *identity = next;
    return true;
}

bool identity_enrolled(const char *state_dir, struct str body, struct identity *identity,
                       char *error, size_t error_cap)
{
    CLEANUP(buf_free) struct buf text = {0};
    char path[PATH_MAX];
    char fresh[PATH_MAX];
    int failed;

    if (!read_members(body, identity)) {
        (void)snprintf(error, error_cap, "the server's answer to the enrolment is not complete");
        return false;
    }
    write_members(identity, &text);
    state_path(state_dir, "node", path);
    failed = file_write_durable(path, buf_str(&text), 0600);
    if (failed != 0) {
        return refuse(error, error_cap, path, strerrordesc_np(failed));
    }
    state_path(state_dir, "agent.key", path);
    failed = write_key(path, identity->key);
    if (failed != 0) {
        return refuse(error, error_cap, path, strerrordesc_np(failed));
    }
    state_path(state_dir, "agent.key.new", fresh);
    (void)unlink(fresh);
    identity->enrolled = true;
    return true;
}

void identity_free(struct identity *identity)
{
    ed25519_free(identity->key);
    identity->key = NULL;
}
