/* Secrets at rest: sealed with a key of their org, which is wrapped by a master key outside the
 * database. */
#ifndef SERVER_SECRETS_H
#define SERVER_SECRETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/crypto.h"
#include "base/str.h"
#include "base/uuid.h"

/*
 * keys_dir holds `master.key` (32 random bytes, 0600, the same file for all replicas), and while
 * `musterd key rotate-master` is at work also `master.previous.key`. The files are read anew when a
 * key is asked for that is not known, so a running server follows a rotation by itself. Any thread
 * may use a struct secrets.
 */
struct secrets;

/* Makes the folder (0700) and master.key when they are missing. NULL with a sentence in error. */
struct secrets *secrets_open(const char *dir, char *error, size_t error_cap);
void secrets_close(struct secrets *secrets); /* NULL is fine */

/* Which master key: the first bytes of its SHA-256. */
#define SECRETS_MASTER_ID_LEN 8
struct secrets_master_id {
    uint8_t bytes[SECRETS_MASTER_ID_LEN];
};
/* The one that wraps: read from the file anew when `fresh`. False when the file cannot be read. */
bool secrets_master(struct secrets *secrets, bool fresh,
                    struct secrets_master_id *ret_id) MUST_CHECK;
/* True when this one is in keys_dir, as present or former key. */
bool secrets_has_master(struct secrets *secrets, const struct secrets_master_id *id);

/* An org's key, open. Clear it with secret_key_clear when done. */
struct secret_key {
    struct uuid org;
    int64_t version; /* 1 to 2^31 - 1 */
    uint8_t bytes[CRYPTO_KEY_LEN];
};
void secret_key_clear(struct secret_key *key); /* for CLEANUP too */

/* The same as it lies in the database, bound to its org and version. */
#define SECRETS_WRAPPED_LEN (CRYPTO_KEY_LEN + CRYPTO_SEAL_EXTRA)
struct secret_wrapped {
    struct secrets_master_id master;
    uint8_t bytes[SECRETS_WRAPPED_LEN];
};
/* A fresh key. */
void secret_key_make(const struct uuid *org, int64_t version, struct secret_key *ret_key);
/* With the present master key. */
void secret_key_wrap(struct secrets *secrets, const struct secret_key *key,
                     struct secret_wrapped *ret_wrapped);
/* False (with the reason in the log) when its master key is not in keys_dir, or when the row was
 * changed or moved. */
bool secret_key_unwrap(struct secrets *secrets, const struct uuid *org, int64_t version,
                       const struct secret_wrapped *wrapped, struct secret_key *ret_key) MUST_CHECK;

/* Where a secret lies: a sealed text that is moved to another row, table or org does not open. */
struct secret_place {
    const char *table; /* and column, where a table has several: "issuer.client_secret" */
    struct uuid id;
};
#define SECRET_PLAIN_MAX (64U << 10) /* bytes */
/* What is stored: a format byte, the key's version and the sealed text. In the arena. */
struct str secret_seal(const struct secret_key *key, const struct secret_place *place,
                       struct str plain, struct arena *arena);
/* False when it was changed or moved, or is of another version than the key. */
bool secret_unseal(const struct secret_key *key, const struct secret_place *place,
                   struct str sealed, struct arena *arena, struct str *ret_plain) MUST_CHECK;
/* The version of the key that opens it; 0 when it is no sealed text. */
int64_t secret_version(struct str sealed);

/*
 * For `musterd key rotate-master`. begin: a new master.key, the former one beside it; after a crash
 * in between it goes on with the pair that is there. end: the former one is removed. 0 or an errno.
 */
int secrets_rotate_begin(struct secrets *secrets) MUST_CHECK;
int secrets_rotate_end(struct secrets *secrets) MUST_CHECK;

#endif
