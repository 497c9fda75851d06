/* Ironic's HTTP API: version, credential, one machine's state, and effects with the table of their
 * answers. */
#include "server/repair/executors/ironic.h"

#include <jansson.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/http_client.h"

#define SECRET_MAX 4096
#define URL_MAX 4600
#define FIELDS                                                                            \
    "?fields=uuid,provision_state,target_provision_state,power_state,target_power_state," \
    "reservation,maintenance,fault,retired,protected,instance_uuid,resource_class,"       \
    "provision_updated_at,last_error,extra"

/* ------------------------------------------------------------------ answers */

/* words: part of the text that Ironic itself writes; NULL = any body. */
static const struct {
    long status;
    const char *words;
    enum ironic_said said;
} rows[] = {
    {200, NULL, IRONIC_ACCEPTED},
    {202, NULL, IRONIC_ACCEPTED},
    {204, NULL, IRONIC_ACCEPTED},
    {400, NULL, IRONIC_REFUSED}, /* not in this state, in maintenance, retired */
    {401, NULL, IRONIC_REFUSED},
    {403, NULL, IRONIC_REFUSED}, /* protected */
    {404, NULL, IRONIC_REFUSED},
    {406, NULL, IRONIC_REFUSED},  /* version */
    {409, "locked", IRONIC_BUSY}, /* after its own waiting for the lock */
    {409, "faultstring", IRONIC_REFUSED},
    {409, "error_message", IRONIC_REFUSED},
    {503, "faultstring", IRONIC_BUSY}, /* no free worker; a proxy's 503 has no such words */
    {503, "error_message", IRONIC_BUSY},
};

enum ironic_said ironic_said_of(long status, struct str body, bool never_sent)
{
    if (status == 0) {
        return never_sent ? IRONIC_BUSY : IRONIC_UNKNOWN;
    }
    for (size_t i = 0; i < COUNTOF(rows); i++) {
        if (rows[i].status == status &&
            (rows[i].words == NULL || str_find(body, str_of(rows[i].words), 0) >= 0)) {
            return rows[i].said;
        }
    }
    return IRONIC_UNKNOWN;
}

static const char *first_text(const json_t *object, const char *const *keys)
{
    for (; *keys != NULL; keys++) {
        const char *text = json_string_value(json_object_get(object, *keys));
        if (text != NULL && text[0] != '\0') {
            return text;
        }
    }
    return NULL;
}

void ironic_words_of(struct str body, char text[IRONIC_TEXT_MAX])
{
    static const char *const keys[] = {"faultstring", "detail",  "description",
                                       "title",       "message", NULL};
    json_error_t at;
    json_t *root = body.len == 0 ? NULL : json_loadb(body.ptr, body.len, 0, &at);
    const json_t *inner = json_object_get(root, "error_message");
    const char *packed = json_string_value(inner);
    json_t *unpacked = packed == NULL ? NULL : json_loads(packed, 0, &at);

    if (unpacked != NULL) {
        inner = unpacked;
    } else if (!json_is_object(inner)) {
        inner = json_object_get(root, "error");
    }
    const char *words = first_text(json_is_object(inner) ? inner : root, keys);
    if (words == NULL) {
        words = packed;
    }
    if (words != NULL) {
        (void)snprintf(text, IRONIC_TEXT_MAX, "%.200s", words);
    } else {
        (void)snprintf(text, IRONIC_TEXT_MAX, "%.*s", body.len > 200 ? 200 : (int)body.len,
                       body.ptr == NULL ? "" : body.ptr);
    }
    for (char *c = text; *c != '\0'; c++) {
        *c = (unsigned char)*c < ' ' ? ' ' : *c;
    }
    json_decref(unpacked);
    json_decref(root);
}

/* ------------------------------------------------------------------ one exchange */

static void say(char error[IRONIC_TEXT_MAX], const char *what, const char *detail)
{
    (void)snprintf(error, IRONIC_TEXT_MAX, "%s: %.180s", what, detail);
}

/* 4xx and 5xx in words: "409: Node is locked ..." */
static void say_answer(char error[IRONIC_TEXT_MAX], const struct http_answer *answer)
{
    char words[IRONIC_TEXT_MAX];

    if (answer->status == 0) {
        say(error, "no answer", answer->error);
        return;
    }
    ironic_words_of(buf_str(&answer->body), words);
    (void)snprintf(error, IRONIC_TEXT_MAX, "%ld%s%.200s", answer->status,
                   words[0] == '\0' ? "" : ": ", words);
}

