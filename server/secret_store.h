/* Keys of orgs in the database, and the process's master keys. */
#ifndef SERVER_SECRET_STORE_H
#define SERVER_SECRET_STORE_H

#include "db/db.h"
#include "server/secrets.h"

/* Once, before any thread starts: reads or makes keys_dir/master.key. False with a sentence. */
bool secret_store_open(char *error, size_t error_cap) MUST_CHECK;
struct secrets *secret_store_secrets(void);
/* At start: says in the log when the database's secrets were sealed with another master key. */
void secret_store_check(void);

/*
 * The org's newest key; the first one is made. They block: threads of a pool, loops, commands.
 * ERR_UNAVAILABLE when the database is away or the key cannot be opened (the log says why).
 */
enum err secret_key_get(struct db_conn *db, const struct uuid *org,
                        struct secret_key *ret_key) MUST_CHECK;
/* Seals with that key; *ret_sealed in the arena, for a bytea. */
enum err secret_store_seal(struct db_conn *db, const struct uuid *org,
                           const struct secret_place *place, struct str plain, struct arena *arena,
                           struct str *ret_sealed) MUST_CHECK;
/* Opens what was sealed by any version of the org's key. ERR_INTERNAL when it does not open. */
enum err secret_store_unseal(struct db_conn *db, const struct uuid *org,
                             const struct secret_place *place, struct str sealed,
                             struct arena *arena, struct str *ret_plain) MUST_CHECK;
/* A bytea column that holds a sealed text; ptr NULL for NULL or one that is too long. */
struct str secret_column(const struct db_rows *rows, int row, int col, struct arena *arena);

#endif
