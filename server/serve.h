/* `musterd serve`: the server from its start-up checks to its graceful stop. */
#ifndef SERVER_SERVE_H
#define SERVER_SERVE_H

#include <stdbool.h>

/* The exit status. config_read has succeeded; the log is set up. */
int serve_run(void);

/* Hands the configured connections to db/. */
void serve_setup_database(void);
/* Waits for the database for at most database_wait_seconds, with a line of progress now and then.
 * False with the reason logged. */
bool serve_wait_database(void);

#endif
