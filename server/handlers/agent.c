/* Joining and access tokens of agents. */
#include "server/handlers/agent.h"

#include <stddef.h>
#include <string.h>

#include "base/crypto.h"
#include "base/encode.h"
#include "base/json.h"
#include "base/log.h"
#include "server/agents.h"
#include "server/auth.h"
#include "server/bind.h"
#include "server/config.h"
#include "server/follow.h"
#include "server/loop.h"
#include "server/reply.h"
#include "server/wake.h"

#define SERIAL_MAX 255
#define B64_KEY_LEN 43       /* 32 bytes */
#define B64_SIGNATURE_LEN 86 /* 64 bytes */

/* clang-format off */
const struct field agent_enroll_body[] = {
    {.name = "token", .type = FIELD_STR, .offset = offsetof(struct agent_enroll_in, token), .flags = FIELD_REQUIRED, .min = 1, .max = AUTH_TOKEN_MAX},
    {.name = "name", .type = FIELD_HOST, .offset = offsetof(struct agent_enroll_in, name), .flags = FIELD_REQUIRED},
    {.name = "public_key", .type = FIELD_STR, .offset = offsetof(struct agent_enroll_in, public_key), .flags = FIELD_REQUIRED,
     .min = B64_KEY_LEN, .max = B64_KEY_LEN},
    {.name = "hardware", .type = FIELD_JSON, .offset = offsetof(struct agent_enroll_in, hardware), .flags = FIELD_NULLABLE | FIELD_OBJECT},
    {.name = NULL},
};

const struct field agent_challenge_body[] = {
    {.name = "node_id", .type = FIELD_UUID, .offset = offsetof(struct agent_challenge_in, node_id), .flags = FIELD_REQUIRED},
    {.name = NULL},
};

const struct field agent_token_body[] = {
    {.name = "node_id", .type = FIELD_UUID, .offset = offsetof(struct agent_token_in, node_id), .flags = FIELD_REQUIRED},
    {.name = "nonce", .type = FIELD_STR, .offset = offsetof(struct agent_token_in, nonce), .flags = FIELD_REQUIRED, .min = 1, .max = 128},
    {.name = "signature", .type = FIELD_STR, .offset = offsetof(struct agent_token_in, signature), .flags = FIELD_REQUIRED,
     .min = B64_SIGNATURE_LEN, .max = B64_SIGNATURE_LEN},
    {.name = NULL},
};
/* clang-format on */

/* What a handler put into rq->in itself: its own, so it may write to it. */
static void *own_of(const struct request *rq)
{
    void *own;
    memcpy(&own, &rq->in, sizeof own);
    return own;
}

static enum err reply_encoded(struct request *rq, int status, const struct buf *text)
{
    reply_json(rq, status, (struct str){arena_strndup(rq->arena, text->ptr, text->len), text->len});
    return ERR_NONE;
}

static void encode_base64(struct enc *enc, const char *key, const uint8_t *data, size_t len)
{
    char text[128];
    crypto_b64(data, len, text);
    enc_key(enc, key);
    enc_cstr(enc, text);
}

/* ------------------------------------------------------------------------------- joining */

/* One enrolment, from the join token to the node. */
struct enrolment {
    struct request *rq;
    const struct agent_enroll_in *in;
    struct uuid org;
    struct uuid cluster;
    struct uuid join_token;
    uint8_t public_key[ED25519_PUBLIC_LEN];
    uint8_t command_key[ED25519_PUBLIC_LEN]; /* of the file; has_command_key */
    bool has_command_key;
    char access_token[AUTH_TOKEN_MAX];
    struct db_call call;
    bool again; /* this is the second try */
};

/* hardware.serial; ptr NULL when there is none. */
static struct str read_serial(struct arena *arena, struct str hardware)
{
    struct json_reader json;
    struct str key = {0};
    struct str serial = {0};
    enum json_type type;
    json_open(&json, hardware);
    if (hardware.ptr == NULL || json_next(&json, NULL) != JSON_OBJ) {
        return serial;
    }
    while ((type = json_next(&json, &key)) != JSON_END && type != JSON_ERROR) {
        struct str raw;
        if ((type == JSON_OBJ || type == JSON_ARR) && !json_skip(&json)) {
            break;
        }
        if (type == JSON_STR && str_eq_c(key, "serial") && json_get_raw_str(&json, &raw, NULL)) {
            char *text = arena_alloc(arena, raw.len + 1);
            if (raw.len > SERIAL_MAX || !json_unescape(raw, text, raw.len + 1, &serial)) {
                serial = (struct str){0};
            }
        }
    }
    return serial;
}

