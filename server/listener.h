/* Listening sockets that the loops share. */
#ifndef SERVER_LISTENER_H
#define SERVER_LISTENER_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Listens on "ADDRESS:PORT" with a socket of its own that shares the port (SO_REUSEPORT).
 * wanted_port: instead of the text's, 0 = as written. first: refuse when anybody listens there
 * already. -1 with a sentence.
 */
int listener_open(const char *listen_on, int wanted_port, bool first, char *error,
                  size_t error_cap);
int listener_port(int fd); /* 0 when it cannot be told */

#endif