struct request_parts {
    const char *method;
    const char *path; /* with the leading slash, after the provisioner's URL */
    const char *body; /* NULL = none */
};

static void exchange(const struct ironic *ironic, const struct request_parts *parts,
                     struct http_answer *ret_answer)
{
    const struct provisioner *p = ironic->provisioner;
    const struct http_client_options options = {
        .ca_file = p->ca_file.len > 0 ? p->ca_file.ptr : NULL,
        .timeout_ms = (long)p->timeout_s * 1000,
    };
    struct http_client *http = http_client_new(&options);
    char url[URL_MAX];
    char version[64];
    const char *headers[5] = {"Accept: application/json", version};
    size_t n = 2;

    (void)snprintf(version, sizeof version, "X-OpenStack-Ironic-API-Version: 1.%lld",
                   (long long)ironic->minor);
    if (parts->body != NULL) {
        headers[n++] = "Content-Type: application/json";
    }
    if (ironic->authorization[0] != '\0') {
        headers[n] = ironic->authorization;
    }
    (void)snprintf(url, sizeof url, "%.*s%s", STR_FMT(p->url), parts->path);
    http_client_send(http, parts->method, url, headers, str_of(parts->body), ret_answer);
    http_client_free(http);
}

/* ------------------------------------------------------------------ open */

static bool read_secret(struct str path, struct buf *ret_secret, char error[IRONIC_TEXT_MAX])
{
    int failed = file_read(path.ptr, SECRET_MAX, ret_secret);

    if (failed != 0) {
        say(error, "the file with the credential cannot be read", strerrordesc_np(failed));
    }
    return failed == 0;
}

static bool authorize(struct ironic *ironic, char error[IRONIC_TEXT_MAX])
{
    const struct provisioner *p = ironic->provisioner;
    CLEANUP(buf_free) struct buf secret = {0};
    char plain[1024];
    unsigned char text[1400];

    if (p->token_file.len > 0) {
        if (!read_secret(p->token_file, &secret, error)) {
            return false;
        }
        struct str token = str_trim(buf_str(&secret));
        (void)snprintf(ironic->authorization, sizeof ironic->authorization, "X-Auth-Token: %.*s",
                       STR_FMT(token));
        return true;
    }
    if (p->user.len == 0) {
        return true;
    }
    if (!read_secret(p->password_file, &secret, error)) {
        return false;
    }
    struct str password = str_trim(buf_str(&secret));
    int len = snprintf(plain, sizeof plain, "%.*s:%.*s", STR_FMT(p->user), STR_FMT(password));
    if (len < 0 || (size_t)len >= sizeof plain) {
        say(error, "the password is too long", "with the user's name 1023 bytes at most");
        return false;
    }
    (void)EVP_EncodeBlock(text, (const unsigned char *)plain, len);
    (void)snprintf(ironic->authorization, sizeof ironic->authorization, "Authorization: Basic %s",
                   text);
    explicit_bzero(plain, sizeof plain);
    explicit_bzero(text, sizeof text);
    return true;
}

static json_t *object_of(const struct http_answer *answer)
{
    json_error_t at;
    const struct buf *body = &answer->body;
    json_t *root = body->len == 0 ? NULL : json_loadb(body->ptr, body->len, 0, &at);

    if (!json_is_object(root)) {
        json_decref(root);
        return NULL;
    }
    return root;
}

/* "1.82" */
static int64_t read_minor(const char *version)
{
    struct str text = str_of(version);
    uint64_t minor = 0;

    return str_starts(text, STR("1.")) &&
                   str_parse_u64((struct str){text.ptr + 2, text.len - 2}, 0, 9999, &minor)
               ? (int64_t)minor
               : 0;
}

static enum ironic_found found_of(long status)
{
    return status == 401 || status == 403 || status == 404 || status == 406 ? IRONIC_ABSENT
                                                                            : IRONIC_UNREAD;
}

