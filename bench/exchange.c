/* What the simulated nodes say to the server: enrolment, tokens, reports, commands. */
#include "bench/exchange.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/encode.h"
#include "base/json.h"

#define SECOND_US 1000000LL
#define PAYLOAD_MAX 4096

/* ctx of a node's request: both sides are needed in the answer. */
struct pair {
    struct exchange *exchange;
    struct sim_node *node;
};

static struct pair *pair_of(struct exchange *exchange, struct sim_node *node)
{
    struct pair *pair = node->request.ctx;
    if (pair == NULL) {
        pair = calloc(1, sizeof(*pair));
        assert(pair != NULL);
        node->request.ctx = pair;
    }
    pair->exchange = exchange;
    pair->node = node;
    return pair;
}

static bool copy_text(struct json_reader *reader, char *buf, size_t cap)
{
    struct str raw;
    struct str text;
    bool plain;
    if (!json_get_raw_str(reader, &raw, &plain) || !json_unescape(raw, buf, cap - 1, &text)) {
        return false;
    }
    memmove(buf, text.ptr, text.len);
    buf[text.len] = '\0';
    return true;
}

/* Takes access_token, expires_in_seconds, node_id and command_public_key where they are present. */
static bool take_credentials(struct sim_node *node, struct str body)
{
    struct json_reader reader;
    json_open(&reader, body);
    struct str key;
    enum json_type type = json_next(&reader, NULL);
    bool token = false;
    if (type != JSON_OBJ) {
        return false;
    }
    while ((type = json_next(&reader, &key)) != JSON_END) {
        char text[64];
        int64_t seconds;
        size_t len;
        bool ok = true;
        if (str_eq_c(key, "access_token") && type == JSON_STR) {
            ok = token = copy_text(&reader, node->token, sizeof(node->token));
        } else if (str_eq_c(key, "node_id") && type == JSON_STR) {
            ok = copy_text(&reader, node->id, sizeof(node->id));
        } else if (str_eq_c(key, "command_public_key") && type == JSON_STR) {
            ok = copy_text(&reader, text, sizeof(text)) &&
                 crypto_unb64(str_of(text), node->command_key, sizeof(node->command_key), &len);
        } else if (str_eq_c(key, "expires_in_seconds") && type == JSON_NUM) {
            ok = json_get_i64(&reader, &seconds);
            /* Renewed when a tenth of its life is left. */
            node->token_until_us = ok ? clock_mono_us() + seconds * SECOND_US / 10 * 9 : 0;
        } else {
            ok = type != JSON_ERROR && json_skip(&reader);
        }
        if (!ok) {
            return false;
        }
    }
    return token;
}

static void note_failure(struct exchange *exchange, int status)
{
    exchange->errors++;
    exchange->last_status = status;
}

static void send_request(struct exchange *exchange, struct sim_node *node, const char *path,
                         wire_done *done)
{
    node->request.ctx = pair_of(exchange, node);
    node->request.done = done;
    node->request.path = path;
    node->request.body = buf_str(&node->body);
    node->in_flight = true;
    wire_send(exchange->wire, node->index, &node->request);
}

/* ------------------------------------------------------------------ enrolment and tokens */
static void enrolled(struct wire_request *request, int status, struct str body)
{
    struct pair *pair = request->ctx;
    struct sim_node *node = pair->node;
    struct exchange *exchange = pair->exchange;
    node->in_flight = false;
    exchange->enrolling--;
    if ((status == 201 || status == 200) && take_credentials(node, body)) {
        node->state = SIM_LIVE;
        exchange->live++;
        /* Spread over one interval, so that the fleet does not report in step. */
        uint64_t lot;
        crypto_random(&lot, sizeof(lot));
        node->next_us = clock_mono_us() + (int64_t)(lot % (uint64_t)exchange->interval_us);
        return;
    }
    note_failure(exchange, status);
    bool refused = status >= 400 && status < 500 && status != 429;
    node->state = refused ? SIM_REFUSED : SIM_NEW;
    exchange->refused += refused;
    node->wake_us = clock_mono_us() + 2 * SECOND_US;
}

