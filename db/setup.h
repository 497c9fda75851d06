/* The conninfo of each role, set once at start-up. */
#ifndef DB_SETUP_H
#define DB_SETUP_H

#include <libpq-fe.h>

#include "db/db.h"

#define DB_CONNECT_US 2000000 /* a server that does not answer in 2 s is down */

/* Begins a non-blocking connection with our defaults (time-outs, UTC, ISO dates) under the given
 * conninfo. NULL when memory is out; else look at PQstatus. */
PGconn *setup_connect_start(enum db_role role);

#endif
