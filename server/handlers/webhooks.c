/* Handlers of webhooks: where C must judge an address, seal a secret or send a test. */
#include "server/handlers/webhooks.h"

#include "base/crypto.h"
#include "server/bind.h"
#include "server/fields_webhooks.h"
#include "server/outbound.h"
#include "server/reply.h"
#include "server/secret_store.h"
#include "server/webhook_sign.h"
#include "server/webhooks.h"

/* ------------------------------------------------------------------ addresses */

static enum err judge(struct request *rq, const struct webhook_in *in)
{
    const char *problem = in->has_url ? webhook_url_problem(rq->arena, in->url) : NULL;

    if (problem != NULL) {
        decode_error_add(rq->arena, &rq->errors, "#/url", "not_allowed", problem);
    }
    if (in->ca_certificate.len > 0 &&
        str_find(in->ca_certificate, STR("-----BEGIN CERTIFICATE-----"), 0) < 0) {
        decode_error_add(
            rq->arena, &rq->errors, "#/ca_certificate", "invalid_format",
            "Send the authority's certificate in PEM, from -----BEGIN CERTIFICATE----- on.");
    }
    if (rq->errors.count == 0) {
        return ERR_NONE;
    }
    return rq->errors.count == 1
               ? fail(rq, ERR_INVALID_FIELDS, "1 field was refused.")
               : fail(rq, ERR_INVALID_FIELDS, "%zu fields were refused.", rq->errors.count);
}

/* ------------------------------------------------------------------ secrets */

/* A fresh key on its way into the database; rq->in of the work on the pool's thread. */
struct sealing {
    enum sql_id sql;
    struct uuid id;
    struct db_args args; /* up to the sealed secret, which comes behind `at` of them */
    int at;
    uint8_t key[WEBHOOK_KEY_LEN];
};

/* The secret is in the first answer only: what is stored for replays never had it. */
static void show_once(struct request *rq, const char *secret)
{
    if (rq->answer.len == 0) {
        return;
    }
    struct str head = {rq->answer.ptr, rq->answer.len - 1};
    rq->answer =
        str_of(rq->replayed
                   ? arena_printf(rq->arena, "%.*s,\"secret\":null,\"secret_shown_once\":true}",
                                  STR_FMT(head))
                   : arena_printf(rq->arena, "%.*s,\"secret\":\"%s\",\"secret_shown_once\":false}",
                                  STR_FMT(head), secret));
}

/* Runs where blocking is allowed: sealing asks the database for the org's key. */
static enum err store_sealed(struct request *rq, struct db_conn *db)
{
    const struct sealing *sealing = rq->in;
    const struct secret_place place = {"webhook.secret", sealing->id};
    const struct str key = {(const char *)sealing->key, sizeof(sealing->key)};
    struct db_args args = {0};
    struct db_rows *rows = NULL;
    struct str sealed;
    char secret[WEBHOOK_SECRET_CAP];

    enum err err = secret_store_seal(db, &rq->caller.org, &place, key, rq->arena, &sealed);
    if (err != ERR_NONE) {
        return fail(rq, err, "The secret could not be sealed; the server's log says why.");
    }
    for (int i = 0; i < sealing->args.count; i++) {
        if (i == sealing->at) {
            db_arg_bytes(&args, rq->arena, (const uint8_t *)sealed.ptr, sealed.len);
        }
        db_arg(&args, sealing->args.values[i]);
    }
    if (sealing->at == sealing->args.count) {
        db_arg_bytes(&args, rq->arena, (const uint8_t *)sealed.ptr, sealed.len);
    }
    err = db_exec(db, sealing->sql, &rq->caller.org, &args, &rows);
    if (err != ERR_NONE) {
        reply_database_failed(rq, err);
        return rq->err;
    }
    err = reply_apply(rq, rows);
    db_rows_free(rows);
    if (err == ERR_NONE) {
        webhook_secret_text(key, secret);
        show_once(rq, secret);
    }
    return err;
}

enum err webhook_create(struct request *rq)
{
    const struct webhook_in *in = rq->in;
    struct sealing *sealing = arena_zalloc(rq->arena, sizeof(*sealing));
    enum err err = judge(rq, in);

