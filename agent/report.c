/* The body of POST /agent/v1/report. */
#include "agent/report.h"

#include "base/clock.h"
#include "base/encode.h"

/* The server takes 1 MiB; three streams, readings and inventory must fit. */
#define STREAM_BYTES_MAX ((size_t)256 * 1024)

static void add_number(struct enc *enc, const char *key, int64_t value)
{
    enc_key(enc, key);
    if (value < 0) {
        enc_null(enc);
    } else {
        enc_i64(enc, value);
    }
}

static void add_ratio(struct enc *enc, const char *key, double value)
{
    enc_key(enc, key);
    if (value < 0) {
        enc_null(enc);
    } else {
        enc_double(enc, value, 4);
    }
}

/* Whole Mbit/s. */
static void add_rate(struct enc *enc, const char *key, double value)
{
    add_number(enc, key, value < 0 || value > 1e9 ? READING_NONE : (int64_t)(value + 0.5));
}

static void add_metrics(struct enc *enc, const struct readings *readings)
{
    enc_key(enc, "metrics");
    enc_obj(enc);
    add_ratio(enc, "cpu_ratio", readings->cpu_ratio);
    add_number(enc, "mem_used_mib", readings->mem_used_mib);
    add_number(enc, "mem_total_mib", readings->mem_total_mib);
    add_ratio(enc, "disk_ratio", readings->disk_ratio);
    add_rate(enc, "net_rx_mbps", readings->net_rx_mbps);
    add_rate(enc, "net_tx_mbps", readings->net_tx_mbps);
    add_rate(enc, "fabric_rx_mbps", readings->fabric_rx_mbps);
    add_rate(enc, "fabric_tx_mbps", readings->fabric_tx_mbps);
    enc_obj_end(enc);
}

static void add_column(struct enc *enc, const char *key, const struct readings *readings,
                       size_t offset)
{
    enc_key(enc, key);
    enc_arr(enc);
    for (unsigned i = 0; i < readings->gpu_count; i++) {
        int64_t value = *(const int64_t *)((const char *)&readings->gpus[i] + offset);

        if (value < 0) {
            enc_null(enc);
        } else {
            enc_i64(enc, value);
        }
    }
    enc_arr_end(enc);
}

static void add_gpus(struct enc *enc, const struct readings *readings)
{
    if (readings->gpu_count == 0) {
        return;
    }
    enc_key(enc, "gpus");
    enc_obj(enc);
    add_column(enc, "util", readings, offsetof(struct gpu_reading, util));
    add_column(enc, "mem_mib", readings, offsetof(struct gpu_reading, mem_mib));
    add_column(enc, "mem_total_mib", readings, offsetof(struct gpu_reading, mem_total_mib));
    add_column(enc, "temp_c", readings, offsetof(struct gpu_reading, temp_c));
    add_column(enc, "power_w", readings, offsetof(struct gpu_reading, power_w));
    enc_obj_end(enc);
}

/* An event in the spool has no number yet: it goes in front of its first member. */
static void add_event(uint64_t seq, struct str json, void *ctx)
{
    struct enc *enc = ctx;

    if (enc->need_comma) {
        buf_add_char(enc->buf, ',');
    }
    buf_printf(enc->buf, "{\"seq\":%llu,", (unsigned long long)seq);
    buf_add(enc->buf, json.ptr + 1, json.len - 1);
    enc->need_comma = true;
}

static void add_streams(struct enc *enc, const struct report *report, size_t *counts)
{
    enc_key(enc, "streams");
    enc_arr(enc);
    for (unsigned i = 0; i < SPOOL_STREAMS; i++) {
        counts[i] = 0;
        if (spool_waiting(report->spool, i) == 0 || report->events_max == 0) {
            continue;
        }
        enc_obj(enc);
        enc_key(enc, "stream");
        enc_i64(enc, i);
        enc_key(enc, "events");
        enc_arr(enc);
        counts[i] =
            spool_peek(report->spool, i, report->events_max, STREAM_BYTES_MAX, add_event, enc);
        enc_arr_end(enc);
        enc_obj_end(enc);
    }
    enc_arr_end(enc);
}

static void add_collectors(struct enc *enc, const struct report *report)
{
    enc_key(enc, "collectors");
    enc_arr(enc);
    for (size_t i = 0; i < report->collector_count; i++) {
        struct collector *collector = report->collectors[i];

        if (!collector->news || !collector->finished_once) {
            continue;
        }
        enc_obj(enc);
        enc_key(enc, "name");
        enc_cstr(enc, collector->name);
        enc_key(enc, "state");
        enc_cstr(enc, collector_state_name(collector->state));
        enc_key(enc, "reason");
        enc_cstr(enc, collector->reason);
        enc_obj_end(enc);
        collector->in_report = true;
    }
    enc_arr_end(enc);
}

static void add_results(struct enc *enc, struct act *act)
{
    CLEANUP(buf_free) struct buf results = {0};

    if (act == NULL || act_results_write(act, &results) == 0) {
        return;
    }
    enc_key(enc, "results");
    enc_raw(enc, buf_str(&results));
}

void report_write(const struct report *report, struct buf *out, size_t ret_counts[SPOOL_STREAMS])
{
    struct enc enc;

    enc_init(&enc, out);
    enc_obj(&enc);
    enc_key(&enc, "boot_id");
    enc_cstr(&enc, report->boot_id);
    enc_key(&enc, "seq");
    enc_i64(&enc, (int64_t)report->seq);
    enc_key(&enc, "sent_at");
    enc_time(&enc, clock_wall_us());
    enc_key(&enc, "nonce");
    enc_cstr(&enc, report->nonce);
    enc_key(&enc, "ready");
    enc_bool(&enc, report->ready);
    if (report->command_key > 0) {
        enc_key(&enc, "command_key");
        enc_i64(&enc, report->command_key);
    }
    if (report->settings != NULL) {
        enc_key(&enc, "settings");
        enc_cstr(&enc, report->settings);
        if (report->settings_refused[0] != '\0') {
            enc_key(&enc, "settings_refused");
            enc_cstr(&enc, report->settings_refused);
        }
    }
    if (report->readings != NULL) {
        add_metrics(&enc, report->readings);
        add_gpus(&enc, report->readings);
    }
    add_streams(&enc, report, ret_counts);
    if (report->inventory != NULL && report->inventory->news) {
        enc_key(&enc, "inventory");
        enc_raw(&enc, buf_str(&report->inventory->json));
        report->inventory->in_report = true;
    }
    add_collectors(&enc, report);
    add_results(&enc, report->act);
    enc_obj_end(&enc);
}
