/* Plans: facts in, JSON and hash out. */
#include "server/repair/plan.h"

#include <inttypes.h>

#include "base/buf.h"
#include "base/crypto.h"
#include "base/encode.h"
#include "server/repair/admission.h"
#include "server/repair/executors/targets.h"
#include "server/repair/fsm.h"

static void read_attempts(struct str text, int64_t attempts[ACTION_COUNT])
{
    struct str part;

    for (size_t i = 0; i < ACTION_COUNT; i++) {
        uint64_t n = 0;
        attempts[i] =
            str_split(&text, ',', &part) && str_parse_u64(part, 0, INT32_MAX, &n) ? (int64_t)n : 0;
    }
}

/* Weights in SQL are positions, from 1; NULL is 0. */
static int read_weight(const struct db_rows *rows, int row, const char *name)
{
    int64_t weight = db_i64(rows, row, db_rows_col(rows, name));

    return weight < 1 || weight > ACTION_COUNT ? -1 : (int)weight - 1;
}

static struct str text_of(const struct db_rows *rows, int row, const char *name)
{
    return db_text(rows, row, db_rows_col(rows, name));
}

static int64_t number_of(const struct db_rows *rows, int row, const char *name)
{
    return db_i64(rows, row, db_rows_col(rows, name));
}

static void read_open(const struct db_rows *rows, int row, struct repair_facts *facts)
{
    enum repair_action action;

    facts->has_open = db_uuid(rows, row, db_rows_col(rows, "open_id"), &facts->open_id);
    facts->open_version = number_of(rows, row, "open_version");
    facts->open_state = text_of(rows, row, "open_state");
    facts->open_plan_hash = text_of(rows, row, "open_plan_hash");
    facts->open_requested_by = text_of(rows, row, "open_requested_by");
    facts->open_has_executor = !db_is_null(rows, row, db_rows_col(rows, "open_executor"));
    facts->open_action =
        action_parse(text_of(rows, row, "open_action"), &action) ? (int)action : -1;
}

/* Weekday and minute are the policy's; a reach is a number of enum admission_reach. */
static void read_counters(const struct db_rows *rows, int row, struct repair_facts *facts)
{
    struct admission_counters *c = &facts->counters;

    c->nodes = facts->nodes;
    c->down = facts->down;
    c->running = facts->running;
    c->ended_seconds_ago = facts->ended_seconds_ago;
    c->node_joined = facts->joined;
    c->auto_repair = facts->auto_repair;
    c->starts = number_of(rows, row, "starts");
    c->same_kind = number_of(rows, row, "same_kind");
    c->seen = number_of(rows, row, "seen");
    c->silent = number_of(rows, row, "cluster_silent");
    c->domain_running = number_of(rows, row, "domain_running");
    c->domain_silent = number_of(rows, row, "domain_silent");
    c->incidents = number_of(rows, row, "incidents_counted");
    int age = db_rows_col(rows, "fault_seconds_ago");
    c->fault_seconds_ago = db_is_null(rows, row, age) ? -1 : db_i64(rows, row, age);
    c->weekday = (int)number_of(rows, row, "weekday");
    c->minute = (int)number_of(rows, row, "minute");
    c->stopped = (enum admission_reach)number_of(rows, row, "stopped_reach");
    c->breaker_open = (enum admission_reach)number_of(rows, row, "breaker_reach");
    c->waited = db_bool(rows, row, db_rows_col(rows, "waited"));
    c->last_of_role = db_bool(rows, row, db_rows_col(rows, "last_of_role"));
    c->shared_cause = admission_shared_cause(facts->check_id);
    c->reinstallable = admission_reinstallable(facts->check_id);
    c->held = facts->held;
}