static enum err reply_enrolled(struct enrolment *enrolment, const struct db_rows *rows)
{
    struct request *rq = enrolment->rq;
    struct uuid node;
    uint8_t command_key[ED25519_PUBLIC_LEN];
    if (!db_uuid(rows, 0, db_rows_col(rows, "node_id"), &node) ||
        db_bytes(rows, 0, db_rows_col(rows, "command_public_key"), command_key,
                 sizeof command_key) != sizeof command_key) {
        return fail_log(rq, ERR_INTERNAL, "enrolment answered no node or no command key");
    }
    CLEANUP(buf_free) struct buf text = {0};
    struct enc enc;
    enc_init(&enc, &text);
    enc_obj(&enc);
    enc_key(&enc, "node_id");
    enc_uuid(&enc, &node);
    enc_key(&enc, "cluster_id");
    enc_uuid(&enc, &enrolment->cluster);
    enc_key(&enc, "org_id");
    enc_uuid(&enc, &enrolment->org);
    enc_key(&enc, "generation");
    enc_i64(&enc, db_i64(rows, 0, db_rows_col(rows, "generation")));
    encode_base64(&enc, "command_public_key", command_key, sizeof command_key);
    enc_key(&enc, "command_key");
    enc_i64(&enc, db_i64(rows, 0, db_rows_col(rows, "command_key_n")));
    enc_key(&enc, "access_token");
    enc_cstr(&enc, enrolment->access_token);
    enc_key(&enc, "expires_in_seconds");
    enc_i64(&enc, AGENTS_TOKEN_LIFE_S);
    enc_key(&enc, "interval_seconds");
    enc_double(&enc, agents_next_interval(), 1);
    enc_obj_end(&enc);
    if (enrolment->has_command_key &&
        !crypto_equal(command_key, enrolment->command_key, sizeof command_key)) {
        log_error("the command key in keys_dir is not the one that the cluster's agents trust; "
                  "commands will not be sent");
    }
    if (db_bool(rows, 0, db_rows_col(rows, "joined"))) {
        wake_org(&enrolment->org, WAKE_NODE);
        follow_poke(loop_follow(rq->loop));
    }
    return reply_encoded(rq, 201, &text);
}

static enum err reply_verdict(struct enrolment *enrolment, const struct db_rows *rows)
{
    struct request *rq = enrolment->rq;
    int64_t status = db_rows_count(rows) == 0 ? 401 : db_i64(rows, 0, db_rows_col(rows, "status"));
    switch (status) {
    case 201:
        return reply_enrolled(enrolment, rows);
    case 403:
        return str_eq_c(db_text(rows, 0, db_rows_col(rows, "word")), "elsewhere")
                   ? fail(rq, ERR_FORBIDDEN, "This join token is bound to another network.")
                   : fail(rq, ERR_FORBIDDEN, "This join token is bound to another host name.");
    case 409:
        return fail(rq, ERR_NAME_TAKEN,
                    "Another machine joined as %.*s. Remove that node first, or use another name.",
                    STR_FMT(enrolment->in->name));
    default:
        return fail(rq, ERR_UNAUTHENTICATED, "The join token is used up, expired or revoked.");
    }
}

/* A twin of this very request may have won: asked again, the statement sees its node. */
static bool may_be_twin(enum err err, const struct db_rows *rows)
{
    if (err != ERR_NONE) {
        return err == ERR_CONFLICT || err == ERR_NAME_TAKEN;
    }
    int64_t status = db_rows_count(rows) == 0 ? 401 : db_i64(rows, 0, db_rows_col(rows, "status"));
    return status == 401 || status == 409;
}

static void on_enrolled(struct db_call *call, enum err err, const struct db_rows *rows)
{
    struct enrolment *enrolment = call->ctx;
    struct request *rq = enrolment->rq;
    if (!enrolment->again && may_be_twin(err, rows)) {
        enrolment->again = true;
        db_submit(loop_db(rq->loop), call);
        return;
    }
    if (err == ERR_NONE) {
        (void)reply_verdict(enrolment, rows);
    } else {
        reply_database_failed(rq, err);
    }
    request_resume(rq);
}

