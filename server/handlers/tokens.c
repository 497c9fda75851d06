/* Handlers of service tokens whose answer carries a secret once. */
#include "server/handlers/tokens.h"

#include "base/crypto.h"
#include "server/auth.h"
#include "server/bind.h"
#include "server/fields_identity.h"
#include "server/reply.h"

/* A fresh secret in rq->in, for the answer; its hash for the statement. */
static void make_secret(struct request *rq, uint8_t hash[SHA256_LEN])
{
    char *token = arena_alloc(rq->arena, sizeof(AUTH_PREFIX_SERVICE) + 44);
    struct str *kept = arena_alloc(rq->arena, sizeof(*kept));
    crypto_token(AUTH_PREFIX_SERVICE, token);
    *kept = str_of(token);
    crypto_sha256(*kept, hash);
    rq->in = kept;
}

/* The secret is in the first answer only: what is stored for replays never had it. */
static enum err on_stored(struct request *rq, const struct db_rows *rows)
{
    const struct str *token = rq->in;
    enum err err = reply_apply(rq, rows);
    if (err != ERR_NONE || rq->answer.len == 0) {
        return err;
    }
    struct str head = {rq->answer.ptr, rq->answer.len - 1};
    rq->answer =
        str_of(rq->replayed
                   ? arena_printf(rq->arena, "%.*s,\"token\":null,\"secret_shown_once\":true}",
                                  STR_FMT(head))
                   : arena_printf(rq->arena, "%.*s,\"token\":\"%.*s\",\"secret_shown_once\":false}",
                                  STR_FMT(head), STR_FMT(*token)));
    return ERR_NONE;
}

enum err service_token_create(struct request *rq)
{
    struct db_args args = {0};
    struct uuid id = uuid_v7();
    uint8_t hash[SHA256_LEN];
    bind_key(rq, &args);
    bind_actor(rq, &args);
    bind_fields(rq, service_token_body, rq->in, &args);
    db_arg_uuid(&args, rq->arena, &id);
    make_secret(rq, hash);
    db_arg_bytes(&args, rq->arena, hash, sizeof(hash));
    return request_query(rq, SQL_SERVICE_TOKEN_CREATE, true, &args, on_stored);
}

enum err service_token_rotate(struct request *rq)
{
    struct db_args args = {0};
    uint8_t hash[SHA256_LEN];
    db_arg_uuid(&args, rq->arena, &rq->path_ids[0]);
    bind_key(rq, &args);
    bind_actor(rq, &args);
    bind_fields(rq, token_rotate_body, rq->in, &args);
    make_secret(rq, hash);
    db_arg_bytes(&args, rq->arena, hash, sizeof(hash));
    return request_query(rq, SQL_SERVICE_TOKEN_ROTATE, true, &args, on_stored);
}
