/* What a simulated node tells beside its readings: events with their lines, results, collectors. */
#include "bench/tell.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

void tell_gpu_pci(int gpu, char pci[16])
{
    static const int buses[FLEET_GPUS] = {0x1b, 0x29, 0x45, 0x4e, 0x9b, 0xbb, 0xcd, 0xdb};
    (void)snprintf(pci, 16, "0000:%02x:00", buses[gpu]);
}

/* A raw line with its {names} filled in; unknown names become 0. */
static void fill_line(const char *line, const struct sim_event *event, struct buf *out)
{
    char pci[16];
    tell_gpu_pci(event->gpu, pci);
    for (const char *at = line; *at != '\0'; at++) {
        const char *end = *at == '{' ? strchr(at, '}') : NULL;
        if (end == NULL) {
            buf_add_char(out, *at);
            continue;
        }
        struct str name = {at + 1, (size_t)(end - at - 1)};
        if (str_starts(name, STR("pci"))) {
            buf_add_c(out, pci);
        } else if (str_eq_c(name, "gpu")) {
            buf_printf(out, "%d", event->gpu);
        } else if (str_eq_c(name, "comm")) {
            buf_add_c(out, "python3");
        } else if (str_eq_c(name, "pid")) {
            buf_printf(out, "%d", 4000 + (int)(event->at_us / 1000 % 28000));
        } else {
            buf_add_c(out, "0");
        }
        at = end;
    }
}

static void write_lines(struct enc *enc, const struct sim_event *event)
{
    CLEANUP(buf_free) struct buf line = {0};
    enc_key(enc, "lines");
    enc_arr(enc);
    for (size_t i = 0; i < COUNTOF(event->kind->lines) && event->kind->lines[i] != NULL; i++) {
        buf_clear(&line);
        fill_line(event->kind->lines[i], event, &line);
        enc_obj(enc);
        enc_key(enc, "at");
        enc_time(enc, event->at_us + (int64_t)i * 4000);
        enc_key(enc, "source");
        enc_cstr(enc, "sim");
        enc_key(enc, "text");
        enc_str(enc, buf_str(&line));
        enc_key(enc, "opened");
        enc_bool(enc, i == 0);
        enc_obj_end(enc);
    }
    enc_arr_end(enc);
}

static void write_event(struct enc *enc, const struct sim_event *event)
{
    const struct fault_kind *kind = event->kind;
    CLEANUP(buf_free) struct buf summary = {0};
    char pci[16] = "";
    if (kind->of_gpu) {
        tell_gpu_pci(event->gpu, pci);
    }
    const char *device = kind->device[0] != '\0' ? kind->device : pci;
    ptrdiff_t at = str_find(str_of(kind->summary), STR("{gpu}"), 0);
    buf_printf(&summary, "%.*s%s%s", at < 0 ? 0 : (int)at, kind->summary, at < 0 ? "" : pci,
               kind->summary + (at < 0 ? 0 : at + 5));
    enc_obj(enc);
    enc_key(enc, "seq");
    enc_i64(enc, event->seq);
    enc_key(enc, "at");
    enc_time(enc, event->at_us);
    const char *const texts[][2] = {
        {"check_id", kind->check_id}, {"code", kind->code},     {"device", device},
        {"severity", kind->severity}, {"action", kind->action}, {"clears", kind->clears},
        {"summary", summary.ptr},
    };
    for (size_t i = 0; i < COUNTOF(texts); i++) {
        enc_key(enc, texts[i][0]);
        enc_cstr(enc, texts[i][1]);
    }
    enc_key(enc, "node_fault");
    enc_bool(enc, kind->node_fault);
    enc_key(enc, "quiet_seconds");
    enc_i64(enc, 0);
    enc_key(enc, "count");
    enc_i64(enc, 1);
    if (event->clear) {
        enc_key(enc, "clear");
        enc_bool(enc, true);
    } else {
        write_lines(enc, event);
    }
    enc_obj_end(enc);
}

void tell_streams(struct enc *enc, struct sim_node *node)
{
    node->events_sent = node->event_count;
    if (node->event_count == 0) {
        return;
    }
    enc_key(enc, "streams");
    enc_arr(enc);
    for (int stream = 0; stream < FLEET_STREAMS; stream++) {
        bool open = false;
        for (size_t i = 0; i < node->event_count; i++) {
            if (node->events[i].stream != stream) {
                continue;
            }
            if (!open) {
                enc_obj(enc);
                enc_key(enc, "stream");
                enc_i64(enc, stream);
                enc_key(enc, "events");
                enc_arr(enc);
                open = true;
            }
            write_event(enc, &node->events[i]);
        }
        if (open) {
            enc_arr_end(enc);
            enc_obj_end(enc);
        }
    }
    enc_arr_end(enc);
}

void tell_result(struct enc *enc, const struct sim_node *node)
{
    enc_key(enc, "results");
    enc_arr(enc);
    enc_obj(enc);
    enc_key(enc, "command_id");
    enc_cstr(enc, node->command_id);
    enc_key(enc, "state");
    enc_cstr(enc, node->command_state);
    enc_key(enc, "detail");
    enc_cstr(enc, "sim");
    enc_obj_end(enc);
    enc_arr_end(enc);
}

/* Some nodes lack a program, so that something is unknown; nobody has more than two such. */
void tell_collectors(struct enc *enc, const struct sim_node *node)
{
    static const char *const names[] = {
        "kmsg", "gpu",    "fabric_manager", "expected", "fabric",   "links", "pcie", "smart",
        "disk", "mounts", "processes",      "chrony",   "services", "slurm", "agent"};
    enc_arr(enc);
    for (size_t i = 0; i < COUNTOF(names); i++) {
        bool lacks = strcmp(names[i], "smart") == 0 && node->index % 23 == 7;
        enc_obj(enc);
        enc_key(enc, "name");
        enc_cstr(enc, names[i]);
        enc_key(enc, "state");
        enc_cstr(enc, lacks ? "unknown" : "ok");
        enc_key(enc, "reason");
        enc_cstr(enc, lacks ? "smartctl is not installed" : "");
        enc_obj_end(enc);
    }
    enc_arr_end(enc);
}
