/* Tickets: signed texts that others carry for us, such as a link that downloads something once. */
#ifndef SERVER_TICKET_H
#define SERVER_TICKET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "base/uuid.h"

/*
 * A JWT (RFC 7519) with ES256 and cty "muster+jwt", signed by libjwt with
 * keys_dir/ticket.es256.pem, which is made when it is missing (0600) and shared by replicas. Any
 * thread.
 */
struct ticket {
    const char *use; /* what it is for; static. Goes into `aud` */
    struct uuid org; /* `sub` */
    struct uuid id;  /* `jti`; who takes it must see to it that it is used once */
    int64_t after;   /* meaning by use */
    int64_t limit;
    int64_t issued_s; /* unix time */
    int64_t expires_s;
};

#define TICKET_TEXT_MAX 1024

/* Signs; false with the reason in the log. */
bool ticket_sign(const struct ticket *ticket, char text[TICKET_TEXT_MAX]) MUST_CHECK;
/* Checks algorithm, type, signature, issuer, use and times, and gives the rest; false for whatever
 * is not a good ticket for this use at now_s. */
bool ticket_check(struct str text, const char *use, int64_t now_s,
                  struct ticket *ret_ticket) MUST_CHECK;

#endif
