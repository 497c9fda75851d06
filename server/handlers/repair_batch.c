/* A batch of repairs: plans for all or none, in waves that the server makes. */
#include "server/handlers/repair_batch.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/encode.h"
#include "server/bind.h"
#include "server/config.h"
#include "server/fields_policy.h"
#include "server/follow.h"
#include "server/loop.h"
#include "server/repair/fsm.h"
#include "server/repair/plan.h"
#include "server/reply.h"
#include "server/wake.h"

static enum err answer_and_wake(struct request *rq, const struct db_rows *rows)
{
    enum err err = reply_apply(rq, rows);

    if (err == 0 && rq->err == 0 && rq->status < 300) {
        wake_org(&rq->caller.org, WAKE_REPAIR);
        follow_poke(loop_follow(rq->loop));
    }
    return err;
}

struct wave_node {
    struct str rack;
    struct str leaf;
    int wave; /* from 1 */
};

static bool are_neighbours(const struct wave_node *a, const struct wave_node *b)
{
    return (a->rack.len > 0 && str_eq(a->rack, b->rack)) ||
           (a->leaf.len > 0 && str_eq(a->leaf, b->leaf));
}

/* The first wave with room and without a neighbour. */
static int find_wave(const struct wave_node *nodes, size_t count, const struct wave_node *node,
                     int64_t room)
{
    for (int wave = 1;; wave++) {
        int64_t taken = 0;
        bool near = false;
        for (size_t i = 0; i < count; i++) {
            taken += nodes[i].wave == wave;
            near = near || (nodes[i].wave == wave && are_neighbours(&nodes[i], node));
        }
        if (taken < room && !near) {
            return wave;
        }
    }
}

static void write_id(struct enc *enc, const char *key, bool has, const struct uuid *id)
{
    enc_key(enc, key);
    if (has) {
        enc_uuid(enc, id);
    } else {
        enc_null(enc);
    }
}

static void write_repair(struct enc *enc, const struct repair_facts *facts,
                         const struct repair_plan *plan, int wave)
{
    struct uuid id = uuid_v7();
    struct str rest = facts->incident_ids;
    struct str part;

    enc_obj(enc);
    write_id(enc, "id", true, &id);
    write_id(enc, "node_id", true, &facts->node_id);
    enc_key(enc, "action");
    enc_cstr(enc, action_info(plan->action)->name);
    write_id(enc, "incident_id", facts->has_main, &facts->main_id);
    enc_key(enc, "incident_ids");
    enc_arr(enc);
    while (rest.len > 0 && str_split(&rest, ',', &part)) {
        enc_str(enc, part);
    }
    enc_arr_end(enc);
    enc_key(enc, "plan");
    enc_raw(enc, plan->json);
    enc_key(enc, "plan_hash");
    enc_cstr(enc, plan->hash);
    write_id(enc, "boot_id", facts->has_boot, &facts->boot_id);
    enc_key(enc, "attempt");
    enc_i64(enc, plan->attempt);
    enc_key(enc, "executor");
    enc_cstr(enc, plan->executor);
    enc_key(enc, "wave");
    enc_i64(enc, wave);
    enc_obj_end(enc);
}

/* At least one, or a cluster in trouble could not be helped by hand. */
static int64_t wave_room(struct arena *arena, const struct repair_facts *facts)
{
    struct policy policy = policy_read(arena, facts->policy_settings, config.cooldown_seconds);
    int64_t room = admission_max_running(&policy, facts->nodes, facts->down);

    return room > 1 ? room : 1;
}

static enum err on_facts(struct request *rq, const struct db_rows *rows)
{
    const struct repair_batch_in *in = rq->in;
    CLEANUP(buf_free) struct buf text = {0};
    struct enc enc;
    struct db_args args = {0};
    struct uuid batch = uuid_v7();
    int count = db_rows_count(rows);
    struct wave_node *nodes = arena_zalloc(rq->arena, ((size_t)count + 1) * sizeof *nodes);
    enum repair_action action;

    if (!action_parse(in->action, &action)) {
        return fail_log(rq, ERR_INTERNAL, "the table of fields lets an unknown action through");
    }
    enc_init(&enc, &text);
    enc_arr(&enc);
    for (int i = 0; i < count; i++) {
        struct repair_facts facts = {0};
        struct repair_plan plan;
        repair_facts_read(rows, i, &facts);
        if (action == ACTION_RESET_GPU && !facts.has_main) {
            return fail(rq, ERR_CONFLICT,
                        "No open incident of %.*s names a GPU to reset. Nothing was asked for.",
                        STR_FMT(facts.node_name));
        }
        nodes[i] = (struct wave_node){.rack = facts.rack, .leaf = facts.leaf};
        nodes[i].wave = find_wave(nodes, (size_t)i, &nodes[i], wave_room(rq->arena, &facts));
        repair_plan_build(rq->arena, &facts, action, config.cooldown_seconds, clock_wall_us(),
                          &plan);
        write_repair(&enc, &facts, &plan, nodes[i].wave);
    }
    enc_arr_end(&enc);
    db_arg_uuid(&args, rq->arena, &rq->path_ids[0]);
    bind_key(rq, &args);
    bind_actor(rq, &args);
    db_arg_str(&args, rq->arena, in->reason);
    db_arg_str(&args, rq->arena, buf_str(&text));
    db_arg(&args, repair_state_name(REPAIR_PROPOSED));
    db_arg_uuid(&args, rq->arena, &batch);
    db_arg_i64(&args, rq->arena, in->expected_count);
    return request_query(rq, SQL_REPAIR_REQUEST_BATCH, true, &args, answer_and_wake);
}

/* Ids as a PostgreSQL array text; false with the error noted. */
static bool read_nodes(struct request *rq, const struct str_list *list, const char **ret_nodes)
{
    CLEANUP(buf_free) struct buf text = {0};
    bool good = true;

    for (size_t i = 0; i < list->count; i++) {
        struct uuid id;
        char name[UUID_TEXT_LEN + 1];
        if (!uuid_parse(list->items[i], &id)) {
            decode_error_add(rq->arena, &rq->errors, arena_printf(rq->arena, "#/node_ids/%zu", i),
                             "invalid_format", "must be a UUID");
            good = false;
            continue;
        }
        uuid_format(&id, name);
        buf_printf(&text, "%s%s", text.len == 0 ? "{" : ",", name);
    }
    buf_add_char(&text, '}');
    *ret_nodes = arena_strndup(rq->arena, text.ptr, text.len);
    return good;
}

enum err repair_batch_request(struct request *rq)
{
    const struct repair_batch_in *in = rq->in;
    const char *nodes = NULL;
    struct db_args args;

    if (!read_nodes(rq, &in->node_ids, &nodes)) {
        return fail(rq, ERR_INVALID_FIELDS, "Some fields were refused.");
    }
    repair_facts_args(rq->arena, nodes, &args);
    return request_query(rq, SQL_REPAIR_FACTS, false, &args, on_facts);
}
