/* Reports of agents: decode, hand to a writer, then the rare parts, then commands. */
#include "server/handlers/report.h"

#include <stdint.h>
#include <string.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/encode.h"
#include "base/log.h"
#include "server/agents.h"
#include "server/exchange.h"
#include "server/follow.h"
#include "server/loop.h"
#include "server/reply.h"
#include "server/report_answers.h"
#include "server/wake.h"

/* One report from its body to its answer; lies in the request's arena. */
struct exchange_of_report {
    struct request *rq;
    struct report report;
    struct ingest_item item;
};

static struct exchange_of_report *find_exchange(struct request *rq)
{
    /* agent_report put it there: its own, so it may write to it. */
    void *own;
    memcpy(&own, &rq->in, sizeof own);
    return own;
}

/* ------------------------------------------------------------------------------- the answer */

static void encode_rejects(struct enc *enc, const struct exchange_of_report *ex)
{
    const struct report *report = &ex->report;
    for (size_t i = 0; i < report->reject_count; i++) {
        enc_obj(enc);
        enc_key(enc, "stream");
        enc_i64(enc, report->rejects[i].stream);
        enc_key(enc, "seq");
        enc_i64(enc, report->rejects[i].seq);
        enc_key(enc, "reason");
        enc_cstr(enc, report->rejects[i].reason);
        enc_obj_end(enc);
    }
    for (size_t s = 0; s < report->stream_count; s++) {
        const struct report_stream *stream = &report->streams[s];
        for (size_t i = stream->first; i < stream->first + stream->count; i++) {
            if (!batch_item_is_refused(&ex->item.batch, i)) {
                continue;
            }
            enc_obj(enc);
            enc_key(enc, "stream");
            enc_i64(enc, stream->stream);
            enc_key(enc, "seq");
            enc_i64(enc, report->events[i].seq);
            enc_key(enc, "reason");
            enc_cstr(enc, "the database refuses a value of it");
            enc_obj_end(enc);
        }
    }
}

static size_t count_accepted(const struct exchange_of_report *ex)
{
    size_t accepted = 0;
    for (size_t i = 0; i < ex->report.event_count; i++) {
        accepted += batch_item_is_refused(&ex->item.batch, i) ? 0 : 1;
    }
    return accepted;
}

/* Nothing but "go on", in bytes that were made at the start: nine of ten reports and more. */
static bool answer_plain(struct exchange_of_report *ex, int64_t tenths)
{
    struct exchange *exchange = exchange_of(ex->rq);
    if (ex->report.event_count > 0 || ex->report.reject_count > 0 ||
        exchange->headers[HEADER_REQUEST_ID].ptr != NULL) {
        return false;
    }
    exchange->ready = report_answer_plain(tenths);
    ex->rq->status = 200;
    return exchange->ready != NULL;
}

/* What an answer brings beside the receipt: JSON, empty for none. */
struct answer_parts {
    struct str commands; /* the inside of an array, as `keys` */
    struct str keys;
    struct str settings; /* an object */
};

static enum err answer(struct exchange_of_report *ex, struct answer_parts parts)
{
    struct request *rq = ex->rq;
    bool reconnect = request_stopping(rq) || agents_reconnect_due();
    int64_t tenths = (int64_t)(agents_next_interval() * 10 + 0.5);
    if (!reconnect && parts.commands.len == 0 && parts.keys.len == 0 && parts.settings.len == 0 &&
        answer_plain(ex, tenths)) {
        return ERR_NONE;
    }
    struct str rejects = {0};
    size_t accepted = count_accepted(ex);
    CLEANUP(buf_free) struct buf text = {0};
    if (accepted < ex->report.event_count || ex->report.reject_count > 0) {
        struct enc enc;
        enc_init(&enc, &text);
        encode_rejects(&enc, ex);
        rejects = buf_str(&text);
    }
    const char *body = arena_printf(
        rq->arena, REPORT_ANSWER_HEAD "\"commands\":[%.*s]%s%.*s%s%s%.*s}", (long long)tenths / 10,
        (long long)tenths % 10, accepted, STR_FMT(rejects), reconnect ? "true" : "false",
        STR_FMT(parts.commands), parts.keys.len > 0 ? ",\"command_keys\":[" : "",
        STR_FMT(parts.keys), parts.keys.len > 0 ? "]" : "",
        parts.settings.len > 0 ? ",\"settings\":" : "", STR_FMT(parts.settings));
    reply_json(rq, 200, str_of(body));
    return ERR_NONE;
}

