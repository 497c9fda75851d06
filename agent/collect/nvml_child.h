/* The child that loads NVML and reads the GPUs. */
#ifndef AGENT_COLLECT_NVML_CHILD_H
#define AGENT_COLLECT_NVML_CHILD_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/collect/readings.h"
#include "base/buf.h"

/* One GPU as one round saw it. Numbers are READING_NONE when the driver has none. */
struct nvml_gpu {
    int handle_status; /* nvmlReturn_t of getting the handle; all else only when 0 */
    int read_status;   /* the gravest status of the readings; "not supported" is no failure */
    char uuid[80];
    char serial[32];
    char name[96];
    char firmware[32];
    char bus_id[32];
    int64_t util;
    int64_t mem_mib;
    int64_t mem_total_mib;
    int64_t temp_c;
    int64_t power_w;
    int64_t recovery_action;
    int64_t remap_pending;
    int64_t remap_failed;
    int64_t ecc_uncorrected; /* since the driver was loaded */
    int64_t clock_reasons;   /* bits */
    int64_t pcie_width;
    int64_t pcie_width_max;
};

struct nvml_answer {
    bool library;    /* it could be loaded */
    int init_status; /* nvmlReturn_t */
    char error[160]; /* of dlopen */
    char driver_version[80];
    unsigned count;
    struct nvml_gpu gpus[GPUS_MAX];
};

/* A probe_round: ctx is the library's name (const char *). The answer is a struct nvml_answer cut
 * after its last GPU. */
bool nvml_round(void **state, const void *ctx, struct buf *answer);
/* Checks the size and ends texts; false when it is not an answer. */
bool nvml_answer_read(struct str data, struct nvml_answer *ret_answer) MUST_CHECK;

#endif
