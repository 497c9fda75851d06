/* Kubernetes through its API server: cordon and uncordon of nodes, eviction of pods. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/encode.h"
#include "base/file.h"
#include "base/http_client.h"
#include "server/repair/executors/scheduler.h"

#define ANSWER_MAX ((size_t)64 << 20)
#define TOKEN_MAX ((size_t)16 << 10)
#define PAGE "500"
#define PAGES_MAX 2000 /* a million pods */
/* Those that are on a node and have not ended: spec.nodeName!=,status.phase!=Succeeded and so on.
 */
#define LIVE_PODS \
    "fieldSelector=spec.nodeName%21%3D%2Cstatus.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed"
#define URL_MAX 8192
#define REASON_KEY "muster.dev/reason"
#define REASON_POINTER "/metadata/annotations/muster.dev~1reason" /* RFC 6901: ~1 is a slash */

struct session {
    const struct scheduler_target *target;
    struct http_client *http;
    struct http_answer answer;
    struct buf bearer;
    char *error; /* SCHEDULER_ERROR_MAX */
};

/* ------------------------------------------------------------------ one call */
static void say(struct session *session, const char *what, const char *detail)
{
    (void)snprintf(session->error, SCHEDULER_ERROR_MAX, "%s: %.120s", what, detail);
}

static bool open_session(struct session *session, const struct scheduler_target *target,
                         char *error)
{
    CLEANUP(buf_free) struct buf token = {0};
    const struct http_client_options options = {
        .ca_file = target->ca_file.len > 0 ? target->ca_file.ptr : NULL,
        .certificate_file = target->certificate_file.len > 0 ? target->certificate_file.ptr : NULL,
        .key_file = target->key_file.len > 0 ? target->key_file.ptr : NULL,
        .timeout_ms = (long)target->timeout_s * 1000,
        .max_bytes = ANSWER_MAX,
    };

    *session = (struct session){.target = target, .error = error};
    if (target->token_file.len > 0) {
        int failed = file_read(target->token_file.ptr, TOKEN_MAX, &token);
        if (failed != 0) {
            say(session, "the token file cannot be read", strerrordesc_np(failed));
            return false;
        }
        struct str text = str_trim(buf_str(&token));
        buf_printf(&session->bearer, "Authorization: Bearer %.*s", STR_FMT(text));
    }
    session->http = http_client_new(&options);
    return true;
}

static void close_session(struct session *session)
{
    http_client_free(session->http);
    http_answer_free(&session->answer);
    buf_free(&session->bearer);
}

/* The status; 0 = no answer. */
static long call(struct session *session, const char *method, const char *path, const char *type,
                 struct str body)
{
    char url[URL_MAX];
    char content[96];
    const char *headers[4] = {"Accept: application/json"};
    size_t used = 1;

    if (session->bearer.len > 0) {
        headers[used++] = session->bearer.ptr;
    }
    if (type != NULL) {
        (void)snprintf(content, sizeof content, "Content-Type: %s", type);
        headers[used++] = content;
    }
    (void)snprintf(url, sizeof url, "%.*s%s", STR_FMT(session->target->server), path);
    http_client_send(session->http, method, url, headers, body, &session->answer);
    return session->answer.status;
}

static json_t *parse(struct session *session)
{
    json_error_t at;
    const struct buf *body = &session->answer.body;
    json_t *root = body->len == 0 ? NULL : json_loadb(body->ptr, body->len, 0, &at);

    if (!json_is_object(root)) {
        json_decref(root);
        return NULL;
    }
    return root;
}

/* What the server says about a refusal: the message of its Status object, or the number. */
static void say_answer(struct session *session, const char *what)
{
    char number[32];
    json_t *root = session->answer.status == 0 ? NULL : parse(session);
    const char *message = json_string_value(json_object_get(root, "message"));

    (void)snprintf(number, sizeof number, "status %ld", session->answer.status);
    say(session, what,
        session->answer.status == 0 ? session->answer.error
        : message != NULL           ? message
                                    : number);
    json_decref(root);
}

