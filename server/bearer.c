/* Tokens of issuers as credentials of the API: judged on the loop, mapped to a person of the org.
 */
#include "server/bearer.h"

#include <string.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/log.h"
#include "oidc/verify.h"
#include "server/bind.h"
#include "server/follow.h"
#include "server/issuers.h"
#include "server/login.h"
#include "server/metrics.h"
#include "server/reply.h"

#define VERIFY_ARENA_CAP ((size_t)JOSE_ARENA_CAP + 65536)
#define RETRY_AFTER_S 5
#define LOGGED_MAX 200

/* One token on its way to a caller; in the request's arena. */
struct bearer {
    struct exchange *ex;
    struct str token;
    bool waited; /* for fresh keys: there is no second time */
    bool asked;  /* the database: its answer resumes the request */
    struct issuer_wait wait;
    /* Of the issuer whose token it is. */
    struct uuid org;
    struct uuid issuer_id;
    struct str iss;
    int64_t not_before_us;
    struct oidc_verdict verdict;
};

static struct str keep(struct bearer *bearer, struct str text)
{
    return (struct str){arena_strndup(bearer->ex->rq.arena, text.ptr, text.len), text.len};
}

static struct str cut(struct str text)
{
    return text.len > LOGGED_MAX ? (struct str){text.ptr, LOGGED_MAX} : text;
}

/* The log has what the caller is not told; the token itself is nowhere. */
static void refuse(struct bearer *bearer, enum oidc_reason reason,
                   const struct oidc_verdict *verdict)
{
    static const struct oidc_verdict none = {.detail = ""};
    struct request *rq = &bearer->ex->rq;
    verdict = verdict != NULL ? verdict : &none;
    log_info("token refused: %s issuer=%s subject=%s kid=%s alg=%s address=%.*s: %s",
             oidc_reason_code(reason), jose_quote(rq->arena, verdict->issuer),
             jose_quote(rq->arena, verdict->subject), jose_quote(rq->arena, verdict->kid),
             jose_quote(rq->arena, verdict->alg), STR_FMT(rq->address), verdict->detail);
    metrics_add(METRIC_TOKENS_REFUSED, 1);
    rq->caller = (struct caller){0};
    rq->reason = oidc_reason_code(reason);
    if (reason == OIDC_IDP_UNAVAILABLE) {
        rq->retry_after_s = RETRY_AFTER_S;
        exchange_refuse(bearer->ex, ERR_UNAVAILABLE, oidc_reason_help(reason));
    } else {
        exchange_refuse(bearer->ex, ERR_UNAUTHENTICATED, oidc_reason_help(reason));
    }
}

/* ------------------------------------------------------------------ the person */

/* A credential has an id, for limits and the audit log: this one's is made of its hash. */
static void make_credential_id(struct request *rq)
{
    memcpy(rq->caller.credential_id.bytes, rq->token_hash, sizeof(rq->caller.credential_id.bytes));
    rq->caller.credential_id.bytes[6] =
        (uint8_t)((rq->caller.credential_id.bytes[6] & 0x0f) | 0x80);
    rq->caller.credential_id.bytes[8] =
        (uint8_t)((rq->caller.credential_id.bytes[8] & 0x3f) | 0x80);
}

static void bind_token(struct bearer *bearer, struct db_args *args)
{
    struct request *rq = &bearer->ex->rq;
    const struct oidc_verdict *verdict = &bearer->verdict;
    /* Without iat it counts as issued now: it was shown now. */
    int64_t iat_us = verdict->iat_s > 0 ? verdict->iat_s * 1000000 : clock_wall_us();
    db_arg_uuid(args, rq->arena, &bearer->issuer_id);
    db_arg_str(args, rq->arena, bearer->iss);
    db_arg_str(args, rq->arena, verdict->subject);
    bind_list(args, rq->arena, &verdict->groups);
    db_arg_time(args, rq->arena, iat_us);
    db_arg_str(args, rq->arena, verdict->username);
}

static void ask(struct bearer *bearer, enum sql_id sql, bool verb, db_done *done)
{
    struct exchange *ex = bearer->ex;
    ex->call.sql = sql;
    ex->call.verb = verb;
    ex->call.has_org = true;
    ex->call.org = bearer->org;
    ex->call.done = done;
    ex->call.ctx = bearer;
    bearer->asked = true;
    if (!ex->rq.suspended) {
        request_suspend(&ex->rq);
    }
    db_submit(loop_db(ex->rq.loop), &ex->call);
}

