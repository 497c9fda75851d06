/* The executors file, read by strict tables. */
#include "server/repair/executors/targets.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/decode.h"
#include "base/file.h"
#include "server/repair/executors/machine.h"
#include "server/repair/executors/scheduler.h"

struct file_in {
    struct str schedulers;
    struct str machines;
    struct str webhooks;
    struct str provisioners;
};

struct hook_in {
    struct hook_target hook;
    struct str_list actions;
};

struct machine_in {
    struct machine machine;
    struct str kind;
};

struct provisioner_in {
    struct provisioner provisioner;
    struct str kind;
};

struct scheduler_in {
    struct scheduler_target target;
    struct str kind;
    bool has_timeout;
};

#define AT(type, member) offsetof(struct type, member)
#define TEXT_MAX 4095

/* clang-format off */
static const struct field file_fields[] = {
    {"schedulers", FIELD_JSON, AT(file_in, schedulers), .max = (int64_t)TARGETS_FILE_MAX},
    {"machines", FIELD_JSON, AT(file_in, machines), .max = (int64_t)TARGETS_FILE_MAX},
    {"webhooks", FIELD_JSON, AT(file_in, webhooks), .max = (int64_t)TARGETS_FILE_MAX},
    {"provisioners", FIELD_JSON, AT(file_in, provisioners), .max = (int64_t)TARGETS_FILE_MAX},
    {NULL},
};
static const char *const hook_words[] = {"reset_gpu", "reboot", "power_cycle", "reprovision", NULL};
static const struct field hook_fields[] = {
    {"org", FIELD_NAME, AT(hook_in, hook.org), .flags = FIELD_REQUIRED},
    {"cluster", FIELD_NAME, AT(hook_in, hook.cluster), .flags = FIELD_REQUIRED},
    {"actions", FIELD_STR_LIST, AT(hook_in, actions), .flags = FIELD_REQUIRED, .min = 1, .max = 4, .names = hook_words},
    {"url", FIELD_STR, AT(hook_in, hook.url), .flags = FIELD_REQUIRED, .max = TEXT_MAX},
    {"status_url", FIELD_STR, AT(hook_in, hook.status_url), .max = TEXT_MAX},
    {"secret_file", FIELD_STR, AT(hook_in, hook.secret_file), .flags = FIELD_REQUIRED, .min = 1, .max = TEXT_MAX},
    {"ca_file", FIELD_STR, AT(hook_in, hook.ca_file), .max = TEXT_MAX},
    {"timeout_seconds", FIELD_I64, AT(hook_in, hook.timeout_s), .min = 1, .max = 60},
    {NULL},
};
static const char *const machine_kinds[] = {"ipmi", "redfish", NULL};
static const struct field machine_fields[] = {
    {"org", FIELD_NAME, AT(machine_in, machine.org), .flags = FIELD_REQUIRED},
    {"cluster", FIELD_NAME, AT(machine_in, machine.cluster), .flags = FIELD_REQUIRED},
    {"node", FIELD_HOST, AT(machine_in, machine.node), .flags = FIELD_REQUIRED},
    {"kind", FIELD_ENUM, AT(machine_in, kind), .flags = FIELD_REQUIRED, .names = machine_kinds},
    {"user", FIELD_STR, AT(machine_in, machine.user), .flags = FIELD_REQUIRED, .min = 1},
    {"password_file", FIELD_STR, AT(machine_in, machine.password_file), .flags = FIELD_REQUIRED, .min = 1, .max = TEXT_MAX},
    {"host", FIELD_HOST, AT(machine_in, machine.host)},
    {"port", FIELD_I64, AT(machine_in, machine.port), .min = 1, .max = 65535},
    {"cipher_suite", FIELD_I64, AT(machine_in, machine.cipher_suite), .min = 0, .max = 17},
    {"url", FIELD_STR, AT(machine_in, machine.url), .max = TEXT_MAX},
    {"system", FIELD_STR, AT(machine_in, machine.system)},
    {"ca_file", FIELD_STR, AT(machine_in, machine.ca_file), .max = TEXT_MAX},
    {"timeout_seconds", FIELD_I64, AT(machine_in, machine.timeout_s), .min = 1, .max = 60},
    {NULL},
};
static const char *const provisioner_kinds[] = {"ironic", NULL};
static const struct field provisioner_fields[] = {
    {"org", FIELD_NAME, AT(provisioner_in, provisioner.org), .flags = FIELD_REQUIRED},
    {"cluster", FIELD_NAME, AT(provisioner_in, provisioner.cluster), .flags = FIELD_REQUIRED},
    {"kind", FIELD_ENUM, AT(provisioner_in, kind), .flags = FIELD_REQUIRED, .names = provisioner_kinds},
    {"url", FIELD_STR, AT(provisioner_in, provisioner.url), .flags = FIELD_REQUIRED, .max = TEXT_MAX},
    {"ca_file", FIELD_STR, AT(provisioner_in, provisioner.ca_file), .max = TEXT_MAX},
    {"user", FIELD_STR, AT(provisioner_in, provisioner.user)},
    {"password_file", FIELD_STR, AT(provisioner_in, provisioner.password_file), .max = TEXT_MAX},
    {"token_file", FIELD_STR, AT(provisioner_in, provisioner.token_file), .max = TEXT_MAX},
    {"resource_class", FIELD_STR, AT(provisioner_in, provisioner.resource_class), .max = 80},
    {"image_source", FIELD_STR, AT(provisioner_in, provisioner.image_source), .max = TEXT_MAX},
    {"image_checksum", FIELD_STR, AT(provisioner_in, provisioner.image_checksum)},
    {"user_data_file", FIELD_STR, AT(provisioner_in, provisioner.user_data_file), .max = TEXT_MAX},
    {"timeout_seconds", FIELD_I64, AT(provisioner_in, provisioner.timeout_s), .min = 1, .max = 60},
    {"power_seconds", FIELD_I64, AT(provisioner_in, provisioner.power_s), .min = 1, .max = 3600},
    {"poll_seconds", FIELD_I64, AT(provisioner_in, provisioner.poll_s), .min = 1, .max = 60},
    {"install_seconds", FIELD_I64, AT(provisioner_in, provisioner.install_s), .min = 1, .max = 86400},
    {NULL},
};
static const char *const kinds[] = {"slurm", "kubernetes", NULL};
static const struct field scheduler_fields[] = {
    {"org", FIELD_NAME, AT(scheduler_in, target.org), .flags = FIELD_REQUIRED},
    {"cluster", FIELD_NAME, AT(scheduler_in, target.cluster), .flags = FIELD_REQUIRED},
    {"kind", FIELD_ENUM, AT(scheduler_in, kind), .flags = FIELD_REQUIRED, .names = kinds},
    {"config", FIELD_STR, AT(scheduler_in, target.config), .max = TEXT_MAX},
    {"bin_dir", FIELD_STR, AT(scheduler_in, target.bin_dir), .max = TEXT_MAX},
    {"server", FIELD_STR, AT(scheduler_in, target.server), .max = TEXT_MAX},
    {"ca_file", FIELD_STR, AT(scheduler_in, target.ca_file), .max = TEXT_MAX},
    {"token_file", FIELD_STR, AT(scheduler_in, target.token_file), .max = TEXT_MAX},
    {"certificate_file", FIELD_STR, AT(scheduler_in, target.certificate_file), .max = TEXT_MAX},
    {"key_file", FIELD_STR, AT(scheduler_in, target.key_file), .max = TEXT_MAX},
    {"timeout_seconds", FIELD_I64, AT(scheduler_in, target.timeout_s), AT(scheduler_in, has_timeout), .min = 1, .max = 60},
    {NULL},
};
/* clang-format on */

