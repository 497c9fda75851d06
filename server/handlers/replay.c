/* POST /api/v1/policies/dry-run: rows in, replay, JSON out. */
#include "server/handlers/replay.h"

#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/encode.h"
#include "server/config.h"
#include "server/repair/policy.h"
#include "server/repair/replay.h"

#define ITEMS_MAX 200
#define DAYS 30

/* Beside each fault, for the answer. */
struct row {
    struct uuid cluster_id;
    struct uuid node_id;
    struct str node_name;
};

struct work {
    struct policy policy;
    struct replay_fault *faults;
    struct row *rows;
    size_t count;
    struct replay_sum sum;
};

/* The place of a name among those of the cluster so far, from 1; "" is 0. */
static uint32_t number_of(struct str *names, size_t *count, struct str name)
{
    if (name.len == 0) {
        return 0;
    }
    for (size_t i = 0; i < *count; i++) {
        if (str_eq(names[i], name)) {
            return (uint32_t)i + 1;
        }
    }
    names[(*count)++] = name;
    return (uint32_t)*count;
}

static uint32_t node_number(const struct work *work, size_t begin, size_t place)
{
    uint32_t next = 0;

    for (size_t i = begin; i < place; i++) {
        if (memcmp(&work->rows[i].node_id, &work->rows[place].node_id, sizeof(struct uuid)) == 0) {
            return work->faults[i].node;
        }
        next = work->faults[i].node >= next ? work->faults[i].node + 1 : next;
    }
    return next;
}

static struct str text_at(struct arena *arena, const struct db_rows *rows, int row,
                          const char *name)
{
    struct str text = db_text(rows, row, db_rows_col(rows, name));

    return (struct str){arena_strndup(arena, text.ptr, text.len), text.len};
}

static int64_t number_at(const struct db_rows *rows, int row, const char *name)
{
    return db_i64(rows, row, db_rows_col(rows, name));
}

static void read_fault(struct arena *arena, const struct db_rows *rows, int row, struct work *work)
{
    struct replay_fault *f = &work->faults[work->count];
    struct row *beside = &work->rows[work->count];
    int closed = db_rows_col(rows, "closed_at");

    if (!action_parse(db_text(rows, row, db_rows_col(rows, "action")), &f->action) ||
        !db_uuid(rows, row, db_rows_col(rows, "cluster_id"), &beside->cluster_id) ||
        !db_uuid(rows, row, db_rows_col(rows, "node_id"), &beside->node_id)) {
        return;
    }
    beside->node_name = text_at(arena, rows, row, "node_name");
    f->check_id = text_at(arena, rows, row, "check_id");
    f->code = text_at(arena, rows, row, "code");
    f->at = number_at(rows, row, "at");
    f->closed_at = db_is_null(rows, row, closed) ? INT64_MAX : db_i64(rows, row, closed);
    f->offset = number_at(rows, row, "zone_offset");
    f->off = db_bool(rows, row, db_rows_col(rows, "off"));
    f->busy = db_bool(rows, row, db_rows_col(rows, "busy"));
    work->count++;
}

/* One cluster's rows from `row` on; gives the row after them. */
static int play_cluster(struct arena *arena, const struct db_rows *rows, int row, struct work *work)
{
    int count = db_rows_count(rows);
    size_t begin = work->count;
    size_t racks_count = 0;
    size_t leaves_count = 0;
    uint32_t seen = 0;
    struct str *racks = arena_alloc(arena, (size_t)count * sizeof *racks + 1);
    struct str *leaves = arena_alloc(arena, (size_t)count * sizeof *leaves + 1);
    size_t nodes = (size_t)number_at(rows, row, "nodes");
    struct str cluster = db_text(rows, row, db_rows_col(rows, "cluster_id"));

    for (; row < count && str_eq(db_text(rows, row, db_rows_col(rows, "cluster_id")), cluster);
         row++) {
        size_t place = work->count;
        read_fault(arena, rows, row, work);
        if (work->count > place) {
            struct replay_fault *f = &work->faults[place];
            f->node = node_number(work, begin, place);
            f->rack = number_of(racks, &racks_count, text_at(arena, rows, row, "rack"));
            f->leaf = number_of(leaves, &leaves_count, text_at(arena, rows, row, "leaf"));
            seen = f->node + 1 > seen ? f->node + 1 : seen;
        }
    }
    /* nodes that are gone by now had faults too */
    replay_cluster(arena, &work->policy, nodes > seen ? nodes : seen, work->faults + begin,
                   work->count - begin, &work->sum);
    return row;
}

static void write_count(struct enc *enc, const char *key, int64_t value)
{
    enc_key(enc, key);
    enc_i64(enc, value);
}

static void write_item(struct enc *enc, const struct work *work, size_t place)
{
    static const char *const ends[] = {"held", "closed", "start"};
    const struct replay_fault *f = &work->faults[place];
    bool started = f->end == REPLAY_STARTED;

    enc_obj(enc);
    enc_key(enc, "cluster_id");
    enc_uuid(enc, &work->rows[place].cluster_id);
    enc_key(enc, "node_id");
    enc_uuid(enc, &work->rows[place].node_id);
    enc_key(enc, "node_name");
    enc_str(enc, work->rows[place].node_name);
    enc_key(enc, "check_id");
    enc_str(enc, f->check_id);
    enc_key(enc, "code");
    enc_str(enc, f->code);
    enc_key(enc, "action");
    enc_cstr(enc, action_info(f->action)->name);
    enc_key(enc, "at");
    enc_time(enc, f->at * 1000000);
    enc_key(enc, "decision");
    enc_cstr(enc, ends[f->end]);
    enc_key(enc, "started_at");
    if (started) {
        enc_time(enc, f->started_at * 1000000);
    } else {
        enc_null(enc);
    }
    enc_key(enc, "running_job");
    enc_bool(enc, f->busy);
    enc_key(enc, "why_not");
    enc_arr(enc);
    for (unsigned code = 0; code < ADMIT_CODE_COUNT; code++) {
        if ((f->reasons & (1u << code)) != 0 && !started) {
            enc_cstr(enc, admission_code_name((enum admission_code)code));
        }
    }
    enc_arr_end(enc);
    enc_obj_end(enc);
}

