/* What the handlers of agents share: the server's keys, the writers and the table of commands. */
#ifndef SERVER_AGENTS_H
#define SERVER_AGENTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "server/commands.h"
#include "server/ingest.h"
#include "server/keys.h"

/* An agent's access token lives so long; it renews it before. */
#define AGENTS_TOKEN_LIFE_S 3600

/* Opens keys_dir, before any thread starts. False with a sentence in error. */
bool agents_open(char *error, size_t error_cap) MUST_CHECK;

/* Rows of server/backgrounds.c. */
void agents_start(struct follow *follow);
void agents_stop(void);
#define AGENTS_CONNECTIONS (INGEST_WRITERS_MAX + 1)

/* From agents_open or agents_start on; any thread. */
struct keys *agents_keys(void);
struct ingest *agents_ingest(void);
struct commands *agents_commands(void);

/* interval_seconds, moved by up to a tenth either way, so that a fleet does not march in step. */
double agents_next_interval(void);
/* Now and then: the agent connects anew, and may land on another loop or replica. */
bool agents_reconnect_due(void);

#endif
