/* Decides by policy: opens breakers, approves what admission has no reason against, and keeps the
 * reasons of the rest. */
#include "server/loops/loops.h"

#include "base/buf.h"
#include "base/encode.h"
#include "base/log.h"
#include "server/config.h"
#include "server/repair/fsm.h"
#include "server/repair/plan.h"
#include "server/wake.h"

/* Each approval changes what the next one is measured by, so the counting begins anew. */
#define APPROVALS_MAX 25
#define CODES_MAX 512

static int64_t period_ms(void)
{
    return config.loop_period_ms;
}

/* ------------------------------------------------------------------ breakers */

struct whole {
    struct breaker_counters counters;
    struct policy policy;
    bool is_open;
    bool untold; /* the installation's breaker opened, and this org was not told */
};

static enum err open_breaker(struct runner *runner, const struct uuid *org,
                             const struct uuid *target, const char *why)
{
    struct db_args args = {0};
    int64_t opened = 0;

    db_arg_uuid(&args, runner_arena(runner), target);
    db_arg(&args, why);
    enum err err = runner_exec(runner, SQL_BREAKER_OPEN, org, &args, &opened);
    if (err == 0 && opened > 0) {
        log_warning("a breaker opened: %s", why);
        runner_changed(runner, org, WAKE_REPAIR);
    }
    return err;
}

static enum err look_at_cluster(struct runner *runner, const struct uuid *org,
                                const struct db_rows *rows, int row, struct whole *whole)
{
    struct uuid cluster = {0};
    char why[ADMISSION_TEXT_MAX];
    struct policy policy =
        policy_read(runner_arena(runner), db_text(rows, row, db_rows_col(rows, "settings")),
                    config.cooldown_seconds);
    struct breaker_counters c = {
        .nodes = db_i64(rows, row, db_rows_col(rows, "nodes")),
        .newly_unhealthy = db_i64(rows, row, db_rows_col(rows, "newly_unhealthy")),
        .automatic_ended = db_i64(rows, row, db_rows_col(rows, "automatic_ended")),
        .automatic_failed = db_i64(rows, row, db_rows_col(rows, "automatic_failed")),
    };

    whole->counters.nodes += c.nodes;
    whole->counters.newly_unhealthy += c.newly_unhealthy;
    whole->is_open = db_bool(rows, row, db_rows_col(rows, "org_open"));
    whole->untold = db_bool(rows, row, db_rows_col(rows, "untold"));
    if (db_bool(rows, row, db_rows_col(rows, "is_open")) || !breaker_trips(&policy, &c, why) ||
        !db_uuid(rows, row, db_rows_col(rows, "cluster_id"), &cluster)) {
        return 0;
    }
    return open_breaker(runner, org, &cluster, why);
}

/* What this org adds to the installation's breaker; and its people are told when that opened. */
static enum err count_and_tell(struct runner *runner, const struct uuid *org,
                               const struct whole *whole)
{
    struct arena *arena = runner_arena(runner);
    struct db_args args = {0};

    db_arg_i64(&args, arena, whole->counters.nodes);
    db_arg_i64(&args, arena, whole->counters.newly_unhealthy);
    enum err err = runner_exec(runner, SQL_GUARD_COUNT, org, &args, NULL);
    if (err == 0 && whole->untold) {
        err = runner_exec(runner, SQL_BREAKER_PLATFORM_TELL, org, NULL, NULL);
        runner_changed(runner, org, WAKE_REPAIR);
    }
    return err;
}

/* The same rules over all organizations, with the limits that count where nobody wrote a policy.
 * One organization is its own breakers' business. */
static enum err look_at_platform(struct runner *runner)
{
    const struct policy policy = policy_default(config.cooldown_seconds);
    struct db_args args = {0};
    struct db_rows *rows = NULL;
    char why[ADMISSION_TEXT_MAX];

    db_arg(&args, repair_state_name(REPAIR_FAILED));
    db_arg(&args, repair_state_name(REPAIR_SUCCEEDED));
    enum err err = runner_query(runner, SQL_GUARD_PLATFORM_LOOK, NULL, &args, &rows);
    if (err != 0) {
        return err;
    }
    const struct breaker_counters c = {
        .nodes = db_i64(rows, 0, db_rows_col(rows, "nodes")),
        .newly_unhealthy = db_i64(rows, 0, db_rows_col(rows, "newly_unhealthy")),
        .automatic_ended = db_i64(rows, 0, db_rows_col(rows, "automatic_ended")),
        .automatic_failed = db_i64(rows, 0, db_rows_col(rows, "automatic_failed")),
    };
    bool looks = !db_bool(rows, 0, db_rows_col(rows, "is_open")) &&
                 db_i64(rows, 0, db_rows_col(rows, "orgs")) > 1;
    db_rows_free(rows);
    if (!looks || !breaker_trips(&policy, &c, why)) {
        return 0;
    }
    args = (struct db_args){0};
    db_arg(&args, why);
    log_warning("the breaker of the whole installation opens: %s", why);
    return runner_exec(runner, SQL_BREAKER_PLATFORM_OPEN, NULL, &args, NULL);
}

