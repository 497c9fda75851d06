/* Lists of networks and the client's address behind trusted proxies. */
#ifndef SERVER_NETWORK_H
#define SERVER_NETWORK_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/str.h"

/* Networks in CIDR form or single addresses, parted by commas; "" is a list of none. */
bool networks_valid(const char *networks) MUST_CHECK;
/* An IPv4 address mapped into IPv6 counts as the IPv4 address. False for what is no address. */
bool networks_hold(const char *networks, struct str address);

struct network_client {
    struct str address; /* points into the arguments */
    bool secure;        /* the client spoke TLS, with us or with the proxy */
};
/*
 * Who the client is: the peer itself, or, when the peer is a trusted proxy, the last address of
 * X-Forwarded-For that is none. X-Forwarded-Proto counts only from a trusted peer.
 */
struct network_client network_client_of(struct str peer, bool peer_tls, struct str forwarded_for,
                                        struct str forwarded_proto, const char *trusted);

#endif
