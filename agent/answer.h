/* What the server answers to a report. */
#ifndef AGENT_ANSWER_H
#define AGENT_ANSWER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

#define ANSWER_COMMANDS_MAX 16
#define ANSWER_REJECTED_MAX 16
#define ANSWER_KEYS_MAX 8

/* A successor of the key that signs commands. */
struct answer_key {
    int64_t n;
    struct str public_key;
    struct str signature; /* by the one before */
};

struct answer {
    double interval_seconds; /* -1 = not said */
    bool reconnect;
    size_t command_count;
    struct {
        struct buf payload; /* unescaped: the exact text that is signed */
        struct str signature;
    } commands[ANSWER_COMMANDS_MAX];
    size_t key_count;
    struct answer_key keys[ANSWER_KEYS_MAX];
    struct buf settings; /* unescaped: the exact text that is signed; empty = none */
    struct str settings_signature;
    size_t rejected_count; /* all of them; the first few are kept */
    struct {
        int64_t stream;
        int64_t seq;
        struct str reason;
    } rejected[ANSWER_REJECTED_MAX];
};

/* Unknown members are ignored. False when it is not JSON of this form. Texts point into body. */
bool answer_read(struct str body, struct answer *ret_answer) MUST_CHECK;
void answer_free(struct answer *answer);

#endif
