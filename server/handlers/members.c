/* The handler that gives a person a role: the only one of members that needs two fresh ids. */
#include "server/handlers/members.h"

#include "server/bind.h"
#include "server/fields_identity.h"

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
