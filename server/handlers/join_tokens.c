/* The handler that makes a join token, whose secret is shown once. */
#include "server/handlers/join_tokens.h"

#include <stdio.h>

#include "base/crypto.h"
#include "server/auth.h"
#include "server/bind.h"
#include "server/fields.h"
#include "server/network.h"
#include "server/reply.h"

/* The secret is in the first answer only: what is stored for replays never had it. */
static enum err on_created(struct request *rq, const struct db_rows *rows)
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

/* One network and nothing else: the list that networks_valid reads may have several. */
static bool is_network(struct str text)
{
    char copy[64];
    (void)snprintf(copy, sizeof copy, "%.*s", STR_FMT(text));
    return str_find(text, STR(","), 0) < 0 && str_find(text, STR(" "), 0) < 0 &&
           networks_valid(copy);
}

enum err join_token_create(struct request *rq)
{
    const struct join_token_in *in = rq->in;
    char *token = arena_alloc(rq->arena, sizeof(AUTH_PREFIX_JOIN) + 44);
    struct str *kept = arena_alloc(rq->arena, sizeof *kept);
    uint8_t hash[SHA256_LEN];
    struct uuid id = uuid_v7();
    struct db_args args = {0};
    if (in->cidr.ptr != NULL && !is_network(in->cidr)) {
        decode_error_add(rq->arena, &rq->errors, "#/cidr", "invalid_format",
                         "A network such as 10.20.0.0/16 or fd00:1::/48, or one address.");
        return fail(rq, ERR_INVALID_FIELDS, "1 field was refused.");
    }
    if (in->has_expires_in_days && (in->rejoin.ptr == NULL || in->has_expires_in_seconds)) {
        decode_error_add(rq->arena, &rq->errors, "#/expires_in_days", "out_of_range",
                         "Days are for tokens that let nodes come back (rejoin), without "
                         "expires_in_seconds.");
        return fail(rq, ERR_INVALID_FIELDS, "1 field was refused.");
    }
    crypto_token(AUTH_PREFIX_JOIN, token);
    *kept = str_of(token);
    crypto_sha256(*kept, hash);
    db_arg_uuid(&args, rq->arena, &rq->path_ids[0]);
    bind_key(rq, &args);
    bind_actor(rq, &args);
    bind_fields(rq, join_token_body, rq->in, &args);
    db_arg_uuid(&args, rq->arena, &id);
    db_arg_bytes(&args, rq->arena, hash, sizeof hash);
    rq->in = kept;
    return request_query(rq, SQL_JOIN_TOKEN_CREATE, true, &args, on_created);
}
