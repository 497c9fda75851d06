/* Redfish (DSP0266): the host system's power, found by its links and never by a path that was made
 * up. */
#include <jansson.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/http_client.h"
#include "server/repair/executors/machine.h"

#define PASSWORD_MAX 1024
#define URL_MAX 4096
#define PATH_MAX_LEN 1024

struct redfish {
    const struct machine *machine;
    struct http_client *http;
    struct http_answer answer;
    char authorization[2048];
    char system[PATH_MAX_LEN]; /* path of the host system */
    char *error;               /* MACHINE_ERROR_MAX */
};

static void say(struct redfish *bmc, const char *what, const char *detail)
{
    (void)snprintf(bmc->error, MACHINE_ERROR_MAX, "%s: %.160s", what, detail);
}

static void end(struct redfish *bmc)
{
    http_client_free(bmc->http);
    http_answer_free(&bmc->answer);
    explicit_bzero(bmc->authorization, sizeof bmc->authorization);
}

/* Basic: one request, no session to leak. */
static bool begin(struct redfish *bmc, const struct machine *machine, char *error)
{
    CLEANUP(buf_free) struct buf secret = {0};
    char plain[PASSWORD_MAX + 300];
    unsigned char text[2000];
    const struct http_client_options options = {
        .ca_file = machine->ca_file.len > 0 ? machine->ca_file.ptr : NULL,
        .timeout_ms = (long)machine->timeout_s * 1000,
    };

    *bmc = (struct redfish){.machine = machine, .error = error};
    int failed = file_read(machine->password_file.ptr, PASSWORD_MAX, &secret);
    if (failed != 0) {
        say(bmc, "the password file cannot be read", strerrordesc_np(failed));
        return false;
    }
    struct str password = str_trim(buf_str(&secret));
    int len = snprintf(plain, sizeof plain, "%.*s:%.*s", STR_FMT(machine->user), STR_FMT(password));
    if (len < 0 || (size_t)len >= sizeof plain) {
        say(bmc, "the password is too long", "1024 bytes at most");
        return false;
    }
    (void)EVP_EncodeBlock(text, (const unsigned char *)plain, len);
    (void)snprintf(bmc->authorization, sizeof bmc->authorization, "Authorization: Basic %s", text);
    explicit_bzero(plain, sizeof plain);
    explicit_bzero(text, sizeof text);
    bmc->http = http_client_new(&options);
    return true;
}

static long call(struct redfish *bmc, const char *method, const char *path, struct str body)
{
    char url[URL_MAX];
    const char *headers[] = {"Accept: application/json", bmc->authorization,
                             "Content-Type: application/json", NULL};

    (void)snprintf(url, sizeof url, "%.*s%s", STR_FMT(bmc->machine->url), path);
    http_client_send(bmc->http, method, url, headers, body, &bmc->answer);
    return bmc->answer.status;
}

/* By status; the message only refines. */
static void say_answer(struct redfish *bmc, const char *what)
{
    char number[32];
    json_error_t at;
    const struct buf *body = &bmc->answer.body;
    json_t *root = body->len == 0 ? NULL : json_loadb(body->ptr, body->len, 0, &at);
    const json_t *first =
        json_array_get(json_object_get(json_object_get(root, "error"), "@Message.ExtendedInfo"), 0);
    const char *id = json_string_value(json_object_get(first, "MessageId"));

    (void)snprintf(number, sizeof number, "status %ld", bmc->answer.status);
    say(bmc, what, bmc->answer.status == 0 ? bmc->answer.error : id != NULL ? id : number);
    json_decref(root);
}

static json_t *get(struct redfish *bmc, const char *path)
{
    json_error_t at;

    if (call(bmc, "GET", path, STR("")) != 200) {
        say_answer(bmc, path);
        return NULL;
    }
    const struct buf *body = &bmc->answer.body;
    json_t *root = body->len == 0 ? NULL : json_loadb(body->ptr, body->len, 0, &at);
    if (!json_is_object(root)) {
        say(bmc, path, "the answer is no JSON object");
        json_decref(root);
        return NULL;
    }
    return root;
}

static const char *link_of(const json_t *object)
{
    const char *path = json_string_value(json_object_get(object, "@odata.id"));

    /* A link to another host would take the password there. */
    return path != NULL && path[0] == '/' && path[1] != '/' && strlen(path) < PATH_MAX_LEN ? path
                                                                                           : NULL;
}

static bool is_wanted(const struct redfish *bmc, const char *path, size_t members)
{
    struct str wanted = bmc->machine->system;
    const char *slash = strrchr(path, '/');

    return wanted.len == 0 ? members == 1 : str_eq_c(wanted, slash + 1);
}

