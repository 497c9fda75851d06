/* The one thread that talks to the server: enrolment, access tokens, reports. */
#include "agent/uplink.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/json_path.h"
#include "base/clock.h"
#include "base/encode.h"
#include "base/file.h"
#include "base/http_client.h"
#include "base/log.h"

#define EXCHANGE_TIMEOUT_MS 10000
#define ACCESS_TOKEN_CAP 128
/* Settings of the largest size, with each byte escaped, and orders. */
#define ANSWER_MAX ((size_t)2 * 1024 * 1024)
#define JOIN_TOKEN_MAX 255

/* What the thread uses; also made on the stack for an enrolment from the command line. */
struct session {
    const struct options *options;
    struct identity *identity;
    struct http_client *client;
    struct http_answer answer;
    char access_token[ACCESS_TOKEN_CAP];
    int64_t renew_us; /* clock_mono_us() from which the token is renewed */
};

struct uplink {
    struct session session;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    /* Under the lock: */
    bool busy;
    bool stopping;
    bool reconnect;
    int sync_fd;
    struct buf body;
    struct uplink_result result;
    int notify_fd;
};

static void open_client(struct session *session)
{
    struct http_client_options options = {
        .ca_file = session->options->ca_file[0] != '\0' ? session->options->ca_file : NULL,
        .timeout_ms = EXCHANGE_TIMEOUT_MS,
        .max_bytes = ANSWER_MAX,
    };

    session->client = http_client_new(&options);
}

static void exchange(struct session *session, const char *path, const char *authorization,
                     struct str body)
{
    const char *headers[] = {"Content-Type: application/json", authorization, NULL};
    char url[1200];
    struct str base = str_of(session->options->server_url);

    while (base.len > 0 && base.ptr[base.len - 1] == '/') {
        base.len--;
    }
    (void)snprintf(url, sizeof(url), "%.*s%s", STR_FMT(base), path);
    http_client_send(session->client, "POST", url, headers, body, &session->answer);
}

/* "POST /agent/v1/token: 401 Sign in or send a valid token" or why there was no answer. */
static void explain(const struct session *session, const char *what, char *error, size_t error_cap)
{
    struct str detail = {NULL, 0};
    struct str body = buf_str(&session->answer.body);

    if (session->answer.status == 0) {
        (void)snprintf(error, error_cap, "%s: %s", what, session->answer.error);
        return;
    }
    if (!json_path_text(body, "detail", &detail) && !json_path_text(body, "title", &detail)) {
        detail = STR("no explanation");
    }
    (void)snprintf(error, error_cap, "%s: the server answered %ld: %.*s", what,
                   session->answer.status, detail.len > 150 ? 150 : (int)detail.len, detail.ptr);
}

/* Takes access_token and its life out of an answer. */
static bool keep_token(struct session *session, struct str body)
{
    struct str token;
    int64_t life_s;

    if (!json_path_text(body, "access_token", &token) || token.len == 0 ||
        token.len >= sizeof(session->access_token) ||
        !json_path_i64(body, "expires_in_seconds", &life_s) || life_s < 1 || life_s > 31536000) {
        return false;
    }
    memcpy(session->access_token, token.ptr, token.len);
    session->access_token[token.len] = '\0';
    /* A tenth of its life is kept in hand. */
    session->renew_us = clock_mono_us() + life_s * 900000;
    return true;
}

static bool read_join_token(const struct options *options, char *token, char *error,
                            size_t error_cap)
{
    CLEANUP(buf_free) struct buf data = {0};

    if (options->join_token[0] != '\0') {
        (void)snprintf(token, JOIN_TOKEN_MAX + 1, "%s", options->join_token);
        return true;
    }
    if (options->join_token_file[0] == '\0') {
        (void)snprintf(
            error, error_cap,
            "this node is not enrolled: set join_token_file to a file with a join token");
        return false;
    }
    int failed = file_read(options->join_token_file, 1024, &data);
    struct str text = str_trim(buf_str(&data));
    if (failed != 0 || text.len == 0 || text.len > JOIN_TOKEN_MAX) {
        (void)snprintf(error, error_cap, "the join token cannot be read from %.120s: %s",
                       options->join_token_file,
                       failed != 0 ? strerrordesc_np(failed) : "it holds no token");
        return false;
    }
    (void)snprintf(token, JOIN_TOKEN_MAX + 1, "%.*s", STR_FMT(text));
    return true;
}