static enum err start_enrolment(struct enrolment *enrolment)
{
    struct request *rq = enrolment->rq;
    struct arena *arena = rq->arena;
    uint8_t hash[SHA256_LEN];
    struct uuid node = uuid_v7();
    crypto_token(AUTH_PREFIX_AGENT, enrolment->access_token);
    crypto_sha256(str_of(enrolment->access_token), hash);
    enrolment->call = (struct db_call){
        .sql = SQL_AGENT_ENROLL,
        .verb = true,
        .has_org = true,
        .org = enrolment->org,
        .done = on_enrolled,
        .ctx = enrolment,
    };
    struct db_args *args = &enrolment->call.args;
    db_arg_uuid(args, arena, &enrolment->join_token);
    db_arg_str(args, arena, enrolment->in->name);
    db_arg_bytes(args, arena, enrolment->public_key, sizeof enrolment->public_key);
    db_arg_bytes(args, arena, hash, sizeof hash);
    db_arg_i64(args, arena, AGENTS_TOKEN_LIFE_S);
    db_arg_uuid(args, arena, &node);
    if (enrolment->has_command_key) {
        db_arg_bytes(args, arena, enrolment->command_key, sizeof enrolment->command_key);
    } else {
        db_arg(args, NULL);
    }
    db_arg_i64(args, arena, config.interval_seconds);
    db_arg_str(args, arena, read_serial(arena, enrolment->in->hardware));
    db_arg_str(args, arena, rq->address);
    db_arg(args, rq->id);
    request_suspend(rq);
    db_submit(loop_db(rq->loop), &enrolment->call);
    return ERR_NONE;
}

/* ------------------------------------------------------------------------------- coming back */

static const struct {
    const char *word;
    const char *sentence;
} rejoin_refusals[] = {
    {"elsewhere", "This join token is bound to another network."},
    {"bound", "This join token is bound to another host name."},
    {"unknown_node",
     "This token lets known nodes come back, and none of this name has joined. Give "
     "it a join token first."},
    {"other_machine",
     "This is not the machine that joined under this name: its serial and its GPUs "
     "are others. Remove that node first, or use another name."},
    {"denied", "A person said no to this machine."},
};

static enum err ask_to_rejoin(struct enrolment *enrolment);

/* The token itself lets this machine in: nobody else is asked. */
static enum err on_let_in(struct request *rq, const struct db_rows *rows)
{
    (void)rows;
    follow_poke(loop_follow(rq->loop));
    return ask_to_rejoin(own_of(rq));
}

static enum err let_in(struct request *rq, const struct enrolment *enrolment,
                       const struct uuid *rejoin)
{
    struct db_args args = {0};
    struct db_args actor = {0};
    db_arg_uuid(&args, rq->arena, rejoin);
    db_arg(&args, NULL);
    db_arg(&args, NULL);
    db_arg(&args, "join token");
    bind_actor(rq, &actor);
    db_arg(&args, actor.values[1]);
    return request_query_as(rq, &enrolment->org, SQL_REJOIN_APPROVE, true, &args, on_let_in);
}

static enum err on_rejoin(struct request *rq, const struct db_rows *rows)
{
    struct enrolment *enrolment = own_of(rq);
    struct str word = db_text(rows, 0, db_rows_col(rows, "word"));
    struct uuid rejoin;
    for (size_t i = 0; i < COUNTOF(rejoin_refusals); i++) {
        if (str_eq_c(word, rejoin_refusals[i].word)) {
            return fail(rq, ERR_FORBIDDEN, "%s", rejoin_refusals[i].sentence);
        }
    }
    if (str_eq_c(word, "same")) {
        return reply_enrolled(enrolment, rows);
    }
    if (!db_uuid(rows, 0, db_rows_col(rows, "rejoin_id"), &rejoin)) {
        return fail(rq, ERR_UNAUTHENTICATED, "The join token is expired or revoked.");
    }
    if (str_eq_c(word, "auto") && !enrolment->again) {
        enrolment->again = true;
        return let_in(rq, enrolment, &rejoin);
    }
    char id[UUID_TEXT_LEN + 1];
    uuid_format(&rejoin, id);
    follow_poke(loop_follow(rq->loop));
    reply_json(rq, 202,
               str_of(arena_printf(rq->arena, "{\"rejoin_id\":\"%s\",\"state\":\"pending\"}", id)));
    return ERR_NONE;
}