/* ------------------------------------------------------------------------------- commands */

static void encode_command(struct enc *enc, const struct exchange_of_report *ex,
                           const struct db_rows *rows, int row)
{
    const struct caller *caller = &ex->rq->caller;
    struct command_order order = {
        .org = caller->org,
        .cluster = caller->cluster_id,
        .node = caller->node_id,
        .epoch_generation = db_i64(rows, row, db_rows_col(rows, "epoch_generation")),
        .epoch_n = db_i64(rows, row, db_rows_col(rows, "epoch_n")),
        .action = db_text(rows, row, db_rows_col(rows, "action")),
        .args = db_text(rows, row, db_rows_col(rows, "args")),
        .boot_id = db_text(rows, row, db_rows_col(rows, "boot_id")),
        .nonce = ex->report.nonce,
        .repair_no = db_i64(rows, row, db_rows_col(rows, "repair_no")),
    };
    int64_t n = db_i64(rows, row, db_rows_col(rows, "key_n"));
    uint8_t trusted[ED25519_PUBLIC_LEN];
    uint8_t ours[ED25519_PUBLIC_LEN];
    uint8_t signature[ED25519_SIGNATURE_LEN];
    size_t len =
        db_bytes(rows, row, db_rows_col(rows, "command_public_key"), trusted, sizeof trusted);
    CLEANUP(buf_free) struct buf payload = {0};
    if (!db_uuid(rows, row, db_rows_col(rows, "id"), &order.id)) {
        return;
    }
    command_payload(&order, &payload);
    if (!keys_cluster_public(agents_keys(), &order.cluster, n, false, ours) ||
        len != sizeof trusted || !crypto_equal(trusted, ours, sizeof ours) ||
        !keys_cluster_sign(agents_keys(), &order.cluster, n, buf_str(&payload), signature)) {
        log_error("a command waits because keys_dir does not hold the key that the cluster's "
                  "agents trust");
        return;
    }
    char text[96];
    crypto_b64(signature, sizeof signature, text);
    enc_obj(enc);
    enc_key(enc, "payload");
    enc_str(enc, buf_str(&payload));
    enc_key(enc, "signature");
    enc_cstr(enc, text);
    enc_obj_end(enc);
}

/* The key of that number, when keys_dir holds the one that the agents trust. */
static bool may_sign(const struct exchange_of_report *ex, const struct db_rows *rows, int64_t n)
{
    const struct uuid *cluster = &ex->rq->caller.cluster_id;
    uint8_t trusted[ED25519_PUBLIC_LEN];
    uint8_t ours[ED25519_PUBLIC_LEN];
    size_t len =
        db_bytes(rows, 0, db_rows_col(rows, "command_public_key"), trusted, sizeof trusted);

    return keys_cluster_public(agents_keys(), cluster, n, false, ours) && len == sizeof trusted &&
           crypto_equal(trusted, ours, sizeof ours);
}

/* The settings that the node should run, signed for it as an answer to this report. */
static void encode_settings(struct buf *text, const struct exchange_of_report *ex,
                            const struct db_rows *rows)
{
    struct str document = db_text(rows, 0, db_rows_col(rows, "settings"));
    const struct caller *caller = &ex->rq->caller;
    int64_t n = db_i64(rows, 0, db_rows_col(rows, "key_n"));
    uint8_t signature[ED25519_SIGNATURE_LEN];
    char node[UUID_TEXT_LEN + 1];
    char signed_text[96];
    CLEANUP(buf_free) struct buf payload = {0};
    struct enc enc;

    if (db_is_null(rows, 0, db_rows_col(rows, "settings"))) {
        return;
    }
    uuid_format(&caller->node_id, node);
    buf_printf(&payload, "muster-settings\n%s\n%.*s\n", node, STR_FMT(ex->report.nonce));
    buf_add(&payload, document.ptr, document.len);
    if (!may_sign(ex, rows, n) ||
        !keys_cluster_sign(agents_keys(), &caller->cluster_id, n, buf_str(&payload), signature)) {
        log_error("settings of a node wait because keys_dir does not hold the key that the "
                  "cluster's agents trust");
        return;
    }
    crypto_b64(signature, sizeof signature, signed_text);
    enc_init(&enc, text);
    enc_obj(&enc);
    enc_key(&enc, "document");
    enc_str(&enc, document);
    enc_key(&enc, "signature");
    enc_cstr(&enc, signed_text);
    enc_obj_end(&enc);
}

