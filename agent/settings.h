/*
 * What the server wants this agent to do differently: checks that are off, looks in a row, what the
 * node should have, and checks of the organization's own. A document of docs/agent-protocol.md,
 * read strictly, clamped to what is safe, kept on disk.
 */
#ifndef AGENT_SETTINGS_H
#define AGENT_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/rules/finding.h"
#include "agent/rules/states.h"
#include "base/buf.h"
#include "base/cleanup.h"

/* 50 checks of 12 KiB at most, and the rest. */
#define SETTINGS_MAX ((size_t)768 * 1024)
#define SETTINGS_VERSION_CAP 33
#define SETTINGS_OFF_MAX 64
#define SETTINGS_LOOKS_MAX 64
#define SETTINGS_CHECKS_MAX 50
#define SETTINGS_WORDS_MAX 32
#define SETTINGS_NAME_CAP 48 /* "custom:" and a name of 40 */
#define SETTINGS_PORTS_CAP 1025

enum own_metric {
    METRIC_CPU_RATIO,
    METRIC_MEM_RATIO,
    METRIC_DISK_RATIO,
    METRIC_NET_RX_MBPS,
    METRIC_NET_TX_MBPS,
    METRIC_FABRIC_RX_MBPS,
    METRIC_FABRIC_TX_MBPS,
    METRIC_GPU_UTIL, /* from here on of each GPU */
    METRIC_GPU_MEM_RATIO,
    METRIC_GPU_TEMP_C,
    METRIC_GPU_POWER_W,
    METRIC_COUNT,
};

/* A check of the organization's own. */
struct own_check {
    char id[SETTINGS_NAME_CAP]; /* "custom:" and its name */
    char title[256];
    int64_t version;
    enum severity severity;
    enum action action;
    bool is_command;
    /* a metric */
    enum own_metric metric;
    bool above;
    double threshold;
    double clear_threshold;
    int64_t for_seconds;
    /* a command */
    struct buf words;  /* argv, each with its NUL; or the script */
    size_t word_count; /* 0 = a script */
    char user[33];
    int64_t interval_seconds;
    int64_t timeout_seconds;
    int64_t output_bytes;
    int64_t raise_after;
    int64_t clear_after;
};

struct settings {
    char version[SETTINGS_VERSION_CAP]; /* "" = none */
    const char *off[SETTINGS_OFF_MAX];  /* ids of agent/rules/checks.c */
    size_t off_count;
    struct {
        const char *check;
        uint8_t raise; /* 0 = as delivered */
        uint8_t clear;
    } looks[SETTINGS_LOOKS_MAX];
    size_t looks_count;
    int64_t expected_gpus;      /* -1 = not said */
    int64_t expected_port_gbps; /* 0 = not said */
    char expected_ports[SETTINGS_PORTS_CAP];
    struct own_check checks[SETTINGS_CHECKS_MAX];
    size_t check_count;
    /* Parts that could not be used, in words; empty = none. The parts before them stay. */
    char problem[256];
};

/* The version of a document: the beginning of its SHA-256 in hexadecimal. */
void settings_version(struct str document, char version[SETTINGS_VERSION_CAP]);
/*
 * Reads a document. False when it is no JSON object of this form or too large; then ret_settings
 * holds nothing. A part that cannot be used is as in `kept` (the settings before; NULL = as
 * delivered), and `problem` names it.
 */
bool settings_read(struct str document, const struct settings *kept,
                   struct settings *ret_settings) MUST_CHECK;
void settings_free(struct settings *settings);
/* No settings: everything as delivered. */
void settings_init(struct settings *settings);
bool settings_is_off(const struct settings *settings, const char *check);
/* Looks in a row for a row of states.c, at most 20 times those that it has itself; settings may be
 * NULL. */
unsigned settings_raise(const struct settings *settings, const struct state_row *row);
unsigned settings_clear(const struct settings *settings, const struct state_row *row);
const struct own_check *settings_find(const struct settings *settings, const char *id);
const char *own_metric_name(enum own_metric metric);

#endif