static const json_t *down(const json_t *root, const char *a, const char *b)
{
    return json_object_get(json_object_get(root, a), b);
}

static struct str copy(struct arena *arena, const json_t *value)
{
    const char *text = json_string_value(value);
    size_t len = text == NULL ? 0 : json_string_length(value);

    return (struct str){arena_strndup(arena, text == NULL ? "" : text, len), len};
}

/* ------------------------------------------------------------------ lists */
typedef bool take_item(struct arena *arena, const json_t *item, void *ctx);

/* Every item of a list, page by page. False with a sentence. */
static bool list(struct session *session, struct arena *arena, const char *path, take_item *take,
                 void *ctx)
{
    char more[2048] = "";

    for (int page = 0; page < PAGES_MAX; page++) {
        char full[4096];
        size_t i = 0;
        const json_t *item = NULL;
        bool ok = true;
        (void)snprintf(full, sizeof full, "%s%s%s", path,
                       more[0] == '\0' ? "" : "&continue=", more);
        if (call(session, "GET", full, NULL, STR("")) != 200) {
            say_answer(session, "the list cannot be read");
            return false;
        }
        json_t *root = parse(session);
        const json_t *items = json_object_get(root, "items");
        ok = json_is_array(items);
        json_array_foreach (items, i, item) {
            ok = ok && take(arena, item, ctx);
        }
        const char *next = json_string_value(down(root, "metadata", "continue"));
        bool last = next == NULL || next[0] == '\0';
        ok = ok && (last || strlen(next) < sizeof more);
        (void)snprintf(more, sizeof more, "%s", last ? "" : next);
        json_decref(root);
        if (!ok) {
            say(session, "the list cannot be understood", path);
            return false;
        }
        if (last) {
            return true;
        }
    }
    say(session, "the list does not end", path);
    return false;
}

struct growing {
    struct scheduler_snapshot *snapshot;
    size_t cap;
};

static bool is_ready(const json_t *node)
{
    const json_t *condition = NULL;
    size_t i = 0;

    json_array_foreach (down(node, "status", "conditions"), i, condition) {
        const char *type = json_string_value(json_object_get(condition, "type"));
        const char *status = json_string_value(json_object_get(condition, "status"));
        if (type != NULL && status != NULL && strcmp(type, "Ready") == 0) {
            return strcmp(status, "True") == 0;
        }
    }
    return false;
}

static bool take_node(struct arena *arena, const json_t *item, void *ctx)
{
    struct growing *grow = ctx;
    struct scheduler_snapshot *snapshot = grow->snapshot;

    if (snapshot->count == grow->cap) {
        size_t cap = grow->cap == 0 ? 64 : grow->cap * 2;
        struct scheduler_node *more = arena_alloc(arena, cap * sizeof *more);
        if (snapshot->count > 0) {
            memcpy(more, snapshot->nodes, snapshot->count * sizeof *more);
        }
        snapshot->nodes = more;
        grow->cap = cap;
    }
    struct scheduler_node *node = &snapshot->nodes[snapshot->count++];
    *node = (struct scheduler_node){
        .name = copy(arena, down(item, "metadata", "name")),
        .state = is_ready(item) ? "idle" : "down",
        .closed = json_is_true(down(item, "spec", "unschedulable")),
        .reason = copy(arena, json_object_get(down(item, "metadata", "annotations"), REASON_KEY)),
    };
    return node->name.len > 0;
}

/* ------------------------------------------------------------------ pods */
static const json_t *owner_of(const json_t *pod)
{
    const json_t *owner = NULL;
    size_t i = 0;

    json_array_foreach (down(pod, "metadata", "ownerReferences"), i, owner) {
        if (json_is_true(json_object_get(owner, "controller"))) {
            return owner;
        }
    }
    return NULL;
}