void exchange_enroll(struct exchange *exchange, struct sim_node *node)
{
    char name[FLEET_NAME_MAX];
    char key_text[64];
    uint8_t public_key[ED25519_PUBLIC_LEN];
    CLEANUP(ed25519_freep) struct ed25519 *key = fleet_key(exchange->fleet, node);
    ed25519_public(key, public_key);
    crypto_b64(public_key, sizeof(public_key), key_text);
    fleet_name(exchange->fleet, node, name);
    buf_clear(&node->body);
    buf_printf(&node->body,
               "{\"token\":\"%s\",\"name\":\"%s\",\"public_key\":\"%s\","
               "\"hardware\":{\"serial\":\"SIM%06zu\"}}",
               exchange->join_token, name, key_text, node->index + 1);
    node->state = SIM_ENROLLING;
    node->request.bearer = NULL;
    exchange->enrolling++;
    send_request(exchange, node, "/agent/v1/enroll", enrolled);
}

static void token_came(struct wire_request *request, int status, struct str body)
{
    struct pair *pair = request->ctx;
    pair->node->in_flight = false;
    if (status != 200 || !take_credentials(pair->node, body)) {
        note_failure(pair->exchange, status);
        pair->node->next_us = clock_mono_us() + SECOND_US;
    }
}

static void challenge_came(struct wire_request *request, int status, struct str body)
{
    struct pair *pair = request->ctx;
    struct sim_node *node = pair->node;
    struct json_reader reader;
    struct str key;
    char nonce[256] = "";
    json_open(&reader, body);
    node->in_flight = false;
    if (status == 200 && json_next(&reader, NULL) == JSON_OBJ) {
        enum json_type type;
        while ((type = json_next(&reader, &key)) != JSON_END && type != JSON_ERROR) {
            bool ok = str_eq_c(key, "nonce") && type == JSON_STR
                          ? copy_text(&reader, nonce, sizeof(nonce))
                          : json_skip(&reader);
            if (!ok) {
                break;
            }
        }
    }
    if (nonce[0] == '\0') {
        note_failure(pair->exchange, status);
        node->next_us = clock_mono_us() + SECOND_US;
        return;
    }
    CLEANUP(buf_free) struct buf text = {0};
    uint8_t sig[ED25519_SIGNATURE_LEN];
    char sig_text[96];
    CLEANUP(ed25519_freep) struct ed25519 *private_key = fleet_key(pair->exchange->fleet, node);
    buf_printf(&text, "muster-agent-token\n%s\n%s", node->id, nonce);
    ed25519_sign(private_key, buf_str(&text), sig);
    crypto_b64(sig, sizeof(sig), sig_text);
    buf_clear(&node->body);
    buf_printf(&node->body, "{\"node_id\":\"%s\",\"nonce\":\"%s\",\"signature\":\"%s\"}", node->id,
               nonce, sig_text);
    send_request(pair->exchange, node, "/agent/v1/token", token_came);
}

static void ask_token(struct exchange *exchange, struct sim_node *node)
{
    buf_clear(&node->body);
    buf_printf(&node->body, "{\"node_id\":\"%s\"}", node->id);
    node->request.bearer = NULL;
    send_request(exchange, node, "/agent/v1/challenge", challenge_came);
}

/* ------------------------------------------------------------------ reports and commands */
/* Obeys a signed command, as an agent would, but only in play. */
static void obey(struct sim_node *node, struct str payload,
                 const uint8_t sig[ED25519_SIGNATURE_LEN])
{
    if (!ed25519_verify(node->command_key, payload, sig)) {
        return;
    }
    struct json_reader reader;
    struct str key;
    char action[32] = "";
    json_open(&reader, payload);
    if (json_next(&reader, NULL) != JSON_OBJ) {
        return;
    }
    enum json_type type;
    while ((type = json_next(&reader, &key)) != JSON_END && type != JSON_ERROR) {
        bool ok;
        if (str_eq_c(key, "command_id") && type == JSON_STR) {
            ok = copy_text(&reader, node->command_id, sizeof(node->command_id));
        } else if (str_eq_c(key, "action") && type == JSON_STR) {
            ok = copy_text(&reader, action, sizeof(action));
        } else {
            ok = json_skip(&reader);
        }
        if (!ok) {
            return;
        }
    }
    node->command_is_reboot = strcmp(action, "reboot") == 0;
    node->command_state = "accepted";
    node->next_us = clock_mono_us();
}

