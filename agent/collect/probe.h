/*
 * A child process for reads that may hang in a driver: one question, one answer, a deadline. At
 * most one child of a kind exists; one that does not die (state D) is never followed by a second.
 */
#ifndef AGENT_COLLECT_PROBE_H
#define AGENT_COLLECT_PROBE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"

/* One answer; larger ones end the child. */
#define PROBE_ANSWER_MAX ((size_t)128 * 1024)

/* Runs in the child for each question and writes the answer; state lives from question to question.
 * false ends the child after the answer was sent. */
typedef bool probe_round(void **state, const void *ctx, struct buf *answer);

enum probe_news {
    PROBE_NOTHING,
    PROBE_ANSWERED, /* probe->answer */
    PROBE_TIMEOUT,  /* no answer in time; the child is being killed */
    PROBE_DIED,     /* probe->reason */
    PROBE_GONE,     /* the child that timed out has died at last */
};

struct probe {
    const char *name;
    probe_round *round;
    const void *ctx;
    int64_t timeout_us;
    pid_t pid; /* 0 = none */
    int fd;
    bool busy;
    bool killed; /* it was told to die, or closed its end, and has not been reaped */
    bool ended;  /* with killed: by itself */
    int64_t deadline_us;
    int64_t killed_us; /* when a child was told to die, with killed */
    struct buf answer;
    char reason[96];
};

/* ctx must outlive the probe; the child gets its copy at the fork. */
void probe_init(struct probe *probe, const char *name, probe_round *round, const void *ctx,
                int64_t timeout_us);
void probe_stop(struct probe *probe);
/* Asks; starts the child when there is none. False when one is under way or does not die, or none
 * can be started. */
bool probe_ask(struct probe *probe, int64_t now_us);
/* After poll said that fd is readable, and from time to time. */
enum probe_news probe_tick(struct probe *probe, int64_t now_us);
/* The child ends after this answer (its memory is not needed for a while). */
void probe_retire(struct probe *probe);
int64_t probe_due(const struct probe *probe); /* INT64_MAX = nothing is under way */

#endif