/* What stays on its node whatever happens: daemons, static pods, and what has ended. */
static bool is_resident(const json_t *pod)
{
    const char *kind = json_string_value(json_object_get(owner_of(pod), "kind"));
    const char *phase = json_string_value(down(pod, "status", "phase"));
    const json_t *notes = down(pod, "metadata", "annotations");

    return (kind != NULL && strcmp(kind, "DaemonSet") == 0) ||
           json_object_get(notes, "kubernetes.io/config.mirror") != NULL ||
           (phase != NULL && (strcmp(phase, "Succeeded") == 0 || strcmp(phase, "Failed") == 0));
}

static const char *blocked_by(const json_t *pod)
{
    const json_t *volume = NULL;
    size_t i = 0;

    if (owner_of(pod) == NULL) {
        return "nothing would start it again";
    }
    json_array_foreach (down(pod, "spec", "volumes"), i, volume) {
        const json_t *empty = json_object_get(volume, "emptyDir");
        const char *medium = json_string_value(json_object_get(empty, "medium"));
        /* Memory holds no data that would outlive the pod anyway: /dev/shm of training jobs. */
        if (empty != NULL && (medium == NULL || strcmp(medium, "Memory") != 0)) {
            return "it has local data (emptyDir)";
        }
    }
    return "";
}

/* "8" of every resource whose name ends with /gpu (nvidia.com/gpu, amd.com/gpu). */
static int64_t gpus_of(const json_t *pod)
{
    const json_t *container = NULL;
    size_t i = 0;
    int64_t sum = 0;

    json_array_foreach (down(pod, "spec", "containers"), i, container) {
        const char *key = NULL;
        json_t *value = NULL;
        json_t *limits = json_object_get(json_object_get(container, "resources"), "limits");
        json_object_foreach (limits, key, value) {
            uint64_t n = 0;
            if (str_ends(str_of(key), STR("/gpu")) &&
                str_parse_u64(str_of(json_string_value(value)), 0, 1024, &n)) {
                sum += (int64_t)n;
            }
        }
    }
    return sum;
}

static void add_job(struct arena *arena, struct scheduler_node *node, const json_t *pod)
{
    struct str space = copy(arena, down(pod, "metadata", "namespace"));
    struct str name = copy(arena, down(pod, "metadata", "name"));
    const json_t *owner = owner_of(pod);
    const char *kind = json_string_value(json_object_get(owner, "kind"));
    const char *of = json_string_value(json_object_get(owner, "name"));
    int64_t started_us = 0;
    struct str started = str_of(json_string_value(down(pod, "status", "startTime")));

    const struct scheduler_job job = {
        .id = str_of(arena_printf(arena, "%.*s/%.*s", STR_FMT(space), STR_FMT(name))),
        .uid = copy(arena, down(pod, "metadata", "uid")),
        .user = space,
        .name = str_of(of == NULL ? "Pod" : arena_printf(arena, "%s %s", kind, of)),
        .gpus = gpus_of(pod),
        .started_us = str_parse_rfc3339(started, &started_us) ? started_us : 0,
        .nodes = 1,
        .ending = json_object_get(json_object_get(pod, "metadata"), "deletionTimestamp") != NULL,
        .blocked = str_of(blocked_by(pod)),
    };
    scheduler_job_add(arena, node, &job);
    node->state = strcmp(node->state, "idle") == 0 ? "allocated" : node->state;
}

static bool take_pod(struct arena *arena, const json_t *item, void *ctx)
{
    struct scheduler_snapshot *snapshot = ctx;
    const json_t *place = down(item, "spec", "nodeName");

    if (!json_is_string(place) || is_resident(item)) {
        return true; /* it is nowhere yet, or nobody waits for it */
    }
    const struct scheduler_node *node =
        scheduler_node_find(snapshot, str_of(json_string_value(place)));
    if (node != NULL) {
        add_job(arena, &snapshot->nodes[node - snapshot->nodes], item);
    }
    return true;
}

