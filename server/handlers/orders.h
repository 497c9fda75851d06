/* The call-back of the operators' automation: what became of an order. */
#ifndef SERVER_HANDLERS_ORDERS_H
#define SERVER_HANDLERS_ORDERS_H

#include "server/request.h"

enum err order_told(struct request *rq);

#endif
