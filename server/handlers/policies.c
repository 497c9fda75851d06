/* Policies of repairs: what they say is checked here, the rest is SQL's. Stops and breakers. */
#include "server/handlers/policies.h"

#include "base/buf.h"
#include "base/encode.h"
#include "server/bind.h"
#include "server/config.h"
#include "server/fields_policy.h"
#include "server/follow.h"
#include "server/health/catalog.h"
#include "server/loop.h"
#include "server/repair/policy.h"
#include "server/reply.h"
#include "server/wake.h"

/* After the commit the loops go on at once: what a policy allows, and what a stop holds. */
static enum err answer_and_wake(struct request *rq, const struct db_rows *rows)
{
    enum err err = reply_apply(rq, rows);

    if (err == 0 && rq->err == 0 && rq->status < 300) {
        wake_org(&rq->caller.org, WAKE_REPAIR);
        follow_poke(loop_follow(rq->loop));
    }
    return err;
}

/* Only what is below a cluster, for whoever has a role in a part of the org. */
static const char *only_parts(const struct request *rq)
{
    return rq->scope != NULL ? "true" : "false";
}

static void add_strangers(struct buf *text, const struct str_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        struct str rest = list->items[i];
        struct str check;
        if (policy_splits(&rest, &check) && catalog_find(check) == NULL) {
            buf_printf(text, "%s%.*s", text->len > 1 ? "," : "", STR_FMT(check));
        }
    }
}

/* Checks that the catalog does not have, as a PostgreSQL array text; their names have no quotes. */
static const char *strangers(struct request *rq, const struct policy_in *in)
{
    CLEANUP(buf_free) struct buf text = {0};

    buf_add_char(&text, '{');
    add_strangers(&text, &in->automatic);
    add_strangers(&text, &in->confirm);
    add_strangers(&text, &in->warn);
    buf_add_char(&text, '}');
    return arena_strndup(rq->arena, text.ptr, text.len);
}

static enum err refuse_fields(struct request *rq)
{
    return fail(rq, ERR_INVALID_FIELDS,
                rq->errors.count == 1 ? "1 field was refused." : "%zu fields were refused.",
                rq->errors.count);
}

static const char *settings_text(struct request *rq, const struct policy *policy)
{
    CLEANUP(buf_free) struct buf text = {0};
    struct enc enc;

    enc_init(&enc, &text);
    policy_write(&enc, policy);
    return arena_strndup(rq->arena, text.ptr, text.len);
}

enum err policy_create(struct request *rq)
{
    const struct policy_in *in = rq->in;
    struct policy policy = policy_default(config.cooldown_seconds);
    struct uuid id = uuid_v7();
    struct db_args args = {0};

    if (!policy_apply(rq->arena, in, &rq->errors, &policy)) {
        return refuse_fields(rq);
    }
    if (rq->scope != NULL && !in->has_cluster_id && !in->has_node_id) {
        return fail(rq, ERR_FORBIDDEN, "Your role is in a part of the organization only.");
    }
    bind_key(rq, &args);
    bind_actor(rq, &args);
    db_arg_str(&args, rq->arena, in->cluster_id);
    db_arg_str(&args, rq->arena, in->node_id);
    db_arg(&args, settings_text(rq, &policy));
    db_arg_uuid(&args, rq->arena, &id);
    db_arg(&args, strangers(rq, in));
    return request_query(rq, SQL_POLICY_CREATE, true, &args, answer_and_wake);
}

enum err policy_update(struct request *rq)
{
    const struct policy_in *in = rq->in;
    struct policy policy = policy_default(config.cooldown_seconds);
    struct db_args args = {0};

    if (!policy_apply(rq->arena, in, &rq->errors, &policy)) {
        return refuse_fields(rq);
    }
    db_arg_uuid(&args, rq->arena, &rq->path_ids[0]);
    db_arg_str(&args, rq->arena, rq->if_match);
    bind_actor(rq, &args);
    db_arg_str(&args, rq->arena, rq->body.len > 0 ? rq->body : STR("{}"));
    db_arg(&args, only_parts(rq));
    db_arg_str(&args, rq->arena, in->time_zone);
    db_arg(&args, strangers(rq, in));
    return request_query(rq, SQL_POLICY_UPDATE, true, &args, answer_and_wake);
}

