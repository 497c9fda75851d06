/* What the handlers of agents share, made once before the event loops start. */
#include "server/agents.h"

#include <stdlib.h>

#include "base/crypto.h"
#include "base/log.h"
#include "server/config.h"
#include "server/follow.h"
#include "server/report_answers.h"

/* One writer makes batches twice as large as two would: measured at 10,000 reports a second, 17 us
 * of PostgreSQL a report instead of 20, at the same latency. */
#define WRITERS 1
/* Reports on a connection before it is made anew, on average: at 10 s about three hours. */
#define RECONNECT_MEAN 1024

/* Written before the threads start and after they ended. */
static struct {
    struct keys *keys;
    struct ingest *ingest;
    struct commands *commands;
} agents;

bool agents_open(char *error, size_t error_cap)
{
    agents.keys = keys_open(config.keys_dir, error, error_cap);
    report_answers_make(config.interval_seconds);
    return agents.keys != NULL;
}

void agents_start(struct follow *follow)
{
    const struct ingest_options options = {.writers = WRITERS, .follow = follow};
    agents.ingest = ingest_new(&options);
    agents.commands = commands_new(config.interval_seconds);
    commands_follow(agents.commands, follow);
    if (!ingest_start(agents.ingest) || !commands_start(agents.commands)) {
        /* Reports would wait for ever. */
        log_error("a thread for agents' reports could not be started");
        exit(1);
    }
}

void agents_stop(void)
{
    commands_stop(agents.commands);
    ingest_stop(agents.ingest);
}

struct keys *agents_keys(void)
{
    return agents.keys;
}

struct ingest *agents_ingest(void)
{
    return agents.ingest;
}

struct commands *agents_commands(void)
{
    return agents.commands;
}

/* xorshift64*: spreading needs no secret, and one state a thread needs no lock. 0 <= value < 1. */
static double next_random(void)
{
    static _Thread_local uint64_t state;
    if (state == 0) {
        crypto_random(&state, sizeof state);
        state |= 1;
    }
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (double)(state * UINT64_C(0x2545f4914f6cdd1d) >> 11) / 9007199254740992.0;
}

double agents_next_interval(void)
{
    return (double)config.interval_seconds * (0.9 + 0.2 * next_random());
}

bool agents_reconnect_due(void)
{
    return next_random() * RECONNECT_MEAN < 1;
}
