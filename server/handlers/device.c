/* Handlers of the device flow (RFC 8628): how the command line signs a person in. */
#include "server/handlers/device.h"

#include "base/crypto.h"
#include "base/encode.h"
#include "server/auth.h"
#include "server/bind.h"
#include "server/config.h"
#include "server/fields_identity.h"
#include "server/reply.h"

#define CODE_LIFE_S 600
/* Without vowels and what looks alike, so that no code is a word (RFC 8628 6.1). */
static const char letters[] = "bcdfghjklmnpqrstvwxz";
#define HALF_LEN 4
#define USER_CODE_LEN (2 * HALF_LEN + 1)

/* What a request carries from one statement to the next; it takes the place of the decoded body. */
struct device {
    char device_code[AUTH_TOKEN_MAX];
    char user_code[USER_CODE_LEN + 1];
    uint8_t device_hash[SHA256_LEN];
    char token[AUTH_TOKEN_MAX];
};

/* Each letter is as likely: bytes that would favour the first ones are drawn again. */
static char random_letter(void)
{
    uint8_t byte;
    do {
        crypto_random(&byte, 1);
    } while (byte >= 256 / (sizeof letters - 1) * (sizeof letters - 1));
    return letters[byte % (sizeof letters - 1)];
}

static void make_user_code(char code[USER_CODE_LEN + 1])
{
    for (size_t i = 0; i < USER_CODE_LEN; i++) {
        code[i] = i == HALF_LEN ? '-' : random_letter();
    }
    code[USER_CODE_LEN] = '\0';
}

static enum err reply_encoded(struct request *rq, const struct buf *text)
{
    reply_json(rq, 200, (struct str){arena_strndup(rq->arena, text->ptr, text->len), text->len});
    return ERR_NONE;
}

/* ------------------------------------------------------------------ the program */

static enum err on_created(struct request *rq, const struct db_rows *rows)
{
    const struct device *device = rq->in;
    char base[512];
    CLEANUP(buf_free) struct buf text = {0};
    struct enc enc;
    config_address(base, sizeof base);
    enc_init(&enc, &text);
    enc_obj(&enc);
    enc_key(&enc, "device_code");
    enc_cstr(&enc, device->device_code);
    enc_key(&enc, "user_code");
    enc_cstr(&enc, device->user_code);
    enc_key(&enc, "verification_uri");
    enc_cstr(&enc, arena_printf(rq->arena, "%s/device", base));
    enc_key(&enc, "verification_uri_complete");
    enc_cstr(&enc, arena_printf(rq->arena, "%s/device?code=%s", base, device->user_code));
    enc_key(&enc, "expires_in");
    enc_i64(&enc, CODE_LIFE_S);
    enc_key(&enc, "interval");
    enc_i64(&enc, db_i64(rows, 0, 0));
    enc_obj_end(&enc);
    return reply_encoded(rq, &text);
}

enum err device_code_create(struct request *rq)
{
    const struct device_code_in *in = rq->in;
    struct device *device = arena_zalloc(rq->arena, sizeof *device);
    struct db_args args = {0};
    crypto_token(AUTH_PREFIX_DEVICE, device->device_code);
    crypto_sha256(str_of(device->device_code), device->device_hash);
    make_user_code(device->user_code);
    rq->in = device;
    db_arg_bytes(&args, rq->arena, device->device_hash, sizeof device->device_hash);
    db_arg(&args, device->user_code);
    db_arg_str(&args, rq->arena, in->client);
    db_arg_str(&args, rq->arena, rq->address);
    db_arg_i64(&args, rq->arena, CODE_LIFE_S);
    return request_query_as(rq, NULL, SQL_DEVICE_CODE_CREATE, true, &args, on_created);
}

static enum err refuse_expired(struct request *rq)
{
    return fail(rq, ERR_EXPIRED_TOKEN,
                "This code is unknown, used or over its time. Sign in again: muster login.");
}