static bool kubernetes_read(const struct scheduler_target *target, struct arena *arena,
                            struct scheduler_snapshot *ret_snapshot,
                            char error[SCHEDULER_ERROR_MAX])
{
    CLEANUP(close_session) struct session session;
    struct growing grow = {.snapshot = ret_snapshot};

    *ret_snapshot = (struct scheduler_snapshot){0};
    if (!open_session(&session, target, error) ||
        !list(&session, arena, "/api/v1/nodes?limit=" PAGE, take_node, &grow)) {
        return false;
    }
    scheduler_snapshot_sort(ret_snapshot);
    return list(&session, arena, "/api/v1/pods?limit=" PAGE "&" LIVE_PODS, take_pod, ret_snapshot);
}

/* ------------------------------------------------------------------ wishes */
/* 200 alone proves nothing: a server that does not know a field drops it. */
static bool patch(struct session *session, const struct scheduler_wish *wish, const char *type,
                  const struct buf *body, bool closed)
{
    char path[512];

    (void)snprintf(path, sizeof path,
                   "/api/v1/nodes/%.*s?fieldManager=muster&fieldValidation=Strict",
                   STR_FMT(wish->node->name));
    if (call(session, "PATCH", path, type, buf_str(body)) != 200) {
        say_answer(session, closed ? "the node is not cordoned" : "the node is not uncordoned");
        return false;
    }
    json_t *root = parse(session);
    bool ok = root != NULL && json_is_true(down(root, "spec", "unschedulable")) == closed;
    json_decref(root);
    if (!ok) {
        say(session, "the API server answered 200", "and the node is as it was");
    }
    return ok;
}

static bool kubernetes_close(const struct scheduler_target *target,
                             const struct scheduler_wish *wish, char error[SCHEDULER_ERROR_MAX])
{
    CLEANUP(close_session) struct session session;
    CLEANUP(buf_free) struct buf body = {0};
    struct enc enc;

    enc_init(&enc, &body);
    enc_obj(&enc);
    enc_key(&enc, "spec");
    enc_obj(&enc);
    enc_key(&enc, "unschedulable");
    enc_bool(&enc, true);
    enc_obj_end(&enc);
    enc_key(&enc, "metadata");
    enc_obj(&enc);
    enc_key(&enc, "annotations");
    enc_obj(&enc);
    enc_key(&enc, REASON_KEY);
    enc_cstr(&enc, wish->reason);
    enc_obj_end(&enc);
    enc_obj_end(&enc);
    enc_obj_end(&enc);
    return open_session(&session, target, error) &&
           patch(&session, wish, "application/merge-patch+json", &body, true);
}

static void write_step(struct enc *enc, const char *op, const char *path, struct str value)
{
    enc_obj(enc);
    enc_key(enc, "op");
    enc_cstr(enc, op);
    enc_key(enc, "path");
    enc_cstr(enc, path);
    if (value.len > 0) {
        enc_key(enc, "value");
        enc_str(enc, value);
    }
    enc_obj_end(enc);
}

/* Only while the annotation is still ours: the server tests it in the same step. */
static bool kubernetes_open(const struct scheduler_target *target,
                            const struct scheduler_wish *wish, char error[SCHEDULER_ERROR_MAX])
{
    CLEANUP(close_session) struct session session;
    CLEANUP(buf_free) struct buf body = {0};
    struct enc enc;

    enc_init(&enc, &body);
    enc_arr(&enc);
    write_step(&enc, "test", REASON_POINTER, wish->node->reason);
    write_step(&enc, "remove", REASON_POINTER, STR(""));
    write_step(&enc, "remove", "/spec/unschedulable", STR(""));
    enc_arr_end(&enc);
    return open_session(&session, target, error) &&
           patch(&session, wish, "application/json-patch+json", &body, false);
}

/* The version of eviction that the server offers; false when it has none. Pods are never deleted
 * instead: that would pass over disruption budgets. */
static bool find_eviction(struct session *session, char version[32])
{
    const json_t *resource = NULL;
    size_t i = 0;

    if (call(session, "GET", "/api/v1", NULL, STR("")) != 200) {
        say_answer(session, "what the API server offers cannot be read");
        return false;
    }
    json_t *root = parse(session);
    version[0] = '\0';
    json_array_foreach (json_object_get(root, "resources"), i, resource) {
        const char *name = json_string_value(json_object_get(resource, "name"));
        const char *offered = json_string_value(json_object_get(resource, "version"));
        if (name != NULL && strcmp(name, "pods/eviction") == 0) {
            (void)snprintf(version, 32, "%s", offered == NULL ? "v1beta1" : offered);
        }
    }
    json_decref(root);
    if (version[0] == '\0') {
        say(session, "the API server offers no eviction", "the node cannot be drained");
    }
    return version[0] != '\0';
}

