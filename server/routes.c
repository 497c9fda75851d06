/* THE table: every operation of the server, its permission, its input and its statement or handler.
 */
#include "server/fields.h"
#include "server/fields_checks.h"
#include "server/fields_custom.h"
#include "server/fields_identity.h"
#include "server/fields_policy.h"
#include "server/fields_repair.h"
#include "server/fields_webhooks.h"
#include "server/handlers/agent.h"
#include "server/handlers/audit.h"
#include "server/handlers/check_overrides.h"
#include "server/handlers/checks.h"
#include "server/handlers/custom_checks.h"
#include "server/handlers/device.h"
#include "server/handlers/events.h"
#include "server/handlers/history.h"
#include "server/handlers/issuer_checks.h"
#include "server/handlers/issuers.h"
#include "server/handlers/join_tokens.h"
#include "server/handlers/lists.h"
#include "server/handlers/members.h"
#include "server/handlers/node_grid.h"
#include "server/handlers/nodes.h"
#include "server/handlers/orders.h"
#include "server/handlers/orgs.h"
#include "server/handlers/overview.h"
#include "server/handlers/policies.h"
#include "server/handlers/repair_batch.h"
#include "server/handlers/repair_report.h"
#include "server/handlers/repairs.h"
#include "server/handlers/replay.h"
#include "server/handlers/report.h"
#include "server/handlers/session.h"
#include "server/handlers/sign_in.h"
#include "server/handlers/sign_out.h"
#include "server/handlers/system.h"
#include "server/handlers/tokens.h"
#include "server/handlers/webhooks.h"
#include "server/repair/policy.h"
#include "server/request.h"