static struct arena *arena; /* of the process; written by targets_read only */
static struct scheduler_target targets[TARGETS_MAX];
static size_t count;
static struct machine *machines; /* MACHINES_MAX; in the arena */
static size_t machine_count;
static const char *names = "{}";
static struct hook_target hooks[HOOKS_MAX];
static size_t hook_count;
static const char *hook_texts = "{}";
static struct provisioner provisioners[PROVISIONERS_MAX];
static size_t provisioner_count;
static const char *clusters = "{}";

static bool refuse(char *error, size_t cap, const char *where, const struct decode_errors *errors,
                   const char *detail)
{
    const struct field_error *first = errors->count > 0 ? &errors->items[0] : NULL;

    (void)snprintf(error, cap, "executors_file: %s%s%s: %s", where, first == NULL ? "" : ", ",
                   first == NULL ? "" : first->pointer,
                   first != NULL    ? first->detail
                   : detail != NULL ? detail
                                    : "it is no JSON object");
    return false;
}

static bool is_set(struct str text)
{
    return text.len > 0;
}

/* What one field alone cannot say; NULL when all is well. */
static const char *problem_of(const struct scheduler_in *in)
{
    const struct scheduler_target *t = &in->target;

    if (target_find(t->org, t->cluster) != NULL) {
        return "this cluster has a scheduler already";
    }
    if (str_eq_c(in->kind, "slurm")) {
        return is_set(t->server) || is_set(t->token_file) || is_set(t->certificate_file)
                   ? "a Slurm scheduler has the fields config and bin_dir only"
                   : NULL;
    }
    if (is_set(t->config) || is_set(t->bin_dir)) {
        return "a Kubernetes scheduler has no field config or bin_dir";
    }
    if (!str_starts(t->server, STR("https://"))) {
        return "server must be an https:// address";
    }
    if (is_set(t->certificate_file) != is_set(t->key_file)) {
        return "certificate_file and key_file go together";
    }
    return is_set(t->token_file) || is_set(t->certificate_file)
               ? NULL
               : "token_file or certificate_file is required";
}

