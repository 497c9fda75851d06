/* What `muster` can do, as a table. */
#include "cli/commands.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "cli/local.h"
#include "cli/login.h"
#include "cli/table.h"

#define EXIT_FAILED 1
#define PATH_CAP 512

static const struct column cluster_columns[] = {
    {"NAME", "name"},
    {"NODES", "rollup.nodes"},
    {"HEALTHY", "rollup.states.healthy"},
    {"UNHEALTHY", "rollup.states.unhealthy"},
    {"UNKNOWN", "rollup.states.unknown"},
    {"GPUS", "rollup.gpus"},
    {"BUSY", "rollup.gpu_busy_ratio"},
    {"REGION", "region"},
    {NULL, NULL},
};
static const struct column node_columns[] = {
    {"NAME", "name"},           {"STATE", "state"},  {"SINCE", "state_since"}, {"GPUS", "gpus"},
    {"BUSY", "gpu_util_ratio"}, {"SEEN", "seen_at"}, {"WHY", "reason"},        {NULL, NULL},
};
static const struct column node_detail[] = {
    {"name", "name"},
    {"state", "state"},
    {"since", "state_since"},
    {"why", "reason"},
    {"schedulable", "schedulable"},
    {"rack", "rack"},
    {"leaf", "leaf"},
    {"boot id", "boot_id"},
    {"booted", "booted_at"},
    {"agent", "agent_version"},
    {"driver", "driver_version"},
    {"kernel", "kernel"},
    {"seen", "seen_at"},
    {"ssh", "ssh_command"},
    {"id", "id"},
    {NULL, NULL},
};
static const struct column incident_columns[] = {
    {"NO", "no"},          {"NODE", "node_name"},    {"CHECK", "check_id"},
    {"CODE", "code"},      {"SEVERITY", "severity"}, {"COUNT", "count"},
    {"FIRST", "first_at"}, {"SUMMARY", "summary"},   {NULL, NULL},
};
static const struct column repair_columns[] = {
    {"NO", "no"},
    {"NODE", "node_name"},
    {"ACTION", "action"},
    {"STATE", "state"},
    {"SINCE", "state_since"},
    {"DECIDED BY", "decided_by"},
    {"WHY", "reason"},
    {NULL, NULL},
};
static const struct column event_columns[] = {
    {"SEQ", "seq"},        {"AT", "at"},        {"TYPE", "type"},
    {"NODE", "node_name"}, {"WHAT", "summary"}, {NULL, NULL},
};

/* ------------------------------------------------------------------ finding things by name */
static json_t *print_json(json_t *value)
{
    (void)json_dumpf(value, stdout, JSON_INDENT(2));
    (void)printf("\n");
    return value;
}

static int show_list(const struct command_line *line, const char *path,
                     const struct column *columns, const char *empty)
{
    json_t *items = client_list(line->client, path);
    if (items == NULL) {
        return EXIT_FAILED;
    }
    if (line->json) {
        print_json(items);
    } else {
        table_print(items, columns, empty);
    }
    json_decref(items);
    return 0;
}

/* The id of the item whose field equals the value; false after saying what there is. */
static bool find_id(json_t *items, const char *field, const char *value, const char *noun,
                    char id[64])
{
    size_t i;
    json_t *item;
    json_array_foreach (items, i, item) {
        const char *text = json_string_value(json_object_get(item, field));
        if (text != NULL && strcmp(text, value) == 0) {
            (void)snprintf(id, 64, "%s", json_string_value(json_object_get(item, "id")));
            return true;
        }
    }
    (void)fprintf(stderr, "muster: there is no %s %s here; `muster %ss` lists them\n", noun, value,
                  noun);
    return false;
}

static bool find_cluster(const struct command_line *line, char id[64])
{
    json_t *clusters = client_list(line->client, "/clusters");
    if (clusters == NULL) {
        return false;
    }
    bool found = false;
    if (line->cluster != NULL) {
        found = find_id(clusters, "name", line->cluster, "cluster", id);
    } else if (json_array_size(clusters) == 1) {
        (void)snprintf(id, 64, "%s",
                       json_string_value(json_object_get(json_array_get(clusters, 0), "id")));
        found = true;
    } else {
        (void)fprintf(stderr, "muster: there are %zu clusters; choose one with --cluster NAME\n",
                      json_array_size(clusters));
    }
    json_decref(clusters);
    return found;
}

static bool find_node(const struct command_line *line, const char *name, char id[64])
{
    char cluster[64];
    char path[PATH_CAP];
    if (!str_is_host_name(str_of(name))) {
        (void)fprintf(stderr, "muster: %s is no host name\n", name);
        return false;
    }
    if (!find_cluster(line, cluster)) {
        return false;
    }
    (void)snprintf(path, sizeof(path), "/clusters/%s/nodes?q=%s", cluster, name);
    json_t *nodes = client_list(line->client, path);
    bool found = nodes != NULL && find_id(nodes, "name", name, "node", id);
    json_decref(nodes);
    return found;
}

