/* Signed heads of the audit logs: what the database alone could forget, kept in files beside it. */
#ifndef SERVER_AUDIT_HEAD_H
#define SERVER_AUDIT_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/crypto.h"
#include "base/uuid.h"

/* The last row of an org's chain at a moment. */
struct audit_head {
    struct uuid org;
    int64_t seq; /* 0 = an empty log */
    uint8_t hash[SHA256_LEN];
    int64_t at_us;
};

/*
 * keys_dir/audit holds `key.ed25519` (32 bytes, 0600) and for each org `<org id>.jsonl`: a line for
 * each signed head, oldest first. A superuser of the database can rewrite a whole chain, but not
 * these. One thread at a time.
 */
struct audit_signer;

/* Makes the folder and the key when they are missing. NULL with a sentence in error. */
struct audit_signer *audit_signer_open(const char *keys_dir, char *error, size_t error_cap);
void audit_signer_close(struct audit_signer *signer); /* NULL is fine */
void audit_signer_closep(struct audit_signer **signer);

/* Appends the head as a line of JSON: org, seq, hash (hex), at, key and signature (base64url). */
void audit_signer_line(const struct audit_signer *signer, const struct audit_head *head,
                       struct buf *out);
/*
 * Adds the head to its org's file and brings it to disk, unless the file's last line is of the same
 * seq or younger than min_age_s. Replicas that share the folder take turns. 0 or an errno.
 */
int audit_signer_keep(const struct audit_signer *signer, const struct audit_head *head,
                      int64_t min_age_s) MUST_CHECK;

/* The lines of an org's file, or of `path`, where lines of other orgs are passed over. */
struct audit_heads {
    struct audit_head *items; /* in the arena */
    size_t count;
    size_t bad_line; /* the first line that is no head signed with this key; 0 = none */
};
#define AUDIT_HEADS_MAX 100000 /* hourly: eleven years; of longer files the newest are read */
/* A file that is not there has no lines. 0 or an errno. The arena takes 64 bytes a line. */
int audit_heads_read(const struct audit_signer *signer, const struct uuid *org, const char *path,
                     struct arena *arena, struct audit_heads *ret_heads) MUST_CHECK;

#endif
