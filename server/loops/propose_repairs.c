/* Proposes repairs for open faults, keeps waiting plans true, and ends those that lost their
 * reason. */
#include "server/loops/loops.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/encode.h"
#include "server/config.h"
#include "server/health/traits.h"
#include "server/repair/executors/executor.h"
#include "server/repair/executors/targets.h"
#include "server/repair/fsm.h"
#include "server/repair/plan.h"
#include "server/wake.h"

static int64_t period_ms(void)
{
    return config.loop_period_ms;
}

/* Nodes whose proposal is to be looked at, as a PostgreSQL array text; NULL = none. */
static enum err find_due(struct runner *runner, const struct uuid *org, const char **ret_nodes)
{
    struct arena *arena = runner_arena(runner);
    struct action_list actions = action_list_of(ACTION_ALL);
    struct action_list last = action_list_last();
    struct action_list possible = action_list_of(executor_actions("agent"));
    struct action_list of_provisioners = action_list_of(executor_actions("ironic"));
    struct action_list of_machines = action_list_of(executor_actions("machine"));
    struct repair_list held = repair_states_with(REPAIR_HELD);
    CLEANUP(buf_free) struct buf text = {0};
    struct db_args args = {0};
    struct db_rows *rows = NULL;

    db_arg(&args, actions.text);
    db_arg(&args, repair_state_name(REPAIR_PROPOSED));
    db_arg(&args, held.text);
    db_arg_i64(&args, arena, config.cooldown_seconds);
    db_arg(&args, last.text);
    db_arg(&args, repair_state_name(REPAIR_FAILED));
    db_arg(&args, repair_state_name(REPAIR_SUCCEEDED));
    db_arg(&args, possible.text);
    db_arg(&args, catalog_arrays()->settling);
    db_arg_i64(&args, arena, config.settle_seconds);
    db_arg(&args, catalog_arrays()->grace);
    db_arg_i64(&args, arena, config.boot_grace_seconds);
    db_arg(&args, of_machines.text);
    db_arg(&args, machine_names());
    db_arg(&args, hook_names());
    db_arg(&args, of_provisioners.text);
    db_arg(&args, provisioner_names());
    enum err err = runner_query(runner, SQL_REPAIR_DUE, org, &args, &rows);
    if (err != 0) {
        return err;
    }
    int count = db_rows_count(rows);
    for (int i = 0; i < count; i++) {
        buf_printf(&text, "%s%.*s", i == 0 ? "{" : ",", STR_FMT(db_text(rows, i, 0)));
    }
    db_rows_free(rows);
    *ret_nodes = NULL;
    if (count > 0) {
        buf_add_char(&text, '}');
        *ret_nodes = arena_strndup(arena, text.ptr, text.len);
    }
    return 0;
}