void repair_facts_read(const struct db_rows *rows, int row, struct repair_facts *ret_facts)
{
    struct repair_facts f = {0};

    if (!db_uuid(rows, row, db_rows_col(rows, "node_id"), &f.node_id)) {
        return;
    }
    f.has_boot = db_uuid(rows, row, db_rows_col(rows, "boot_id"), &f.boot_id);
    f.node_name = text_of(rows, row, "node_name");
    f.owner = machine_owner_of(text_of(rows, row, "org_name"), text_of(rows, row, "cluster_name"),
                               f.node_name);
    f.spares = number_of(rows, row, "spares");
    f.spares_total = number_of(rows, row, "spares_total");
    f.hooked = hook_actions(text_of(rows, row, "org_name"), text_of(rows, row, "cluster_name"));
    f.rack = text_of(rows, row, "rack");
    f.leaf = text_of(rows, row, "leaf");
    f.healthy_now = str_eq_c(text_of(rows, row, "node_state"), "healthy");
    f.auto_repair = db_bool(rows, row, db_rows_col(rows, "auto_repair"));
    f.joined = db_bool(rows, row, db_rows_col(rows, "joined"));
    f.healthy_delay_s = number_of(rows, row, "healthy_delay_seconds");
    f.begin_within_s = number_of(rows, row, "begin_within_seconds");
    f.rejoin_within_s = number_of(rows, row, "rejoin_within_seconds");
    f.nodes = number_of(rows, row, "nodes");
    f.healthy = number_of(rows, row, "healthy");
    f.down = number_of(rows, row, "down");
    f.running = number_of(rows, row, "running");
    f.others_down = number_of(rows, row, "others_down");
    f.held = db_bool(rows, row, db_rows_col(rows, "held"));
    int ended = db_rows_col(rows, "ended_seconds_ago");
    f.ended_seconds_ago = db_is_null(rows, row, ended) ? -1 : db_i64(rows, row, ended);
    read_attempts(text_of(rows, row, "attempts"), f.attempts);
    f.incident_ids = text_of(rows, row, "incident_ids");
    f.has_main = db_uuid(rows, row, db_rows_col(rows, "main_id"), &f.main_id);
    f.wanted = read_weight(rows, row, "weight");
    f.failed = read_weight(rows, row, "failed_weight");
    f.summary = text_of(rows, row, "summary");
    f.evidence = text_of(rows, row, "evidence");
    f.jobs = text_of(rows, row, "jobs");
    f.job_ids = text_of(rows, row, "job_ids");
    f.check_id = text_of(rows, row, "check_id");
    f.code = text_of(rows, row, "code");
    f.policy_tag = text_of(rows, row, "policy_tag");
    f.policy_settings = text_of(rows, row, "policy_settings");
    read_counters(rows, row, &f);
    f.won = number_of(rows, row, "won");
    f.total = number_of(rows, row, "total");
    read_open(rows, row, &f);
    *ret_facts = f;
}

/* What the incidents ask for and what failed for them make it, whatever was tried; -1 = nothing. */
static int rung_of(const struct repair_facts *facts)
{
    bool failed = facts->wanted >= 0 && facts->failed >= facts->wanted;

    return failed ? action_info((enum repair_action)facts->failed)->next : facts->wanted;
}

/* An action that is never to start by itself has no attempts that could be used up. */
static bool is_spent(const struct repair_facts *facts, const struct policy *policy, int action)
{
    int64_t max = policy_attempts(policy, (enum repair_action)action);

    return max > 0 && facts->attempts[action] >= max;
}

bool repair_action_choose(const struct repair_facts *facts, const struct policy *policy,
                          enum repair_action *ret_action)
{
    int action = rung_of(facts);

    if (action < 0) {
        return false;
    }
    int next = action_info((enum repair_action)action)->next;
    while (next >= 0 && is_spent(facts, policy, action) &&
           executor_for((enum repair_action)next, facts->owner, facts->hooked) != NULL) {
        action = next;
        next = action_info((enum repair_action)action)->next;
    }
    *ret_action = (enum repair_action)action;
    return true;
}

void repair_plan_hash(const struct repair_facts *facts, enum repair_action action, char hash[65])
{
    CLEANUP(buf_free) struct buf text = {0};
    char id[UUID_TEXT_LEN + 1];
    uint8_t digest[SHA256_LEN];

    uuid_format(&facts->node_id, id);
    buf_printf(&text, "node=%s\n", id);
    if (facts->has_boot) {
        uuid_format(&facts->boot_id, id);
    }
    buf_printf(&text, "boot=%s\n", facts->has_boot ? id : "");
    buf_printf(&text, "action=%s\n", action_info(action)->name);
    buf_printf(&text, "incidents=%.*s\n", STR_FMT(facts->incident_ids));
    buf_printf(&text, "jobs=%.*s\n", STR_FMT(facts->job_ids));
    buf_printf(&text,
               "healthy_delay=%" PRId64 "\nbegin_within=%" PRId64 "\nrejoin_within=%" PRId64 "\n",
               facts->healthy_delay_s, facts->begin_within_s, facts->rejoin_within_s);
    buf_printf(&text, "policy=%.*s\n", STR_FMT(facts->policy_tag));
    crypto_sha256(buf_str(&text), digest);
    crypto_hex(digest, sizeof digest, hash);
}