static void take_caller(struct bearer *bearer, const struct db_rows *rows)
{
    struct request *rq = &bearer->ex->rq;
    if (!auth_caller_read(rq->arena, rows, &rq->caller)) {
        refuse(bearer, OIDC_ISS_MISMATCH, &bearer->verdict);
        return;
    }
    if (db_bool(rows, 0, db_rows_col(rows, "disabled")) ||
        db_bool(rows, 0, db_rows_col(rows, "ended"))) {
        refuse(bearer, OIDC_EXPIRED, &bearer->verdict);
        return;
    }
    make_credential_id(rq);
    rq->caller.issuer = bearer->iss;
    rq->caller.subject = bearer->verdict.subject;
    rq->caller.expires_us = bearer->verdict.exp_s * 1000000;
    metrics_add(METRIC_TOKENS_TAKEN, 1);
    auth_cache_put(loop_slot(rq->loop, LOOP_SLOT_AUTH), rq->token_hash,
                   follow_auth_epoch(loop_follow(rq->loop)), &rq->caller);
    exchange_permit(bearer->ex);
}

static void on_kept(struct db_call *call, enum err err, const struct db_rows *rows)
{
    struct bearer *bearer = call->ctx;
    if (err != ERR_NONE) {
        reply_database_failed(&bearer->ex->rq, err);
        bearer->ex->stage = STAGE_ANSWER;
    } else {
        take_caller(bearer, rows);
    }
    request_resume(&bearer->ex->rq);
}

/* Who comes for the first time, or with something worth writing down. */
static void keep_person(struct bearer *bearer)
{
    struct exchange *ex = bearer->ex;
    struct uuid person;
    login_person_id(&bearer->org, bearer->iss, bearer->verdict.subject, &person);
    ex->call = (struct db_call){0};
    bind_token(bearer, &ex->call.args);
    db_arg_str(&ex->call.args, ex->rq.arena,
               bearer->verdict.email.ptr != NULL ? bearer->verdict.email : STR(""));
    db_arg_uuid(&ex->call.args, ex->rq.arena, &person);
    ex->rq.caller = (struct caller){.kind = CALLER_TOKEN,
                                    .org = bearer->org,
                                    .name = bearer->verdict.username,
                                    .issuer = bearer->iss,
                                    .subject = bearer->verdict.subject};
    make_credential_id(&ex->rq);
    bind_actor(&ex->rq, &ex->call.args);
    ask(bearer, SQL_BEARER_KEEP, true, on_kept);
}

static void on_person(struct db_call *call, enum err err, const struct db_rows *rows)
{
    struct bearer *bearer = call->ctx;
    if (err != ERR_NONE) {
        reply_database_failed(&bearer->ex->rq, err);
        bearer->ex->stage = STAGE_ANSWER;
    } else if (db_rows_count(rows) == 0 || db_bool(rows, 0, db_rows_col(rows, "due"))) {
        keep_person(bearer);
        return;
    } else {
        take_caller(bearer, rows);
    }
    request_resume(&bearer->ex->rq);
}

static void find_person(struct bearer *bearer)
{
    struct exchange *ex = bearer->ex;
    ex->call = (struct db_call){0};
    bind_token(bearer, &ex->call.args);
    ask(bearer, SQL_BEARER_LOOKUP, false, on_person);
}

/* ------------------------------------------------------------------ the judgement */

static void keep_verdict(struct bearer *bearer, const struct issuer_entry *entry, struct str iss,
                         const struct oidc_verdict *verdict)
{
    struct request *rq = &bearer->ex->rq;
    struct oidc_verdict *kept = &bearer->verdict;
    *kept = *verdict;
    bearer->org = entry->org;
    bearer->issuer_id = entry->id;
    bearer->not_before_us = entry->not_before_us;
    /* Google's other name is the same issuer; a tenant's own is not its template. */
    bearer->iss =
        keep(bearer, oidc_issuer_is_template(entry->issuer.url) ? iss : entry->issuer.url);
    kept->detail = "";
    kept->subject = keep(bearer, verdict->subject);
    kept->username = keep(bearer, verdict->username);
    kept->email = keep(bearer, verdict->email);
    kept->issuer = bearer->iss;
    kept->kid = keep(bearer, cut(verdict->kid));
    kept->alg = keep(bearer, cut(verdict->alg));
    kept->groups.items = arena_alloc(rq->arena, verdict->groups.count * sizeof(struct str) + 1);
    for (size_t i = 0; i < verdict->groups.count; i++) {
        kept->groups.items[i] = keep(bearer, verdict->groups.items[i]);
    }
}

static bool may_have_moved(enum oidc_reason reason)
{
    return reason == OIDC_KEY_NOT_FOUND || reason == OIDC_BAD_SIGNATURE ||
           reason == OIDC_IDP_UNAVAILABLE;
}

static void judge(struct bearer *bearer);

static void on_fresh(void *arg)
{
    struct bearer *bearer = arg;
    bearer->waited = true;
    judge(bearer);
    if (!bearer->asked) {
        request_resume(&bearer->ex->rq);
    }
}