static enum err on_redeemed(struct request *rq, const struct db_rows *rows)
{
    const struct device *device = rq->in;
    struct uuid person;
    CLEANUP(buf_free) struct buf text = {0};
    struct enc enc;
    if (db_rows_count(rows) == 0 || !db_uuid(rows, 0, db_rows_col(rows, "person_id"), &person)) {
        return refuse_expired(rq);
    }
    enc_init(&enc, &text);
    enc_obj(&enc);
    enc_key(&enc, "access_token");
    enc_cstr(&enc, device->token);
    enc_key(&enc, "token_type");
    enc_cstr(&enc, "Bearer");
    enc_key(&enc, "expires_at");
    enc_time(&enc, db_time_us(rows, 0, db_rows_col(rows, "expires_at")));
    enc_key(&enc, "person");
    enc_obj(&enc);
    enc_key(&enc, "id");
    enc_uuid(&enc, &person);
    enc_key(&enc, "name");
    enc_str(&enc, db_text(rows, 0, db_rows_col(rows, "name")));
    enc_obj_end(&enc);
    enc_key(&enc, "org");
    enc_raw(&enc, db_text(rows, 0, db_rows_col(rows, "org")));
    enc_obj_end(&enc);
    return reply_encoded(rq, &text);
}

static enum err redeem(struct request *rq, const struct uuid *org)
{
    struct device *device = arena_alloc(rq->arena, sizeof *device);
    struct db_args args = {0};
    struct db_args actor = {0};
    struct uuid session = uuid_v7();
    uint8_t hash[SHA256_LEN];
    *device = *(const struct device *)rq->in;
    crypto_token(AUTH_PREFIX_PERSON, device->token);
    crypto_sha256(str_of(device->token), hash);
    rq->in = device;
    db_arg_bytes(&args, rq->arena, device->device_hash, sizeof device->device_hash);
    db_arg_uuid(&args, rq->arena, &session);
    db_arg_bytes(&args, rq->arena, hash, sizeof hash);
    bind_actor(rq, &actor);
    db_arg(&args, actor.values[1]);
    return request_query_as(rq, org, SQL_DEVICE_CODE_REDEEM, true, &args, on_redeemed);
}

static enum err on_asked(struct request *rq, const struct db_rows *rows)
{
    struct uuid org;
    if (db_rows_count(rows) == 0) {
        return refuse_expired(rq);
    }
    struct str word = db_text(rows, 0, db_rows_col(rows, "word"));
    if (str_eq_c(word, "approved") && db_uuid(rows, 0, db_rows_col(rows, "person_org"), &org)) {
        return redeem(rq, &org);
    }
    if (str_eq_c(word, "denied")) {
        return fail(rq, ERR_ACCESS_DENIED, "The person who was asked said no.");
    }
    if (str_eq_c(word, "expired")) {
        return refuse_expired(rq);
    }
    rq->retry_after_s = (int)db_i64(rows, 0, db_rows_col(rows, "interval_seconds"));
    return str_eq_c(word, "early")
               ? fail(rq, ERR_SLOW_DOWN, "Ask no more often than every %d seconds from now on.",
                      rq->retry_after_s)
               : fail(rq, ERR_AUTHORIZATION_PENDING, "Nobody has decided yet; ask again.");
}

enum err device_token_create(struct request *rq)
{
    const struct device_token_in *in = rq->in;
    struct device *device = arena_zalloc(rq->arena, sizeof *device);
    struct db_args args = {0};
    crypto_sha256(in->device_code, device->device_hash);
    rq->in = device;
    db_arg_bytes(&args, rq->arena, device->device_hash, sizeof device->device_hash);
    return request_query_as(rq, NULL, SQL_DEVICE_CODE_ASK, true, &args, on_asked);
}

/* ------------------------------------------------------------------ the person */

static bool is_in_console(const struct request *rq)
{
    return rq->caller.kind == CALLER_SESSION && !rq->bearer;
}

static enum err refuse_program(struct request *rq)
{
    return fail(rq, ERR_FORBIDDEN, "A person decides this, signed in to the console.");
}

static void bind_user_code(struct request *rq, struct db_args *args)
{
    size_t head = sizeof("/api/v1/device-codes/") - 1;
    db_arg_str(args, rq->arena, (struct str){rq->path.ptr + head, rq->path.len - head});
}

enum err device_code_get(struct request *rq)
{
    struct db_args args = {0};
    if (!is_in_console(rq)) {
        return refuse_program(rq);
    }
    bind_user_code(rq, &args);
    return request_query(rq, SQL_DEVICE_CODE_GET, false, &args, NULL);
}

enum err device_code_decide(struct request *rq)
{
    struct db_args args = {0};
    if (!is_in_console(rq)) {
        return refuse_program(rq);
    }
    bind_user_code(rq, &args);
    db_arg_uuid(&args, rq->arena, &rq->caller.subject_id);
    bind_actor(rq, &args);
    bind_fields(rq, device_decide_body, rq->in, &args);
    return request_query(rq, SQL_DEVICE_CODE_DECIDE, true, &args, NULL);
}
