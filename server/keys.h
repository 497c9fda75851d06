/* The server's own keys: files in keys_dir that all replicas share, outside the database. */
#ifndef SERVER_KEYS_H
#define SERVER_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/crypto.h"
#include "base/uuid.h"

/*
 * keys_dir holds `server.key` (32 random bytes: seals nonces) and `<cluster id>.ed25519` (the 32
 * byte seed that signs the cluster's commands; its successors are `<cluster id>.2.ed25519` and so
 * on), all 0600. Any thread may use a struct keys.
 */
struct keys;

/* Makes the folder (0700) and server.key when they are missing. NULL with a sentence in error. */
struct keys *keys_open(const char *dir, char *error, size_t error_cap);
void keys_close(struct keys *keys); /* NULL is fine */

/*
 * The public half of a cluster's key number n (the first is 1). With `create` the key is made when
 * there is no file; of two replicas that do so at once both get the same. False (with the reason in
 * the log) when there is none or the file cannot be used.
 */
bool keys_cluster_public(struct keys *keys, const struct uuid *cluster, int64_t n, bool create,
                         uint8_t ret_public[ED25519_PUBLIC_LEN]) MUST_CHECK;
/* Signs with the cluster's key number n; false when there is none. */
bool keys_cluster_sign(struct keys *keys, const struct uuid *cluster, int64_t n, struct str data,
                       uint8_t signature[ED25519_SIGNATURE_LEN]) MUST_CHECK;

/* Forgets a key that signs no more, and removes its file. */
void keys_cluster_retire(struct keys *keys, const struct uuid *cluster, int64_t n);

/*
 * A nonce that needs no memory: 8 bytes of time, 8 random ones, 16 of an HMAC over both and the
 * node. Any replica with the same server.key can check it.
 */
#define KEYS_NONCE_LEN 32
#define KEYS_NONCE_TEXT_LEN 43 /* base64url */
#define KEYS_NONCE_LIFE_S 60
void keys_seal_nonce(const struct keys *keys, const struct uuid *node,
                     char text[KEYS_NONCE_TEXT_LEN + 1]);
/* False when it is not ours, for another node, or older than KEYS_NONCE_LIFE_S. */
bool keys_check_nonce(const struct keys *keys, const struct uuid *node, struct str text) MUST_CHECK;

#endif
