/*
 * A source that is looked at from time to time in a child of its own, and judged by the same rules
 * as `classify`. What one look leaves for the next is carried by the agent, so that a child that is
 * killed loses nothing. One file in agent/collect per source holds what its child does.
 */
#ifndef AGENT_COLLECT_SOURCE_H
#define AGENT_COLLECT_SOURCE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/classify/classify.h"
#include "agent/collect/collector.h"
#include "agent/collect/debounce.h"
#include "agent/collect/grace.h"
#include "agent/collect/probe.h"
#include "agent/collect/readings.h"
#include "agent/options.h"
#include "agent/settings.h"

#define LOOK_FINDINGS_MAX 64
/* What a look may leave for the next. */
#define LOOK_MEMORY_MAX ((size_t)64 * 1024)

/* What a look may ask about the rest of the agent; a copy from the moment of the question. */
struct source_facts {
    const struct options *options;
    const struct settings *settings; /* NULL = as delivered */
    const struct readings *readings;
    bool kmsg_ok;    /* kernel lines are read: what they tell needs no second voice */
    bool gpus_asked; /* the first question to the GPU driver is over */
    bool nvml_ok;    /* the GPU driver answers */
    bool ib_quiet;   /* counters of InfiniBand adapters are left alone */
    int64_t uptime_s;
};

/* One look, in the child. */
struct look {
    const struct source_facts *facts;
    struct str memory;         /* what the look before left, empty at first */
    struct buf next;           /* what this one leaves */
    struct classify *classify; /* findings go here */
    struct classify_context context;
    enum collector_state state; /* COLLECTOR_OK unless said otherwise */
    char reason[160];
    bool ends;        /* absent, and by that what was told before is over */
    bool timed_out;   /* a program or server did not answer */
    pid_t undead;     /* a killed program that does not die, 0 = none */
    uint64_t started; /* its start */
    int64_t deadline_us;
    int64_t at_us; /* clock_mono_us() at the beginning */
};

/* The head of an answer; the findings and the memory follow. */
struct look_answer {
    enum collector_state state;
    char reason[160];
    bool ends;
    bool timed_out;
    pid_t undead;
    uint64_t started;
    uint32_t count;
};

struct source_kind {
    const char *name;  /* the collector's */
    unsigned period_s; /* between two looks */
    unsigned patience; /* a look may take so many times probe_timeout_seconds */
    bool persist;      /* the memory outlives the agent */
    void (*look)(struct look *look);
    const char *silent; /* said when the child itself does not answer */
};

struct source {
    struct collector collector;
    struct probe probe;
    const struct source_kind *kind;
    struct source_facts facts;
    struct buf memory;
    struct debounce debounce;
    int64_t due_us; /* of the next look */
    pid_t undead;
    uint64_t started;
    unsigned silences; /* looks in a row without an answer */
    char process[16];
    char memory_path[4096]; /* empty = kept in memory only */
};

/* One row a source; each is defined in the file of its name. */
extern const struct source_kind source_slurm;
extern const struct source_kind source_chrony;
extern const struct source_kind source_smart;
extern const struct source_kind source_services;
extern const struct source_kind source_fabric_manager;
extern const struct source_kind source_dcgm;
extern const struct source_kind source_pcie;
extern const struct source_kind source_edac;
extern const struct source_kind source_processes;
extern const struct source_kind source_mounts;
extern const struct source_kind source_links;
extern const struct source_kind source_expected;

extern const struct source_kind *const source_kinds[];
#define SOURCES 12

void source_init(struct source *source, const struct source_kind *kind,
                 const struct options *options);
void source_stop(struct source *source);
/* Asks when it is time. */
void source_ask(struct source *source, const struct source_facts *facts, int64_t now_us);
/* What became of it. */
void source_news(struct source *source, enum probe_news news, struct faults *faults,
                 const struct grace *grace, int64_t now_us);
int64_t source_due(const struct source *source);

/* ---- for the looks ---- */
void look_absent(struct look *look, const char *format, ...) PRINTF_LIKE(2, 3);
void look_unknown(struct look *look, const char *format, ...) PRINTF_LIKE(2, 3);
/* A file below the options' root: its text, at most max bytes; false when it cannot be read. */
bool look_read(const struct look *look, const char *path, size_t max,
               struct buf *ret_data) MUST_CHECK;
bool look_number(const struct look *look, const char *path, uint64_t *ret_value) MUST_CHECK;
/*
 * Runs a program and takes its output. False when there is nothing to judge: the look's state and
 * reason are set then (absent when there is no such program, unknown otherwise). An exit status
 * other than 0 is for the caller to judge.
 */
bool look_program(struct look *look, const char *const *argv, struct buf *ret_out,
                  int *ret_status) MUST_CHECK;
/* Whether such a program is installed. */
bool look_has_program(const struct look *look, const char *name) MUST_CHECK;
/* A finding that is a reading, with a summary; for sources without a `classify` of their own. */
struct finding *look_add(struct look *look, const char *check, const char *device,
                         enum severity severity);

/* One look of a kind in this very process, over a memory: for tests and fuzzing. */
void source_look(const struct source_kind *kind, const struct source_facts *facts,
                 struct str memory, int64_t timeout_us, struct buf *answer);
/* The answer as the agent takes it: false when it has another form. findings has room for
 * LOOK_FINDINGS_MAX; memory points into answer. */
bool source_read(struct str answer, struct look_answer *ret_head, struct finding *findings,
                 struct str *ret_memory) MUST_CHECK;

#endif