static enum err ask_to_rejoin(struct enrolment *enrolment)
{
    struct request *rq = enrolment->rq;
    struct arena *arena = rq->arena;
    struct db_args args = {0};
    struct uuid id = uuid_v7();
    uint8_t hash[SHA256_LEN];
    crypto_token(AUTH_PREFIX_AGENT, enrolment->access_token);
    crypto_sha256(str_of(enrolment->access_token), hash);
    db_arg_uuid(&args, arena, &enrolment->join_token);
    db_arg_str(&args, arena, enrolment->in->name);
    db_arg_bytes(&args, arena, enrolment->public_key, sizeof enrolment->public_key);
    db_arg_bytes(&args, arena, hash, sizeof hash);
    db_arg_i64(&args, arena, AGENTS_TOKEN_LIFE_S);
    db_arg_uuid(&args, arena, &id);
    db_arg_str(&args, arena, read_serial(arena, enrolment->in->hardware));
    db_arg_str(&args, arena, enrolment->in->hardware);
    db_arg_str(&args, arena, rq->address);
    db_arg(&args, rq->id);
    return request_query_as(rq, &enrolment->org, SQL_AGENT_REJOIN, true, &args, on_rejoin);
}

/* The cluster's key is made with its first node. A cluster that has one and whose file is gone
 * still takes nodes: they are watched, and commands wait until the key is back. */
static enum err on_cluster_key(struct request *rq, const struct db_rows *rows)
{
    struct enrolment *enrolment = own_of(rq);
    if (db_rows_count(rows) == 0) {
        return fail(rq, ERR_UNAUTHENTICATED, "The join token's cluster is gone.");
    }
    if (!db_is_null(rows, 0, db_rows_col(rows, "suspended"))) {
        return fail(rq, ERR_ORG_SUSPENDED,
                    "No node joins now. Its token is not used up: try again when an administrator "
                    "of the platform has resumed the organization.");
    }
    bool is_first = db_is_null(rows, 0, 0);
    enrolment->has_command_key =
        keys_cluster_public(agents_keys(), &enrolment->cluster,
                            is_first ? 1 : db_i64(rows, 0, db_rows_col(rows, "command_key_n")),
                            is_first, enrolment->command_key);
    if (is_first && !enrolment->has_command_key) {
        return fail_log(rq, ERR_INTERNAL, "the cluster's command key could not be made");
    }
    return db_bool(rows, 0, db_rows_col(rows, "rejoins")) ? ask_to_rejoin(enrolment)
                                                          : start_enrolment(enrolment);
}

static enum err on_join_token(struct request *rq, const struct db_rows *rows)
{
    struct enrolment *enrolment = own_of(rq);
    if (db_rows_count(rows) == 0 ||
        !db_uuid(rows, 0, db_rows_col(rows, "org_id"), &enrolment->org) ||
        !db_uuid(rows, 0, db_rows_col(rows, "cluster_id"), &enrolment->cluster) ||
        !db_uuid(rows, 0, db_rows_col(rows, "token_id"), &enrolment->join_token)) {
        return fail(rq, ERR_UNAUTHENTICATED, "The join token is unknown, expired or revoked.");
    }
    struct db_args args = {0};
    db_arg_uuid(&args, rq->arena, &enrolment->cluster);
    db_arg_uuid(&args, rq->arena, &enrolment->join_token);
    return request_query_as(rq, &enrolment->org, SQL_AGENT_CLUSTER_KEY, false, &args,
                            on_cluster_key);
}

enum err agent_enroll(struct request *rq)
{
    struct enrolment *enrolment = arena_zalloc(rq->arena, sizeof *enrolment);
    struct db_args args = {0};
    uint8_t hash[SHA256_LEN];
    size_t len = 0;
    enrolment->rq = rq;
    enrolment->in = rq->in;
    if (!crypto_unb64(enrolment->in->public_key, enrolment->public_key,
                      sizeof enrolment->public_key, &len) ||
        len != sizeof enrolment->public_key) {
        decode_error_add(rq->arena, &rq->errors, "#/public_key", "invalid_format",
                         "32 bytes of an Ed25519 public key in base64url.");
        return fail(rq, ERR_INVALID_FIELDS, "1 field was refused.");
    }
    rq->in = enrolment;
    crypto_sha256(enrolment->in->token, hash);
    db_arg_bytes(&args, rq->arena, hash, sizeof hash);
    return request_query_as(rq, NULL, SQL_JOIN_LOOKUP, false, &args, on_join_token);
}