static void write_i64(struct enc *enc, const char *key, int64_t value)
{
    enc_key(enc, key);
    enc_i64(enc, value);
}

static void write_cstr(struct enc *enc, const char *key, const char *value)
{
    enc_key(enc, key);
    enc_cstr(enc, value);
}

static void write_what(struct enc *enc, const struct repair_facts *facts,
                       const struct repair_plan *plan)
{
    const struct action_info *info = action_info(plan->action);
    const struct executor *executor = executor_for(plan->action, facts->owner, facts->hooked);

    enc_key(enc, "node");
    enc_obj(enc);
    enc_key(enc, "id");
    enc_uuid(enc, &facts->node_id);
    enc_key(enc, "name");
    enc_str(enc, facts->node_name);
    enc_obj_end(enc);
    enc_key(enc, "boot_id");
    if (facts->has_boot) {
        enc_uuid(enc, &facts->boot_id);
    } else {
        enc_null(enc);
    }
    write_cstr(enc, "action", info->name);
    write_cstr(enc, "how", executor == NULL ? NULL : executor->plan(plan->action));
    write_cstr(enc, "keeps", info->keeps);
    write_cstr(enc, "loses", info->loses);
    write_i64(enc, "seconds_expected", info->seconds_expected);
    enc_key(enc, "evidence");
    enc_raw(enc, facts->evidence.len == 0 ? STR("[]") : facts->evidence);
    enc_key(enc, "jobs");
    enc_raw(enc, facts->jobs.len == 0 ? STR("[]") : facts->jobs);
}

static void write_cluster(struct enc *enc, const struct repair_facts *facts)
{
    /* A node with an open fault is not capacity, even before its state was derived anew. */
    bool counted = facts->healthy_now && facts->has_main;
    int64_t healthy = facts->healthy - (counted ? 1 : 0);
    enc_key(enc, "capacity");
    enc_obj(enc);
    write_i64(enc, "healthy_before", healthy);
    write_i64(enc, "healthy_after", healthy - (facts->healthy_now && !counted ? 1 : 0));
    write_i64(enc, "nodes", facts->nodes);
    enc_obj_end(enc);
    enc_key(enc, "domain");
    enc_obj(enc);
    enc_key(enc, "rack");
    enc_str(enc, facts->rack);
    enc_key(enc, "leaf");
    enc_str(enc, facts->leaf);
    write_i64(enc, "others_down", facts->others_down);
    enc_obj_end(enc);
    enc_key(enc, "spare");
    if (facts->owner == MACHINE_OF_PROVISIONER) {
        enc_obj(enc);
        write_i64(enc, "available", facts->spares);
        write_i64(enc, "total", facts->spares_total);
        enc_obj_end(enc);
    } else {
        enc_null(enc);
    }
}

static bool is_asked_for(const struct repair_facts *facts)
{
    return facts->has_open && !str_eq_c(facts->open_requested_by, "muster");
}

/* The rung that was left because its attempts were used up. A proposal that waits stays a person's,
 * even when the 7 days are over: -1 = none. */
static int left_rung(const struct repair_facts *facts, const struct policy *policy,
                     enum repair_action action)
{
    int rung = rung_of(facts);
    bool higher = rung >= 0 && (int)action > rung && !is_asked_for(facts);

    return higher && (facts->has_open || is_spent(facts, policy, rung)) ? rung : -1;
}

void repair_judge(const struct repair_facts *facts, const struct policy *policy,
                  enum repair_action action, struct admission *ret_admission)
{
    struct admission_counters c = facts->counters;
    /* What a person asks for, a person decides. */
    bool asked = is_asked_for(facts);
    int left = left_rung(facts, policy, action);

    c.follows = left < 0 ? NULL : action_info((enum repair_action)left)->words;
    c.action = action;
    c.mode = !facts->has_main || asked ? POLICY_CONFIRM
                                       : policy_mode_for(policy, facts->check_id, facts->code);
    c.attempt = facts->attempts[action] + 1;
    c.spares = facts->spares;
    c.has_executor = executor_for(action, facts->owner, facts->hooked) != NULL;
    admission_decide(policy, &c, ret_admission);
}