static void add_file_member(struct enc *enc, const char *key, const char *path)
{
    CLEANUP(buf_free) struct buf data = {0};

    if (file_read(path, 512, &data) == 0 && str_trim(buf_str(&data)).len > 0) {
        enc_key(enc, key);
        enc_str(enc, str_trim(buf_str(&data)));
    }
}

/* A device of an inventory: its type and serial; empty where they are not plain texts. */
static bool read_device(struct json_reader *reader, struct str *ret_type, struct str *ret_serial)
{
    enum json_type member;
    struct str key;

    *ret_type = *ret_serial = (struct str){0};
    while ((member = json_next(reader, &key)) != JSON_END) {
        bool plain = true;
        struct str *to = str_eq_c(key, "type")     ? ret_type
                         : str_eq_c(key, "serial") ? ret_serial
                                                   : NULL;

        if (member == JSON_ERROR ||
            !(to != NULL && member == JSON_STR ? json_get_raw_str(reader, to, &plain)
                                               : json_skip(reader))) {
            return false;
        }
        if (!plain) {
            *to = (struct str){0};
        }
    }
    return true;
}

/* The serials of the GPUs that a report tells of: with the host's own they say which machine this
 * is. */
static void add_gpus(struct enc *enc, struct str report)
{
    struct json_reader reader;
    struct str type;
    struct str serial;
    struct str raw;

    enc_key(enc, "gpus");
    enc_arr(enc);
    if (report.len > 0 && json_path(report, "inventory/devices", &raw)) {
        json_open(&reader, raw);
        bool more = json_next(&reader, NULL) == JSON_ARR;
        while (more && json_next(&reader, NULL) == JSON_OBJ &&
               read_device(&reader, &type, &serial)) {
            if (str_eq_c(type, "gpu") && serial.len > 0) {
                enc_str(enc, serial);
            }
        }
    }
    enc_arr_end(enc);
}

static void write_enrolment(const struct session *session, const char *token, struct str report,
                            struct buf *out)
{
    uint8_t public_key[ED25519_PUBLIC_LEN];
    char key[64];
    char path[PATH_MAX];
    struct enc enc;

    ed25519_public(session->identity->key, public_key);
    crypto_b64(public_key, sizeof(public_key), key);
    enc_init(&enc, out);
    enc_obj(&enc);
    enc_key(&enc, "token");
    enc_cstr(&enc, token);
    enc_key(&enc, "name");
    enc_cstr(&enc, session->options->node_name);
    enc_key(&enc, "public_key");
    enc_cstr(&enc, key);
    enc_key(&enc, "hardware");
    enc_obj(&enc);
    add_file_member(
        &enc, "serial",
        options_path(session->options, "/sys/class/dmi/id/product_serial", path, sizeof(path)));
    add_file_member(&enc, "machine_id", "/etc/machine-id");
    add_gpus(&enc, report);
    enc_obj_end(&enc);
    enc_obj_end(&enc);
}

/* report: the one that is about to be sent; empty when there is none. */
static bool enroll(struct session *session, struct str report, char *error, size_t error_cap)
{
    CLEANUP(buf_free) struct buf body = {0};
    char token[JOIN_TOKEN_MAX + 1];

    if (!read_join_token(session->options, token, error, error_cap)) {
        return false;
    }
    write_enrolment(session, token, report, &body);
    exchange(session, "/agent/v1/enroll", NULL, buf_str(&body));
    explicit_bzero(token, sizeof(token));
    if (session->answer.status == 202) {
        (void)snprintf(
            error, error_cap,
            "this node asks to come back; it waits for a person's approval in the console");
        return false;
    }
    if (session->answer.status != 201 && session->answer.status != 200) {
        explain(session, "the node could not be enrolled", error, error_cap);
        return false;
    }
    struct str answer = buf_str(&session->answer.body);
    if (!identity_enrolled(session->options->state_dir, answer, session->identity, error,
                           error_cap)) {
        return false;
    }
    (void)keep_token(session, answer);
    log_info("enrolled as node %s", session->identity->node_id);
    return true;
}

