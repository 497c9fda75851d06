/* `classify`: judges the output of other tools and logs once, a JSON line per finding. */
#ifndef AGENT_CLASSIFY_CLASSIFY_H
#define AGENT_CLASSIFY_CLASSIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/rules/finding.h"
#include "base/arena.h"
#include "base/buf.h"

/* Input beyond this is refused: logs are given in pieces. */
#define CLASSIFY_INPUT_MAX ((size_t)16 * 1024 * 1024)
#define FINDINGS_MAX 512

/* What the caller knows beside the input; numbers are -1 and texts empty when not given. */
struct classify_context {
    struct str current_boot_id;       /* 32 hexadecimal digits, as journald writes it */
    struct str scope;                 /* "container": the tool ran in one */
    struct str query;                 /* the columns of a CSV */
    struct str q_gpu_recovery_action; /* "GPU Recovery Action" of nvidia-smi -q */
    struct str previous;              /* JSON object: last value by GPU index */
    int64_t last_seq;                 /* kernel records up to this were handled */
    int64_t gpu_reset_at_us;          /* uptime of the GPU's last reset */
    int64_t nvswitch_count;
    int64_t host_nvidia_smi_exit;
    int64_t host_gpu_count;
    int64_t expected;
    int64_t expected_gpus;
    int64_t uptime_s;
    int64_t exit;       /* of the tool */
    int64_t interval_s; /* between the lines of a series */
    int64_t gpu;
    int64_t expected_rate_gbps;
    int64_t driver_gpu_count;
    bool nvidia_smi_timeout;
    int expected_port; /* 1 = a compute port is expected here, 0 = none, -1 = not said */
};

struct classify {
    const struct classify_context *context;
    struct arena *arena;
    struct finding findings[FINDINGS_MAX];
    size_t count;
};

/* A finding with the check's defaults: information, no action. */
struct finding classify_finding(const char *check);
void classify_set_fault(struct finding *finding, enum action action); /* critical */
/* Adds it; one with the same check, code and device is counted up instead. */
void classify_add(struct classify *classify, const struct finding *finding);

struct classify_source {
    const char *name;
    void (*run)(struct classify *classify, struct str input);
};

extern const struct classify_source classify_sources[];
extern const size_t classify_source_count;

/* Reads the JSON object of --context; unknown keys are ignored. False when it is not JSON. Texts
 * live in the arena. */
bool classify_context_read(struct arena *arena, struct str json,
                           struct classify_context *ret_context) MUST_CHECK;
/* The JSON lines for all findings. */
void classify_write(const struct classify *classify, struct buf *out);
/* The same findings as the events that a report carries (docs/agent-protocol.md), without their
 * seq. */
void classify_write_events(const struct classify *classify, const char *source, struct buf *out);
/* Runs one source by name over an input; false when there is no such source. Used by tests too. */
bool classify_run(struct str source, struct str context_json, struct str input, struct buf *out,
                  const char **ret_error) MUST_CHECK;
/* The same, but what is written are events. */
bool classify_run_events(struct str source, struct str context_json, struct str input,
                         struct buf *out, const char **ret_error) MUST_CHECK;

/* The sources. */
void classify_kmsg(struct classify *classify, struct str input);
void classify_journald(struct classify *classify, struct str input);
void classify_syslog(struct classify *classify, struct str input);
void classify_smi(struct classify *classify, struct str input);
void classify_dcgm(struct classify *classify, struct str input);
void classify_dcgmi(struct classify *classify, struct str input);
void classify_slurm(struct classify *classify, struct str input);
void classify_ib(struct classify *classify, struct str input);
void classify_fabricmanager(struct classify *classify, struct str input);
void classify_smartctl(struct classify *classify, struct str input);
void classify_chronyc(struct classify *classify, struct str input);
void classify_lspci(struct classify *classify, struct str input);
void classify_systemd(struct classify *classify, struct str input);

#endif
