/* THE table: every operation of the server, its permission, its input and its statement or handler.
 */
#include "server/handlers/events.h"
#include "server/handlers/system.h"
#include "server/request.h"

/* clang-format off */
const struct route routes[] = {
    /* /healthz is answered from memory before the table (static.c); the row names it. */
    {.method = "GET", .path = "/healthz", .operation = "healthz", .perm = PERM_PUBLIC, .success = 200, .sql = -1, .handler = system_health},
    {.method = "GET", .path = "/readyz", .operation = "readyz", .perm = PERM_PUBLIC, .success = 200, .sql = -1, .handler = system_ready},
    {.method = "GET", .path = "/metrics", .operation = "metrics", .perm = PERM_PUBLIC, .success = 200, .sql = -1, .handler = system_metrics},
    {.method = "GET", .path = "/api/v1/openapi.json", .operation = "openapi", .perm = PERM_PUBLIC, .success = 200, .sql = -1, .handler = system_openapi,
     .flags = ROUTE_COMPRESS},
    {.method = "GET", .path = "/problems/{slug}", .operation = "problem_page", .perm = PERM_PUBLIC, .success = 200, .sql = -1, .handler = system_problem},

    {.method = "GET", .path = "/api/v1/events/stream", .operation = "event_stream", .perm = PERM_CLUSTER_READ, .success = 200, .sql = -1,
     .handler = event_stream, .query = event_stream_query, .query_size = sizeof(struct event_stream_query)},
};
/* clang-format on */
const size_t routes_count = sizeof(routes) / sizeof(routes[0]);
