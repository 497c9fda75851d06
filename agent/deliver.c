/* When reports leave, what they carry, and what their answers change. */
#include <stdio.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/answer.h"
#include "agent/backoff.h"
#include "agent/report.h"
#include "base/clock.h"
#include "base/crypto.h"
#include "base/log.h"

#define EVENTS_MAX 250
#define INTERVAL_FIRST_S 10.0
#define INTERVAL_MIN_S 0.2
#define INTERVAL_MAX_S 3600.0
/* Probes that answer later than this are in the next report. */
#define ROUND_US (2 * INT64_C(1000000))

void deliver_init(struct agent *agent, int64_t now_us)
{
    agent->delivery = (struct delivery){
        .due_us = now_us,
        .interval_s = agent->options.interval_seconds > 0 ? (double)agent->options.interval_seconds
                                                          : INTERVAL_FIRST_S,
        .events_max = EVENTS_MAX,
    };
}

static double random_share(void)
{
    uint32_t number;

    crypto_random(&number, sizeof(number));
    return (double)number / (double)UINT32_MAX;
}

static void back_off(struct delivery *delivery, long retry_after_s, int64_t now_us)
{
    delivery->blocked_until_us = now_us + backoff_us(delivery->failures++, random_share(),
                                                     delivery->interval_s, retry_after_s);
}

static void make_nonce(char *text)
{
    uint8_t bytes[16];

    crypto_random(bytes, sizeof(bytes));
    crypto_b64(bytes, sizeof(bytes), text);
}

/* Only once the way is free: during an outage it would be one more event to drop. */
static void tell_dropped(struct agent *agent)
{
    uint64_t dropped = spool_dropped(agent->spool);
    struct finding finding = {.check = "agent.dropped",
                              .severity = SEVERITY_INFO,
                              .clears = CLEARS_QUIET,
                              .quiet_seconds = QUIET_DEFAULT_SECONDS,
                              .count = dropped};
    struct fault_report report = {.finding = &finding, .source = "agent"};

    if (dropped == 0 || agent->delivery.failures > 0) {
        return;
    }
    finding_set_summary(&finding, "%llu events did not fit into the spool and were dropped",
                        (unsigned long long)dropped);
    spool_dropped_told(agent->spool, dropped);
    faults_tell(agent->faults, &report);
}

static void send_report(struct agent *agent)
{
    struct delivery *delivery = &agent->delivery;
    bool old = agent->old_spool != NULL;
    struct spool *spool = old ? agent->old_spool : agent->spool;
    struct buf body = {0};
    struct report report = {
        .boot_id = old ? agent->old_boot : agent->boot.id,
        .seq = sequence_next(&agent->sequence),
        .nonce = delivery->nonce,
        .ready = !old && watch_ready(agent),
        .command_key = old ? 0 : agent->identity.command_key_n,
        .settings = old ? NULL : agent->custom.settings.version,
        .settings_refused = agent->custom.refused,
        .readings = old ? NULL : &agent->readings,
        .collectors = agent->collectors,
        .collector_count = old ? 0 : COLLECTORS,
        .inventory = old ? NULL : &agent->inventory,
        .act = old ? NULL : agent->act,
        .spool = spool,
        .events_max = delivery->events_max,
    };

    make_nonce(delivery->nonce);
    if (!old) {
        tell_dropped(agent);
    }
    report_write(&report, &body, delivery->counts);
    spool_sending(spool, delivery->counts);
    delivery->in_flight = true;
    delivery->in_flight_old = old;
    log_debug("report %llu: %zu bytes, events %zu %zu %zu", (unsigned long long)report.seq,
              body.len, delivery->counts[0], delivery->counts[1], delivery->counts[2]);
    uplink_send(agent->uplink, &body, delivery->counts[0] > 0 ? spool_sync_fd(spool) : -1);
}