static bool read_scheduler(struct str text, size_t place, char *error, size_t cap)
{
    struct decode_errors errors = {0};
    struct scheduler_in in = {.target = {.timeout_s = 10}};
    const char *detail = NULL;
    char where[64];

    (void)snprintf(where, sizeof where, "schedulers[%zu]", place);
    if (decode_body(arena, text, scheduler_fields, &in, &errors, &detail) != 0) {
        return refuse(error, cap, where, &errors, detail);
    }
    const char *problem = problem_of(&in);
    if (problem != NULL || count == TARGETS_MAX) {
        return refuse(error, cap, where, &errors, problem == NULL ? "there are too many" : problem);
    }
    in.target.scheduler = scheduler_of(in.kind);
    targets[count++] = in.target;
    return true;
}

static const char *machine_problem(const struct machine_in *in)
{
    const struct machine *m = &in->machine;

    if (machine_find(m->org, m->cluster, m->node) != NULL) {
        return "this node has a controller already";
    }
    if (provisioner_find(m->org, m->cluster) != NULL) {
        return "the cluster's provisioner drives its controllers, and nobody beside it may";
    }
    if (str_eq_c(in->kind, "ipmi")) {
        return !is_set(m->host) ? "host is required"
               : is_set(m->url) || is_set(m->system)
                   ? "an IPMI controller has no field url or system"
                   : NULL;
    }
    if (is_set(m->host)) {
        return "a Redfish controller has no field host";
    }
    return str_starts(m->url, STR("https://")) ? NULL : "url must be an https:// address";
}

static bool read_machine(struct str text, size_t place, char *error, size_t cap)
{
    struct decode_errors errors = {0};
    struct machine_in in = {.machine = {.port = 623, .cipher_suite = 3, .timeout_s = 20}};
    const char *detail = NULL;
    char where[64];

    (void)snprintf(where, sizeof where, "machines[%zu]", place);
    if (decode_body(arena, text, machine_fields, &in, &errors, &detail) != 0) {
        return refuse(error, cap, where, &errors, detail);
    }
    const char *problem = machine_problem(&in);
    if (problem != NULL || machine_count == MACHINES_MAX) {
        return refuse(error, cap, where, &errors, problem == NULL ? "there are too many" : problem);
    }
    in.machine.driver = machine_driver_of(in.kind);
    machines[machine_count++] = in.machine;
    return true;
}

static const char *hook_problem(const struct hook_target *hook)
{
    if (hook_find(hook->org, hook->cluster) != NULL) {
        return "this cluster has a webhook already";
    }
    if (!str_starts(hook->url, STR("https://"))) {
        return "url must be an https:// address";
    }
    return hook->status_url.len == 0 || (str_starts(hook->status_url, STR("https://")) &&
                                         str_find(hook->status_url, STR("{id}"), 0) > 0)
               ? NULL
               : "status_url must be an https:// address with {id} in it";
}