static enum err look_at_breakers(struct runner *runner, const struct uuid *org)
{
    static const struct str shared = {"{" ADMISSION_SHARED_CAUSES "}",
                                      sizeof("{" ADMISSION_SHARED_CAUSES "}") - 1};
    struct db_args args = {0};
    struct db_rows *rows = NULL;
    struct whole whole = {0};
    char why[ADMISSION_TEXT_MAX];

    db_arg(&args, shared.ptr);
    db_arg(&args, repair_state_name(REPAIR_FAILED));
    db_arg(&args, repair_state_name(REPAIR_SUCCEEDED));
    enum err err = runner_query(runner, SQL_GUARD_LOOK, org, &args, &rows);
    if (err != 0) {
        return err;
    }
    int count = db_rows_count(rows);
    if (count > 0) {
        whole.policy =
            policy_read(runner_arena(runner), db_text(rows, 0, db_rows_col(rows, "org_settings")),
                        config.cooldown_seconds);
    }
    for (int i = 0; i < count && err == 0; i++) {
        err = look_at_cluster(runner, org, rows, i, &whole);
    }
    db_rows_free(rows);
    err = err != 0 || count == 0 ? err : count_and_tell(runner, org, &whole);
    /* One cluster is its own breaker's business; the org's is about several at once. */
    if (err == 0 && count > 1 && !whole.is_open &&
        breaker_trips(&whole.policy, &whole.counters, why)) {
        err = open_breaker(runner, org, org, why);
    }
    return err;
}

/* ------------------------------------------------------------------ decisions */

struct candidate {
    const struct repair_facts *facts;
    enum repair_action action;
    int64_t starts_seen;
    bool would_start; /* told already that a policy on trial would have */
};

/* The plan that is stored is the plan that would be made now. */
static bool plan_is_true(const struct repair_facts *facts, enum repair_action action)
{
    char hash[65];

    repair_plan_hash(facts, action, hash);
    return str_eq_c(facts->open_plan_hash, hash);
}

static enum err approve(struct runner *runner, const struct uuid *org,
                        const struct candidate *candidate, const struct uuid *cluster,
                        int64_t *ret_approved)
{
    struct arena *arena = runner_arena(runner);
    struct repair_list from = repair_event_from(REPAIR_ON_APPROVE);
    const struct repair_facts *facts = candidate->facts;
    struct db_args args = {0};

    db_arg_uuid(&args, arena, &facts->open_id);
    db_arg_i64(&args, arena, facts->open_version);
    db_arg(&args, from.text);
    db_arg(&args, repair_state_name(repair_event_to(REPAIR_ON_APPROVE)));
    db_arg_str(&args, arena, facts->policy_tag);
    db_arg_uuid(&args, arena, cluster);
    db_arg_i64(&args, arena, candidate->starts_seen);
    return runner_exec(runner, SQL_REPAIR_APPROVE_BY_POLICY, org, &args, ret_approved);
}

static enum err tell_trial(struct runner *runner, const struct uuid *org,
                           const struct repair_facts *facts)
{
    struct db_args args = {0};

    db_arg_uuid(&args, runner_arena(runner), &facts->open_id);
    db_arg_i64(&args, runner_arena(runner), facts->open_version);
    db_arg_str(&args, runner_arena(runner), facts->policy_tag);
    return runner_exec(runner, SQL_REPAIR_WOULD_START, org, &args, NULL);
}

static void codes_of(const struct admission *admission, char text[CODES_MAX])
{
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; i < admission->count && used < CODES_MAX; i++) {
        int len = snprintf(text + used, CODES_MAX - used, "%s%s", i > 0 ? "," : "",
                           admission_code_name(admission->reasons[i].code));
        used += len > 0 ? (size_t)len : 0;
    }
}

