/* Slurm through its own programs: sinfo and squeue to read, scontrol to drain and resume. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/child.h"
#include "base/log.h"
#include "server/repair/executors/scheduler.h"

#define OUTPUT_MAX ((size_t)64 << 20) /* 10,000 nodes and 100,000 jobs of 600 bytes */
#define ENV_TEXT_MAX 4200

/* The programs' output changes between releases: up to 22.05 a state is one word in lower case with
 * flags beside it and numbers are bare; later states are lists in capitals and numbers objects. */
static bool has_word(const json_t *words, const char *word)
{
    size_t i = 0;
    const json_t *item = NULL;

    if (json_is_string(words)) {
        return str_eq_nocase(str_of(json_string_value(words)), str_of(word));
    }
    json_array_foreach (words, i, item) {
        if (str_eq_nocase(str_of(json_string_value(item)), str_of(word))) {
            return true;
        }
    }
    return false;
}

static int64_t number_of(const json_t *value)
{
    const json_t *inner = json_is_object(value) ? json_object_get(value, "number") : value;

    return json_is_integer(inner) ? json_integer_value(inner) : 0;
}

static struct str copy(struct arena *arena, const json_t *value)
{
    const char *text = json_string_value(value);
    size_t len = text == NULL ? 0 : json_string_length(value);

    return (struct str){arena_strndup(arena, text == NULL ? "" : text, len), len};
}

static void fail(char error[SCHEDULER_ERROR_MAX], const char *program,
                 const struct child_result *result)
{
    static const char *const ends[] = {
        [CHILD_EXITED] = "failed",
        [CHILD_KILLED] = "was killed",
        [CHILD_TIMED_OUT] = "did not answer in time",
        [CHILD_TOO_MUCH] = "printed more than can be read",
        [CHILD_NOT_STARTED] = "cannot be started",
    };
    (void)snprintf(error, SCHEDULER_ERROR_MAX, "%s %s%s%.150s", program, ends[result->end],
                   result->error[0] == '\0' ? "" : ": ", result->error);
}

/* args begins after the program's name and ends with NULL. */
static void run(const struct scheduler_target *target, const char *program, const char *const *args,
                struct child_result *result)
{
    char path[ENV_TEXT_MAX];
    char conf[ENV_TEXT_MAX];
    const char *argv[8] = {path};
    const char *env[5] = {"LC_ALL=C", "HOME=/", "TZ=UTC",
                          "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"};
    size_t used = 4;
    /* An empty SLURM_CONF would be a file of no name. */
    const char *with_conf[6] = {env[0], env[1], env[2], env[3], conf, NULL};

    (void)snprintf(path, sizeof path, "%.*s%s%s", STR_FMT(target->bin_dir),
                   target->bin_dir.len > 0 ? "/" : "", program);
    (void)snprintf(conf, sizeof conf, "SLURM_CONF=%.*s", STR_FMT(target->config));
    env[used] = NULL;
    for (size_t i = 0; args[i] != NULL && i + 2 < COUNTOF(argv); i++) {
        argv[i + 1] = args[i];
    }
    const struct child_options options = {
        .argv = argv,
        .env = target->config.len > 0 ? with_conf : env,
        .timeout_ms = (int)target->timeout_s * 1000,
        .max_bytes = OUTPUT_MAX,
    };
    child_run(&options, result);
}

static json_t *read_json(const struct scheduler_target *target, const char *program,
                         const char *const *args, char error[SCHEDULER_ERROR_MAX])
{
    CLEANUP(child_result_free) struct child_result result = {0};
    json_error_t at;

    run(target, program, args, &result);
    if (!child_ok(&result)) {
        fail(error, program, &result);
        return NULL;
    }
    json_t *root = json_loadb(result.out.ptr == NULL ? "" : result.out.ptr, result.out.len, 0, &at);
    const json_t *errors = json_object_get(root, "errors");
    if (root == NULL || !json_is_object(root) || json_array_size(errors) > 0) {
        const json_t *first = json_array_get(errors, 0);
        const char *said = json_string_value(json_object_get(first, "error"));
        (void)snprintf(error, SCHEDULER_ERROR_MAX, "%s: %s", program,
                       root == NULL   ? "the output is no JSON"
                       : said != NULL ? said
                                      : "the output cannot be understood");
        json_decref(root);
        return NULL;
    }
    return root;
}

/* ------------------------------------------------------------------ nodes */
static const char *state_of(const json_t *node)
{
    const json_t *state = json_object_get(node, "state");
    const json_t *flags = json_object_get(node, "state_flags");

    if (has_word(state, "COMPLETING") || has_word(flags, "COMPLETING") ||
        has_word(state, "MIXED") || has_word(state, "ALLOCATED") || has_word(state, "ERROR")) {
        return "allocated";
    }
    if (has_word(state, "DOWN")) {
        return "down";
    }
    return has_word(state, "IDLE") ? "idle" : "unknown";
}

