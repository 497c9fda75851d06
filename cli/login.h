/* Signing in at the command line: muster login, logout and whoami. */
#ifndef CLI_LOGIN_H
#define CLI_LOGIN_H

#include "cli/commands.h"

/* The device flow of RFC 8628: shows an address and a code, waits until a person decided in the
 * console, keeps the token (cli/store.h). */
int run_login(const struct command_line *line);
/* Ends the kept session at the server and forgets it. */
int run_logout(const struct command_line *line);
int run_whoami(const struct command_line *line);

#endif