/* What is retired signs no more: its file goes from keys_dir. */
static enum err on_retired(struct request *rq, const struct db_rows *rows)
{
    for (int row = 0; row < db_rows_count(rows); row++) {
        keys_cluster_retire(agents_keys(), &rq->caller.cluster_id, db_i64(rows, row, 0));
    }
    if (db_rows_count(rows) > 0) {
        follow_poke(loop_follow(rq->loop));
    }
    return ERR_NONE; /* the answer stands since the statement before */
}

static enum err on_commands(struct request *rq, const struct db_rows *rows)
{
    struct exchange_of_report *ex = find_exchange(rq);
    CLEANUP(buf_free) struct buf text = {0};
    CLEANUP(buf_free) struct buf settings = {0};
    struct enc enc;
    enc_init(&enc, &text);
    for (int row = 0; row < db_rows_count(rows); row++) {
        encode_command(&enc, ex, rows, row);
    }
    if (db_rows_count(rows) == 0) {
        return answer(ex, (struct answer_parts){.commands = buf_str(&text)});
    }
    encode_settings(&settings, ex, rows);
    enum err err =
        answer(ex, (struct answer_parts){.commands = buf_str(&text),
                                         .keys = db_text(rows, 0, db_rows_col(rows, "chain")),
                                         .settings = buf_str(&settings)});
    if (err != ERR_NONE || !db_bool(rows, 0, db_rows_col(rows, "knows"))) {
        return err;
    }
    /* In a statement of its own: the last two nodes may have said so at once, and each sees the
     * other only then. */
    struct db_args args = {0};
    db_arg_uuid(&args, rq->arena, &rq->caller.cluster_id);
    db_arg_bool(&args, false);
    return request_query(rq, SQL_COMMAND_KEY_RETIRE, true, &args, on_retired);
}

static void add_optional(struct db_args *args, struct arena *arena, int64_t value)
{
    if (value < 0) {
        db_arg(args, NULL);
    } else {
        db_arg_i64(args, arena, value);
    }
}

/* Without a nonce the agent would refuse them: they wait for a report that has one. */
static enum err take_commands(struct exchange_of_report *ex)
{
    struct request *rq = ex->rq;
    /* An agent that begins says what it runs, and may lack what it once had. */
    bool begins = ex->report.has_inventory && ex->report.settings.ptr != NULL;
    if (ex->report.nonce.len == 0 ||
        (!begins && !commands_wait_for(agents_commands(), &rq->caller.node_id))) {
        return answer(ex, (struct answer_parts){0});
    }
    struct db_args args = {0};
    db_arg_uuid(&args, rq->arena, &rq->caller.node_id);
    add_optional(&args, rq->arena, ex->report.command_key > 0 ? ex->report.command_key : -1);
    db_arg_str(&args, rq->arena, ex->report.settings);
    db_arg_str(&args, rq->arena, ex->report.settings_refused);
    return request_query(rq, SQL_AGENT_COMMANDS, true, &args, on_commands);
}

/* ------------------------------------------------------------------------------- rare parts */

static enum err on_facts(struct request *rq, const struct db_rows *rows)
{
    struct exchange_of_report *ex = find_exchange(rq);
    if (db_rows_count(rows) == 0 || db_i64(rows, 0, db_rows_col(rows, "status")) != 200) {
        return fail(rq, ERR_UNAUTHENTICATED, "This node was removed.");
    }
    if (db_i64(rows, 0, db_rows_col(rows, "results")) > 0) {
        wake_org(&rq->caller.org, WAKE_REPAIR);
    }
    if (db_i64(rows, 0, db_rows_col(rows, "events")) > 0) {
        follow_poke(loop_follow(rq->loop));
    }
    return take_commands(ex);
}

