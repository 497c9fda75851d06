/* What a simulated node tells beside its readings: events with their lines, results, collectors. */
#ifndef BENCH_TELL_H
#define BENCH_TELL_H

#include "base/encode.h"
#include "bench/fleet.h"

/* The PCI address of a GPU of any node, without its function. */
void tell_gpu_pci(int gpu, char pci[16]);
/* The key "streams" with the events that wait; nothing where none does. */
void tell_streams(struct enc *enc, struct sim_node *node);
/* The key "results" with how the node's command goes. */
void tell_result(struct enc *enc, const struct sim_node *node);
/* The array of collectors and whether each works. */
void tell_collectors(struct enc *enc, const struct sim_node *node);

#endif
