/* The running agent: everything its main loop looks after. */
#ifndef AGENT_AGENT_H
#define AGENT_AGENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/act/act.h"
#include "agent/boot.h"
#include "agent/collect/cpu.h"
#include "agent/collect/disk.h"
#include "agent/collect/fabric.h"
#include "agent/collect/gpu.h"
#include "agent/collect/grace.h"
#include "agent/collect/inventory.h"
#include "agent/collect/kmsg.h"
#include "agent/collect/memory.h"
#include "agent/collect/network.h"
#include "agent/collect/source.h"
#include "agent/custom/custom.h"
#include "agent/faults.h"
#include "agent/identity.h"
#include "agent/options.h"
#include "agent/sequence.h"
#include "agent/spool.h"
#include "agent/uplink.h"

#define COLLECTORS (9 + SOURCES)

/* When and how reports leave. Times are clock_mono_us(). */
struct delivery {
    int64_t due_us;       /* of the next round */
    int64_t round_end_us; /* a round is under way until then at the latest; 0 = none is */
    double interval_s;
    bool in_flight;
    bool in_flight_old; /* it carries an older boot's events */
    size_t counts[SPOOL_STREAMS];
    char nonce[NONCE_CAP];    /* of the last report */
    unsigned failures;        /* in a row */
    int64_t blocked_until_us; /* back-off */
    size_t events_max;        /* of each stream; less after the server called a report malformed */
};

struct agent {
    struct options options;
    struct boot boot;
    struct identity identity;
    struct sequence sequence;
    struct uplink *uplink;
    struct spool *spool;
    struct spool *old_spool; /* events of an older boot, sent first; NULL = none */
    char old_boot[UUID_TEXT_LEN + 1];
    struct faults *faults;
    struct act *act;
    struct readings readings;
    struct cpu cpu;
    struct memory memory;
    struct disk disk;
    struct network network;
    struct fabric fabric;
    struct gpu gpu;
    struct kmsg kmsg;
    struct grace grace;
    struct custom custom;
    struct source sources[SOURCES];
    struct inventory inventory;
    struct collector *collectors[COLLECTORS];
    struct delivery delivery;
    int notify_fd;
    int signal_fd;
    bool watching; /* the collectors are set up */
    bool stopping;
    bool rebooted; /* the boot id changed under us: the local stand-in for a reboot */
};

/* collect round: watch.c */
void watch_init(struct agent *agent);
void watch_stop(struct agent *agent);
/* Asks the probes; the quick sources are read when the report is built. */
void watch_ask(struct agent *agent, int64_t now_us);
/* Takes what the probes and the kernel have to say. */
void watch_tick(struct agent *agent, int64_t now_us);
bool watch_waits(const struct agent *agent); /* an asked probe has not answered yet */
/* Reads the quick sources. */
void watch_read(struct agent *agent, int64_t now_us);
bool watch_ready(const struct agent *agent);
int64_t watch_due(const struct agent *agent, int64_t now_us);

/* reports: deliver.c */
void deliver_init(struct agent *agent, int64_t now_us);
/* Starts rounds and sends when it is time. */
void deliver_tick(struct agent *agent, int64_t now_us);
/* The uplink says that the report is over. */
void deliver_result(struct agent *agent, int64_t now_us);
int64_t deliver_due(const struct agent *agent);

#endif
