/* The handler of the grid: every node of a cluster in columns. */
#ifndef SERVER_HANDLERS_NODE_GRID_H
#define SERVER_HANDLERS_NODE_GRID_H

#include "server/request.h"

request_handler cluster_grid;

#endif
