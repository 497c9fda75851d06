/* Handlers of webhooks: where C must judge an address, seal a secret or send a test. */
#ifndef SERVER_HANDLERS_WEBHOOKS_H
#define SERVER_HANDLERS_WEBHOOKS_H

#include "server/request.h"

enum err webhook_create(struct request *rq);
enum err webhook_update(struct request *rq);
enum err webhook_rotate(struct request *rq);
enum err webhook_test(struct request *rq);

#endif
