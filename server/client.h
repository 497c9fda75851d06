/* The connections of a loop by what they are doing, each list in the order of its deadlines. */
#ifndef SERVER_CLIENT_H
#define SERVER_CLIENT_H

#include <netinet/in.h>
#include <stdint.h>

#include "base/str.h"

struct exchange;

/* One time-out a phase, so that each list stays sorted by appending. */
enum client_phase {
    CLIENT_HEADER, /* new, or a request line was read: the headers must come */
    CLIENT_IDLE,   /* between requests */
    CLIENT_BODY,   /* the body must come */
    CLIENT_ANSWER, /* the answer must be taken */
    CLIENT_BUSY,   /* we work, or a stream: no deadline */
    CLIENT_PHASES
};

struct client {
    struct client *prev;
    struct client *next;
    enum client_phase phase;
    int64_t deadline_us; /* monotonic */
    int fd;
    struct exchange *exchange; /* NULL between requests */
    bool insecure_allowed;     /* plain http may be served to the peer */
    bool proxy;                /* the peer is a trusted proxy */
    size_t address_len;
    char address[INET6_ADDRSTRLEN];
};

struct clients {
    struct client *heads[CLIENT_PHASES];
    struct client *tails[CLIENT_PHASES];
    int64_t timeout_us[CLIENT_PHASES]; /* 0 = none */
    size_t count;
};

void clients_add(struct clients *clients, struct client *client, int64_t now_us);
void clients_remove(struct clients *clients, struct client *client);
void clients_move(struct clients *clients, struct client *client, enum client_phase phase,
                  int64_t now_us);
/* The next client whose deadline has passed, NULL when there is none. */
struct client *clients_late(const struct clients *clients, int64_t now_us);
/* Milliseconds to the first deadline, rounded up; -1 = none. */
int clients_timeout_ms(const struct clients *clients, int64_t now_us);

#endif