/* ------------------------------------------------------------------------------- access tokens */

enum err agent_challenge(struct request *rq)
{
    const struct agent_challenge_in *in = rq->in;
    struct uuid node;
    char nonce[KEYS_NONCE_TEXT_LEN + 1];
    if (!uuid_parse(in->node_id, &node)) {
        return fail_log(rq, ERR_INTERNAL, "a decoded UUID that is none");
    }
    keys_seal_nonce(agents_keys(), &node, nonce);
    const char *text = arena_printf(rq->arena, "{\"nonce\":\"%s\",\"expires_in_seconds\":%d}",
                                    nonce, KEYS_NONCE_LIFE_S);
    reply_json(rq, 200, str_of(text));
    return ERR_NONE;
}

struct token_request {
    const struct agent_token_in *in;
    struct uuid node;
    char access_token[AUTH_TOKEN_MAX];
};

static enum err refuse_signature(struct request *rq)
{
    /* One sentence for an unknown node, a revoked key and a wrong signature. */
    return fail(rq, ERR_UNAUTHENTICATED, "The node is unknown or its signature is not right.");
}

static enum err on_issued(struct request *rq, const struct db_rows *rows)
{
    const struct token_request *token = rq->in;
    if (db_rows_count(rows) == 0) {
        return refuse_signature(rq);
    }
    const char *text =
        arena_printf(rq->arena, "{\"access_token\":\"%s\",\"expires_in_seconds\":%d}",
                     token->access_token, AGENTS_TOKEN_LIFE_S);
    reply_json(rq, 200, str_of(text));
    return ERR_NONE;
}

static bool is_signed(const struct token_request *token, struct arena *arena,
                      const uint8_t public_key[ED25519_PUBLIC_LEN])
{
    uint8_t signature[ED25519_SIGNATURE_LEN];
    size_t len = 0;
    const char *text = arena_printf(arena, "muster-agent-token\n%.*s\n%.*s",
                                    STR_FMT(token->in->node_id), STR_FMT(token->in->nonce));
    return crypto_unb64(token->in->signature, signature, sizeof signature, &len) &&
           len == sizeof signature && ed25519_verify(public_key, str_of(text), signature);
}

static enum err on_node_key(struct request *rq, const struct db_rows *rows)
{
    struct token_request *token = own_of(rq);
    struct uuid org;
    uint8_t public_key[ED25519_PUBLIC_LEN];
    uint8_t hash[SHA256_LEN];
    if (db_rows_count(rows) == 0 || !db_uuid(rows, 0, db_rows_col(rows, "org_id"), &org) ||
        db_bytes(rows, 0, db_rows_col(rows, "public_key"), public_key, sizeof public_key) !=
            sizeof public_key ||
        !is_signed(token, rq->arena, public_key)) {
        return refuse_signature(rq);
    }
    struct db_args args = {0};
    crypto_token(AUTH_PREFIX_AGENT, token->access_token);
    crypto_sha256(str_of(token->access_token), hash);
    db_arg_uuid(&args, rq->arena, &token->node);
    db_arg_i64(&args, rq->arena, db_i64(rows, 0, db_rows_col(rows, "generation")));
    db_arg_bytes(&args, rq->arena, hash, sizeof hash);
    db_arg_i64(&args, rq->arena, AGENTS_TOKEN_LIFE_S);
    return request_query_as(rq, &org, SQL_AGENT_TOKEN_ISSUE, true, &args, on_issued);
}

enum err agent_token(struct request *rq)
{
    struct token_request *token = arena_zalloc(rq->arena, sizeof *token);
    struct db_args args = {0};
    token->in = rq->in;
    if (!uuid_parse(token->in->node_id, &token->node)) {
        return fail_log(rq, ERR_INTERNAL, "a decoded UUID that is none");
    }
    if (!keys_check_nonce(agents_keys(), &token->node, token->in->nonce)) {
        return fail(rq, ERR_UNAUTHENTICATED,
                    "The nonce is not one of this server's, or it is too old: ask for a new one.");
    }
    rq->in = token;
    db_arg_uuid(&args, rq->arena, &token->node);
    return request_query_as(rq, NULL, SQL_NODE_KEY_LOOKUP, false, &args, on_node_key);
}
