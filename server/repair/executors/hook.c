/* The operator's own automation as executor: orders are signed messages, ends come by call-back. */
#include "server/repair/executors/hook.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/http_client.h"
#include "server/repair/executors/executor.h"
#include "server/repair/executors/targets.h"
#include "server/webhook_sign.h"

#define SECRET_MAX ((size_t)256)
#define ANSWER_MAX ((size_t)64 << 10)
#define ASKS 5
#define ASK_PAUSE_MS 2000
#define SKEW_S 300 /* Standard Webhooks: five minutes */

/* ------------------------------------------------------------------ one call */

static bool read_key(const struct hook_target *hook, struct arena *arena, struct str *ret_key,
                     char error[HOOK_ERROR_MAX])
{
    CLEANUP(buf_free) struct buf text = {0};
    int failed = file_read(hook->secret_file.ptr, SECRET_MAX, &text);

    if (failed != 0) {
        (void)snprintf(error, HOOK_ERROR_MAX, "The secret's file cannot be read: %s.",
                       strerrordesc_np(failed));
        return false;
    }
    if (!webhook_secret_key(arena, str_trim(buf_str(&text)), ret_key)) {
        (void)snprintf(error, HOOK_ERROR_MAX, "%s",
                       "The secret's file holds no whsec_ and base64 of 24 to 64 bytes.");
        return false;
    }
    return true;
}

/* False: nothing was sent. */
static bool send_signed(const struct hook_target *hook, struct arena *arena, const char *method,
                        const char *url, struct str id, struct str body, struct http_answer *answer,
                        char error[HOOK_ERROR_MAX])
{
    const struct http_client_options options = {
        .ca_file = hook->ca_file.len > 0 ? hook->ca_file.ptr : NULL,
        .timeout_ms = (long)hook->timeout_s * 1000,
        .max_bytes = ANSWER_MAX,
    };
    int64_t now_s = clock_wall_us() / 1000000;
    char signature[WEBHOOK_SIGNATURE_CAP];
    struct str key;

    if (!read_key(hook, arena, &key, error)) {
        return false;
    }
    webhook_sign(key, id, now_s, body, signature);
    const char *const headers[] = {
        "Content-Type: application/json",
        "User-Agent: Muster",
        arena_printf(arena, "webhook-id: %.*s", STR_FMT(id)),
        arena_printf(arena, "webhook-timestamp: %" PRId64, now_s),
        arena_printf(arena, "webhook-signature: %s", signature),
        NULL,
    };
    struct http_client *http = http_client_new(&options);
    http_client_send(http, method, url, headers, body, answer);
    http_client_free(http);
    return true;
}

/* What is not in the table may have had an effect. */
static enum hook_said said_by(const struct http_answer *answer)
{
    static const struct {
        long status;
        enum hook_said said;
    } known[] = {{202, HOOK_ACCEPTED}, {408, HOOK_UNCLEAR}, {409, HOOK_BUSY}, {429, HOOK_BUSY}};

    for (size_t i = 0; i < COUNTOF(known); i++) {
        if (answer->status == known[i].status) {
            return known[i].said;
        }
    }
    if (answer->status == 0) {
        return answer->unsent ? HOOK_BUSY : HOOK_UNCLEAR;
    }
    return answer->status >= 400 && answer->status < 500 ? HOOK_REFUSED : HOOK_UNCLEAR;
}

enum hook_said hook_order(const struct hook_target *hook, struct arena *arena, struct str id,
                          struct str body, char error[HOOK_ERROR_MAX])
{
    CLEANUP(http_answer_free) struct http_answer answer = {0};

    if (!send_signed(hook, arena, "POST", hook->url.ptr, id, body, &answer, error)) {
        return HOOK_REFUSED;
    }
    if (answer.status == 0) {
        (void)snprintf(error, HOOK_ERROR_MAX, "No answer: %s.", answer.error);
    } else {
        (void)snprintf(error, HOOK_ERROR_MAX, "It answered %ld.", answer.status);
    }
    return said_by(&answer);
}

/* ------------------------------------------------------------------ asking afterwards */

static const char *status_address(const struct hook_target *hook, struct arena *arena,
                                  struct str id)
{
    ptrdiff_t at = str_find(hook->status_url, STR("{id}"), 0);
    struct str head = {hook->status_url.ptr, (size_t)at};

    return arena_printf(arena, "%.*s%.*s%s", STR_FMT(head), STR_FMT(id),
                        hook->status_url.ptr + at + 4);
}

static enum hook_said read_status(const struct http_answer *answer)
{
    json_error_t at;
    json_t *root = answer->status != 200 || answer->body.len == 0
                       ? NULL
                       : json_loadb(answer->body.ptr, answer->body.len, 0, &at);
    struct str state = str_of(json_string_value(json_object_get(root, "state")));
    enum hook_said said = str_eq_c(state, "accepted") ? HOOK_ACCEPTED
                          : str_eq_c(state, "done")   ? HOOK_DONE
                          : str_eq_c(state, "failed") ? HOOK_FAILED
                                                      : HOOK_UNCLEAR;

    json_decref(root);
    return said;
}

enum hook_said hook_ask(const struct hook_target *hook, struct arena *arena, struct str id,
                        char error[HOOK_ERROR_MAX])
{
    enum hook_said said = HOOK_UNCLEAR;

    if (hook->status_url.len == 0) {
        return said;
    }
    for (int i = 0; i < ASKS && said == HOOK_UNCLEAR; i++) {
        CLEANUP(http_answer_free) struct http_answer answer = {0};
        if (i > 0) {
            (void)nanosleep(&(struct timespec){.tv_sec = ASK_PAUSE_MS / 1000}, NULL);
        }
        if (send_signed(hook, arena, "GET", status_address(hook, arena, id), id, STR(""), &answer,
                        error)) {
            said = read_status(&answer);
        }
    }
    return said;
}

bool hook_verify(const struct hook_target *hook, struct arena *arena, struct str id,
                 struct str timestamp, struct str body, struct str signatures)
{
    char error[HOOK_ERROR_MAX];
    int64_t at_s = 0;
    int64_t now_s = clock_wall_us() / 1000000;
    struct str key;

    return str_parse_i64(timestamp, 0, INT32_MAX * INT64_C(4), &at_s) && at_s > now_s - SKEW_S &&
           at_s < now_s + SKEW_S && read_key(hook, arena, &key, error) &&
           webhook_verify(key, id, at_s, body, signatures);
}

/* ------------------------------------------------------------------ the executor */

static const char *hook_plan(enum repair_action action)
{
    (void)action;
    return "The operator's own automation is asked to do it.";
}

/* It is reached or not when it is asked; nothing is known before. */
static bool hook_probe(const struct repair_work *work, const char **ret_why)
{
    (void)work;
    (void)ret_why;
    return true;
}

static enum act_result hook_act(struct db_conn *conn, struct arena *arena, const struct uuid *org,
                                const struct repair_work *work)
{
    return executor_order(conn, arena, org, work, "{}");
}

const struct executor executor_hook = {
    .name = "webhook",
    .who = "The operator's automation",
    .actions = HOOK_ACTIONS,
    .plan = hook_plan,
    .probe = hook_probe,
    .act = hook_act,
    .watch = executor_watch_order,
};
