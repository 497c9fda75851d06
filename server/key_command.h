/* `musterd key`: the keys that lie outside the database. */
#ifndef SERVER_KEY_COMMAND_H
#define SERVER_KEY_COMMAND_H

#include <stdbool.h>

#include "base/cleanup.h"

/*
 * `musterd key rotate-master`, while servers serve: a new master.key wraps all keys of orgs anew;
 * the former one stays beside it until none needs it. Cut off, it goes on when it is run again.
 * False when it failed; the log says why.
 */
bool key_rotate_master(void) MUST_CHECK;

#endif