/* A repair by its short number, with or without #. The caller owns the result. */
static json_t *find_repair(const struct command_line *line, const char *text)
{
    uint64_t no;
    if (!str_parse_u64(str_of(text + (text[0] == '#')), 1, INT64_MAX, &no)) {
        (void)fprintf(stderr, "muster: %s is no repair number; `muster repairs` lists them\n",
                      text);
        return NULL;
    }
    json_t *repairs = client_list(line->client, "/repairs");
    size_t i;
    json_t *item;
    json_array_foreach (repairs, i, item) {
        if ((uint64_t)json_integer_value(json_object_get(item, "no")) == no) {
            char path[PATH_CAP];
            (void)snprintf(path, sizeof(path), "/repairs/%s",
                           json_string_value(json_object_get(item, "id")));
            json_decref(repairs);
            return client_call(line->client, "GET", path, NULL, false);
        }
    }
    if (repairs != NULL) {
        (void)fprintf(stderr, "muster: there is no repair #%llu\n", (unsigned long long)no);
    }
    json_decref(repairs);
    return NULL;
}

/* ------------------------------------------------------------------ commands */
static int run_clusters(const struct command_line *line)
{
    return show_list(line, "/clusters", cluster_columns, "There is no cluster yet.");
}

static int list_of_cluster(const struct command_line *line, const char *noun, const char *query,
                           const struct column *columns, const char *empty)
{
    char cluster[64];
    char path[PATH_CAP];
    if (!find_cluster(line, cluster)) {
        return EXIT_FAILED;
    }
    (void)snprintf(path, sizeof(path), "/clusters/%s/%s%s", cluster, noun, query);
    return show_list(line, path, columns, empty);
}

static int run_nodes(const struct command_line *line)
{
    return list_of_cluster(line, "nodes", "", node_columns, "No node has joined this cluster yet.");
}

static int run_incidents(const struct command_line *line)
{
    return show_list(line, "/incidents?state=open", incident_columns, "No incident is open.");
}

static int run_repairs(const struct command_line *line)
{
    return show_list(line, "/repairs?open=true", repair_columns, "No repair is open.");
}

static int run_events(const struct command_line *line)
{
    char cluster[64];
    char path[PATH_CAP];
    if (!find_cluster(line, cluster)) {
        return EXIT_FAILED;
    }
    (void)snprintf(path, sizeof(path), "/clusters/%s/events?limit=50", cluster);
    json_t *body = client_call(line->client, "GET", path, NULL, false);
    if (body == NULL) {
        return EXIT_FAILED;
    }
    if (line->json) {
        print_json(body);
    } else {
        table_print(json_object_get(body, "items"), event_columns, "Nothing has happened yet.");
    }
    json_decref(body);
    return 0;
}

static int run_node_show(const struct command_line *line)
{
    char id[64];
    char path[PATH_CAP];
    if (!find_node(line, line->argv[0], id)) {
        return EXIT_FAILED;
    }
    (void)snprintf(path, sizeof(path), "/nodes/%s", id);
    json_t *node = client_call(line->client, "GET", path, NULL, false);
    if (node == NULL) {
        return EXIT_FAILED;
    }
    if (line->json) {
        print_json(node);
    } else {
        table_print_one(node, node_detail);
        table_print(json_object_get(node, "incidents"), incident_columns, "No incident is open.");
    }
    json_decref(node);
    return 0;
}

static int node_verb(const struct command_line *line, const char *verb)
{
    char id[64];
    char path[PATH_CAP];
    if (!find_node(line, line->argv[0], id)) {
        return EXIT_FAILED;
    }
    (void)snprintf(path, sizeof(path), "/nodes/%s/%s", id, verb);
    json_t *body =
        line->comment[0] != '\0' ? json_pack("{s:s}", "comment", line->comment) : json_object();
    json_t *node = client_call(line->client, "POST", path, body, true);
    json_decref(body);
    if (node == NULL) {
        return EXIT_FAILED;
    }
    (void)printf("%s: %sed\n", line->argv[0], verb);
    json_decref(node);
    return 0;
}

static int run_cordon(const struct command_line *line)
{
    return node_verb(line, "cordon");
}

static int run_uncordon(const struct command_line *line)
{
    return node_verb(line, "uncordon");
}

static void show_plan(const json_t *repair)
{
    static const struct column rows[] = {
        {"repair", "no"},
        {"node", "node_name"},
        {"action", "action"},
        {"state", "state"},
        {"why", "reason"},
        {"keeps", "plan.keeps"},
        {"loses", "plan.loses"},
        {"healthy nodes now", "plan.capacity.healthy_before"},
        {"and meanwhile", "plan.capacity.healthy_after"},
        {"others down in its rack", "plan.domain.others_down"},
        {"attempt", "plan.limits.attempt"},
        {NULL, NULL},
    };
    table_print_one(repair, rows);
}