static bool read_hook(struct str text, size_t place, char *error, size_t cap)
{
    struct decode_errors errors = {0};
    struct hook_in in = {.hook = {.timeout_s = 20}};
    const char *detail = NULL;
    char where[64];

    (void)snprintf(where, sizeof where, "webhooks[%zu]", place);
    if (decode_body(arena, text, hook_fields, &in, &errors, &detail) != 0) {
        return refuse(error, cap, where, &errors, detail);
    }
    const char *problem = hook_problem(&in.hook);
    if (problem != NULL || hook_count == HOOKS_MAX) {
        return refuse(error, cap, where, &errors, problem == NULL ? "there are too many" : problem);
    }
    for (size_t i = 0; i < in.actions.count; i++) {
        enum repair_action action;
        in.hook.actions |= action_parse(in.actions.items[i], &action) ? 1u << action : 0;
    }
    hooks[hook_count++] = in.hook;
    return true;
}

static const char *provisioner_problem(const struct provisioner *p)
{
    bool here = str_starts(p->url, STR("http://127.0.0.1")) ||
                str_starts(p->url, STR("http://localhost")) ||
                str_starts(p->url, STR("http://[::1]"));

    if (provisioner_find(p->org, p->cluster) != NULL) {
        return "this cluster has a provisioner already";
    }
    if ((!here && !str_starts(p->url, STR("https://"))) || str_ends(p->url, STR("/"))) {
        return "url must be an https:// address (http:// on this host) without a / at its end";
    }
    if (is_set(p->user) != is_set(p->password_file)) {
        return "user and password_file go together";
    }
    if (is_set(p->user) && is_set(p->token_file)) {
        return "user and token_file exclude each other";
    }
    return is_set(p->image_source) && !is_set(p->resource_class)
               ? "image_source needs resource_class: which machines are this cluster's spares"
               : NULL;
}

static bool read_provisioner(struct str text, size_t place, char *error, size_t cap)
{
    struct decode_errors errors = {0};
    struct provisioner_in in = {
        .provisioner = {.timeout_s = 30, .power_s = 120, .poll_s = 5, .install_s = 3600}};
    const char *detail = NULL;
    char where[64];

    (void)snprintf(where, sizeof where, "provisioners[%zu]", place);
    if (decode_body(arena, text, provisioner_fields, &in, &errors, &detail) != 0) {
        return refuse(error, cap, where, &errors, detail);
    }
    const char *problem = provisioner_problem(&in.provisioner);
    if (problem != NULL || provisioner_count == PROVISIONERS_MAX) {
        return refuse(error, cap, where, &errors, problem == NULL ? "there are too many" : problem);
    }
    provisioners[provisioner_count++] = in.provisioner;
    return true;
}

typedef bool read_one(struct str text, size_t place, char *error, size_t cap);

static bool read_list(struct str text, const char *name, read_one *read, char *error, size_t cap)
{
    json_error_t at;
    json_t *list = json_loadb(text.ptr, text.len, JSON_REJECT_DUPLICATES, &at);
    json_t *item = NULL;
    size_t i = 0;
    bool ok = json_is_array(list);

    if (!ok) {
        (void)snprintf(error, cap, "executors_file: %s must be a list", name);
    }
    json_array_foreach (list, i, item) {
        char *one = json_dumps(item, JSON_COMPACT | JSON_ENCODE_ANY);
        ok = one != NULL && read(str_of(one), i, error, cap);
        free(one);
        if (!ok) {
            break;
        }
    }
    json_decref(list);
    return ok;
}

static void write_names(void)
{
    CLEANUP(buf_free) struct buf text = {0};

    buf_add_char(&text, '{');
    for (size_t i = 0; i < machine_count; i++) {
        buf_printf(&text, "%s%.*s/%.*s/%.*s", i == 0 ? "" : ",", STR_FMT(machines[i].org),
                   STR_FMT(machines[i].cluster), STR_FMT(machines[i].node));
    }
    buf_add_char(&text, '}');
    names = arena_strndup(arena, text.ptr, text.len);
    buf_clear(&text);
    buf_add_char(&text, '{');
    for (size_t i = 0; i < provisioner_count; i++) {
        buf_printf(&text, "%s%.*s/%.*s", i == 0 ? "" : ",", STR_FMT(provisioners[i].org),
                   STR_FMT(provisioners[i].cluster));
    }
    buf_add_char(&text, '}');
    clusters = arena_strndup(arena, text.ptr, text.len);
}

