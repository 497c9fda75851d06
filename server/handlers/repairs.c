/* People's verbs on repairs: what they may do comes from the state machine, the rest is SQL's. */
#include "server/handlers/repairs.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/encode.h"
#include "server/bind.h"
#include "server/config.h"
#include "server/fields_policy.h"
#include "server/fields_repair.h"
#include "server/follow.h"
#include "server/loop.h"
#include "server/repair/executors/executor.h"
#include "server/repair/fsm.h"
#include "server/repair/plan.h"
#include "server/reply.h"
#include "server/wake.h"

/* After the commit: the loops go on at once, and so do the streams. */
static enum err answer_and_wake(struct request *rq, const struct db_rows *rows)
{
    enum err err = reply_apply(rq, rows);

    if (err == 0 && rq->err == 0 && rq->status < 300) {
        wake_org(&rq->caller.org, WAKE_REPAIR | WAKE_HEALTH);
        follow_poke(loop_follow(rq->loop));
    }
    return err;
}

struct decision {
    enum repair_event event;
    const char *type; /* of the event row */
    const char *participle;
    struct str comment;
    struct str plan_hash; /* ptr NULL = not an approval */
    bool undo_cordon;
    bool dry_run; /* say what would happen, change nothing */
};

static enum err decide(struct request *rq, const struct decision *decision)
{
    struct repair_list from = repair_event_from(decision->event);
    enum repair_state to = repair_event_to(decision->event);
    struct action_list possible = action_list_of(executor_actions("agent"));
    struct db_args args = {0};

    db_arg_uuid(&args, rq->arena, &rq->path_ids[0]);
    bind_key(rq, &args);
    bind_actor(rq, &args);
    db_arg_str(&args, rq->arena, decision->comment);
    db_arg_str(&args, rq->arena, str_of(from.text));
    db_arg(&args, repair_state_name(to));
    db_arg_bool(&args, (repair_state_traits(to) & REPAIR_ENDED) != 0);
    db_arg(&args, decision->type);
    db_arg(&args, decision->participle);
    db_arg_str(&args, rq->arena, decision->plan_hash);
    db_arg_str(&args, rq->arena, str_of(possible.text));
    db_arg_bool(&args, decision->undo_cordon);
    db_arg_bool(&args, decision->dry_run);
    return request_query(rq, SQL_REPAIR_DECIDE, true, &args, answer_and_wake);
}

enum err repair_approve(struct request *rq)
{
    const struct repair_approve_in *in = rq->in;
    const struct dry_run_query *query = rq->params;

    return decide(rq, &(struct decision){.event = REPAIR_ON_APPROVE,
                                         .type = "repair.approved",
                                         .participle = "approved",
                                         .comment = in->comment,
                                         .plan_hash = in->plan_hash,
                                         .dry_run = query->dry_run});
}

enum err repair_reject(struct request *rq)
{
    const struct repair_comment_in *in = rq->in;

    return decide(rq, &(struct decision){.event = REPAIR_ON_REJECT,
                                         .type = "repair.rejected",
                                         .participle = "rejected",
                                         .comment = in->comment});
}

enum err repair_cancel(struct request *rq)
{
    const struct repair_comment_in *in = rq->in;

    return decide(rq, &(struct decision){.event = REPAIR_ON_CANCEL,
                                         .type = "repair.cancelled",
                                         .participle = "cancelled",
                                         .comment = in->comment,
                                         .undo_cordon = true});
}

enum err repair_settle(struct request *rq)
{
    const struct repair_settle_in *in = rq->in;
    bool succeeded = str_eq_c(in->outcome, "succeeded");

    return decide(rq, &(struct decision){
                          .event = succeeded ? REPAIR_ON_SETTLE_SUCCEEDED : REPAIR_ON_SETTLE_FAILED,
                          .type = succeeded ? "repair.succeeded" : "repair.failed",
                          .participle = succeeded ? "settled as succeeded" : "settled as failed",
                          .comment = in->comment});
}

