/* Handlers of members: giving a role, and what each role may do. */
#include "server/handlers/members.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/encode.h"
#include "server/bind.h"
#include "server/fields_identity.h"
#include "server/perms.h"

/* Two ids are fresh: the role's, and the person's where the name is new. */
enum err member_create(struct request *rq)
{
    struct db_args args = {0};
    const struct uuid member = uuid_v7();
    const struct uuid person = uuid_v7();
    bind_key(rq, &args);
    bind_actor(rq, &args);
    bind_fields(rq, member_create_body, rq->in, &args);
    db_arg_uuid(&args, rq->arena, &member);
    db_arg_uuid(&args, rq->arena, &person);
    return request_query(rq, SQL_MEMBER_CREATE, true, &args, NULL);
}

static void write_role(struct enc *enc, enum role_bit role)
{
    unsigned perms = perms_of(1u << role, false);
    enc_obj(enc);
    enc_key(enc, "name");
    enc_cstr(enc, role_name(role));
    enc_key(enc, "summary");
    enc_cstr(enc, role_words(role));
    enc_key(enc, "permissions");
    enc_arr(enc);
    for (int bit = 0; bit < PERM_COUNT; bit++) {
        if ((perms & (1u << bit)) != 0) {
            enc_obj(enc);
            enc_key(enc, "name");
            enc_cstr(enc, perm_name((enum perm_bit)bit));
            enc_key(enc, "summary");
            enc_cstr(enc, perm_words((enum perm_bit)bit));
            enc_obj_end(enc);
        }
    }
    enc_arr_end(enc);
    enc_obj_end(enc);
}

enum err role_list(struct request *rq)
{
    CLEANUP(buf_free) struct buf text = {0};
    struct enc enc;
    enc_init(&enc, &text);
    enc_obj(&enc);
    enc_key(&enc, "items");
    enc_arr(&enc);
    for (int role = 0; role < ROLE_COUNT; role++) {
        write_role(&enc, (enum role_bit)role);
    }
    enc_arr_end(&enc);
    enc_obj_end(&enc);
    reply_json(rq, 200, (struct str){arena_strndup(rq->arena, text.ptr, text.len), text.len});
    return ERR_NONE;
}
