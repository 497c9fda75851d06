/* Many keep-alive HTTP/1.1 connections to one server on one epoll, for muster-sim. */
#ifndef BENCH_WIRE_H
#define BENCH_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct wire;
struct wire_request;

/* Called once for each request: status 0 = no answer. body is valid during the call. */
typedef void wire_done(struct wire_request *request, int status, struct str body);

struct wire_request {
    struct wire_request *next; /* private */
    wire_done *done;
    void *ctx;
    const char *path;     /* static */
    const char *bearer;   /* NULL = none; stays valid until done */
    struct str body;      /* stays valid until done */
    int64_t scheduled_us; /* latency counts from here; the caller's */
};

/* url: http://host:port or https://host:port. NULL with a sentence in error when it cannot be used.
 * ca_file NULL = the system's; connections >= 1. */
struct wire *wire_new(const char *url, const char *ca_file, int connections, char *error,
                      size_t error_cap);
void wire_free(struct wire *wire);
/* Requests with the same key use the same connection, in order. */
void wire_send(struct wire *wire, size_t key, struct wire_request *request);
/* Handles what is ready, waiting at most timeout_ms. */
void wire_turn(struct wire *wire, int timeout_ms);
size_t wire_in_flight(const struct wire *wire);

#endif
