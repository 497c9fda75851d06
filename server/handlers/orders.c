/* The call-back of the operators' automation: what became of an order. */
#include "server/handlers/orders.h"

#include "base/clock.h"
#include "server/fields_webhooks.h"
#include "server/repair/executors/hook.h"
#include "server/repair/executors/targets.h"
#include "server/ticket.h"

static enum err refuse(struct request *rq)
{
    return fail(rq, ERR_UNAUTHENTICATED,
                "The address is not one that this server gave, or the message is not signed with "
                "the secret of the cluster's automation within the last five minutes.");
}

static enum err on_order(struct request *rq, const struct db_rows *rows)
{
    const struct order_told_in *in = rq->in;
    const struct order_told_query *query = rq->params;
    struct ticket ticket;
    struct db_args args = {0};
    const struct hook_target *hook = NULL;

    if (db_rows_count(rows) > 0) {
        hook = hook_find(db_text(rows, 0, db_rows_col(rows, "org")),
                         db_text(rows, 0, db_rows_col(rows, "cluster")));
    }
    if (hook == NULL ||
        !ticket_check(query->ticket, HOOK_TICKET_USE, clock_wall_us() / 1000000, &ticket) ||
        !hook_verify(hook, rq->arena, rq->hook_id, rq->hook_at, rq->body, rq->hook_signature)) {
        return refuse(rq);
    }
    db_arg_uuid(&args, rq->arena, &ticket.id);
    db_arg_str(&args, rq->arena, in->state);
    db_arg_str(&args, rq->arena, in->detail.ptr == NULL ? STR("") : in->detail);
    db_arg_str(&args, rq->arena, rq->address);
    db_arg(&args, rq->id);
    return request_query_as(rq, &ticket.org, SQL_HOOK_CALL_BACK, true, &args, NULL);
}

enum err order_told(struct request *rq)
{
    const struct order_told_query *query = rq->params;
    struct ticket ticket;
    struct db_args args = {0};

    if (!ticket_check(query->ticket, HOOK_TICKET_USE, clock_wall_us() / 1000000, &ticket)) {
        return refuse(rq);
    }
    db_arg_uuid(&args, rq->arena, &ticket.id);
    return request_query_as(rq, &ticket.org, SQL_HOOK_ORDER_GET, false, &args, on_order);
}