static int run_repair_show(const struct command_line *line)
{
    json_t *repair = find_repair(line, line->argv[0]);
    if (repair == NULL) {
        return EXIT_FAILED;
    }
    if (line->json) {
        print_json(repair);
    } else {
        static const struct column steps[] = {{"STEP", "state"},    {"FROM", "started_at"},
                                              {"TO", "ended_at"},   {"BY", "actor"},
                                              {"DETAIL", "detail"}, {NULL, NULL}};
        show_plan(repair);
        table_print(json_object_get(repair, "steps"), steps, "No step was taken yet.");
    }
    json_decref(repair);
    return 0;
}

/* Shows the plan and asks, unless --yes: what is approved is exactly this plan. */
static bool confirmed(const struct command_line *line, const json_t *repair)
{
    if (line->yes) {
        return true;
    }
    show_plan(repair);
    (void)printf("Approve this plan? Type the node's name: ");
    (void)fflush(stdout);
    char answer[256] = "";
    if (fgets(answer, sizeof(answer), stdin) == NULL) {
        return false;
    }
    struct str typed = str_trim(str_of(answer));
    return str_eq_c(typed, json_string_value(json_object_get(repair, "node_name")));
}

static int decide(const struct command_line *line, json_t *repair, const char *verb)
{
    char path[PATH_CAP];
    (void)snprintf(path, sizeof(path), "/repairs/%s/%s",
                   json_string_value(json_object_get(repair, "id")), verb);
    json_t *body = json_object();
    if (strcmp(verb, "approve") == 0) {
        (void)json_object_set(body, "plan_hash", json_object_get(repair, "plan_hash"));
    }
    if (line->comment[0] != '\0') {
        (void)json_object_set_new(body, "comment", json_string(line->comment));
    }
    json_t *after = client_call(line->client, "POST", path, body, true);
    json_decref(body);
    if (after == NULL) {
        return EXIT_FAILED;
    }
    (void)printf("Repair #%s: %s\n", line->argv[0],
                 json_string_value(json_object_get(after, "state")));
    json_decref(after);
    return 0;
}

static int run_approve(const struct command_line *line)
{
    json_t *repair = find_repair(line, line->argv[0]);
    if (repair == NULL) {
        return EXIT_FAILED;
    }
    int status = EXIT_FAILED;
    if (confirmed(line, repair)) {
        status = decide(line, repair, "approve");
    } else {
        (void)fprintf(stderr, "muster: not approved\n");
    }
    json_decref(repair);
    return status;
}

static int run_reject(const struct command_line *line)
{
    json_t *repair = find_repair(line, line->argv[0]);
    int status = repair != NULL ? decide(line, repair, "reject") : EXIT_FAILED;
    json_decref(repair);
    return status;
}

static int run_api(const struct command_line *line)
{
    json_t *body = NULL;
    json_error_t error;
    if (line->argc > 2 && (body = json_loads(line->argv[2], 0, &error)) == NULL) {
        (void)fprintf(stderr, "muster: the body is not JSON: %s\n", error.text);
        return 2;
    }
    json_t *answer = client_call(line->client, line->argv[0], line->argv[1], body, body != NULL);
    json_decref(body);
    if (answer == NULL) {
        return EXIT_FAILED;
    }
    json_decref(print_json(answer));
    return 0;
}

const struct command_row command_rows[] = {
    {"login", "", 0, "sign in to --server as a person, for 12 hours", run_login,
     .without_token = true},
    {"logout", "", 0, "end that session", run_logout, .without_token = true},
    {"whoami", "", 0, "who one is to the server", run_whoami},
    {"clusters", "", 0, "list clusters", run_clusters},
    {"nodes", "", 0, "list the nodes of a cluster", run_nodes},
    {"node show", "NAME", 1, "one node with its open incidents", run_node_show},
    {"node cordon", "NAME", 1, "take no new work", run_cordon},
    {"node uncordon", "NAME", 1, "take work again", run_uncordon},
    {"incidents", "", 0, "open incidents", run_incidents},
    {"repairs", "", 0, "open repairs", run_repairs},
    {"repair show", "NO", 1, "one repair: plan and steps", run_repair_show},
    {"repair approve", "NO", 1, "approve exactly the plan that is shown", run_approve},
    {"repair reject", "NO", 1, "reject a proposed repair", run_reject},
    {"events", "", 0, "the newest 50 events of a cluster", run_events},
    {"api", "METHOD PATH [JSON]", 2, "any call; PATH is below /api/v1", run_api},
    {"oidc check", "OPTIONS < token", 0, "judge a token without a server", .run_local = oidc_check},
    {"kube authn-config validate", "FILE", 0, "judge an AuthenticationConfiguration",
     .run_local = authn_config_validate},
    {"kube authn-config render", "FILE...", 0, "issuers as an AuthenticationConfiguration",
     .run_local = authn_config_print},
};
const size_t command_rows_count = COUNTOF(command_rows);
