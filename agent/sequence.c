/* The report's number, which grows over the agent's whole life. */
#include "agent/sequence.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"

/* One sync in almost three hours at ten seconds a report. */
#define BLOCK 1000

static int reserve(struct sequence *sequence)
{
    char text[32];
    int len = snprintf(text, sizeof(text), "%llu\n", (unsigned long long)sequence->next + BLOCK);
    int failed = file_write_durable(sequence->path, (struct str){text, (size_t)len}, 0600);

    if (failed == 0) {
        sequence->reserved = sequence->next + BLOCK;
    }
    return failed;
}

bool sequence_open(struct sequence *sequence, const char *path, char *error, size_t error_cap)
{
    CLEANUP(buf_free) struct buf data = {0};
    int failed;

    *sequence = (struct sequence){.next = 1};
    (void)snprintf(sequence->path, sizeof(sequence->path), "%s", path);
    failed = file_read(path, 64, &data);
    if (failed == 0 &&
        !str_parse_u64(str_trim(buf_str(&data)), 1, INT64_MAX - BLOCK, &sequence->next)) {
        (void)snprintf(error, error_cap, "%.250s does not hold a number", path);
        return false;
    }
    if (failed == 0 || failed == ENOENT) {
        failed = reserve(sequence);
    }
    if (failed != 0) {
        (void)snprintf(error, error_cap, "%.250s: %s", path, strerrordesc_np(failed));
        return false;
    }
    return true;
}

uint64_t sequence_next(struct sequence *sequence)
{
    if (sequence->next >= sequence->reserved) {
        int failed = reserve(sequence);

        if (failed != 0) {
            log_error("%s cannot be written: %s", sequence->path, strerrordesc_np(failed));
        }
    }
    return sequence->next++;
}