static enum err store_facts(struct exchange_of_report *ex)
{
    struct request *rq = ex->rq;
    struct arena *arena = rq->arena;
    const struct report *report = &ex->report;
    static const struct report_inventory none = {.cpus = -1, .memory_mib = -1};
    const struct report_inventory *inventory = report->has_inventory ? &report->inventory : &none;
    struct db_args args = {0};
    db_arg_uuid(&args, arena, &rq->caller.node_id);
    db_arg_str(&args, arena, inventory->agent_version);
    db_arg_str(&args, arena, inventory->kernel);
    db_arg_str(&args, arena, inventory->os_image);
    db_arg_str(&args, arena, inventory->driver_version);
    db_arg_str(&args, arena, inventory->gpu_type);
    db_arg_str(&args, arena, inventory->host_serial);
    db_arg_str(&args, arena, inventory->address);
    add_optional(&args, arena, inventory->cpus);
    add_optional(&args, arena, inventory->memory_mib);
    if (inventory->booted_at_us == 0) {
        db_arg(&args, NULL);
    } else {
        db_arg_time(&args, arena, inventory->booted_at_us);
    }
    db_arg_bool(&args, report->has_inventory);
    db_arg_str(&args, arena, report->devices);
    db_arg_str(&args, arena, report->collectors);
    db_arg_str(&args, arena, report->results);
    db_arg_str(&args, arena, inventory->rack);
    db_arg_str(&args, arena, inventory->leaf);
    db_arg_str(&args, arena, inventory->partition);
    return request_query(rq, SQL_AGENT_FACTS, true, &args, on_facts);
}

/* ------------------------------------------------------------------------------- the report */

static enum err after_batch(struct exchange_of_report *ex)
{
    const struct report *report = &ex->report;
    if (ex->item.err != ERR_NONE) {
        reply_database_failed(ex->rq, ex->item.err);
        return ex->item.err;
    }
    bool rare =
        report->has_inventory || report->collectors.ptr != NULL || report->results.ptr != NULL;
    return rare ? store_facts(ex) : take_commands(ex);
}

/* On the loop's thread, after the commit of the batch. */
static void on_written(void *arg)
{
    struct exchange_of_report *ex = arg;
    struct request *rq = ex->rq;
    log_context(rq->id, NULL);
    rq->suspended = false;
    enum err err = after_batch(ex);
    if (err != ERR_NONE && rq->err == ERR_NONE) {
        rq->err = err;
    }
    log_context(NULL, NULL);
    if (rq->suspended) {
        return; /* it waits for a statement now */
    }
    rq->suspended = true;
    request_resume(rq);
}

static enum err refuse(struct request *rq, enum err err, const char *detail)
{
    if (err == ERR_INVALID_FIELDS) {
        decode_error_add(rq->arena, &rq->errors, "#", "invalid_format", detail);
    }
    return fail(rq, err, "%s", detail);
}

enum err agent_report(struct request *rq)
{
    struct exchange_of_report *ex = arena_alloc(rq->arena, sizeof *ex);
    const char *detail = "";
    enum err err = report_read(rq->arena, rq->body, clock_wall_us(), &ex->report, &detail);
    if (err != ERR_NONE) {
        return refuse(rq, err, detail);
    }
    ex->rq = rq;
    ex->item = (struct ingest_item){
        .batch = {.org = rq->caller.org,
                  .cluster = rq->caller.cluster_id,
                  .node = rq->caller.node_id,
                  .report = &ex->report},
        .loop = rq->loop,
        .done = {.fn = on_written, .arg = ex},
    };
    rq->in = ex;
    request_suspend(rq);
    err = ingest_submit(agents_ingest(), &ex->item);
    if (err != ERR_NONE) {
        rq->retry_after_s = 2;
        return fail(rq, err, "Too many reports are waiting; send it again later.");
    }
    return ERR_NONE;
}