enum err policy_delete(struct request *rq)
{
    struct db_args args = {0};

    db_arg_uuid(&args, rq->arena, &rq->path_ids[0]);
    db_arg_str(&args, rq->arena, rq->if_match);
    bind_actor(rq, &args);
    db_arg(&args, only_parts(rq));
    return request_query(rq, SQL_POLICY_DELETE, true, &args, answer_and_wake);
}

static enum err effective(struct request *rq, enum sql_id sql)
{
    struct policy policy = policy_default(config.cooldown_seconds);
    struct db_args args = {0};

    db_arg_uuid(&args, rq->arena, &rq->path_ids[0]);
    db_arg(&args, settings_text(rq, &policy));
    return request_query(rq, sql, false, &args, NULL);
}

enum err policy_of_node(struct request *rq)
{
    return effective(rq, SQL_POLICY_OF_NODE);
}

enum err policy_of_cluster(struct request *rq)
{
    return effective(rq, SQL_POLICY_OF_CLUSTER);
}

/* ------------------------------------------------------------------ stops */

static enum err stop(struct request *rq, const char *reach, bool stops)
{
    const struct guard_comment_in *in = rq->in;
    struct db_args args = {0};
    bool whole = str_eq_c(STR("org"), reach);

    db_arg_uuid(&args, rq->arena, whole ? &rq->caller.org : &rq->path_ids[0]);
    db_arg(&args, reach);
    bind_key(rq, &args);
    bind_actor(rq, &args);
    db_arg_str(&args, rq->arena, in->comment);
    db_arg_bool(&args, stops);
    return request_query(rq, SQL_GUARD_STOP, true, &args, answer_and_wake);
}

enum err repairs_stop_node(struct request *rq)
{
    return stop(rq, "node", true);
}

enum err repairs_allow_node(struct request *rq)
{
    return stop(rq, "node", false);
}

enum err repairs_stop_cluster(struct request *rq)
{
    return stop(rq, "cluster", true);
}

enum err repairs_allow_cluster(struct request *rq)
{
    return stop(rq, "cluster", false);
}

enum err repairs_stop_org(struct request *rq)
{
    return stop(rq, "org", true);
}

enum err repairs_allow_org(struct request *rq)
{
    return stop(rq, "org", false);
}

static enum err stop_platform(struct request *rq, bool stops)
{
    const struct guard_comment_in *in = rq->in;
    struct db_args args = {0};

    bind_key(rq, &args);
    bind_actor(rq, &args);
    db_arg_str(&args, rq->arena, in->comment);
    db_arg_bool(&args, stops);
    return request_query(rq, SQL_GUARD_STOP_PLATFORM, true, &args, answer_and_wake);
}

enum err repairs_stop_platform(struct request *rq)
{
    return stop_platform(rq, true);
}

enum err repairs_allow_platform(struct request *rq)
{
    return stop_platform(rq, false);
}

/* ------------------------------------------------------------------ breakers */

static enum err reset(struct request *rq, const struct uuid *target)
{
    const struct guard_comment_in *in = rq->in;
    struct db_args args = {0};

    db_arg_uuid(&args, rq->arena, target);
    bind_key(rq, &args);
    bind_actor(rq, &args);
    db_arg_str(&args, rq->arena, in->comment);
    return request_query(rq, SQL_BREAKER_RESET, true, &args, answer_and_wake);
}

enum err breaker_reset_cluster(struct request *rq)
{
    return reset(rq, &rq->path_ids[0]);
}

enum err breaker_reset_org(struct request *rq)
{
    return reset(rq, &rq->caller.org);
}

enum err breaker_reset_platform(struct request *rq)
{
    const struct guard_comment_in *in = rq->in;
    struct db_args args = {0};

    bind_key(rq, &args);
    bind_actor(rq, &args);
    db_arg_str(&args, rq->arena, in->comment);
    return request_query(rq, SQL_BREAKER_RESET_PLATFORM, true, &args, answer_and_wake);
}
