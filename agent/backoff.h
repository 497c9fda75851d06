/* How long an agent waits after a report that failed. Pure. */
#ifndef AGENT_BACKOFF_H
#define AGENT_BACKOFF_H

#include <stdint.h>

#define BACKOFF_MAX_S 60

/*
 * Full jitter: anything from 0 to 1, 2, 4 ... BACKOFF_MAX_S seconds, by the number of failures so
 * far, and to the interval at least, which the server sets so that it can answer all in it: so the
 * first tries of a fleet are no more than its reports are. It is drawn after the cap, so that the
 * fleet does not come back as one however long it was away. share: by chance, 0 to 1.
 * retry_after_s: what the server asked for, 0 = nothing, 3600 at most; it is waited for beside it.
 * Microseconds.
 */
int64_t backoff_us(unsigned failures, double share, double interval_s, long retry_after_s);

#endif