/* What would be proposed, and what would keep it from starting by itself. */
static enum err preview(struct request *rq, const struct repair_facts *facts,
                        const struct repair_plan *plan)
{
    CLEANUP(buf_free) struct buf text = {0};
    struct enc enc;
    bool can = plan->executor != NULL && facts->joined && facts->counters.stopped == REACH_NONE &&
               !facts->has_open;

    enc_init(&enc, &text);
    enc_obj(&enc);
    enc_key(&enc, "dry_run");
    enc_bool(&enc, true);
    enc_key(&enc, "action");
    enc_cstr(&enc, action_info(plan->action)->name);
    enc_key(&enc, "plan");
    enc_raw(&enc, plan->json);
    enc_key(&enc, "plan_hash");
    enc_cstr(&enc, plan->hash);
    enc_key(&enc, "can_approve");
    enc_bool(&enc, can);
    enc_obj_end(&enc);
    reply_json(rq, 200, (struct str){arena_strndup(rq->arena, text.ptr, text.len), text.len});
    return 0;
}

static enum err request_with_facts(struct request *rq, const struct repair_facts *facts)
{
    const struct repair_request_in *in = rq->in;
    struct repair_plan plan;
    struct db_args args = {0};
    struct uuid id = uuid_v7();
    enum repair_action action;

    if (!action_parse(in->action, &action)) {
        return fail_log(rq, ERR_INTERNAL, "the table of fields lets an unknown action through");
    }
    /* No target named means nothing is reset, never everything. */
    if (action == ACTION_RESET_GPU && !facts->has_main) {
        return fail(rq, ERR_CONFLICT,
                    "No open incident of this node names a GPU to reset. Report the "
                    "fault first, or ask for a reboot.");
    }
    repair_plan_build(rq->arena, facts, action, config.cooldown_seconds, clock_wall_us(), &plan);
    if (((const struct dry_run_query *)rq->params)->dry_run) {
        return preview(rq, facts, &plan);
    }
    db_arg_uuid(&args, rq->arena, &rq->path_ids[0]);
    bind_key(rq, &args);
    bind_actor(rq, &args);
    db_arg_uuid(&args, rq->arena, &id);
    db_arg(&args, action_info(action)->name);
    db_arg_str(&args, rq->arena, in->reason);
    db_arg_uuid(&args, rq->arena, facts->has_main ? &facts->main_id : NULL);
    db_arg(&args, arena_printf(rq->arena, "{%.*s}", STR_FMT(facts->incident_ids)));
    db_arg_str(&args, rq->arena, plan.json);
    db_arg_str(&args, rq->arena, str_of(plan.hash));
    db_arg_uuid(&args, rq->arena, facts->has_boot ? &facts->boot_id : NULL);
    db_arg_i64(&args, rq->arena, plan.attempt);
    db_arg(&args, plan.executor);
    db_arg(&args, repair_state_name(REPAIR_PROPOSED));
    return request_query(rq, SQL_REPAIR_REQUEST, true, &args, answer_and_wake);
}

static enum err on_facts(struct request *rq, const struct db_rows *rows)
{
    struct repair_facts facts = {0};

    if (db_rows_count(rows) == 0) {
        return fail(rq, ERR_NOT_FOUND, "There is no such node in this organization.");
    }
    repair_facts_read(rows, 0, &facts);
    return request_with_facts(rq, &facts);
}

enum err repair_request(struct request *rq)
{
    struct db_args args;
    char id[UUID_TEXT_LEN + 1];

    uuid_format(&rq->path_ids[0], id);
    repair_facts_args(rq->arena, arena_printf(rq->arena, "{%s}", id), &args);
    return request_query(rq, SQL_REPAIR_FACTS, false, &args, on_facts);
}

enum err incident_close(struct request *rq)
{
    struct db_args args = {0};

    db_arg_uuid(&args, rq->arena, &rq->path_ids[0]);
    bind_key(rq, &args);
    bind_actor(rq, &args);
    bind_fields(rq, incident_close_body, rq->in, &args);
    return request_query(rq, SQL_INCIDENT_CLOSE, true, &args, answer_and_wake);
}