static bool take_command(struct sim_node *node, struct json_reader *reader)
{
    char payload[PAYLOAD_MAX] = "";
    char sig_text[128] = "";
    uint8_t sig[ED25519_SIGNATURE_LEN];
    struct str key;
    enum json_type type;
    while ((type = json_next(reader, &key)) != JSON_END) {
        bool ok;
        if (str_eq_c(key, "payload") && type == JSON_STR) {
            ok = copy_text(reader, payload, sizeof(payload));
        } else if (str_eq_c(key, "signature") && type == JSON_STR) {
            ok = copy_text(reader, sig_text, sizeof(sig_text));
        } else {
            ok = type != JSON_ERROR && json_skip(reader);
        }
        if (!ok) {
            return false;
        }
    }
    size_t len;
    if (crypto_unb64(str_of(sig_text), sig, sizeof(sig), &len) && len == sizeof(sig)) {
        obey(node, str_of(payload), sig);
    }
    return true;
}

static void take_commands(struct sim_node *node, struct str body)
{
    if (str_find(body, STR("\"payload\""), 0) < 0) {
        return; /* nearly every answer */
    }
    struct json_reader reader;
    struct str key;
    json_open(&reader, body);
    enum json_type type = json_next(&reader, NULL);
    while (type == JSON_OBJ && (type = json_next(&reader, &key)) != JSON_END) {
        if (str_eq_c(key, "commands") && type == JSON_ARR) {
            while ((type = json_next(&reader, NULL)) == JSON_OBJ) {
                if (!take_command(node, &reader)) {
                    return;
                }
            }
        } else if (type == JSON_ERROR || !json_skip(&reader)) {
            return;
        }
        type = JSON_OBJ;
    }
}

/* The result that was reported moves on: accepted -> the act -> done. */
static void advance_command(struct sim_node *node, int64_t now_us)
{
    if (node->command_state == NULL) {
        return;
    }
    if (strcmp(node->command_state, "accepted") != 0) {
        node->command_state = NULL;
        return;
    }
    node->command_state = "done";
    if (node->command_is_reboot) {
        node->state = SIM_BOOTING;
        node->wake_us = now_us + 25 * SECOND_US;
        node->reboot_due = true;
    } else {
        node->next_us = now_us + 5 * SECOND_US;
        if (node->fault != NULL && strcmp(node->fault->clears, "event") == 0) {
            node->fault_clears_us = now_us;
        }
    }
}

static void report_came(struct wire_request *request, int status, struct str body)
{
    struct pair *pair = request->ctx;
    struct sim_node *node = pair->node;
    struct exchange *exchange = pair->exchange;
    int64_t now = clock_mono_us();
    node->in_flight = false;
    if (status != 200) {
        note_failure(exchange, status);
        if (status == 401) {
            node->token_until_us = 0;
        }
        return;
    }
    exchange->acked++;
    if (exchange->latency_count < EXCHANGE_LATENCIES_MAX &&
        request->scheduled_us >= exchange->counted_us) {
        int64_t took = now - request->scheduled_us;
        exchange->latencies_us[exchange->latency_count++] =
            (uint32_t)(took < 0            ? 0
                       : took > UINT32_MAX ? UINT32_MAX
                                           : took);
    }
    node->inventory_due = false;
    node->event_count -= node->events_sent;
    memmove(node->events, node->events + node->events_sent,
            node->event_count * sizeof(node->events[0]));
    node->events_sent = 0;
    advance_command(node, now);
    take_commands(node, body);
}

void exchange_report(struct exchange *exchange, struct sim_node *node, int64_t now_us)
{
    if (now_us >= node->token_until_us) {
        ask_token(exchange, node);
        return;
    }
    node->request.scheduled_us = node->next_us;
    node->next_us += exchange->interval_us;
    if (node->next_us < now_us) {
        /* After an outage: not all that was missed at once. */
        node->next_us = now_us + exchange->interval_us;
    }
    fleet_report(node);
    node->request.bearer = node->token;
    exchange->sent++;
    send_request(exchange, node, "/agent/v1/report", report_came);
}