static void write_node_id(const struct session *session, struct enc *enc)
{
    enc_obj(enc);
    enc_key(enc, "node_id");
    enc_cstr(enc, session->identity->node_id);
}

/* A signed challenge for a new access token. */
static bool renew_token(struct session *session, char *error, size_t error_cap)
{
    CLEANUP(buf_free) struct buf body = {0};
    CLEANUP(buf_free) struct buf text = {0};
    uint8_t signature[ED25519_SIGNATURE_LEN];
    char signature_text[96];
    struct str nonce;
    struct enc enc;

    session->access_token[0] = '\0';
    enc_init(&enc, &body);
    write_node_id(session, &enc);
    enc_obj_end(&enc);
    exchange(session, "/agent/v1/challenge", NULL, buf_str(&body));
    if (session->answer.status != 200 ||
        !json_path_text(buf_str(&session->answer.body), "nonce", &nonce) || nonce.len > 512) {
        explain(session, "no access token (challenge)", error, error_cap);
        return false;
    }
    buf_printf(&text, "muster-agent-token\n%s\n%.*s", session->identity->node_id, STR_FMT(nonce));
    ed25519_sign(session->identity->key, buf_str(&text), signature);
    crypto_b64(signature, sizeof(signature), signature_text);
    buf_clear(&body);
    enc_init(&enc, &body);
    write_node_id(session, &enc);
    enc_key(&enc, "nonce");
    enc_str(&enc, nonce);
    enc_key(&enc, "signature");
    enc_cstr(&enc, signature_text);
    enc_obj_end(&enc);
    exchange(session, "/agent/v1/token", NULL, buf_str(&body));
    if (session->answer.status != 200 || !keep_token(session, buf_str(&session->answer.body))) {
        explain(session, "no access token", error, error_cap);
        return false;
    }
    return true;
}

static void post_report(struct session *session, struct str body)
{
    char authorization[ACCESS_TOKEN_CAP + 32];

    (void)snprintf(authorization, sizeof(authorization), "Authorization: Bearer %s",
                   session->access_token);
    exchange(session, "/agent/v1/report", authorization, body);
    explicit_bzero(authorization, sizeof(authorization));
}

/* Enrols and renews the token when needed, then sends. */
static void deliver(struct session *session, struct str body, struct uplink_result *result)
{
    bool fresh = false;

    result->sent = false;
    if (!session->identity->enrolled &&
        !enroll(session, body, result->error, sizeof(result->error))) {
        return;
    }
    if (session->access_token[0] == '\0' || clock_mono_us() >= session->renew_us) {
        if (!renew_token(session, result->error, sizeof(result->error))) {
            return;
        }
        fresh = true;
    }
    post_report(session, body);
    if (session->answer.status == 401 && !fresh) {
        if (!renew_token(session, result->error, sizeof(result->error))) {
            return;
        }
        post_report(session, body);
    }
    result->sent = session->answer.status != 0;
    if (session->answer.status != 200) {
        explain(session, "the report was not taken", result->error, sizeof(result->error));
    }
}

static void run_job(struct uplink *uplink, struct buf *body, int sync_fd)
{
    struct uplink_result result = {.error = ""};
    struct session *session = &uplink->session;

    if (sync_fd >= 0) {
        /* Not on the main thread: a sick disk may take its time. */
        if (fdatasync(sync_fd) != 0) {
            log_warning("the spool could not be synced: %s", strerrordesc_np(errno));
        }
        (void)close(sync_fd);
    }
    session->answer.status = 0;
    session->answer.retry_after_s = -1;
    deliver(session, buf_str(body), &result);
    result.status = session->answer.status;
    result.retry_after_s = session->answer.retry_after_s;
    if (result.sent && result.status == 200) {
        buf_add(&result.body, session->answer.body.ptr, session->answer.body.len);
    }
    (void)pthread_mutex_lock(&uplink->lock);
    uplink->result = result;
    uplink->busy = false;
    (void)pthread_mutex_unlock(&uplink->lock);
    uint64_t one = 1;
    if (write(uplink->notify_fd, &one, sizeof(one)) < 0) {
        log_error("the main loop could not be woken: %s", strerrordesc_np(errno));
    }
}

