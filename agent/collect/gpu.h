/* The GPUs as NVIDIA's driver shows them: readings, and the faults that only a look can find. */
#ifndef AGENT_COLLECT_GPU_H
#define AGENT_COLLECT_GPU_H

#include "agent/collect/collector.h"
#include "agent/collect/grace.h"
#include "agent/collect/nvml_child.h"
#include "agent/collect/probe.h"
#include "agent/collect/readings.h"
#include "agent/faults.h"
#include "agent/options.h"

/* Clock reasons are judged over ten minutes at one sample in ten seconds. */
#define CLOCK_SAMPLES 60

struct gpu_memory {
    unsigned failed_reads;             /* in a row */
    unsigned missing;                  /* rounds in a row */
    bool recovery_asked;               /* the driver asked for a recovery in the last round */
    unsigned narrow;                   /* rounds in a row with a reduced PCIe width under load */
    uint8_t clock_bits[CLOCK_SAMPLES]; /* bits 0x20 0x40 0x80 of each sample */
    unsigned clock_count;
    unsigned clock_next;
};

struct gpu {
    struct collector collector;
    struct probe probe;
    const struct options *options;
    const struct grace *grace;
    unsigned timeouts;   /* in a row */
    unsigned not_loaded; /* rounds in a row without a loaded driver */
    bool works;          /* the last round reached the driver */
    bool inventory_news; /* an identity changed */
    int64_t sampled_us;  /* of the last clock sample */
    struct gpu_memory memory[GPUS_MAX];
};

/* The grace must outlive it. */
void gpu_init(struct gpu *gpu, const struct options *options, const struct grace *grace);
void gpu_ask(struct gpu *gpu, int64_t now_us);
void gpu_news(struct gpu *gpu, enum probe_news news, struct readings *readings,
              struct faults *faults, int64_t now_us);
/* NVIDIA hardware on the PCI bus that is not given to a virtual machine. */
bool gpu_hardware_present(const struct options *options);

#endif