void repair_why_not_write(struct enc *enc, const struct admission *admission)
{
    enc_arr(enc);
    for (size_t i = 0; i < admission->count; i++) {
        enc_obj(enc);
        write_cstr(enc, "code", admission_code_name(admission->reasons[i].code));
        write_cstr(enc, "detail", admission->reasons[i].text);
        enc_obj_end(enc);
    }
    enc_arr_end(enc);
}

static void write_limits(struct enc *enc, const struct repair_facts *facts,
                         const struct policy *policy, const struct repair_plan *plan)
{
    struct admission admission;

    repair_judge(facts, policy, plan->action, &admission);
    enc_key(enc, "limits");
    enc_obj(enc);
    write_i64(enc, "running", facts->running);
    write_i64(enc, "max_running", admission.max_running);
    write_i64(enc, "attempt", plan->attempt);
    write_i64(enc, "attempts_max", policy_attempts(policy, plan->action));
    enc_key(enc, "why_not");
    repair_why_not_write(enc, &admission);
    enc_obj_end(enc);
}

static void write_rule(struct enc *enc, const struct repair_facts *facts, int64_t now_us)
{
    enc_key(enc, "rule");
    enc_obj(enc);
    enc_key(enc, "check_id");
    enc_str(enc, facts->check_id);
    write_i64(enc, "right", facts->won);
    write_i64(enc, "total", facts->total);
    write_i64(enc, "days", 90);
    enc_obj_end(enc);
    enc_key(enc, "made_at");
    enc_time(enc, now_us);
    enc_key(enc, "policy");
    enc_obj(enc);
    write_i64(enc, "healthy_delay_seconds", facts->healthy_delay_s);
    write_i64(enc, "begin_within_seconds", facts->begin_within_s);
    write_i64(enc, "rejoin_within_seconds", facts->rejoin_within_s);
    enc_key(enc, "version");
    enc_str(enc, facts->policy_tag);
    enc_obj_end(enc);
}

void repair_plan_build(struct arena *arena, const struct repair_facts *facts,
                       enum repair_action action, int64_t cooldown_s, int64_t now_us,
                       struct repair_plan *ret_plan)
{
    CLEANUP(buf_free) struct buf text = {0};
    struct enc enc;
    const struct executor *executor = executor_for(action, facts->owner, facts->hooked);
    struct policy policy = policy_read(arena, facts->policy_settings, cooldown_s);
    int left = left_rung(facts, &policy, action);
    struct repair_plan plan = {
        .action = action,
        .attempt = facts->attempts[action] + 1,
        .executor = executor == NULL ? NULL : executor->name,
    };

    repair_plan_hash(facts, action, plan.hash);
    enc_init(&enc, &text);
    enc_obj(&enc);
    write_what(&enc, facts, &plan);
    write_cluster(&enc, facts);
    write_limits(&enc, facts, &policy, &plan);
    write_rule(&enc, facts, now_us);
    enc_obj_end(&enc);
    plan.json = (struct str){arena_strndup(arena, text.ptr, text.len), text.len};
    if (left >= 0) {
        plan.reason =
            arena_printf(arena, "%.*s. The attempts in 7 days are used up: %s. A person decides.",
                         STR_FMT(facts->summary), action_info((enum repair_action)left)->words);
    } else if (facts->failed >= 0) {
        plan.reason = arena_printf(arena, "%.*s. It stayed after: %s.", STR_FMT(facts->summary),
                                   action_info((enum repair_action)facts->failed)->words);
    } else {
        plan.reason = arena_printf(arena, "%.*s", STR_FMT(facts->summary));
    }
    *ret_plan = plan;
}

void repair_facts_args(struct arena *arena, const char *nodes, struct db_args *ret_args)
{
    struct action_list actions = action_list_of(ACTION_ALL);
    struct repair_list busy = repair_states_with(REPAIR_BUSY);
    struct repair_list tried = repair_states_with(REPAIR_ACTED | REPAIR_TRIED);

    *ret_args = (struct db_args){0};
    db_arg(ret_args, nodes);
    db_arg(ret_args, arena_printf(arena, "%s", actions.text));
    db_arg(ret_args, arena_printf(arena, "%s", busy.text));
    db_arg(ret_args, arena_printf(arena, "%s", tried.text));
    db_arg(ret_args, repair_state_name(REPAIR_FAILED));
    db_arg(ret_args, repair_state_name(REPAIR_SUCCEEDED));
}