static void *uplink_main(void *arg)
{
    struct uplink *uplink = arg;

    for (;;) {
        (void)pthread_mutex_lock(&uplink->lock);
        while (!uplink->busy && !uplink->stopping) {
            (void)pthread_cond_wait(&uplink->wake, &uplink->lock);
        }
        bool stopping = uplink->stopping;
        bool reconnect = uplink->reconnect;
        struct buf body = uplink->body;
        int sync_fd = uplink->sync_fd;
        uplink->body = (struct buf){0};
        uplink->reconnect = false;
        (void)pthread_mutex_unlock(&uplink->lock);
        if (stopping) {
            buf_free(&body);
            return NULL;
        }
        if (reconnect) {
            http_client_free(uplink->session.client);
            open_client(&uplink->session);
        }
        run_job(uplink, &body, sync_fd);
        buf_free(&body);
    }
}

struct uplink *uplink_start(const struct options *options, struct identity *identity, int notify_fd)
{
    struct uplink *uplink = calloc(1, sizeof(*uplink));
    sigset_t all;
    sigset_t before;

    assert(uplink != NULL);
    uplink->session.options = options;
    uplink->session.identity = identity;
    uplink->notify_fd = notify_fd;
    uplink->sync_fd = -1;
    open_client(&uplink->session);
    (void)pthread_mutex_init(&uplink->lock, NULL);
    (void)pthread_cond_init(&uplink->wake, NULL);
    /* Signals belong to the main loop. */
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&uplink->thread, NULL, uplink_main, uplink);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed != 0) {
        http_client_free(uplink->session.client);
        free(uplink);
        errno = failed;
        return NULL;
    }
    return uplink;
}

void uplink_stop(struct uplink *uplink)
{
    if (uplink == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&uplink->lock);
    uplink->stopping = true;
    (void)pthread_cond_signal(&uplink->wake);
    (void)pthread_mutex_unlock(&uplink->lock);
    (void)pthread_join(uplink->thread, NULL);
    http_client_free(uplink->session.client);
    http_answer_free(&uplink->session.answer);
    buf_free(&uplink->body);
    buf_free(&uplink->result.body);
    explicit_bzero(uplink->session.access_token, sizeof(uplink->session.access_token));
    (void)pthread_mutex_destroy(&uplink->lock);
    (void)pthread_cond_destroy(&uplink->wake);
    free(uplink);
}

bool uplink_busy(const struct uplink *uplink)
{
    struct uplink *mine = (struct uplink *)uplink;

    (void)pthread_mutex_lock(&mine->lock);
    bool busy = mine->busy;
    (void)pthread_mutex_unlock(&mine->lock);
    return busy;
}

void uplink_send(struct uplink *uplink, struct buf *body, int sync_fd)
{
    (void)pthread_mutex_lock(&uplink->lock);
    assert(!uplink->busy);
    uplink->body = *body;
    *body = (struct buf){0};
    uplink->sync_fd = sync_fd;
    uplink->busy = true;
    (void)pthread_cond_signal(&uplink->wake);
    (void)pthread_mutex_unlock(&uplink->lock);
}

void uplink_take(struct uplink *uplink, struct uplink_result *ret_result)
{
    (void)pthread_mutex_lock(&uplink->lock);
    *ret_result = uplink->result;
    uplink->result = (struct uplink_result){.error = ""};
    (void)pthread_mutex_unlock(&uplink->lock);
}

void uplink_reconnect(struct uplink *uplink)
{
    (void)pthread_mutex_lock(&uplink->lock);
    uplink->reconnect = true;
    (void)pthread_mutex_unlock(&uplink->lock);
}

bool uplink_enroll_now(const struct options *options, struct identity *identity, char *error,
                       size_t error_cap)
{
    struct session session = {.options = options, .identity = identity};

    open_client(&session);
    bool done = enroll(&session, (struct str){0}, error, error_cap);
    http_client_free(session.client);
    http_answer_free(&session.answer);
    explicit_bzero(session.access_token, sizeof(session.access_token));
    return done;
}