/* Something that does not wait for the interval. */
static bool is_urgent(const struct agent *agent)
{
    return agent->old_spool != NULL || act_has_news(agent->act) ||
           (spool_waiting(agent->spool, 0) > 0 && agent->delivery.events_max > 0);
}

void deliver_tick(struct agent *agent, int64_t now_us)
{
    struct delivery *delivery = &agent->delivery;

    if (delivery->round_end_us == 0 && now_us >= delivery->due_us) {
        watch_ask(agent, now_us);
        delivery->round_end_us = now_us + ROUND_US;
    }
    bool round_over =
        delivery->round_end_us != 0 && (!watch_waits(agent) || now_us >= delivery->round_end_us);
    if (delivery->in_flight) {
        return;
    }
    if (round_over) {
        watch_read(agent, now_us);
        delivery->round_end_us = 0;
        delivery->due_us = now_us + (int64_t)(delivery->interval_s * 1e6);
    }
    if (now_us >= delivery->blocked_until_us &&
        (round_over || delivery->failures > 0 || is_urgent(agent))) {
        send_report(agent);
    }
}

/* ---- answers ---- */

static void mark_told(struct agent *agent, bool told)
{
    for (size_t i = 0; i < COLLECTORS; i++) {
        struct collector *collector = agent->collectors[i];

        if (told && collector->in_report) {
            collector->news = false;
        }
        collector->in_report = false;
    }
    if (told && agent->inventory.in_report) {
        agent->inventory.news = false;
    }
    agent->inventory.in_report = false;
}

/* The older boot's events are told, or never will be. */
static void end_old(struct agent *agent)
{
    char dir[4096];

    (void)snprintf(dir, sizeof(dir), "%.3072s/spool", agent->options.state_dir);
    spool_close(agent->old_spool);
    agent->old_spool = NULL;
    spool_remove(dir, agent->old_boot);
    if (spool_find_old(dir, agent->boot.id, agent->old_boot)) {
        char error[320];

        agent->old_spool = spool_open(dir, agent->old_boot, UINT64_MAX, error, sizeof(error));
    }
}

static size_t waiting_events(const struct spool *spool)
{
    size_t count = 0;

    for (unsigned i = 0; i < SPOOL_STREAMS; i++) {
        count += spool_waiting(spool, i);
    }
    return count;
}

static void log_rejected(const struct answer *answer)
{
    for (size_t i = 0; i < answer->rejected_count && i < ANSWER_REJECTED_MAX; i++) {
        log_warning("the server rejected event %lld of stream %lld: %.*s",
                    (long long)answer->rejected[i].seq, (long long)answer->rejected[i].stream,
                    answer->rejected[i].reason.len > 100 ? 100
                                                         : (int)answer->rejected[i].reason.len,
                    answer->rejected[i].reason.ptr == NULL ? "" : answer->rejected[i].reason.ptr);
    }
}

static void follow_key(struct agent *agent, const struct answer_key *key)
{
    char error[512];

    if (identity_follow_key(agent->options.state_dir, &agent->identity, key->n, key->public_key,
                            key->signature, error, sizeof(error))) {
        log_info("the cluster's command key number %lld is trusted from now on",
                 (long long)agent->identity.command_key_n);
    } else if (error[0] != '\0') {
        log_error("a command key was not taken: %s", error);
    }
}

