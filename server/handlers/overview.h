/* The handler of a cluster's overview, and what each loop keeps for it. */
#ifndef SERVER_HANDLERS_OVERVIEW_H
#define SERVER_HANDLERS_OVERVIEW_H

#include "server/request.h"

struct loop;

request_handler cluster_overview;

/* State of a loop: before loop_start, and after loop_join. */
void overview_attach(struct loop *loop);
void overview_detach(struct loop *loop);

#endif