static void write_ids(struct enc *enc, struct str ids)
{
    struct str part;

    enc_key(enc, "incident_ids");
    enc_arr(enc);
    while (ids.len > 0 && str_split(&ids, ',', &part)) {
        enc_str(enc, part);
    }
    enc_arr_end(enc);
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

static void write_proposal(struct enc *enc, const struct repair_facts *facts,
                           const struct repair_plan *plan)
{
    struct uuid fresh = uuid_v7();

    enc_obj(enc);
    write_id(enc, "node_id", true, &facts->node_id);
    write_id(enc, "id", true, facts->has_open ? &facts->open_id : &fresh);
    enc_key(enc, "action");
    enc_cstr(enc, action_info(plan->action)->name);
    write_id(enc, "incident_id", facts->has_main, &facts->main_id);
    write_ids(enc, facts->incident_ids);
    enc_key(enc, "plan");
    enc_raw(enc, plan->json);
    enc_key(enc, "plan_hash");
    enc_cstr(enc, plan->hash);
    write_id(enc, "boot_id", facts->has_boot, &facts->boot_id);
    enc_key(enc, "attempt");
    enc_i64(enc, plan->attempt);
    enc_key(enc, "executor");
    enc_cstr(enc, plan->executor);
    enc_key(enc, "reason");
    enc_cstr(enc, plan->reason);
    enc_key(enc, "version");
    if (facts->has_open) {
        enc_i64(enc, facts->open_version);
    } else {
        enc_null(enc);
    }
    enc_obj_end(enc);
}

/* Why a proposal ends by itself. */
static const char *resolve_reason(const struct repair_facts *facts)
{
    if (facts->held) {
        return "Its fault belongs to a cause that many nodes share; that is mended first.";
    }
    return facts->wanted < 0 ? "Its incidents closed by themselves."
                             : "Nothing is left to try by itself; a person decides.";
}

static enum err resolve(struct runner *runner, const struct uuid *org,
                        const struct repair_facts *facts)
{
    struct arena *arena = runner_arena(runner);
    struct repair_list from = repair_event_from(REPAIR_ON_RESOLVE);
    struct db_args args = {0};

    db_arg_uuid(&args, arena, &facts->open_id);
    db_arg_i64(&args, arena, facts->open_version);
    db_arg(&args, from.text);
    db_arg(&args, repair_state_name(repair_event_to(REPAIR_ON_RESOLVE)));
    db_arg_bool(&args, true);
    db_arg(&args, resolve_reason(facts));
    db_arg(&args, NULL);
    db_arg(&args, "repair.resolved");
    db_arg(&args, "info");
    db_arg(&args, NULL);
    db_arg_bool(&args, false);
    db_arg_bool(&args, false);
    db_arg_bool(&args, false);
    return runner_exec(runner, SQL_REPAIR_MOVE, org, &args, NULL);
}

/* What to propose: a person's action stays; Muster's follows the incidents, and a cause that many
 * nodes share comes before each node's own repair. */
static bool choose(struct arena *arena, const struct repair_facts *facts,
                   enum repair_action *ret_action)
{
    if (facts->has_open && !str_eq_c(facts->open_requested_by, "muster")) {
        *ret_action = (enum repair_action)facts->open_action;
        return facts->open_action >= 0;
    }
    struct policy policy = policy_read(arena, facts->policy_settings, config.cooldown_seconds);
    return !facts->held && repair_action_choose(facts, &policy, ret_action);
}

static enum err propose(struct runner *runner, const struct uuid *org, const struct db_rows *rows)
{
    struct arena *arena = runner_arena(runner);
    CLEANUP(buf_free) struct buf text = {0};
    struct enc enc;
    int written = 0;
    enum err err = 0;

    enc_init(&enc, &text);
    enc_arr(&enc);
    for (int i = 0; i < db_rows_count(rows); i++) {
        struct repair_facts facts = {0};
        struct repair_plan plan;
        enum repair_action action;
        repair_facts_read(rows, i, &facts);
        bool waits =
            facts.has_open && str_eq_c(facts.open_state, repair_state_name(REPAIR_PROPOSED));
        if (facts.has_open && !waits) {
            continue; /* decided meanwhile: its own loop looks after it */
        }
        if (choose(arena, &facts, &action)) {
            repair_plan_build(arena, &facts, action, config.cooldown_seconds, clock_wall_us(),
                              &plan);
            write_proposal(&enc, &facts, &plan);
            written++;
        } else if (waits) {
            enum err failed = resolve(runner, org, &facts);
            err = failed != 0 ? failed : err;
        }
    }
    enc_arr_end(&enc);
    if (written == 0 || err != 0) {
        return err;
    }
    struct db_args args = {0};
    db_arg(&args, text.ptr);
    db_arg(&args, repair_state_name(REPAIR_PROPOSED));
    return runner_exec(runner, SQL_REPAIR_PROPOSE, org, &args, NULL);
}

static enum err run(struct runner *runner, const struct uuid *org)
{
    const char *nodes = NULL;
    struct db_args args;
    struct db_rows *rows = NULL;
    /* What belongs together first: it decides what is proposed, and what is held. */
    enum err err = correlate(runner, org);

    err = err != 0 ? err : find_due(runner, org, &nodes);

    if (err != 0 || nodes == NULL) {
        return err;
    }
    /* Once more, for what came in between: a plan is made of judged incidents only. */
    err = correlate(runner, org);
    if (err != 0) {
        return err;
    }
    repair_facts_args(runner_arena(runner), nodes, &args);
    err = runner_query(runner, SQL_REPAIR_FACTS, org, &args, &rows);
    if (err != 0) {
        return err;
    }
    err = propose(runner, org, rows);
    db_rows_free(rows);
    runner_changed(runner, org, WAKE_REPAIR);
    /* Somebody else was first; what is left is seen at the next look. */
    return err == ERR_CONFLICT ? 0 : err;
}

const struct runner_spec propose_repairs_loop = {
    .name = "propose_repairs",
    .topics = WAKE_HEALTH | WAKE_REPAIR | WAKE_NODE | WAKE_STATE,
    .period_ms = period_ms,
    .run = run,
};
