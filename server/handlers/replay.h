/* A policy against the faults that really came, before it is saved. */
#ifndef SERVER_HANDLERS_REPLAY_H
#define SERVER_HANDLERS_REPLAY_H

#include "server/request.h"

request_handler policy_replay;

#endif
