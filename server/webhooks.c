/* Webhooks: what kinds of events there are, and how a message is sent. */
#include "server/webhooks.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/crypto.h"
#include "oidc/issuer.h"
#include "server/fetch.h"
#include "server/secret_store.h"
#include "server/webhook_sign.h"

#define TIMEOUT_MS 10000
#define STATUS_GONE 410

#define KIND_JSON(kind, type, state) \
    "{\"kind\":\"" kind "\",\"type\":\"" type "\",\"to\":\"" state "\"},"
const char webhook_kinds_json[] = "[" WEBHOOK_KIND_TABLE(KIND_JSON) "{}]";
#undef KIND_JSON

/* ------------------------------------------------------------------ sending */

const char *webhook_url_problem(struct arena *arena, struct str url)
{
    char authority[272];
    ptrdiff_t query = str_find(url, STR("?"), 0);
    struct str path = {url.ptr, query < 0 ? url.len : (size_t)query};
    const char *text = arena_strndup(arena, url.ptr, url.len);

    for (size_t i = 0; i < url.len; i++) {
        if ((uint8_t)url.ptr[i] <= ' ' || (uint8_t)url.ptr[i] >= 0x7f || url.ptr[i] == '\\') {
            return "An address has no spaces, control characters or backslashes.";
        }
    }
    if (!http_url_authority(text, authority, sizeof(authority))) {
        return "An address begins with https:// and a host, without a user name.";
    }
    if (fetch_is_allowed(text)) {
        return NULL;
    }
    const char *problem = oidc_url_problem(path);
    if (problem != NULL) {
        return arena_printf(arena, "%s.", problem);
    }
    return oidc_url_is_private(path)
               ? "The address is not a public one; the installation's owner can allow it "
                 "(outbound_allow)."
               : NULL;
}

/* The signatures of all that are valid; "" when the first does not open. */
static const char *sign_all(struct db_conn *db, struct arena *arena, const struct uuid *org,
                            const struct webhook_message *message, int64_t timestamp_s)
{
    const struct secret_place place = {"webhook.secret", message->webhook};
    const struct str sealed[] = {message->sealed, message->sealed_previous};
    CLEANUP(buf_free) struct buf text = {0};

    for (size_t i = 0; i < COUNTOF(sealed); i++) {
        char signature[WEBHOOK_SIGNATURE_CAP];
        struct str key;
        if (sealed[i].ptr == NULL) {
            continue;
        }
        if (secret_store_unseal(db, org, &place, sealed[i], arena, &key) != ERR_NONE) {
            return "";
        }
        webhook_sign(key, message->id, timestamp_s, message->body, signature);
        buf_printf(&text, "%s%s", i == 0 ? "" : " ", signature);
    }
    return text.len == 0 ? "" : arena_strndup(arena, text.ptr, text.len);
}

static void judge(const struct http_answer *answer, struct webhook_end *end)
{
    end->status = (int)answer->status;
    end->retry_after_s = answer->retry_after_s;
    if (answer->status == 0) {
        (void)snprintf(end->error, sizeof(end->error), "No answer: %s.", answer->error);
    } else if (answer->status >= 300 && answer->status < 400) {
        (void)snprintf(end->error, sizeof(end->error),
                       "It answered %ld, a redirect, which is not followed.", answer->status);
    } else if (answer->status < 200 || answer->status >= 300) {
        (void)snprintf(end->error, sizeof(end->error), "It answered %ld.", answer->status);
    }
}

void webhook_send(struct db_conn *db, struct arena *arena, const struct uuid *org,
                  const struct webhook_message *message, struct webhook_end *ret_end)
{
    int64_t timestamp_s = clock_wall_us() / 1000000;
    int64_t begun_us = clock_mono_us();
    struct http_answer answer = {0};

    *ret_end = (struct webhook_end){.retry_after_s = -1};
    const char *signatures = sign_all(db, arena, org, message, timestamp_s);
    if (signatures[0] == '\0') {
        (void)snprintf(ret_end->error, sizeof(ret_end->error), "%s",
                       "The secret does not open; the server's log says why.");
        return;
    }
    const char *const headers[] = {
        "Content-Type: application/json",
        "User-Agent: Muster",
        arena_printf(arena, "webhook-id: %.*s", STR_FMT(message->id)),
        arena_printf(arena, "webhook-timestamp: %" PRId64, timestamp_s),
        arena_printf(arena, "webhook-signature: %s", signatures),
        NULL,
    };
    const struct fetch fetch = {.method = "POST",
                                .url = message->url,
                                .headers = headers,
                                .body = message->body,
                                .ca_certificate = message->ca_certificate,
                                .timeout_ms = TIMEOUT_MS};
    fetch_send(&fetch, &answer);
    judge(&answer, ret_end);
    ret_end->duration_ms = (clock_mono_us() - begun_us) / 1000;
    http_answer_free(&answer);
}

/* ------------------------------------------------------------------ the database */

static struct str copy(struct arena *arena, struct str text)
{
    return (struct str){arena_strndup(arena, text.ptr, text.len), text.len};
}

void webhook_message_read(struct arena *arena, const struct db_rows *rows,
                          const struct uuid *webhook, struct webhook_message *ret_message)
{
    struct str ca = db_text(rows, 0, db_rows_col(rows, "ca_certificate"));

    *ret_message = (struct webhook_message){
        .webhook = *webhook,
        .url = copy(arena, db_text(rows, 0, db_rows_col(rows, "url"))).ptr,
        .ca_certificate = ca.len > 0 ? copy(arena, ca) : (struct str){0},
        .sealed = secret_column(rows, 0, db_rows_col(rows, "secret"), arena),
        .sealed_previous = secret_column(rows, 0, db_rows_col(rows, "previous_secret"), arena),
        .id = copy(arena, db_text(rows, 0, db_rows_col(rows, "delivery_id"))),
        .body = copy(arena, db_text(rows, 0, db_rows_col(rows, "payload"))),
    };
}

/* A fifth more or less, so that many that failed together do not come back together. */
static int64_t with_chance(int64_t pause_s)
{
    uint16_t chance;

    crypto_random(&chance, sizeof(chance));
    return pause_s - pause_s / 5 + pause_s * 2 / 5 * chance / UINT16_MAX;
}

enum err webhook_tell(struct db_conn *db, struct arena *arena, const struct uuid *org,
                      const struct webhook_message *message, const struct webhook_end *end,
                      int64_t attempts, bool is_test)
{
    int64_t pause_s = with_chance(webhook_pause_s(attempts + 1));
    struct db_args args = {0};
    struct db_rows *rows = NULL;

    db_arg_uuid(&args, arena, &message->webhook);
    db_arg_str(&args, arena, message->id);
    db_arg_i64(&args, arena, end->status);
    db_arg_i64(&args, arena, end->duration_ms);
    db_arg(&args, end->error);
    db_arg_bool(&args, end->status == STATUS_GONE);
    db_arg_i64(&args, arena, end->retry_after_s > pause_s ? end->retry_after_s : pause_s);
    db_arg_bool(&args, is_test);
    enum err err = db_exec(db, SQL_WEBHOOK_TOLD, org, &args, &rows);
    db_rows_free(rows);
    return err;
}