/* What would have started first, then the rest, in the order of time. */
static void write_items(struct enc *enc, const struct work *work)
{
    size_t written = 0;

    enc_key(enc, "items");
    enc_arr(enc);
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < work->count && written < ITEMS_MAX; i++) {
            if ((work->faults[i].end == REPLAY_STARTED) == (round == 0)) {
                write_item(enc, work, i);
                written++;
            }
        }
    }
    enc_arr_end(enc);
}

static void write_sum(struct enc *enc, const struct work *work)
{
    const struct replay_sum *sum = &work->sum;

    write_count(enc, "faults", (int64_t)work->count);
    write_count(enc, "starts", sum->starts);
    write_count(enc, "with_running_job", sum->busy);
    write_count(enc, "closed_before", sum->closed);
    write_count(enc, "breaker_trips", sum->trips);
    enc_key(enc, "complete");
    enc_bool(enc, !sum->cut);
    enc_key(enc, "by_action");
    enc_arr(enc);
    for (size_t i = 0; i < ACTION_COUNT; i++) {
        if (sum->by_action[i] > 0) {
            enc_obj(enc);
            enc_key(enc, "action");
            enc_cstr(enc, action_info((enum repair_action)i)->name);
            write_count(enc, "starts", sum->by_action[i]);
            enc_obj_end(enc);
        }
    }
    enc_arr_end(enc);
    enc_key(enc, "by_reason");
    enc_arr(enc);
    for (size_t i = 0; i < ADMIT_CODE_COUNT; i++) {
        if (sum->by_reason[i] > 0) {
            enc_obj(enc);
            enc_key(enc, "code");
            enc_cstr(enc, admission_code_name((enum admission_code)i));
            write_count(enc, "faults", sum->by_reason[i]);
            enc_obj_end(enc);
        }
    }
    enc_arr_end(enc);
}

/* Rules that no fault of these days met: they may be right, but nothing shows it. */
static void write_unmatched(struct enc *enc, const struct work *work)
{
    const struct str_list *list = &work->policy.automatic;

    enc_key(enc, "unmatched");
    enc_arr(enc);
    for (size_t i = 0; i < list->count; i++) {
        bool met = false;
        for (size_t j = 0; j < work->count && !met; j++) {
            struct policy one = {.automatic = {list->items + i, 1}, .mode = POLICY_CONFIRM};
            met = policy_mode_for(&one, work->faults[j].check_id, work->faults[j].code) ==
                  POLICY_AUTOMATIC;
        }
        if (!met) {
            enc_str(enc, list->items[i]);
        }
    }
    enc_arr_end(enc);
}

static enum err on_rows(struct request *rq, const struct db_rows *rows)
{
    CLEANUP(buf_free) struct buf text = {0};
    struct decode_errors errors = {0};
    struct enc enc;
    int count = db_rows_count(rows);
    struct work work = {
        .policy = policy_default(config.cooldown_seconds),
        .faults = arena_zalloc(rq->arena, ((size_t)count + 1) * sizeof *work.faults),
        .rows = arena_zalloc(rq->arena, ((size_t)count + 1) * sizeof *work.rows),
    };

    if (!policy_apply(rq->arena, rq->in, &errors, &work.policy)) {
        return fail_log(rq, ERR_INTERNAL, "a policy that was good is not");
    }
    if (!db_bool(rows, 0, db_rows_col(rows, "good"))) {
        return fail(rq, ERR_NOT_FOUND, "There is no such cluster or node in this organization.");
    }
    if (!db_bool(rows, 0, db_rows_col(rows, "zone"))) {
        decode_error_add(rq->arena, &rq->errors, "#/time_zone", "not_allowed",
                         "must be a time zone such as Europe/Berlin or UTC");
        return fail(rq, ERR_INVALID_FIELDS, "1 field was refused.");
    }
    for (int row = 0; row < count && !db_is_null(rows, row, db_rows_col(rows, "node_id"));) {
        row = play_cluster(rq->arena, rows, row, &work);
    }
    int64_t now_us = clock_wall_us();
    enc_init(&enc, &text);
    enc_obj(&enc);
    enc_key(&enc, "since");
    enc_time(&enc, now_us - DAYS * 86400LL * 1000000);
    enc_key(&enc, "until");
    enc_time(&enc, now_us);
    write_sum(&enc, &work);
    write_unmatched(&enc, &work);
    write_items(&enc, &work);
    enc_obj_end(&enc);
    reply_json(rq, 200, (struct str){arena_strndup(rq->arena, text.ptr, text.len), text.len});
    return 0;
}

enum err policy_replay(struct request *rq)
{
    const struct policy_in *in = rq->in;
    struct policy policy = policy_default(config.cooldown_seconds);
    struct db_args args = {0};

    if (!policy_apply(rq->arena, in, &rq->errors, &policy)) {
        return fail(rq, ERR_INVALID_FIELDS, "Some fields were refused.");
    }
    db_arg_str(&args, rq->arena, in->cluster_id);
    db_arg_str(&args, rq->arena, in->node_id);
    db_arg_str(&args, rq->arena, policy.time_zone);
    return request_query(rq, SQL_POLICY_REPLAY, false, &args, on_rows);
}