/* Service root, its systems, the one that is the host. */
static bool find_system(struct redfish *bmc)
{
    char path[PATH_MAX_LEN];
    const json_t *member = NULL;
    size_t i = 0;
    json_t *root = get(bmc, "/redfish/v1/");
    const char *systems = link_of(json_object_get(root, "Systems"));

    (void)snprintf(path, sizeof path, "%s", systems == NULL ? "" : systems);
    bool ok = root != NULL && systems != NULL;
    if (root != NULL && !ok) {
        say(bmc, "the controller", "it has no systems");
    }
    json_decref(root);
    root = ok ? get(bmc, path) : NULL;
    const json_t *members = json_object_get(root, "Members");
    json_array_foreach (members, i, member) {
        const char *link = link_of(member);
        if (link != NULL && is_wanted(bmc, link, json_array_size(members))) {
            (void)snprintf(bmc->system, sizeof bmc->system, "%s", link);
        }
    }
    if (root != NULL && bmc->system[0] == '\0') {
        say(bmc, "the controller",
            "it has several systems or none of this id; name the host's in `system`");
    }
    json_decref(root);
    return bmc->system[0] != '\0';
}

static enum machine_power redfish_read(const struct machine *machine, char serial[64],
                                       char error[MACHINE_ERROR_MAX])
{
    CLEANUP(end) struct redfish bmc;
    enum machine_power power = POWER_UNKNOWN;

    serial[0] = '\0';
    if (!begin(&bmc, machine, error) || !find_system(&bmc)) {
        return POWER_UNKNOWN;
    }
    json_t *root = get(&bmc, bmc.system);
    const char *state = json_string_value(json_object_get(root, "PowerState"));
    const char *number = json_string_value(json_object_get(root, "SerialNumber"));
    if (state != NULL) {
        power = strcmp(state, "On") == 0    ? POWER_ON
                : strcmp(state, "Off") == 0 ? POWER_OFF
                                            : POWER_UNKNOWN;
        (void)snprintf(serial, 64, "%s", number == NULL ? "" : number);
    }
    if (root != NULL && power == POWER_UNKNOWN) {
        say(&bmc, "the power is neither on nor off", state == NULL ? "it is not told" : state);
    }
    json_decref(root);
    return power;
}

/* Where to send it, and that this controller takes it. */
static bool find_reset(struct redfish *bmc, const char *type, char target[PATH_MAX_LEN])
{
    const json_t *value = NULL;
    size_t i = 0;
    json_t *root = get(bmc, bmc->system);
    const json_t *reset =
        json_object_get(json_object_get(root, "Actions"), "#ComputerSystem.Reset");
    const char *path = json_string_value(json_object_get(reset, "target"));
    const json_t *allowed = json_object_get(reset, "ResetType@Redfish.AllowableValues");
    bool ok = path != NULL && path[0] == '/' && path[1] != '/' && strlen(path) < PATH_MAX_LEN;
    bool listed = !json_is_array(allowed);

    json_array_foreach (allowed, i, value) {
        const char *word = json_string_value(value);
        listed = listed || (word != NULL && strcmp(word, type) == 0);
    }
    if (root != NULL && (!ok || !listed)) {
        say(bmc, "the controller does not offer", type);
    }
    (void)snprintf(target, PATH_MAX_LEN, "%s", ok ? path : "");
    json_decref(root);
    return ok && listed;
}

/* 200, 202 and 204 are taken; a 4xx is a definite no; all else may have had an effect. */
static enum machine_said redfish_set(const struct machine *machine, bool on,
                                     char error[MACHINE_ERROR_MAX])
{
    CLEANUP(end) struct redfish bmc;
    char target[PATH_MAX_LEN];
    char body[64];
    const char *type = on ? "On" : "ForceOff";

    if (!begin(&bmc, machine, error) || !find_system(&bmc) || !find_reset(&bmc, type, target)) {
        return MACHINE_REFUSED;
    }
    (void)snprintf(body, sizeof body, "{\"ResetType\":\"%s\"}", type);
    long status = call(&bmc, "POST", target, str_of(body));
    if (status == 200 || status == 202 || status == 204) {
        return MACHINE_ACCEPTED;
    }
    say_answer(&bmc, type);
    return status >= 400 && status < 500 && status != 408 ? MACHINE_REFUSED : MACHINE_UNCLEAR;
}

const struct machine_driver machine_redfish = {
    .kind = "redfish", .read = redfish_read, .set = redfish_set};