static void obey(struct agent *agent, const struct answer *answer, int64_t now_us)
{
    struct delivery *delivery = &agent->delivery;

    if (answer->interval_seconds > 0 && agent->options.interval_seconds == 0) {
        double wanted = answer->interval_seconds;

        wanted = wanted < INTERVAL_MIN_S ? INTERVAL_MIN_S : wanted;
        delivery->interval_s = wanted > INTERVAL_MAX_S ? INTERVAL_MAX_S : wanted;
        delivery->due_us = now_us + (int64_t)(delivery->interval_s * 1e6);
    }
    if (answer->reconnect) {
        uplink_reconnect(agent->uplink);
    }
    for (size_t i = 0; i < answer->command_count && !delivery->in_flight_old; i++) {
        act_order(agent->act, buf_str(&answer->commands[i].payload), answer->commands[i].signature,
                  delivery->nonce, now_us);
    }
    if (answer->settings.len > 0 && !delivery->in_flight_old) {
        struct settings_offer offer = {.document = buf_str(&answer->settings),
                                       .signature = answer->settings_signature,
                                       .nonce = delivery->nonce,
                                       .identity = &agent->identity};

        (void)custom_take(&agent->custom, &offer, &agent->options, agent->faults, now_us);
    }
    /* After the orders: those are signed by the key that was the newest when this was asked. */
    for (size_t i = 0; i < answer->key_count; i++) {
        follow_key(agent, &answer->keys[i]);
    }
}

static void take_answer(struct agent *agent, struct str body, int64_t now_us)
{
    struct delivery *delivery = &agent->delivery;
    struct answer answer;

    if (delivery->failures > 0) {
        log_info("the server answers again");
    }
    delivery->failures = 0;
    delivery->blocked_until_us = 0;
    delivery->events_max =
        delivery->events_max < EVENTS_MAX / 2 ? 2 * delivery->events_max + 1 : EVENTS_MAX;
    spool_acknowledge(delivery->in_flight_old ? agent->old_spool : agent->spool, delivery->counts);
    if (!delivery->in_flight_old) {
        mark_told(agent, true);
        act_results_told(agent->act, true, now_us);
    } else if (waiting_events(agent->old_spool) == 0) {
        end_old(agent);
    }
    if (answer_read(body, &answer)) {
        log_rejected(&answer);
        obey(agent, &answer, now_us);
    } else {
        log_warning("the server's answer to a report cannot be read");
    }
    answer_free(&answer);
}

/* A report that the server calls malformed is tried with fewer events, at last with none: readings
 * go on, and no event is dropped. True when there is something new to try at once. */
static bool shrink(struct agent *agent)
{
    struct delivery *delivery = &agent->delivery;
    size_t most = 0;

    for (unsigned i = 0; i < SPOOL_STREAMS; i++) {
        most = delivery->counts[i] > most ? delivery->counts[i] : most;
    }
    delivery->events_max = most / 2;
    if (most == 1 && delivery->in_flight_old) {
        log_error("the server does not take the events of boot %s; they are given up",
                  agent->old_boot);
        end_old(agent);
        delivery->events_max = EVENTS_MAX;
    }
    return most > 0;
}

void deliver_result(struct agent *agent, int64_t now_us)
{
    struct delivery *delivery = &agent->delivery;
    struct uplink_result result;

    if (!delivery->in_flight || uplink_busy(agent->uplink)) {
        return;
    }
    uplink_take(agent->uplink, &result);
    delivery->in_flight = false;
    if (result.sent && result.status == 200) {
        take_answer(agent, buf_str(&result.body), now_us);
    } else {
        mark_told(agent, false);
        act_results_told(agent->act, false, now_us);
        bool malformed =
            result.sent && (result.status == 400 || result.status == 413 || result.status == 422);
        bool again = malformed && shrink(agent);
        if (delivery->failures == 0) {
            log_warning("%s", result.error);
        } else {
            log_debug("%s", result.error);
        }
        if (again) {
            delivery->failures++;
        } else {
            back_off(delivery, result.retry_after_s, now_us);
        }
    }
    buf_free(&result.body);
}

int64_t deliver_due(const struct agent *agent)
{
    const struct delivery *delivery = &agent->delivery;
    int64_t due = delivery->round_end_us != 0 ? delivery->round_end_us : delivery->due_us;

    if (delivery->in_flight) {
        /* A round that is over waits for the answer, which wakes the loop. */
        return delivery->round_end_us != 0 ? INT64_MAX : due;
    }
    if (delivery->failures > 0 || is_urgent(agent)) {
        return delivery->blocked_until_us < due ? delivery->blocked_until_us : due;
    }
    return due;
}