/* Fresh keys may tell otherwise: once, and for all who ask at the same time together. */
static bool wait_for_keys(struct bearer *bearer, const struct issuer_entry *entry)
{
    struct request *rq = &bearer->ex->rq;
    if (bearer->waited || request_stopping(rq)) {
        return false;
    }
    bearer->wait = (struct issuer_wait){.task = {.fn = on_fresh, .arg = bearer}, .loop = rq->loop};
    if (!issuers_wait(&bearer->wait, entry)) {
        return false;
    }
    request_suspend(rq);
    return true;
}

static void verify(const struct issuer_entry *entry, struct arena *arena, struct str token,
                   struct oidc_verdict *ret)
{
    const struct oidc_question question = {.use = OIDC_ACCESS_TOKEN,
                                           .now_s = clock_wall_us() / 1000000};
    if (!issuer_has_keys(entry)) {
        *ret = (struct oidc_verdict){.reason = OIDC_IDP_UNAVAILABLE,
                                     .detail = "its keys were not had for 24 hours",
                                     .stopped = OIDC_CHECK_SIGNATURE,
                                     .issuer = entry->issuer.url};
        return;
    }
    oidc_verify(arena, &entry->issuer, entry->keys, token, &question, ret);
    if (ret->reason == OIDC_OK && entry->not_before_us > 0 &&
        ret->iat_s * 1000000 < entry->not_before_us) {
        ret->reason = OIDC_EXPIRED;
        ret->detail = "it was issued before the issuer's not_before";
        ret->stopped = OIDC_CHECK_TIME;
    }
}

/* A person of several orgs that share an issuer says which one is meant. */
static bool is_wanted(const struct bearer *bearer, const struct uuid *org)
{
    struct str header = bearer->ex->headers[HEADER_ORG];
    struct uuid wanted;
    return header.ptr == NULL || (uuid_parse(header, &wanted) && uuid_eq(&wanted, org));
}

/* Of several issuers with this iss (other orgs, other audiences) the first that finds it valid;
 * else the one that went furthest says why not. */
static const struct issuer_entry *choose(struct bearer *bearer, const struct issuer_table *table,
                                         struct str iss, struct str tid, struct arena *arena,
                                         struct oidc_verdict *ret)
{
    const struct issuer_entry *best = NULL;
    for (size_t i = 0; i < table->count; i++) {
        const struct issuer_entry *entry = table->entries[i];
        struct oidc_verdict verdict;
        if (!entry->bearer || !oidc_issuer_matches(&entry->issuer, iss, tid) ||
            !is_wanted(bearer, &entry->org)) {
            continue;
        }
        verify(entry, arena, bearer->token, &verdict);
        if (verdict.reason == OIDC_OK) {
            keep_verdict(bearer, entry, iss, &verdict);
            *ret = bearer->verdict;
            return entry;
        }
        if (best == NULL || verdict.stopped > ret->stopped) {
            best = entry;
            *ret = verdict;
        }
        if (arena_used(arena) > VERIFY_ARENA_CAP / 2) {
            break;
        }
    }
    return best;
}

static void judge(struct bearer *bearer)
{
    CLEANUP(issuers_releasep) struct issuer_table *table = issuers_hold();
    CLEANUP(arena_freep) struct arena *arena = arena_new(VERIFY_ARENA_CAP * 2);
    struct oidc_verdict verdict = {.detail = ""};
    struct str iss = {0};
    struct str tid = {0};
    if (table == NULL) {
        refuse(bearer, OIDC_IDP_UNAVAILABLE, NULL);
        return;
    }
    if (!oidc_token_names(arena, NULL, bearer->token, &iss, &tid)) {
        static const struct oidc_issuer nobody = {.algs = JOSE_ALGS_ALL};
        const struct oidc_question question = {.use = OIDC_ACCESS_TOKEN,
                                               .now_s = clock_wall_us() / 1000000};
        oidc_verify(arena, &nobody, NULL, bearer->token, &question, &verdict);
        refuse(bearer, verdict.reason == OIDC_OK ? OIDC_BAD_FORMAT : verdict.reason, &verdict);
        return;
    }
    const struct issuer_entry *entry = choose(bearer, table, iss, tid, arena, &verdict);
    if (entry == NULL) {
        verdict.issuer = iss;
        verdict.detail = "no issuer of this installation has this iss and takes tokens for the API";
        refuse(bearer, OIDC_ISS_MISMATCH, &verdict);
    } else if (verdict.reason == OIDC_OK) {
        find_person(bearer);
    } else if (!may_have_moved(verdict.reason) || !wait_for_keys(bearer, entry)) {
        refuse(bearer, verdict.reason, &verdict);
    }
}

void bearer_admit(struct exchange *ex, struct str token)
{
    struct bearer *bearer = arena_zalloc(ex->rq.arena, sizeof(*bearer));
    bearer->ex = ex;
    bearer->token = token;
    judge(bearer);
}
