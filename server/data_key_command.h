/* `musterd key rotate-data`: the next version of an org's data key, and its secrets sealed anew. */
#ifndef SERVER_DATA_KEY_COMMAND_H
#define SERVER_DATA_KEY_COMMAND_H

#include <stdbool.h>

#include "base/cleanup.h"

/*
 * While servers serve, for the org of this name or, with NULL, for all that have a key. Each secret
 * is sealed anew in a transaction of its own; what is sealed by a former version opens before,
 * meanwhile and afterwards. Cut off, it goes on when it is run again: as long as secrets of former
 * versions are there it seals those and makes no further version. False when it failed; the log
 * says why.
 */
bool data_key_rotate(const char *org) MUST_CHECK;

#endif
