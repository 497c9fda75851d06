/* THE table: every operation of the server, its permission, its input and its statement or handler.
 */
#include "server/fields_repair.h"
#include "server/handlers/agent.h"
#include "server/handlers/events.h"
#include "server/handlers/repairs.h"
#include "server/handlers/report.h"
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

    /* Repairs. Verbs take their states from the state machine, so they pass through C. */
    {.method = "GET", .path = "/api/v1/repairs", .operation = "repair_list", .perm = PERM_CLUSTER_READ, .success = 200, .sql = SQL_REPAIR_LIST,
     .args = ARG_QUERY | ARG_PAGE, .query = repair_query, .query_size = sizeof(struct repair_query), .flags = ROUTE_LIST},
    {.method = "GET", .path = "/api/v1/clusters/{cluster}/repairs", .operation = "cluster_repair_list", .perm = PERM_CLUSTER_READ, .success = 200,
     .sql = SQL_REPAIR_LIST_CLUSTER, .args = ARG_QUERY | ARG_PAGE, .query = cluster_repair_query, .query_size = sizeof(struct repair_query),
     .flags = ROUTE_LIST},
    {.method = "GET", .path = "/api/v1/repairs/{repair}", .operation = "repair_get", .perm = PERM_CLUSTER_READ, .success = 200,
     .sql = SQL_REPAIR_GET},
    {.method = "POST", .path = "/api/v1/nodes/{node}/repairs", .operation = "repair_create", .perm = PERM_REPAIR_REQUEST, .success = 201,
     .sql = -1, .handler = repair_request, .body = repair_request_body, .body_size = sizeof(struct repair_request_in)},
    {.method = "POST", .path = "/api/v1/repairs/{repair}/approve", .operation = "repair_approve", .perm = PERM_REPAIR_DECIDE, .success = 200,
     .sql = -1, .handler = repair_approve, .body = repair_approve_body, .body_size = sizeof(struct repair_approve_in), .flags = ROUTE_KEY},
    {.method = "POST", .path = "/api/v1/repairs/{repair}/reject", .operation = "repair_reject", .perm = PERM_REPAIR_DECIDE, .success = 200,
     .sql = -1, .handler = repair_reject, .body = repair_comment_body, .body_size = sizeof(struct repair_comment_in)},
    {.method = "POST", .path = "/api/v1/repairs/{repair}/cancel", .operation = "repair_cancel", .perm = PERM_REPAIR_DECIDE, .success = 200,
     .sql = -1, .handler = repair_cancel, .body = repair_comment_body, .body_size = sizeof(struct repair_comment_in)},
    {.method = "POST", .path = "/api/v1/repairs/{repair}/settle", .operation = "repair_settle", .perm = PERM_REPAIR_DECIDE, .success = 200,
     .sql = -1, .handler = repair_settle, .body = repair_settle_body, .body_size = sizeof(struct repair_settle_in)},
    {.method = "POST", .path = "/api/v1/incidents/{incident}/close", .operation = "incident_close", .perm = PERM_INCIDENT_WRITE, .success = 200,
     .sql = -1, .handler = incident_close, .body = incident_close_body, .body_size = sizeof(struct incident_close_in)},

    /* Agents. */
    {.method = "POST", .path = "/agent/v1/enroll", .operation = "agent_enroll", .perm = PERM_PUBLIC, .success = 201, .sql = -1, .handler = agent_enroll,
     .body = agent_enroll_body, .body_size = sizeof(struct agent_enroll_in), .flags = ROUTE_LENIENT | ROUTE_NO_STORE_BODY},
    {.method = "POST", .path = "/agent/v1/challenge", .operation = "agent_challenge", .perm = PERM_PUBLIC, .success = 200, .sql = -1,
     .handler = agent_challenge, .body = agent_challenge_body, .body_size = sizeof(struct agent_challenge_in), .flags = ROUTE_LENIENT},
    {.method = "POST", .path = "/agent/v1/token", .operation = "agent_token", .perm = PERM_PUBLIC, .success = 200, .sql = -1, .handler = agent_token,
     .body = agent_token_body, .body_size = sizeof(struct agent_token_in), .flags = ROUTE_LENIENT | ROUTE_NO_STORE_BODY},
    {.method = "POST", .path = "/agent/v1/report", .operation = "agent_report", .perm = PERM_AGENT, .success = 200, .sql = -1, .handler = agent_report,
     .flags = ROUTE_LENIENT | ROUTE_RAW_BODY, .body_cap = AGENT_REPORT_MAX},
};
/* clang-format on */
const size_t routes_count = sizeof(routes) / sizeof(routes[0]);