static bool read_node(struct arena *arena, const json_t *item, struct scheduler_node *ret_node)
{
    *ret_node = (struct scheduler_node){
        .name = copy(arena, json_object_get(item, "name")),
        .state = state_of(item),
        .closed = has_word(json_object_get(item, "state"), "DRAIN") ||
                  has_word(json_object_get(item, "state_flags"), "DRAIN"),
        .reason = copy(arena, json_object_get(item, "reason")),
    };
    return ret_node->name.len > 0;
}

static bool read_nodes(const struct scheduler_target *target, struct arena *arena,
                       struct scheduler_snapshot *ret_snapshot, char error[SCHEDULER_ERROR_MAX])
{
    static const char *const sinfo[] = {"--json", NULL};
    static const char *const scontrol[] = {"show", "nodes", "--json", NULL};
    json_t *root = read_json(target, "sinfo", sinfo, error);
    size_t i = 0;
    const json_t *item = NULL;
    bool ok = true;

    if (root != NULL && json_object_get(root, "nodes") == NULL) {
        /* From 23.02 on sinfo groups nodes; their list is scontrol's. */
        json_decref(root);
        root = read_json(target, "scontrol", scontrol, error);
    }
    const json_t *list = json_object_get(root, "nodes");
    if (root == NULL || !json_is_array(list)) {
        if (root != NULL) {
            (void)snprintf(error, SCHEDULER_ERROR_MAX, "sinfo: there is no list of nodes");
        }
        json_decref(root);
        return false;
    }
    ret_snapshot->count = json_array_size(list);
    ret_snapshot->nodes =
        arena_zalloc(arena, (ret_snapshot->count + 1) * sizeof *ret_snapshot->nodes);
    json_array_foreach (list, i, item) {
        ok = ok && read_node(arena, item, &ret_snapshot->nodes[i]);
    }
    if (!ok) {
        (void)snprintf(error, SCHEDULER_ERROR_MAX, "sinfo: a node has no name");
    }
    json_decref(root);
    scheduler_snapshot_sort(ret_snapshot);
    return ok;
}

/* ------------------------------------------------------------------ jobs */
/* "gpu:h100:2(IDX:0-1)" and "gpu:2" are 2; several kinds of GPU add up. */
static int64_t gpus_of(const char *detail)
{
    struct str rest = str_of(detail);
    struct str part;
    int64_t sum = 0;

    while (rest.len > 0 && str_split(&rest, ',', &part)) {
        ptrdiff_t paren = str_find(part, STR("("), 0);
        uint64_t n = 0;
        if (!str_starts(part, STR("gpu"))) {
            continue;
        }
        part.len = paren < 0 ? part.len : (size_t)paren;
        for (size_t i = part.len; i > 0; i--) {
            if (part.ptr[i - 1] == ':') {
                part = (struct str){part.ptr + i, part.len - i};
                break;
            }
        }
        sum += str_parse_u64(part, 0, 1024, &n) ? (int64_t)n : 0;
    }
    return sum;
}

static bool is_on_nodes(const json_t *job)
{
    static const char *const states[] = {"RUNNING",   "COMPLETING", "SUSPENDED", "CONFIGURING",
                                         "SIGNALING", "STAGE_OUT",  "STOPPED",   "RESIZING"};

    for (size_t i = 0; i < COUNTOF(states); i++) {
        if (has_word(json_object_get(job, "job_state"), states[i])) {
            return true;
        }
    }
    return false;
}

/* Where it runs: a list of objects, whose name's key differs between releases. */
static const json_t *places_of(const json_t *job)
{
    const json_t *resources = json_object_get(job, "job_resources");
    const json_t *places = json_object_get(resources, "allocated_nodes");

    return places != NULL ? places
                          : json_object_get(json_object_get(resources, "nodes"), "allocation");
}