static void write_hook_texts(void)
{
    CLEANUP(buf_free) struct buf text = {0};

    for (size_t i = 0; i < hook_count; i++) {
        for (unsigned action = 0; action < ACTION_COUNT; action++) {
            if ((hooks[i].actions & (1u << action)) != 0) {
                buf_printf(&text, "%s%.*s/%.*s/%s", text.len == 0 ? "{" : ",",
                           STR_FMT(hooks[i].org), STR_FMT(hooks[i].cluster),
                           action_info((enum repair_action)action)->name);
            }
        }
    }
    buf_add_c(&text, text.len == 0 ? "{}" : "}");
    hook_texts = arena_strndup(arena, text.ptr, text.len);
}

bool targets_read(const char *path, char *error, size_t error_cap)
{
    CLEANUP(buf_free) struct buf text = {0};
    struct decode_errors errors = {0};
    struct file_in in = {0};
    const char *detail = NULL;

    count = 0;
    machine_count = 0;
    hook_count = 0;
    hook_texts = "{}";
    provisioner_count = 0;
    names = "{}";
    clusters = "{}";
    if (path[0] == '\0') {
        return true;
    }
    int failed = file_read(path, TARGETS_FILE_MAX, &text);
    if (failed != 0) {
        (void)snprintf(error, error_cap, "executors_file: %s cannot be read: %s", path,
                       strerrordesc_np(failed));
        return false;
    }
    if (arena == NULL) {
        arena = arena_new(16 * TARGETS_FILE_MAX);
        machines = arena_zalloc(arena, MACHINES_MAX * sizeof *machines);
    }
    if (decode_body(arena, buf_str(&text), file_fields, &in, &errors, &detail) != 0) {
        return refuse(error, error_cap, path, &errors, detail);
    }
    bool ok =
        (in.schedulers.len == 0 ||
         read_list(in.schedulers, "schedulers", read_scheduler, error, error_cap)) &&
        (in.provisioners.len == 0 ||
         read_list(in.provisioners, "provisioners", read_provisioner, error, error_cap)) &&
        (in.machines.len == 0 ||
         read_list(in.machines, "machines", read_machine, error, error_cap)) &&
        (in.webhooks.len == 0 || read_list(in.webhooks, "webhooks", read_hook, error, error_cap));
    if (ok) {
        write_names();
        write_hook_texts();
    }
    return ok;
}

const struct machine *machine_find(struct str org, struct str cluster, struct str node)
{
    for (size_t i = 0; i < machine_count; i++) {
        if (str_eq_nocase(machines[i].node, node) && str_eq(machines[i].cluster, cluster) &&
            str_eq(machines[i].org, org)) {
            return &machines[i];
        }
    }
    return NULL;
}

const struct hook_target *hook_find(struct str org, struct str cluster)
{
    for (size_t i = 0; i < hook_count; i++) {
        if (str_eq(hooks[i].cluster, cluster) && str_eq(hooks[i].org, org)) {
            return &hooks[i];
        }
    }
    return NULL;
}

const struct provisioner *provisioner_find(struct str org, struct str cluster)
{
    for (size_t i = 0; i < provisioner_count; i++) {
        if (str_eq(provisioners[i].cluster, cluster) && str_eq(provisioners[i].org, org)) {
            return &provisioners[i];
        }
    }
    return NULL;
}

unsigned hook_actions(struct str org, struct str cluster)
{
    const struct hook_target *hook = hook_find(org, cluster);

    return hook == NULL ? 0 : hook->actions;
}

const char *hook_names(void)
{
    return hook_texts;
}

size_t provisioners_count(void)
{
    return provisioner_count;
}

const struct provisioner *provisioner_at(size_t index)
{
    return &provisioners[index];
}

const char *provisioner_names(void)
{
    return clusters;
}

const char *machine_names(void)
{
    return names;
}

size_t targets_count(void)
{
    return count;
}

const struct scheduler_target *target_at(size_t index)
{
    return &targets[index];
}

const struct scheduler_target *target_find(struct str org, struct str cluster)
{
    for (size_t i = 0; i < count; i++) {
        if (str_eq(targets[i].org, org) && str_eq(targets[i].cluster, cluster)) {
            return &targets[i];
        }
    }
    return NULL;
}
