/* Handlers of the server itself: readiness, metrics, its own description and its problem pages. */
#ifndef SERVER_HANDLERS_SYSTEM_H
#define SERVER_HANDLERS_SYSTEM_H

#include "server/request.h"

enum err system_health(struct request *rq);
enum err system_ready(struct request *rq);
enum err system_metrics(struct request *rq);
enum err system_openapi(struct request *rq);
enum err system_problem(struct request *rq);

#endif
