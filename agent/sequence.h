/* The report's number, which grows over the agent's whole life. */
#ifndef AGENT_SEQUENCE_H
#define AGENT_SEQUENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sequence {
    char path[4096];
    uint64_t next;
    uint64_t reserved; /* numbers below this may be used without touching the disk */
};

/* Reads what was reserved before: numbers that were reserved but not used are skipped. False with a
 * sentence when the file is there but cannot be read or written. */
bool sequence_open(struct sequence *sequence, const char *path, char *error, size_t error_cap)
    __attribute__((warn_unused_result));
/* The next number. Reserves a thousand more on disk when needed; a failure is logged, and the
 * number is given all the same. */
uint64_t sequence_next(struct sequence *sequence);

#endif
