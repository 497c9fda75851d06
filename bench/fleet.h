/* Simulated nodes: what they measure, what breaks, and the report they would send now. */
#ifndef BENCH_FLEET_H
#define BENCH_FLEET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/crypto.h"
#include "base/uuid.h"
#include "bench/faults.h"
#include "bench/wire.h"

#define FLEET_GPUS 8
#define FLEET_STREAMS 3
#define FLEET_EVENTS_MAX 8
#define FLEET_TOKEN_MAX 64
#define FLEET_NAME_MAX 64

enum sim_state {
    SIM_NEW, /* not enrolled */
    SIM_ENROLLING,
    SIM_LIVE,
    SIM_BOOTING, /* sends nothing until wake_us */
    SIM_SILENT,  /* the same, but is the same boot afterwards */
    SIM_REFUSED, /* the server said no for good */
};

struct sim_event {
    const struct fault_kind *kind;
    int gpu;
    int stream;
    int64_t seq;
    int64_t at_us;
    bool clear;
};

struct sim_node {
    size_t index;
    enum sim_state state;
    char id[UUID_TEXT_LEN + 1];
    char token[FLEET_TOKEN_MAX];
    char nonce[24];
    int64_t token_until_us; /* monotonic */
    struct uuid boot_id;
    int64_t booted_us; /* wall */
    int64_t seq;
    int64_t next_us; /* monotonic: when the next report is due */
    int64_t wake_us;
    bool in_flight;
    bool inventory_due;
    const struct fault_kind *fault; /* open fault, NULL = none */
    int fault_gpu;
    int64_t fault_clears_us; /* monotonic: ends by itself; 0 = not */
    int64_t stream_seq[FLEET_STREAMS];
    struct sim_event events[FLEET_EVENTS_MAX]; /* not yet acknowledged */
    size_t event_count;
    size_t events_sent; /* how many of them are in the report in flight */
    char command_id[UUID_TEXT_LEN + 1];
    const char *command_state; /* result to report, NULL = none */
    bool reboot_due;
    bool command_is_reboot;
    uint8_t command_key[ED25519_PUBLIC_LEN];
    struct buf body;
    struct wire_request request;
};

struct fleet {
    struct sim_node *nodes;
    size_t count;
    uint8_t seed[32];     /* node keys come from it, so that a second start is the same fleet */
    const char *prefix;   /* of host names */
    double fault_rate;    /* times the rates of bench/sim.json; 0 = none */
    double unhealthy_max; /* no new fault beyond this share of broken nodes */
    size_t broken;
    int64_t faulted_us; /* monotonic, last draw */
    bool demo;
};

struct fleet *fleet_new(size_t count, const char *prefix);
void fleet_free(struct fleet *fleet);
void fleet_name(const struct fleet *fleet, const struct sim_node *node, char name[FLEET_NAME_MAX]);
struct ed25519 *fleet_key(const struct fleet *fleet, const struct sim_node *node);
/* Draws new faults for the time since the last call, and ends those that end by themselves. */
void fleet_faults(struct fleet *fleet, int64_t now_us);
/* Breaks one node now; false = it is not live, or broken already. */
bool fleet_break(struct fleet *fleet, size_t index, const struct fault_kind *kind, int64_t now_us);
/* Lets a live node say nothing for so long. */
bool fleet_silence(struct fleet *fleet, size_t index, int64_t seconds, int64_t now_us);
/* Ends the fault or the silence of a node; false = there is none. */
bool fleet_mend(struct fleet *fleet, size_t index, int64_t now_us);
/* A new boot: streams start again, faults that a boot cures end. */
void fleet_boot(struct fleet *fleet, struct sim_node *node, int64_t now_us);
/* The node's report into node->body. */
void fleet_report(struct sim_node *node);
void fleet_random_nonce(char nonce[24]);

#endif