    if (err != ERR_NONE) {
        return err;
    }
    *sealing = (struct sealing){.sql = SQL_WEBHOOK_CREATE, .id = uuid_v7()};
    crypto_random(sealing->key, sizeof(sealing->key));
    bind_key(rq, &sealing->args);
    bind_actor(rq, &sealing->args);
    db_arg_uuid(&sealing->args, rq->arena, &sealing->id);
    sealing->at = sealing->args.count;
    bind_fields(rq, webhook_create_body, in, &sealing->args);
    rq->in = sealing;
    return outbound_run(rq, OUTBOUND_TRY, store_sealed);
}

enum err webhook_rotate(struct request *rq)
{
    struct sealing *sealing = arena_zalloc(rq->arena, sizeof(*sealing));

    *sealing = (struct sealing){.sql = SQL_WEBHOOK_ROTATE, .id = rq->path_ids[0]};
    crypto_random(sealing->key, sizeof(sealing->key));
    db_arg_uuid(&sealing->args, rq->arena, &rq->path_ids[0]);
    bind_key(rq, &sealing->args);
    bind_actor(rq, &sealing->args);
    bind_fields(rq, webhook_rotate_body, rq->in, &sealing->args);
    sealing->at = sealing->args.count;
    rq->in = sealing;
    return outbound_run(rq, OUTBOUND_TRY, store_sealed);
}

/* ------------------------------------------------------------------ changes */

enum err webhook_update(struct request *rq)
{
    const struct webhook_in *in = rq->in;
    struct db_args args = {0};
    enum err err = judge(rq, in);

    if (err != ERR_NONE) {
        return err;
    }
    db_arg_uuid(&args, rq->arena, &rq->path_ids[0]);
    db_arg_str(&args, rq->arena, rq->if_match);
    bind_actor(rq, &args);
    bind_fields(rq, webhook_update_body, in, &args);
    db_arg(&args, arena_printf(rq->arena, "%s,%s", in->has_ca_certificate ? "ca_certificate" : "",
                               in->has_cluster_id ? "cluster_id" : ""));
    return request_query(rq, SQL_WEBHOOK_UPDATE, true, &args, NULL);
}

/* ------------------------------------------------------------------ a test */

static enum err answer_delivery(struct request *rq, struct db_conn *db, struct str delivery,
                                bool replayed)
{
    struct db_args args = {0};
    struct db_rows *rows = NULL;

    db_arg_uuid(&args, rq->arena, &rq->path_ids[0]);
    db_arg_str(&args, rq->arena, delivery);
    enum err err = db_exec(db, SQL_WEBHOOK_DELIVERY_GET, &rq->caller.org, &args, &rows);
    if (err != ERR_NONE) {
        reply_database_failed(rq, err);
        return rq->err;
    }
    err = reply_apply(rq, rows);
    rq->replayed = replayed;
    db_rows_free(rows);
    return err;
}

static enum err send_test(struct request *rq, struct db_conn *db)
{
    const struct db_args *args = rq->in;
    struct webhook_message message;
    struct webhook_end end;
    struct db_rows *rows = NULL;

    enum err err = db_exec(db, SQL_WEBHOOK_TEST, &rq->caller.org, args, &rows);
    if (err != ERR_NONE) {
        reply_database_failed(rq, err);
        return rq->err;
    }
    if (db_i64(rows, 0, db_rows_col(rows, "status")) != 200) {
        err = reply_apply(rq, rows);
        db_rows_free(rows);
        return err;
    }
    bool replayed = db_bool(rows, 0, db_rows_col(rows, "replayed"));
    webhook_message_read(rq->arena, rows, &rq->path_ids[0], &message);
    db_rows_free(rows);
    if (!replayed) {
        webhook_send(db, rq->arena, &rq->caller.org, &message, &end);
        err = webhook_tell(db, rq->arena, &rq->caller.org, &message, &end, 0, true);
        if (err != ERR_NONE) {
            reply_database_failed(rq, err);
            return rq->err;
        }
    }
    return answer_delivery(rq, db, message.id, replayed);
}

enum err webhook_test(struct request *rq)
{
    struct db_args *args = arena_zalloc(rq->arena, sizeof(*args));
    struct uuid id = uuid_v7();

    db_arg_uuid(args, rq->arena, &rq->path_ids[0]);
    bind_key(rq, args);
    bind_actor(rq, args);
    db_arg_uuid(args, rq->arena, &id);
    rq->in = args;
    return outbound_run(rq, OUTBOUND_TRY, send_test);
}
