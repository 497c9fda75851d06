/* Handlers of the device flow (RFC 8628): how the command line signs a person in. */
#ifndef SERVER_HANDLERS_DEVICE_H
#define SERVER_HANDLERS_DEVICE_H

#include "server/request.h"

/* A program asks for a pair of codes; anybody may. */
enum err device_code_create(struct request *rq);
/* The program asks whether it was allowed; the answer is a token once, else one of the RFC's
 * errors. */
enum err device_token_create(struct request *rq);
/* A person in the console looks at a user's code, and allows or denies. Not with a token: a program
 * that was let in must not let others in. */
enum err device_code_get(struct request *rq);
enum err device_code_decide(struct request *rq);

#endif
