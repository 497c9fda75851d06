/* The kinds of fault that simulated nodes have; the tables are made from bench/sim.json and
 * bench/drills.json at build. */
#ifndef BENCH_FAULTS_H
#define BENCH_FAULTS_H

#include <stdbool.h>
#include <stddef.h>

struct fault_kind {
    const char *id;
    const char *check_id;
    const char *code;
    const char *severity;
    const char *action;
    bool node_fault;
    const char *clears;  /* as in docs/agent-protocol.md */
    const char *summary; /* {gpu} is filled in */
    bool of_gpu;         /* names one GPU by its PCI address; otherwise the node itself */
    /* bench/sim.json names the source of each; 0 = on request only */
    double rate_per_1000_node_days;
    double cured_by_reboot; /* share of cases */
    double cured_by_reset;
    const char *lines[3]; /* {pci} {gpu} {pid} and others are filled in */
    const char *device;   /* where it is neither a GPU nor the whole node: "eth1"; "" = not */
};

/* A check that no simulated fault can fail, and why. */
struct fault_reason {
    const char *check_id;
    const char *why;
};

extern const struct fault_kind fault_kinds[];
extern const size_t fault_kinds_count;
extern const struct fault_reason fault_reasons[];
extern const size_t fault_reasons_count;

#endif
