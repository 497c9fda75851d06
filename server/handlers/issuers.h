/* Handlers of issuers: the identity providers of an org. */
#ifndef SERVER_HANDLERS_ISSUERS_H
#define SERVER_HANDLERS_ISSUERS_H

#include "server/request.h"

request_handler issuer_list, issuer_get, issuer_create, issuer_update;

#endif
