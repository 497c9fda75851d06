/* Who this node is to the server: its key pair and what the enrolment answered. */
#ifndef AGENT_IDENTITY_H
#define AGENT_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/crypto.h"
#include "base/uuid.h"

struct identity {
    struct ed25519 *key; /* owned */
    bool enrolled;       /* the fields below are set */
    char node_id[UUID_TEXT_LEN + 1];
    char cluster_id[UUID_TEXT_LEN + 1];
    char org_id[UUID_TEXT_LEN + 1];
    int64_t generation;
    uint8_t command_key[ED25519_PUBLIC_LEN]; /* signs the commands of the cluster */
    int64_t command_key_n;                   /* its number in the cluster's chain; 1 = the first */
};

/*
 * Reads <state_dir>/agent.key and <state_dir>/node. Without them the identity is not enrolled and
 * carries a fresh key, which is kept in agent.key.new until the enrolment was answered: a lost
 * answer is then repeated with the same key. False with a sentence when a file is there but cannot
 * be used.
 */
bool identity_load(const char *state_dir, struct identity *ret_identity, char *error,
                   size_t error_cap) MUST_CHECK;
/* Takes over the 201 of POST /agent/v1/enroll and keeps it: the node file first,
 * the key last. */
bool identity_enrolled(const char *state_dir, struct str body, struct identity *identity,
                       char *error, size_t error_cap) MUST_CHECK;
/*
 * Takes the next key of the chain that signs commands (texts in base64url): only number
 * command_key_n + 1, signed by the present one; it is kept on disk first. False: error is empty for
 * an older one, which is nothing new, else a sentence.
 */
bool identity_follow_key(const char *state_dir, struct identity *identity, int64_t n,
                         struct str public_key, struct str signature, char *error,
                         size_t error_cap) MUST_CHECK;
void identity_free(struct identity *identity);

#endif