/* Numbers in the sentences change all the time; the codes say when it is worth writing. */
static void note_reasons(struct enc *enc, const struct db_rows *rows, int row,
                         const struct repair_facts *facts, const struct admission *admission)
{
    char codes[CODES_MAX];

    codes_of(admission, codes);
    if (str_eq_c(db_text(rows, row, db_rows_col(rows, "open_why_codes")), codes)) {
        return;
    }
    enc_obj(enc);
    enc_key(enc, "id");
    enc_uuid(enc, &facts->open_id);
    enc_key(enc, "version");
    enc_i64(enc, facts->open_version);
    enc_key(enc, "why_not");
    repair_why_not_write(enc, admission);
    enc_obj_end(enc);
}

static enum err write_reasons(struct runner *runner, const struct uuid *org, const struct buf *text)
{
    struct db_args args = {0};
    int64_t changed = 0;

    if (text->len <= 2) {
        return 0;
    }
    db_arg(&args, text->ptr);
    enum err err = runner_exec(runner, SQL_REPAIR_WHY_NOT_SET, org, &args, &changed);
    return err;
}

/* One proposal: approved by its policy, or its reasons are noted. */
static enum err judge_one(struct runner *runner, const struct uuid *org, const struct db_rows *rows,
                          int row, struct enc *enc, int64_t *ret_approved)
{
    struct repair_facts facts = {0};
    struct admission admission;
    struct uuid cluster = {0};

    repair_facts_read(rows, row, &facts);
    if (!facts.has_open || facts.open_action < 0 ||
        !str_eq_c(facts.open_state, repair_state_name(REPAIR_PROPOSED)) ||
        !db_uuid(rows, row, db_rows_col(rows, "cluster_id"), &cluster)) {
        return 0;
    }
    enum repair_action action = (enum repair_action)facts.open_action;
    struct policy policy =
        policy_read(runner_arena(runner), facts.policy_settings, config.cooldown_seconds);
    repair_judge(&facts, &policy, action, &admission);
    if (admission.count > 0 || !plan_is_true(&facts, action)) {
        note_reasons(enc, rows, row, &facts, &admission);
        return 0;
    }
    struct candidate candidate = {
        .facts = &facts,
        .action = action,
        .starts_seen = db_i64(rows, row, db_rows_col(rows, "starts_seen")),
        .would_start = db_bool(rows, row, db_rows_col(rows, "would_start")),
    };
    if (policy.dry_run) {
        return candidate.would_start ? 0 : tell_trial(runner, org, &facts);
    }
    return approve(runner, org, &candidate, &cluster, ret_approved);
}

static enum err judge_all(struct runner *runner, const struct uuid *org, const char *nodes,
                          int64_t *ret_approved)
{
    CLEANUP(buf_free) struct buf text = {0};
    struct db_args args;
    struct db_rows *rows = NULL;
    struct enc enc;

    repair_facts_args(runner_arena(runner), nodes, &args);
    enum err err = runner_query(runner, SQL_REPAIR_FACTS, org, &args, &rows);
    if (err != 0) {
        return err;
    }
    enc_init(&enc, &text);
    enc_arr(&enc);
    for (int i = 0; i < db_rows_count(rows) && err == 0 && *ret_approved == 0; i++) {
        err = judge_one(runner, org, rows, i, &enc, ret_approved);
    }
    enc_arr_end(&enc);
    db_rows_free(rows);
    return err != 0 ? err : write_reasons(runner, org, &text);
}

static enum err find_candidates(struct runner *runner, const struct uuid *org,
                                const char **ret_nodes)
{
    CLEANUP(buf_free) struct buf text = {0};
    struct db_args args = {0};
    struct db_rows *rows = NULL;

    db_arg(&args, repair_state_name(REPAIR_PROPOSED));
    enum err err = runner_query(runner, SQL_REPAIR_CANDIDATES, org, &args, &rows);
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
        *ret_nodes = arena_strndup(runner_arena(runner), text.ptr, text.len);
    }
    return 0;
}

static enum err run(struct runner *runner, const struct uuid *org)
{
    const char *nodes = NULL;
    bool changed = false;
    enum err err = look_at_breakers(runner, org);

    for (int i = 0; i < APPROVALS_MAX && err == 0; i++) {
        int64_t approved = 0;
        err = find_candidates(runner, org, &nodes);
        if (err != 0 || nodes == NULL) {
            break;
        }
        err = judge_all(runner, org, nodes, &approved);
        if (approved == 0) {
            break;
        }
        changed = true;
    }
    if (changed) {
        runner_changed(runner, org, WAKE_REPAIR);
    }
    return err;
}

const struct runner_spec approve_repairs_loop = {
    .name = "approve_repairs",
    .topics = WAKE_HEALTH | WAKE_REPAIR | WAKE_NODE | WAKE_STATE,
    .period_ms = period_ms,
    .run = run,
    .run_global = look_at_platform,
};
