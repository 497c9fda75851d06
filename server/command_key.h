/* `musterd key list` and `key rotate`: the keys that sign the clusters' commands. */
#ifndef SERVER_COMMAND_KEY_H
#define SERVER_COMMAND_KEY_H

#include <stdbool.h>

#include "base/cleanup.h"

/* Prints each key: cluster, number, public half, when it was made, whether it signs. cluster: name
 * or id, NULL = all. False after logging what failed. */
bool command_key_print(const char *cluster) MUST_CHECK;
/*
 * Makes a successor, signed by the present key; agents take it over by themselves, and the former
 * one is retired when the last has said so. With finish: retires it now; agents that were away
 * follow the chain when they are back. Run it as the user of the server, where keys_dir is.
 */
bool command_key_rotate(const char *cluster, bool finish) MUST_CHECK;

#endif