static void write_eviction(struct buf *body, const struct scheduler_job *job, const char *version,
                           int64_t grace_s)
{
    ptrdiff_t slash = str_find(job->id, STR("/"), 0);
    size_t space = slash < 0 ? 0 : (size_t)slash;
    struct enc enc;

    enc_init(&enc, body);
    enc_obj(&enc);
    enc_key(&enc, "apiVersion");
    enc_cstr(&enc, strcmp(version, "v1") == 0 ? "policy/v1" : "policy/v1beta1");
    enc_key(&enc, "kind");
    enc_cstr(&enc, "Eviction");
    enc_key(&enc, "metadata");
    enc_obj(&enc);
    enc_key(&enc, "namespace");
    enc_str(&enc, (struct str){job->id.ptr, space});
    enc_key(&enc, "name");
    enc_str(&enc, (struct str){job->id.ptr + space + 1, job->id.len - space - 1});
    enc_obj_end(&enc);
    enc_key(&enc, "deleteOptions");
    enc_obj(&enc);
    enc_key(&enc, "gracePeriodSeconds");
    enc_i64(&enc, grace_s);
    enc_key(&enc, "preconditions");
    enc_obj(&enc);
    enc_key(&enc, "uid");
    enc_str(&enc, job->uid);
    enc_obj_end(&enc);
    enc_obj_end(&enc);
    enc_obj_end(&enc);
}

/* 201 it goes, 404 it is gone, 409 another pod has its name: all done. */
static bool evict_one(struct session *session, const struct scheduler_job *job, const char *version,
                      int64_t grace_s)
{
    CLEANUP(buf_free) struct buf body = {0};
    char path[1024];
    ptrdiff_t slash = str_find(job->id, STR("/"), 0);
    size_t space = slash < 0 ? 0 : (size_t)slash;

    (void)snprintf(path, sizeof path, "/api/v1/namespaces/%.*s/pods/%.*s/eviction", (int)space,
                   job->id.ptr, (int)(job->id.len - space - 1), job->id.ptr + space + 1);
    write_eviction(&body, job, version, grace_s);
    long status = call(session, "POST", path, "application/json", buf_str(&body));
    if (status == 201 || status == 404 || status == 409) {
        return true;
    }
    say_answer(session, job->id.ptr);
    return false;
}

/* Nothing is begun that would stop half-way: one pod that may not go keeps them all. */
static bool kubernetes_evict(const struct scheduler_target *target,
                             const struct scheduler_wish *wish, char error[SCHEDULER_ERROR_MAX])
{
    CLEANUP(close_session) struct session session;
    char version[32];
    bool ok = true;

    if (!open_session(&session, target, error)) {
        return false;
    }
    for (size_t i = 0; i < wish->node->job_count; i++) {
        const struct scheduler_job *job = &wish->node->jobs[i];
        if (job->blocked.len > 0 && !job->ending) {
            (void)snprintf(error, SCHEDULER_ERROR_MAX, "%.*s stays until a person ends it: %.*s",
                           STR_FMT(job->id), STR_FMT(job->blocked));
            return false;
        }
    }
    if (!find_eviction(&session, version)) {
        return false;
    }
    for (size_t i = 0; i < wish->node->job_count; i++) {
        const struct scheduler_job *job = &wish->node->jobs[i];
        ok = (job->ending || evict_one(&session, job, version, wish->grace_s)) && ok;
    }
    return ok;
}

const struct scheduler scheduler_kubernetes = {
    .kind = "kubernetes",
    .read = kubernetes_read,
    .close = kubernetes_close,
    .open = kubernetes_open,
    .evict = kubernetes_evict,
};