enum ironic_found ironic_open(const struct provisioner *provisioner, struct ironic *ret_ironic,
                              char error[IRONIC_TEXT_MAX])
{
    CLEANUP(http_answer_free) struct http_answer answer = {0};
    struct ironic *ironic = ret_ironic;

    *ironic = (struct ironic){.provisioner = provisioner, .minor = 1};
    if (!authorize(ironic, error)) {
        return IRONIC_UNREAD;
    }
    exchange(ironic, &(struct request_parts){.method = "GET", .path = "/v1"}, &answer);
    json_t *root = answer.status == 200 ? object_of(&answer) : NULL;
    const char *version =
        json_string_value(json_object_get(json_object_get(root, "version"), "version"));
    int64_t offered = version == NULL ? 0 : read_minor(version);
    enum ironic_found found = IRONIC_FOUND;
    if (root == NULL) {
        say_answer(error, &answer);
        found = found_of(answer.status);
    } else if (offered < IRONIC_VERSION_NEEDED) {
        say(error, "this Ironic is too old, its API must be 1.61 or later",
            version == NULL ? "it tells no version" : version);
        found = IRONIC_ABSENT;
    }
    json_decref(root);
    ironic->minor = offered > IRONIC_VERSION_USED ? IRONIC_VERSION_USED : offered;
    return found;
}

/* ------------------------------------------------------------------ machines */

static void copy(char *to, size_t cap, const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    (void)snprintf(to, cap, "%s", text == NULL ? "" : text);
}

static bool is_true(const json_t *object, const char *key)
{
    return json_is_true(json_object_get(object, key));
}

static void read_machine(const json_t *root, struct ironic_machine *machine)
{
#define COPY(member, key) copy(machine->member, sizeof machine->member, root, key)
    COPY(id, "uuid");
    COPY(provision, "provision_state");
    COPY(target_provision, "target_provision_state");
    COPY(power, "power_state");
    COPY(target_power, "target_power_state");
    COPY(instance, "instance_uuid");
    COPY(resource_class, "resource_class");
    COPY(updated_at, "provision_updated_at");
    COPY(last_error, "last_error");
#undef COPY
    copy(machine->marker, sizeof machine->marker,
         json_object_get(json_object_get(root, "extra"), "muster"), "command");
    machine->reserved = json_is_string(json_object_get(root, "reservation"));
    machine->faulty = json_is_string(json_object_get(root, "fault"));
    machine->maintenance = is_true(root, "maintenance");
    machine->retired = is_true(root, "retired");
    machine->guarded = is_true(root, "protected");
}

/* A name goes into a path: what could change the path is refused. */
static bool node_path(const char *machine, const char *rest, char *path, size_t cap)
{
    int len = snprintf(path, cap, "/v1/nodes/%s%s", machine, rest);

    return str_is_host_name(str_of(machine)) && len > 0 && (size_t)len < cap;
}

enum ironic_found ironic_read(const struct ironic *ironic, const char *machine,
                              struct ironic_machine *ret_machine, char error[IRONIC_TEXT_MAX])
{
    CLEANUP(http_answer_free) struct http_answer answer = {0};
    char path[1024];

    *ret_machine = (struct ironic_machine){0};
    if (!node_path(machine, FIELDS, path, sizeof path)) {
        say(error, "this is no name of a machine", machine);
        return IRONIC_ABSENT;
    }
    exchange(ironic, &(struct request_parts){.method = "GET", .path = path}, &answer);
    json_t *root = answer.status == 200 ? object_of(&answer) : NULL;
    if (root == NULL) {
        say_answer(error, &answer);
        return found_of(answer.status);
    }
    read_machine(root, ret_machine);
    json_decref(root);
    return IRONIC_FOUND;
}

enum ironic_said ironic_send(const struct ironic *ironic, const char *machine, const char *method,
                             const char *path, const char *body, char detail[IRONIC_TEXT_MAX])
{
    CLEANUP(http_answer_free) struct http_answer answer = {0};
    char whole[1024];

    if (!node_path(machine, path, whole, sizeof whole)) {
        say(detail, "this is no name of a machine", machine);
        return IRONIC_REFUSED;
    }
    exchange(ironic, &(struct request_parts){.method = method, .path = whole, .body = body},
             &answer);
    enum ironic_said said = ironic_said_of(answer.status, buf_str(&answer.body), answer.unsent);
    if (said == IRONIC_ACCEPTED) {
        detail[0] = '\0';
    } else {
        say_answer(detail, &answer);
    }
    return said;
}
