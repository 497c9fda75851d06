/* The kinds of fault that simulated nodes have; the table is made from bench/sim.json at build. */
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
    double rate_per_1000_node_days; /* bench/sim.json names the source of each */
    double cured_by_reboot;         /* share of cases */
    double cured_by_reset;
    const char *lines[3]; /* {pci} {gpu} {pid} and others are filled in */
};

extern const struct fault_kind fault_kinds[];
extern const size_t fault_kinds_count;

#endif
