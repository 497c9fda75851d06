/* Tokens of issuers as credentials of the API: judged on the loop, mapped to a person of the org.
 */
#ifndef SERVER_BEARER_H
#define SERVER_BEARER_H

#include "server/exchange.h"

/* Of a request whose Authorization holds a JWT: afterwards rq.caller is known and exchange_permit
 * was called, or the answer is set, or rq.suspended until one of both. */
void bearer_admit(struct exchange *ex, struct str token);

#endif