#define BODY(fields, type) .body = fields, .body_size = sizeof(struct type)
#define QUERY(fields, type) .query = fields, .query_size = sizeof(struct type)

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

    /* session */
    {.method = "POST", .path = "/api/v1/session", .operation = "session_create", .perm = PERM_PUBLIC, .success = 200, .sql = -1,
     BODY(session_create_body, session_create_in), .handler = session_create, .flags = ROUTE_VERB | ROUTE_SIGN_IN},
    {.method = "PUT", .path = "/api/v1/session", .operation = "session_switch", .perm = PERM_SESSION, .success = 200, .sql = -1,
     BODY(session_switch_body, session_switch_in), .handler = session_switch, .flags = ROUTE_SUSPENDED | ROUTE_VERB},
    {.method = "DELETE", .path = "/api/v1/session", .operation = "session_delete", .perm = PERM_SESSION, .success = 204, .sql = -1,
     .handler = session_delete, .flags = ROUTE_SUSPENDED | ROUTE_VERB},
    {.method = "GET", .path = "/api/v1/sessions", .operation = "session_list", .perm = PERM_SESSION, .success = 200, .sql = -1, .handler = session_list, .flags = ROUTE_SUSPENDED},
    {.method = "DELETE", .path = "/api/v1/sessions", .operation = "session_delete_all", .perm = PERM_SESSION, .success = 204, .sql = -1,
     .handler = session_delete_all, .flags = ROUTE_SUSPENDED | ROUTE_VERB},
    {.method = "DELETE", .path = "/api/v1/sessions/{session}", .operation = "session_delete_one", .perm = PERM_SESSION, .success = 204, .sql = -1,
     .handler = session_delete_one, .flags = ROUTE_SUSPENDED | ROUTE_VERB},
    {.method = "GET", .path = "/api/v1/me", .operation = "me_get", .perm = PERM_SESSION, .success = 200, .sql = -1,
     .handler = me_get, .flags = ROUTE_SUSPENDED},

    /* the device flow */
    {.method = "POST", .path = "/api/v1/device-codes", .operation = "device_code_create", .perm = PERM_PUBLIC, .success = 200, .sql = -1,
     BODY(device_code_body, device_code_in), .handler = device_code_create, .flags = ROUTE_VERB | ROUTE_SIGN_IN | ROUTE_NO_STORE_BODY},
    {.method = "POST", .path = "/api/v1/device-tokens", .operation = "device_token_create", .perm = PERM_PUBLIC, .success = 200, .sql = -1,
     BODY(device_token_body, device_token_in), .handler = device_token_create, .flags = ROUTE_VERB | ROUTE_JOIN | ROUTE_NO_STORE_BODY},
    {.method = "GET", .path = "/api/v1/device-codes/{slug}", .operation = "device_code_get", .perm = PERM_SESSION, .success = 200, .sql = -1,
     .handler = device_code_get},
    {.method = "POST", .path = "/api/v1/device-codes/{slug}", .operation = "device_code_decide", .perm = PERM_SESSION, .success = 200, .sql = -1,
     BODY(device_decide_body, device_decide_in), .handler = device_code_decide, .flags = ROUTE_VERB},

    /* Signing in at an issuer: what browsers and issuers call. */
    {.method = "GET", .path = "/api/v1/sign-in-options", .operation = "sign_in_options", .perm = PERM_PUBLIC, .success = 200, .sql = -1,
     QUERY(sign_in_options_query, sign_in_options_query), .handler = sign_in_options},
    {.method = "GET", .path = "/auth/sign-in/{issuer}", .operation = "sign_in_start", .perm = PERM_PUBLIC, .success = 302, .sql = -1,
     QUERY(sign_in_start_query, sign_in_start_query), .handler = sign_in_start, .flags = ROUTE_SIGN_IN},
    {.method = "GET", .path = "/auth/callback", .operation = "sign_in_callback", .perm = PERM_PUBLIC, .success = 302, .sql = -1,
     .handler = sign_in_callback, .flags = ROUTE_SIGN_IN | ROUTE_RAW_QUERY},
    {.method = "POST", .path = "/auth/sign-out", .operation = "sign_out", .perm = PERM_SESSION, .success = 200, .sql = -1, .handler = sign_out,
     .flags = ROUTE_SUSPENDED | ROUTE_VERB},
    {.method = "POST", .path = "/auth/backchannel-logout/{issuer}", .operation = "backchannel_logout", .perm = PERM_PUBLIC, .success = 200, .sql = -1,
     .handler = backchannel_logout, .flags = ROUTE_LOGOUT | ROUTE_RAW_BODY | ROUTE_LENIENT},

    /* orgs and projects */
    {.method = "GET", .path = "/api/v1/orgs", .operation = "org_list", .perm = PERM_SESSION, .success = 200, .sql = -1,
     .args = ARG_PAGE, .handler = org_list, .flags = ROUTE_SUSPENDED | ROUTE_LIST | ROUTE_COMPRESS},
    {.method = "POST", .path = "/api/v1/orgs", .operation = "org_create", .perm = PERM_PLATFORM, .success = 201, .sql = -1,
     BODY(org_create_body, org_in), .handler = org_create, .flags = ROUTE_SUSPENDED | ROUTE_VERB},
    {.method = "GET", .path = "/api/v1/orgs/{org}", .operation = "org_get", .perm = PERM_SESSION, .success = 200, .sql = SQL_ORG_GET},
    {.method = "PATCH", .path = "/api/v1/orgs/{org}", .operation = "org_update", .perm = PERM_ORG_WRITE, .success = 200, .sql = SQL_ORG_UPDATE,
     .args = ARG_IF_MATCH | ARG_ACTOR | ARG_BODY, BODY(org_update_body, org_update_in), .flags = ROUTE_ORG | ROUTE_IF_MATCH | ROUTE_VERB},
    /* All organizations, for the platform's administrators. */
    {.method = "GET", .path = "/api/v1/platform/orgs", .operation = "platform_org_list", .perm = PERM_PLATFORM, .success = 200, .sql = SQL_PLATFORM_ORG_LIST,
     .args = ARG_PAGE, .flags = ROUTE_SUSPENDED | ROUTE_LIST | ROUTE_COMPRESS},
    {.method = "GET", .path = "/api/v1/platform/orgs/{org}", .operation = "platform_org_get", .perm = PERM_PLATFORM, .success = 200,
     .sql = SQL_PLATFORM_ORG_GET, .flags = ROUTE_SUSPENDED},
    {.method = "POST", .path = "/api/v1/platform/orgs/{org}/suspend", .operation = "platform_org_suspend", .perm = PERM_PLATFORM, .success = 200, .sql = -1,
     .handler = org_suspend, BODY(org_suspend_body, org_suspend_in), .flags = ROUTE_SUSPENDED | ROUTE_VERB},
    {.method = "POST", .path = "/api/v1/platform/orgs/{org}/resume", .operation = "platform_org_resume", .perm = PERM_PLATFORM, .success = 200, .sql = -1,
     .handler = org_resume, BODY(org_suspend_body, org_suspend_in), .flags = ROUTE_SUSPENDED | ROUTE_VERB},
    {.method = "GET", .path = "/api/v1/projects", .operation = "project_list", .perm = PERM_CLUSTER_READ, .success = 200, .sql = SQL_PROJECT_LIST,
     .args = ARG_PAGE, .flags = ROUTE_LIST | ROUTE_COMPRESS},
    {.method = "POST", .path = "/api/v1/projects", .operation = "project_create", .perm = PERM_CLUSTER_WRITE, .success = 201, .sql = SQL_PROJECT_CREATE,
     .args = ARG_KEY | ARG_ACTOR | ARG_BODY | ARG_ID, BODY(project_create_body, project_in), .flags = ROUTE_ORG | ROUTE_VERB},
    {.method = "GET", .path = "/api/v1/projects/{project}", .operation = "project_get", .perm = PERM_CLUSTER_READ, .success = 200, .sql = SQL_PROJECT_GET},
    {.method = "PATCH", .path = "/api/v1/projects/{project}", .operation = "project_update", .perm = PERM_CLUSTER_WRITE, .success = 200, .sql = SQL_PROJECT_UPDATE,
     .args = ARG_IF_MATCH | ARG_ACTOR | ARG_BODY, BODY(project_update_body, project_in), .flags = ROUTE_IF_MATCH | ROUTE_VERB},

    /* clusters */
    {.method = "GET", .path = "/api/v1/clusters", .operation = "cluster_list", .perm = PERM_CLUSTER_READ, .success = 200, .sql = SQL_CLUSTER_LIST,
     .args = ARG_QUERY | ARG_PAGE, QUERY(cluster_query, cluster_query), .flags = ROUTE_LIST | ROUTE_COMPRESS},
    {.method = "POST", .path = "/api/v1/clusters", .operation = "cluster_create", .perm = PERM_CLUSTER_WRITE, .success = 201, .sql = SQL_CLUSTER_CREATE,
     .args = ARG_KEY | ARG_ACTOR | ARG_BODY | ARG_ID, BODY(cluster_create_body, cluster_in), .flags = ROUTE_VERB},
    {.method = "GET", .path = "/api/v1/clusters/{cluster}", .operation = "cluster_get", .perm = PERM_CLUSTER_READ, .success = 200, .sql = SQL_CLUSTER_GET},
    {.method = "PATCH", .path = "/api/v1/clusters/{cluster}", .operation = "cluster_update", .perm = PERM_CLUSTER_WRITE, .success = 200, .sql = SQL_CLUSTER_UPDATE,
     .args = ARG_IF_MATCH | ARG_ACTOR | ARG_BODY | ARG_BODY_PRESENT, BODY(cluster_update_body, cluster_in), .flags = ROUTE_IF_MATCH | ROUTE_VERB},
    {.method = "GET", .path = "/api/v1/clusters/{cluster}/overview", .operation = "cluster_overview", .perm = PERM_CLUSTER_READ, .success = 200, .sql = -1,
     .handler = cluster_overview, .flags = ROUTE_WEAK | ROUTE_COMPRESS},
    {.method = "GET", .path = "/api/v1/clusters/{cluster}/history", .operation = "cluster_history", .perm = PERM_CLUSTER_READ, .success = 200, .sql = -1,
     QUERY(history_query, span_query), .handler = cluster_history, .flags = ROUTE_WEAK | ROUTE_COMPRESS},
    {.method = "GET", .path = "/api/v1/clusters/{cluster}/events-strip", .operation = "cluster_events_strip", .perm = PERM_CLUSTER_READ, .success = 200, .sql = -1,
     QUERY(buckets_query, span_query), .handler = cluster_events_strip, .flags = ROUTE_WEAK | ROUTE_COMPRESS},
    {.method = "GET", .path = "/api/v1/clusters/{cluster}/checks", .operation = "cluster_checks", .perm = PERM_CLUSTER_READ, .success = 200, .sql = -1,
     QUERY(buckets_query, span_query), .handler = cluster_checks, .flags = ROUTE_WEAK | ROUTE_COMPRESS},
    {.method = "GET", .path = "/api/v1/clusters/{cluster}/as-of", .operation = "cluster_as_of", .perm = PERM_CLUSTER_READ, .success = 200, .sql = SQL_CLUSTER_AS_OF,
     .args = ARG_QUERY, QUERY(as_of_query, as_of_query), .flags = ROUTE_COMPRESS},
    {.method = "GET", .path = "/api/v1/clusters/{cluster}/grid", .operation = "cluster_grid", .perm = PERM_CLUSTER_READ, .success = 200, .sql = -1,
     QUERY(grid_query, grid_query), .handler = cluster_grid, .flags = ROUTE_WEAK | ROUTE_COMPRESS},

    /* nodes and their parts */
    {.method = "GET", .path = "/api/v1/clusters/{cluster}/nodes", .operation = "node_list", .perm = PERM_CLUSTER_READ, .success = 200, .sql = -1,
     .args = ARG_PAGE, QUERY(node_query, node_query), .handler = node_list, .flags = ROUTE_LIST | ROUTE_COMPRESS},
    {.method = "POST", .path = "/api/v1/clusters/{cluster}/nodes", .operation = "node_create", .perm = PERM_NODE_WRITE, .success = 201, .sql = SQL_NODE_CREATE,
     .args = ARG_KEY | ARG_ACTOR | ARG_BODY | ARG_ID, BODY(node_create_body, node_create_in), .flags = ROUTE_VERB},
    {.method = "GET", .path = "/api/v1/nodes/{node}", .operation = "node_get", .perm = PERM_CLUSTER_READ, .success = 200, .sql = SQL_NODE_GET},
    {.method = "PATCH", .path = "/api/v1/nodes/{node}", .operation = "node_update", .perm = PERM_NODE_WRITE, .success = 200, .sql = SQL_NODE_UPDATE,
     .args = ARG_IF_MATCH | ARG_ACTOR | ARG_BODY | ARG_BODY_PRESENT, BODY(node_update_body, node_update_in), .flags = ROUTE_IF_MATCH | ROUTE_VERB},
    {.method = "POST", .path = "/api/v1/nodes/{node}/cordon", .operation = "node_cordon", .perm = PERM_NODE_WRITE, .success = 200, .sql = -1,
     BODY(node_cordon_body, node_cordon_in), .handler = node_cordon, .flags = ROUTE_VERB},
    {.method = "POST", .path = "/api/v1/nodes/{node}/uncordon", .operation = "node_uncordon", .perm = PERM_NODE_WRITE, .success = 200, .sql = -1,
     BODY(node_cordon_body, node_cordon_in), .handler = node_uncordon, .flags = ROUTE_VERB},
    {.method = "POST", .path = "/api/v1/nodes/{node}/revoke-key", .operation = "node_revoke_key", .perm = PERM_TOKEN_WRITE, .success = 200,
     .sql = SQL_NODE_REVOKE_KEY, .args = ARG_KEY | ARG_ACTOR | ARG_BODY, BODY(revoke_key_body, revoke_key_in), .flags = ROUTE_VERB},
    {.method = "GET", .path = "/api/v1/nodes/{node}/history", .operation = "node_history", .perm = PERM_CLUSTER_READ, .success = 200, .sql = -1,
     QUERY(history_query, span_query), .handler = node_history, .flags = ROUTE_WEAK | ROUTE_COMPRESS},
    {.method = "GET", .path = "/api/v1/nodes/{node}/transitions", .operation = "node_transitions", .perm = PERM_CLUSTER_READ, .success = 200, .sql = -1,
     QUERY(transitions_query, span_query), .handler = node_transitions, .flags = ROUTE_WEAK | ROUTE_COMPRESS},
    {.method = "GET", .path = "/api/v1/nodes/{node}/devices", .operation = "device_list", .perm = PERM_CLUSTER_READ, .success = 200, .sql = SQL_DEVICE_LIST,
     .args = ARG_PAGE, .flags = ROUTE_LIST | ROUTE_COMPRESS},
    {.method = "POST", .path = "/api/v1/nodes/{node}/devices", .operation = "device_create", .perm = PERM_NODE_WRITE, .success = 201, .sql = SQL_DEVICE_CREATE,
     .args = ARG_KEY | ARG_ACTOR | ARG_BODY | ARG_ID, BODY(device_create_body, device_create_in), .flags = ROUTE_VERB},
    {.method = "GET", .path = "/api/v1/devices/{device}", .operation = "device_get", .perm = PERM_CLUSTER_READ, .success = 200, .sql = SQL_DEVICE_GET},
    {.method = "PATCH", .path = "/api/v1/devices/{device}", .operation = "device_update", .perm = PERM_NODE_WRITE, .success = 200, .sql = SQL_DEVICE_UPDATE,
     .args = ARG_IF_MATCH | ARG_ACTOR | ARG_BODY, BODY(device_update_body, note_in), .flags = ROUTE_IF_MATCH | ROUTE_VERB},

    {.method = "GET", .path = "/api/v1/devices/{device}/history", .operation = "device_history", .perm = PERM_CLUSTER_READ, .success = 200,
     .sql = SQL_DEVICE_HISTORY, .flags = ROUTE_WEAK | ROUTE_COMPRESS},
    {.method = "GET", .path = "/api/v1/nodes/{node}/machine", .operation = "node_machine", .perm = PERM_CLUSTER_READ, .success = 200,
     .sql = SQL_NODE_SERIAL_HISTORY, .flags = ROUTE_WEAK | ROUTE_COMPRESS},
    {.method = "GET", .path = "/api/v1/serials", .operation = "serial_find", .perm = PERM_CLUSTER_READ, .success = 200, .sql = SQL_SERIAL_FIND,
     .args = ARG_QUERY, QUERY(serial_query, serial_query), .flags = ROUTE_WEAK | ROUTE_COMPRESS},

    /* events */
    {.method = "GET", .path = "/api/v1/events", .operation = "event_list", .perm = PERM_CLUSTER_READ, .success = 200, .sql = -1,
     .args = ARG_PAGE, QUERY(event_query, event_query), .handler = event_list, .flags = ROUTE_LIST | ROUTE_COMPRESS},
    {.method = "GET", .path = "/api/v1/clusters/{cluster}/events", .operation = "cluster_event_list", .perm = PERM_CLUSTER_READ, .success = 200, .sql = -1,
     .args = ARG_PAGE, QUERY(cluster_event_query, event_query), .handler = cluster_event_list, .flags = ROUTE_LIST | ROUTE_COMPRESS},
    {.method = "POST", .path = "/api/v1/clusters/{cluster}/events", .operation = "event_create", .perm = PERM_INCIDENT_WRITE, .success = 201, .sql = SQL_NOTE_CREATE,
     .args = ARG_KEY | ARG_ACTOR | ARG_BODY, BODY(event_create_body, event_create_in), .flags = ROUTE_VERB},

    /* incidents and checks */
    {.method = "GET", .path = "/api/v1/incidents", .operation = "incident_list", .perm = PERM_CLUSTER_READ, .success = 200, .sql = -1,
     .args = ARG_PAGE, QUERY(incident_query, incident_query), .handler = incident_list, .flags = ROUTE_LIST | ROUTE_COMPRESS},
    {.method = "GET", .path = "/api/v1/incidents/{incident}", .operation = "incident_get", .perm = PERM_CLUSTER_READ, .success = 200, .sql = SQL_INCIDENT_GET},
    {.method = "PATCH", .path = "/api/v1/incidents/{incident}", .operation = "incident_update", .perm = PERM_INCIDENT_WRITE, .success = 200, .sql = SQL_INCIDENT_UPDATE,
     .args = ARG_IF_MATCH | ARG_ACTOR | ARG_BODY, BODY(incident_update_body, note_in), .flags = ROUTE_IF_MATCH | ROUTE_VERB},
    {.method = "POST", .path = "/api/v1/nodes/{node}/incidents", .operation = "incident_create", .perm = PERM_INCIDENT_WRITE, .success = 201, .sql = SQL_INCIDENT_CREATE,
     .args = ARG_KEY | ARG_ACTOR | ARG_BODY | ARG_ID, BODY(incident_create_body, incident_create_in), .flags = ROUTE_VERB},
    {.method = "GET", .path = "/api/v1/checks", .operation = "check_list", .perm = PERM_CLUSTER_READ, .success = 200, .sql = -1,
     QUERY(check_place_query, check_place_query), .handler = check_list, .flags = ROUTE_COMPRESS},
    {.method = "GET", .path = "/api/v1/check-overrides", .operation = "check_override_list", .perm = PERM_CLUSTER_READ, .success = 200,
     .sql = SQL_CHECK_OVERRIDE_LIST, .args = ARG_PAGE, .flags = ROUTE_LIST | ROUTE_COMPRESS},
    {.method = "POST", .path = "/api/v1/check-overrides", .operation = "check_override_create", .perm = PERM_CLUSTER_WRITE, .success = 201, .sql = -1,
     .args = ARG_KEY | ARG_ACTOR | ARG_BODY | ARG_ID, BODY(check_override_body, check_override_in), .handler = check_override_create,
     .flags = ROUTE_VERB | ROUTE_ORG},
    {.method = "POST", .path = "/api/v1/check-overrides/dry-run", .operation = "check_override_try", .perm = PERM_CLUSTER_READ, .success = 200, .sql = -1,
     .args = ARG_BODY, BODY(check_override_try_body, check_override_in), .handler = check_override_try},
    {.method = "GET", .path = "/api/v1/check-overrides/{override}", .operation = "check_override_get", .perm = PERM_CLUSTER_READ, .success = 200,
     .sql = SQL_CHECK_OVERRIDE_GET},
    {.method = "PATCH", .path = "/api/v1/check-overrides/{override}", .operation = "check_override_update", .perm = PERM_CLUSTER_WRITE, .success = 200,
     .sql = -1, .args = ARG_IF_MATCH | ARG_ACTOR | ARG_BODY | ARG_BODY_PRESENT, BODY(check_override_update_body, check_override_update_in),
     .handler = check_override_update, .flags = ROUTE_IF_MATCH | ROUTE_VERB | ROUTE_ORG},
    {.method = "DELETE", .path = "/api/v1/check-overrides/{override}", .operation = "check_override_delete", .perm = PERM_CLUSTER_WRITE, .success = 204,
     .sql = SQL_CHECK_OVERRIDE_DELETE, .args = ARG_ACTOR, .flags = ROUTE_VERB | ROUTE_ORG},

    {.method = "GET", .path = "/api/v1/custom-checks", .operation = "custom_check_list", .perm = PERM_CLUSTER_READ, .success = 200,
     .sql = SQL_CUSTOM_CHECK_LIST, .args = ARG_PAGE, .flags = ROUTE_LIST | ROUTE_COMPRESS},
    {.method = "POST", .path = "/api/v1/custom-checks", .operation = "custom_check_create", .perm = PERM_SCRIPT_WRITE, .success = 201, .sql = -1,
     .args = ARG_KEY | ARG_ACTOR | ARG_BODY | ARG_ID, BODY(custom_check_body, custom_check_in), .handler = custom_check_create,
     .flags = ROUTE_VERB | ROUTE_ORG},
    {.method = "POST", .path = "/api/v1/custom-checks/dry-run", .operation = "custom_check_try", .perm = PERM_CLUSTER_READ, .success = 200, .sql = -1,
     BODY(custom_check_try_body, custom_check_in), .handler = custom_check_try},
    {.method = "GET", .path = "/api/v1/custom-checks/{check}", .operation = "custom_check_get", .perm = PERM_CLUSTER_READ, .success = 200,
     .sql = SQL_CUSTOM_CHECK_GET},
    {.method = "PATCH", .path = "/api/v1/custom-checks/{check}", .operation = "custom_check_update", .perm = PERM_SCRIPT_WRITE, .success = 200,
     .sql = -1, .args = ARG_IF_MATCH | ARG_ACTOR | ARG_BODY, BODY(custom_check_update_body, custom_check_in), .handler = custom_check_update,
     .flags = ROUTE_IF_MATCH | ROUTE_VERB | ROUTE_ORG},
    {.method = "DELETE", .path = "/api/v1/custom-checks/{check}", .operation = "custom_check_delete", .perm = PERM_SCRIPT_WRITE, .success = 204,
     .sql = SQL_CUSTOM_CHECK_DELETE, .args = ARG_ACTOR, .flags = ROUTE_VERB | ROUTE_ORG},
    {.method = "GET", .path = "/api/v1/custom-checks/{check}/versions", .operation = "custom_check_history", .perm = PERM_CLUSTER_READ,
     .success = 200, .sql = SQL_CUSTOM_CHECK_HISTORY, .flags = ROUTE_COMPRESS},
    {.method = "GET", .path = "/api/v1/expectations", .operation = "expectation_list", .perm = PERM_CLUSTER_READ, .success = 200,
     .sql = SQL_EXPECTATION_LIST, .args = ARG_PAGE, .flags = ROUTE_LIST | ROUTE_COMPRESS},
    {.method = "POST", .path = "/api/v1/expectations", .operation = "expectation_create", .perm = PERM_CLUSTER_WRITE, .success = 201,
     .sql = SQL_EXPECTATION_CREATE, .args = ARG_KEY | ARG_ACTOR | ARG_BODY | ARG_ID, BODY(expectation_body, expectation_in),
     .flags = ROUTE_VERB | ROUTE_ORG},
    {.method = "GET", .path = "/api/v1/expectations/{expectation}", .operation = "expectation_get", .perm = PERM_CLUSTER_READ, .success = 200,
     .sql = SQL_EXPECTATION_GET},
    {.method = "PATCH", .path = "/api/v1/expectations/{expectation}", .operation = "expectation_update", .perm = PERM_CLUSTER_WRITE, .success = 200,
     .sql = SQL_EXPECTATION_UPDATE, .args = ARG_IF_MATCH | ARG_ACTOR | ARG_BODY | ARG_BODY_PRESENT, BODY(expectation_update_body, expectation_in),
     .flags = ROUTE_IF_MATCH | ROUTE_VERB | ROUTE_ORG},
    {.method = "DELETE", .path = "/api/v1/expectations/{expectation}", .operation = "expectation_delete", .perm = PERM_CLUSTER_WRITE, .success = 204,
     .sql = SQL_EXPECTATION_DELETE, .args = ARG_ACTOR, .flags = ROUTE_VERB | ROUTE_ORG},
    {.method = "GET", .path = "/api/v1/nodes/{node}/settings", .operation = "node_settings", .perm = PERM_CLUSTER_READ, .success = 200,
     .sql = SQL_NODE_SETTINGS_GET, .flags = ROUTE_WEAK | ROUTE_COMPRESS},

    /* members */
    {.method = "GET", .path = "/api/v1/roles", .operation = "role_list", .perm = PERM_SESSION, .success = 200, .sql = -1, .handler = role_list,
     .flags = ROUTE_COMPRESS},
    {.method = "GET", .path = "/api/v1/people", .operation = "person_list", .perm = PERM_MEMBER_WRITE, .success = 200, .sql = SQL_PERSON_LIST,
     .args = ARG_PAGE, .flags = ROUTE_LIST | ROUTE_COMPRESS | ROUTE_ORG},
    {.method = "GET", .path = "/api/v1/members", .operation = "member_list", .perm = PERM_MEMBER_WRITE, .success = 200, .sql = SQL_MEMBER_LIST,
     .args = ARG_PAGE, .flags = ROUTE_LIST | ROUTE_COMPRESS | ROUTE_ORG},
    {.method = "POST", .path = "/api/v1/members", .operation = "member_create", .perm = PERM_MEMBER_WRITE, .success = 201, .sql = -1,
     BODY(member_create_body, member_in), .handler = member_create, .flags = ROUTE_VERB | ROUTE_ORG},
    {.method = "GET", .path = "/api/v1/members/{member}", .operation = "member_get", .perm = PERM_MEMBER_WRITE, .success = 200, .sql = SQL_MEMBER_GET,
     .flags = ROUTE_ORG},
    {.method = "DELETE", .path = "/api/v1/members/{member}", .operation = "member_delete", .perm = PERM_MEMBER_WRITE, .success = 204, .sql = SQL_MEMBER_DELETE,
     .args = ARG_ACTOR, .flags = ROUTE_VERB | ROUTE_ORG},

    /* Issuers. Their bodies are read by the verifier's own table (oidc/issuer.c). */
    {.method = "GET", .path = "/api/v1/issuers", .operation = "issuer_list", .perm = PERM_ISSUER_READ, .success = 200, .sql = -1,
     .args = ARG_PAGE, .handler = issuer_list, .flags = ROUTE_ORG | ROUTE_LIST | ROUTE_COMPRESS},
    {.method = "POST", .path = "/api/v1/issuers", .operation = "issuer_create", .perm = PERM_ISSUER_WRITE, .success = 201, .sql = -1,
     .handler = issuer_create, .flags = ROUTE_ORG | ROUTE_VERB | ROUTE_RAW_BODY},
    {.method = "GET", .path = "/api/v1/issuers/{issuer}", .operation = "issuer_get", .perm = PERM_ISSUER_READ, .success = 200, .sql = -1,
     .handler = issuer_get, .flags = ROUTE_ORG},
    {.method = "PATCH", .path = "/api/v1/issuers/{issuer}", .operation = "issuer_update", .perm = PERM_ISSUER_WRITE, .success = 200, .sql = -1,
     .handler = issuer_update, .flags = ROUTE_ORG | ROUTE_VERB | ROUTE_IF_MATCH | ROUTE_RAW_BODY},
    {.method = "DELETE", .path = "/api/v1/issuers/{issuer}", .operation = "issuer_delete", .perm = PERM_ISSUER_WRITE, .success = 204,
     .sql = SQL_ISSUER_DELETE, .args = ARG_ACTOR, .flags = ROUTE_ORG | ROUTE_VERB},
    {.method = "POST", .path = "/api/v1/issuers/discover", .operation = "issuer_discover", .perm = PERM_ISSUER_WRITE, .success = 200, .sql = -1,
     BODY(issuer_discover_body, issuer_discover_in), .handler = issuer_discover, .flags = ROUTE_ORG},
    {.method = "POST", .path = "/api/v1/issuers/{issuer}/test-token", .operation = "issuer_test_token", .perm = PERM_ISSUER_READ, .success = 200,
     .sql = -1, BODY(issuer_test_token_body, issuer_test_token_in), .handler = issuer_test_token, .flags = ROUTE_ORG},
    {.method = "POST", .path = "/api/v1/issuers/{issuer}/refresh-keys", .operation = "issuer_refresh_keys", .perm = PERM_ISSUER_WRITE, .success = 200,
     .sql = -1, .handler = issuer_refresh_keys, .flags = ROUTE_ORG},

    /* service tokens */
    {.method = "GET", .path = "/api/v1/tokens", .operation = "token_list", .perm = PERM_TOKEN_WRITE, .success = 200, .sql = SQL_SERVICE_TOKEN_LIST,
     .args = ARG_PAGE, .flags = ROUTE_ORG | ROUTE_LIST | ROUTE_COMPRESS},
    {.method = "POST", .path = "/api/v1/tokens", .operation = "token_create", .perm = PERM_TOKEN_WRITE, .success = 201, .sql = -1,
     BODY(service_token_body, service_token_in), .handler = service_token_create, .flags = ROUTE_ORG | ROUTE_VERB | ROUTE_NO_STORE_BODY},
    {.method = "GET", .path = "/api/v1/tokens/{token}", .operation = "token_get", .perm = PERM_TOKEN_WRITE, .success = 200, .sql = SQL_SERVICE_TOKEN_GET, .flags = ROUTE_ORG},
    {.method = "POST", .path = "/api/v1/tokens/{token}/rotate", .operation = "token_rotate", .perm = PERM_TOKEN_WRITE, .success = 200, .sql = -1,
     BODY(token_rotate_body, token_rotate_in), .handler = service_token_rotate, .flags = ROUTE_ORG | ROUTE_VERB | ROUTE_NO_STORE_BODY},
    {.method = "DELETE", .path = "/api/v1/tokens/{token}", .operation = "token_delete", .perm = PERM_TOKEN_WRITE, .success = 204, .sql = SQL_SERVICE_TOKEN_DELETE,
     .args = ARG_ACTOR, .flags = ROUTE_ORG | ROUTE_VERB},

    /* webhooks */
    {.method = "GET", .path = "/api/v1/webhooks", .operation = "webhook_list", .perm = PERM_WEBHOOK_WRITE, .success = 200, .sql = SQL_WEBHOOK_LIST,
     .args = ARG_PAGE, .flags = ROUTE_ORG | ROUTE_LIST | ROUTE_COMPRESS},
    {.method = "POST", .path = "/api/v1/webhooks", .operation = "webhook_create", .perm = PERM_WEBHOOK_WRITE, .success = 201, .sql = -1,
     BODY(webhook_create_body, webhook_in), .handler = webhook_create, .flags = ROUTE_ORG | ROUTE_VERB | ROUTE_NO_STORE_BODY},
    {.method = "GET", .path = "/api/v1/webhooks/{webhook}", .operation = "webhook_get", .perm = PERM_WEBHOOK_WRITE, .success = 200, .sql = SQL_WEBHOOK_GET,
     .flags = ROUTE_ORG},
    {.method = "PATCH", .path = "/api/v1/webhooks/{webhook}", .operation = "webhook_update", .perm = PERM_WEBHOOK_WRITE, .success = 200, .sql = -1,
     BODY(webhook_update_body, webhook_in), .handler = webhook_update, .flags = ROUTE_ORG | ROUTE_VERB | ROUTE_IF_MATCH},
    {.method = "DELETE", .path = "/api/v1/webhooks/{webhook}", .operation = "webhook_delete", .perm = PERM_WEBHOOK_WRITE, .success = 204,
     .sql = SQL_WEBHOOK_DELETE, .args = ARG_ACTOR, .flags = ROUTE_ORG | ROUTE_VERB},
    {.method = "POST", .path = "/api/v1/webhooks/{webhook}/rotate", .operation = "webhook_rotate", .perm = PERM_WEBHOOK_WRITE, .success = 200, .sql = -1,
     BODY(webhook_rotate_body, webhook_rotate_in), .handler = webhook_rotate, .flags = ROUTE_ORG | ROUTE_VERB | ROUTE_NO_STORE_BODY},
    {.method = "POST", .path = "/api/v1/webhooks/{webhook}/test", .operation = "webhook_test", .perm = PERM_WEBHOOK_WRITE, .success = 200, .sql = -1,
     .handler = webhook_test, .flags = ROUTE_ORG | ROUTE_VERB},
    {.method = "GET", .path = "/api/v1/webhooks/{webhook}/deliveries", .operation = "webhook_delivery_list", .perm = PERM_WEBHOOK_WRITE, .success = 200,
     .sql = SQL_WEBHOOK_DELIVERIES, .args = ARG_QUERY | ARG_PAGE, QUERY(webhook_delivery_query, webhook_delivery_query),
     .flags = ROUTE_ORG | ROUTE_LIST | ROUTE_COMPRESS},
    {.method = "POST", .path = "/api/v1/webhooks/{webhook}/deliveries/{delivery}/redeliver", .operation = "webhook_redeliver", .perm = PERM_WEBHOOK_WRITE,
     .success = 200, .sql = SQL_WEBHOOK_REDELIVER, .args = ARG_KEY | ARG_ACTOR, .flags = ROUTE_ORG | ROUTE_VERB},

    /* What the operators' automation tells of its orders. */
    {.method = "POST", .path = "/callbacks/orders", .operation = "order_told", .perm = PERM_PUBLIC, .success = 204, .sql = -1,
     BODY(order_told_body, order_told_in), QUERY(order_told_query, order_told_query), .handler = order_told, .flags = ROUTE_VERB | ROUTE_JOIN},

    /* audit */
    {.method = "GET", .path = "/api/v1/audit", .operation = "audit_list", .perm = PERM_AUDIT_READ, .success = 200, .sql = -1,
     .args = ARG_PAGE, QUERY(audit_query, audit_query), .handler = audit_list, .flags = ROUTE_ORG | ROUTE_LIST | ROUTE_COMPRESS},
    {.method = "GET", .path = "/api/v1/audit/export", .operation = "audit_export", .perm = PERM_AUDIT_READ, .success = 200, .sql = -1,
     QUERY(audit_export_query, audit_export_query), .handler = audit_export, .flags = ROUTE_ORG | ROUTE_COMPRESS},

    {.method = "POST", .path = "/api/v1/audit/export-links", .operation = "audit_export_link", .perm = PERM_AUDIT_READ, .success = 200, .sql = -1,
     BODY(audit_export_query, audit_export_query), .handler = audit_export_link, .flags = ROUTE_ORG | ROUTE_VERB | ROUTE_NO_STORE_BODY},
    {.method = "GET", .path = "/downloads/audit", .operation = "audit_download", .perm = PERM_PUBLIC, .success = 200, .sql = -1,
     QUERY(audit_download_query, audit_download_query), .handler = audit_download, .flags = ROUTE_JOIN},

    /* join tokens */
    {.method = "GET", .path = "/api/v1/clusters/{cluster}/join-tokens", .operation = "join_token_list", .perm = PERM_TOKEN_WRITE, .success = 200, .sql = SQL_JOIN_TOKEN_LIST,
     .args = ARG_PAGE, .flags = ROUTE_LIST | ROUTE_COMPRESS},
    {.method = "POST", .path = "/api/v1/clusters/{cluster}/join-tokens", .operation = "join_token_create", .perm = PERM_TOKEN_WRITE, .success = 201, .sql = -1,
     BODY(join_token_body, join_token_in), .handler = join_token_create, .flags = ROUTE_VERB | ROUTE_NO_STORE_BODY},
    {.method = "GET", .path = "/api/v1/join-tokens/{token}", .operation = "join_token_get", .perm = PERM_TOKEN_WRITE, .success = 200, .sql = SQL_JOIN_TOKEN_GET},
    {.method = "DELETE", .path = "/api/v1/join-tokens/{token}", .operation = "join_token_delete", .perm = PERM_TOKEN_WRITE, .success = 204, .sql = SQL_JOIN_TOKEN_DELETE,
     .args = ARG_ACTOR, .flags = ROUTE_VERB},

    /* machines that may take another's place */
    {.method = "GET", .path = "/api/v1/clusters/{cluster}/spares", .operation = "spare_list", .perm = PERM_CLUSTER_READ, .success = 200, .sql = SQL_SPARE_LIST,
     .args = ARG_PAGE, .flags = ROUTE_LIST | ROUTE_COMPRESS},
    {.method = "POST", .path = "/api/v1/clusters/{cluster}/spares", .operation = "spare_create", .perm = PERM_CLUSTER_WRITE, .success = 201, .sql = SQL_SPARE_CREATE,
     .args = ARG_KEY | ARG_ACTOR | ARG_BODY | ARG_ID, BODY(spare_create_body, spare_create_in), .flags = ROUTE_VERB},
    {.method = "GET", .path = "/api/v1/spares/{spare}", .operation = "spare_get", .perm = PERM_CLUSTER_READ, .success = 200, .sql = SQL_SPARE_GET},
    {.method = "DELETE", .path = "/api/v1/spares/{spare}", .operation = "spare_delete", .perm = PERM_CLUSTER_WRITE, .success = 204, .sql = SQL_SPARE_DELETE,
     .args = ARG_ACTOR, .flags = ROUTE_VERB},

    /* machines that come back */
    {.method = "GET", .path = "/api/v1/clusters/{cluster}/rejoins", .operation = "rejoin_list", .perm = PERM_TOKEN_WRITE, .success = 200, .sql = SQL_REJOIN_LIST,
     .args = ARG_PAGE, .flags = ROUTE_LIST | ROUTE_COMPRESS},
    {.method = "GET", .path = "/api/v1/rejoins/{rejoin}", .operation = "rejoin_get", .perm = PERM_TOKEN_WRITE, .success = 200, .sql = SQL_REJOIN_GET},
    {.method = "POST", .path = "/api/v1/rejoins/{rejoin}/approve", .operation = "rejoin_approve", .perm = PERM_TOKEN_WRITE, .success = 200,
     .sql = SQL_REJOIN_APPROVE, .args = ARG_KEY | ARG_ACTOR, .flags = ROUTE_VERB},
    {.method = "POST", .path = "/api/v1/rejoins/{rejoin}/deny", .operation = "rejoin_deny", .perm = PERM_TOKEN_WRITE, .success = 200,
     .sql = SQL_REJOIN_DENY, .args = ARG_KEY | ARG_ACTOR, .flags = ROUTE_VERB},

    /* Repairs. Verbs take their states from the state machine, so they pass through C. */
    {.method = "GET", .path = "/api/v1/repairs", .operation = "repair_list", .perm = PERM_CLUSTER_READ, .success = 200, .sql = SQL_REPAIR_LIST,
     .args = ARG_QUERY | ARG_PAGE, .query = repair_query, .query_size = sizeof(struct repair_query), .flags = ROUTE_LIST},
    {.method = "GET", .path = "/api/v1/clusters/{cluster}/repairs", .operation = "cluster_repair_list", .perm = PERM_CLUSTER_READ, .success = 200,
     .sql = SQL_REPAIR_LIST_CLUSTER, .args = ARG_QUERY | ARG_PAGE, .query = cluster_repair_query, .query_size = sizeof(struct repair_query),
     .flags = ROUTE_LIST},
    {.method = "POST", .path = "/api/v1/clusters/{cluster}/repairs", .operation = "repair_batch_create", .perm = PERM_REPAIR_REQUEST, .success = 201,
     .sql = -1, .handler = repair_batch_request, BODY(repair_batch_body, repair_batch_in), .flags = ROUTE_VERB},
    {.method = "GET", .path = "/api/v1/clusters/{cluster}/repair-statistics", .operation = "repair_statistics", .perm = PERM_CLUSTER_READ, .success = 200,
     .sql = -1, QUERY(transitions_query, span_query), .handler = repair_statistics, .flags = ROUTE_COMPRESS},
    {.method = "GET", .path = "/api/v1/clusters/{cluster}/incident-report", .operation = "incident_report", .perm = PERM_CLUSTER_READ, .success = 200,
     .sql = -1, QUERY(transitions_query, span_query), .handler = incident_report, .flags = ROUTE_COMPRESS},
    {.method = "GET", .path = "/api/v1/repairs/{repair}", .operation = "repair_get", .perm = PERM_CLUSTER_READ, .success = 200,
     .sql = SQL_REPAIR_GET},
    {.method = "POST", .path = "/api/v1/nodes/{node}/repairs", .operation = "repair_create", .perm = PERM_REPAIR_REQUEST, .success = 201,
     .sql = -1, .handler = repair_request, .body = repair_request_body, .body_size = sizeof(struct repair_request_in),
     QUERY(dry_run_query, dry_run_query)},
    {.method = "POST", .path = "/api/v1/repairs/{repair}/approve", .operation = "repair_approve", .perm = PERM_REPAIR_DECIDE, .success = 200,
     .sql = -1, .handler = repair_approve, .body = repair_approve_body, .body_size = sizeof(struct repair_approve_in),
     QUERY(dry_run_query, dry_run_query), .flags = ROUTE_KEY | ROUTE_DECISION},
    {.method = "POST", .path = "/api/v1/repairs/{repair}/reject", .operation = "repair_reject", .perm = PERM_REPAIR_DECIDE, .success = 200,
     .sql = -1, .handler = repair_reject, .body = repair_comment_body, .body_size = sizeof(struct repair_comment_in), .flags = ROUTE_DECISION},
    {.method = "POST", .path = "/api/v1/repairs/{repair}/cancel", .operation = "repair_cancel", .perm = PERM_REPAIR_DECIDE, .success = 200,
     .sql = -1, .handler = repair_cancel, .body = repair_comment_body, .body_size = sizeof(struct repair_comment_in), .flags = ROUTE_DECISION},
    {.method = "POST", .path = "/api/v1/repairs/{repair}/settle", .operation = "repair_settle", .perm = PERM_REPAIR_DECIDE, .success = 200,
     .sql = -1, .handler = repair_settle, .body = repair_settle_body, .body_size = sizeof(struct repair_settle_in), .flags = ROUTE_DECISION},
    {.method = "POST", .path = "/api/v1/incidents/{incident}/close", .operation = "incident_close", .perm = PERM_INCIDENT_WRITE, .success = 200,
     .sql = -1, .handler = incident_close, .body = incident_close_body, .body_size = sizeof(struct incident_close_in)},

    /* Policies, and what holds repairs: stops by people, breakers by rules. */
    {.method = "GET", .path = "/api/v1/policies", .operation = "policy_list", .perm = PERM_CLUSTER_READ, .success = 200, .sql = SQL_POLICY_LIST,
     .args = ARG_PAGE, .flags = ROUTE_LIST | ROUTE_COMPRESS},
    {.method = "POST", .path = "/api/v1/policies", .operation = "policy_create", .perm = PERM_CLUSTER_WRITE, .success = 201, .sql = -1,
     .handler = policy_create, BODY(policy_create_body, policy_in), .flags = ROUTE_VERB},
    {.method = "GET", .path = "/api/v1/policies/{policy}", .operation = "policy_get", .perm = PERM_CLUSTER_READ, .success = 200, .sql = SQL_POLICY_GET},
    {.method = "PATCH", .path = "/api/v1/policies/{policy}", .operation = "policy_update", .perm = PERM_CLUSTER_WRITE, .success = 200, .sql = -1,
     .handler = policy_update, BODY(policy_update_body, policy_in), .flags = ROUTE_IF_MATCH | ROUTE_VERB},
    {.method = "DELETE", .path = "/api/v1/policies/{policy}", .operation = "policy_delete", .perm = PERM_CLUSTER_WRITE, .success = 204, .sql = -1,
     .handler = policy_delete, .flags = ROUTE_IF_MATCH | ROUTE_VERB},
    {.method = "POST", .path = "/api/v1/policies/dry-run", .operation = "policy_replay", .perm = PERM_CLUSTER_WRITE, .success = 200, .sql = -1,
     .handler = policy_replay, BODY(policy_create_body, policy_in), .flags = ROUTE_COMPRESS},
    {.method = "GET", .path = "/api/v1/nodes/{node}/policy", .operation = "node_policy", .perm = PERM_CLUSTER_READ, .success = 200, .sql = -1,
     .handler = policy_of_node},
    {.method = "GET", .path = "/api/v1/clusters/{cluster}/policy", .operation = "cluster_policy", .perm = PERM_CLUSTER_READ, .success = 200, .sql = -1,
     .handler = policy_of_cluster},
    {.method = "GET", .path = "/api/v1/guard", .operation = "org_guard", .perm = PERM_CLUSTER_READ, .success = 200, .sql = SQL_GUARD_OF_ORG},
    {.method = "GET", .path = "/api/v1/clusters/{cluster}/guard", .operation = "cluster_guard", .perm = PERM_CLUSTER_READ, .success = 200,
     .sql = SQL_GUARD_OF_CLUSTER},
    {.method = "POST", .path = "/api/v1/nodes/{node}/stop-repairs", .operation = "node_stop_repairs", .perm = PERM_REPAIR_DECIDE, .success = 200, .sql = -1,
     .handler = repairs_stop_node, BODY(guard_comment_body, guard_comment_in), .flags = ROUTE_VERB},
    {.method = "POST", .path = "/api/v1/nodes/{node}/allow-repairs", .operation = "node_allow_repairs", .perm = PERM_REPAIR_DECIDE, .success = 200, .sql = -1,
     .handler = repairs_allow_node, BODY(guard_comment_body, guard_comment_in), .flags = ROUTE_VERB},
    {.method = "POST", .path = "/api/v1/clusters/{cluster}/stop-repairs", .operation = "cluster_stop_repairs", .perm = PERM_REPAIR_DECIDE, .success = 200,
     .sql = -1, .handler = repairs_stop_cluster, BODY(guard_comment_body, guard_comment_in), .flags = ROUTE_VERB},
    {.method = "POST", .path = "/api/v1/clusters/{cluster}/allow-repairs", .operation = "cluster_allow_repairs", .perm = PERM_REPAIR_DECIDE, .success = 200,
     .sql = -1, .handler = repairs_allow_cluster, BODY(guard_comment_body, guard_comment_in), .flags = ROUTE_VERB},
    {.method = "POST", .path = "/api/v1/stop-repairs", .operation = "org_stop_repairs", .perm = PERM_REPAIR_DECIDE, .success = 200, .sql = -1,
     .handler = repairs_stop_org, BODY(guard_comment_body, guard_comment_in), .flags = ROUTE_VERB | ROUTE_ORG},
    {.method = "POST", .path = "/api/v1/allow-repairs", .operation = "org_allow_repairs", .perm = PERM_REPAIR_DECIDE, .success = 200, .sql = -1,
     .handler = repairs_allow_org, BODY(guard_comment_body, guard_comment_in), .flags = ROUTE_VERB | ROUTE_ORG},
    {.method = "POST", .path = "/api/v1/platform/stop-repairs", .operation = "platform_stop_repairs", .perm = PERM_PLATFORM, .success = 200, .sql = -1,
     .handler = repairs_stop_platform, BODY(guard_comment_body, guard_comment_in), .flags = ROUTE_SUSPENDED | ROUTE_VERB},
    {.method = "POST", .path = "/api/v1/platform/allow-repairs", .operation = "platform_allow_repairs", .perm = PERM_PLATFORM, .success = 200, .sql = -1,
     .handler = repairs_allow_platform, BODY(guard_comment_body, guard_comment_in), .flags = ROUTE_SUSPENDED | ROUTE_VERB},
    {.method = "POST", .path = "/api/v1/clusters/{cluster}/breaker/reset", .operation = "cluster_breaker_reset", .perm = PERM_CLUSTER_WRITE, .success = 200,
     .sql = -1, .handler = breaker_reset_cluster, BODY(guard_reset_body, guard_comment_in), .flags = ROUTE_VERB},
    {.method = "POST", .path = "/api/v1/platform/breaker/reset", .operation = "platform_breaker_reset", .perm = PERM_PLATFORM, .success = 200, .sql = -1,
     .handler = breaker_reset_platform, BODY(guard_reset_body, guard_comment_in), .flags = ROUTE_VERB},
    {.method = "POST", .path = "/api/v1/breaker/reset", .operation = "org_breaker_reset", .perm = PERM_CLUSTER_WRITE, .success = 200, .sql = -1,
     .handler = breaker_reset_org, BODY(guard_reset_body, guard_comment_in), .flags = ROUTE_VERB | ROUTE_ORG},

    /* Agents. */
    {.method = "POST", .path = "/agent/v1/enroll", .operation = "agent_enroll", .perm = PERM_PUBLIC, .success = 201, .sql = -1, .handler = agent_enroll,
     .body = agent_enroll_body, .body_size = sizeof(struct agent_enroll_in), .flags = ROUTE_JOIN | ROUTE_LENIENT | ROUTE_NO_STORE_BODY},
    {.method = "POST", .path = "/agent/v1/challenge", .operation = "agent_challenge", .perm = PERM_PUBLIC, .success = 200, .sql = -1,
     .handler = agent_challenge, .body = agent_challenge_body, .body_size = sizeof(struct agent_challenge_in), .flags = ROUTE_JOIN | ROUTE_LENIENT},
    {.method = "POST", .path = "/agent/v1/token", .operation = "agent_token", .perm = PERM_PUBLIC, .success = 200, .sql = -1, .handler = agent_token,
     .body = agent_token_body, .body_size = sizeof(struct agent_token_in), .flags = ROUTE_JOIN | ROUTE_LENIENT | ROUTE_NO_STORE_BODY},
    {.method = "POST", .path = "/agent/v1/report", .operation = "agent_report", .perm = PERM_AGENT, .success = 200, .sql = -1, .handler = agent_report,
     .flags = ROUTE_LENIENT | ROUTE_RAW_BODY, .body_cap = AGENT_REPORT_MAX},
};
/* clang-format on */
const size_t routes_count = sizeof(routes) / sizeof(routes[0]);