static bool read_job(struct arena *arena, const json_t *item, struct scheduler_snapshot *snapshot)
{
    const json_t *places = places_of(item);
    const json_t *details = json_object_get(item, "gres_detail");
    const json_t *place = NULL;
    size_t i = 0;
    struct scheduler_job job = {
        .id = str_of(
            arena_printf(arena, "%lld", (long long)number_of(json_object_get(item, "job_id")))),
        .user = copy(arena, json_object_get(item, "user_name")),
        .name = copy(arena, json_object_get(item, "name")),
        .started_us = number_of(json_object_get(item, "start_time")) * 1000000,
        .nodes = (int64_t)json_array_size(places),
        .ending = has_word(json_object_get(item, "job_state"), "COMPLETING"),
    };

    if (job.nodes == 0) {
        return false;
    }
    json_array_foreach (places, i, place) {
        const json_t *name = json_object_get(place, "nodename"); /* up to 22.05 */
        name = name == NULL ? json_object_get(place, "name") : name;
        const struct scheduler_node *node =
            scheduler_node_find(snapshot, str_of(json_string_value(name)));
        const char *detail = json_string_value(json_array_get(details, i));
        if (node == NULL) {
            return false;
        }
        job.gpus = detail == NULL ? 0 : gpus_of(detail);
        scheduler_job_add(arena, &snapshot->nodes[node - snapshot->nodes], &job);
    }
    return true;
}

static bool read_jobs(const struct scheduler_target *target, struct arena *arena,
                      struct scheduler_snapshot *snapshot, char error[SCHEDULER_ERROR_MAX])
{
    static const char *const squeue[] = {"--json", NULL};
    json_t *root = read_json(target, "squeue", squeue, error);
    const json_t *list = json_object_get(root, "jobs");
    const json_t *item = NULL;
    size_t i = 0;
    bool ok = json_is_array(list);

    if (root != NULL && !ok) {
        (void)snprintf(error, SCHEDULER_ERROR_MAX, "squeue: there is no list of jobs");
    }
    json_array_foreach (list, i, item) {
        /* A job on nodes that cannot be told could be anywhere: then nothing is known. */
        if (ok && is_on_nodes(item) && !read_job(arena, item, snapshot)) {
            (void)snprintf(error, SCHEDULER_ERROR_MAX, "squeue: job %lld has no known nodes",
                           (long long)number_of(json_object_get(item, "job_id")));
            ok = false;
        }
    }
    json_decref(root);
    return ok;
}

/* Jobs last: one that ends in between makes a node look busy for a moment, never the reverse; one
 * that begins in between on a closed node cannot. */
static bool slurm_read(const struct scheduler_target *target, struct arena *arena,
                       struct scheduler_snapshot *ret_snapshot, char error[SCHEDULER_ERROR_MAX])
{
    *ret_snapshot = (struct scheduler_snapshot){0};
    return read_nodes(target, arena, ret_snapshot, error) &&
           read_jobs(target, arena, ret_snapshot, error);
}

/* ------------------------------------------------------------------ wishes */
static bool update(const struct scheduler_target *target, const struct scheduler_wish *wish,
                   const char *state, const char *reason, char error[SCHEDULER_ERROR_MAX])
{
    CLEANUP(child_result_free) struct child_result result = {0};
    char name[300];
    const char *args[] = {"update", name, state, reason, NULL};

    (void)snprintf(name, sizeof name, "nodename=%.*s", STR_FMT(wish->node->name));
    run(target, "scontrol", args, &result);
    if (child_ok(&result)) {
        return true;
    }
    fail(error, "scontrol", &result);
    return false;
}

static bool slurm_close(const struct scheduler_target *target, const struct scheduler_wish *wish,
                        char error[SCHEDULER_ERROR_MAX])
{
    char reason[300];

    (void)snprintf(reason, sizeof reason, "reason=%s", wish->reason);
    return update(target, wish, "state=drain", reason, error);
}

static bool slurm_open(const struct scheduler_target *target, const struct scheduler_wish *wish,
                       char error[SCHEDULER_ERROR_MAX])
{
    /* Slurm's word for a node that is neither drained nor down: somebody was faster. */
    return update(target, wish, "state=resume", NULL, error) ||
           strstr(error, "Invalid node state specified") != NULL;
}

/* Slurm has one way to end a job, with KillWait seconds between its two signals; so the policy's
 * grace goes before it. */
static bool slurm_evict(const struct scheduler_target *target, const struct scheduler_wish *wish,
                        char error[SCHEDULER_ERROR_MAX])
{
    bool ok = true;

    if (!wish->grace_over) {
        return true;
    }
    for (size_t i = 0; i < wish->node->job_count; i++) {
        CLEANUP(child_result_free) struct child_result result = {0};
        const char *args[] = {wish->node->jobs[i].id.ptr, NULL};
        if (wish->node->jobs[i].ending) {
            continue;
        }
        run(target, "scancel", args, &result);
        if (!child_ok(&result)) {
            fail(error, "scancel", &result);
            ok = false;
        }
    }
    return ok;
}

const struct scheduler scheduler_slurm = {
    .kind = "slurm",
    .read = slurm_read,
    .close = slurm_close,
    .open = slurm_open,
    .evict = slurm_evict,
};
