/* What the collectors read, in the units of the report. */
#ifndef AGENT_COLLECT_READINGS_H
#define AGENT_COLLECT_READINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/rules/pci.h"

#define GPUS_MAX 64

/* A number that may be missing: a value that cannot be read is absent, never 0. */
#define READING_NONE (-1)

struct gpu_reading {
    bool known; /* its identity was read at least once */
    bool lost;  /* the driver says that it is gone, or it is missing */
    char uuid[80];
    char serial[32];
    char name[96];
    char firmware[32];
    struct pci pci;
    int64_t util; /* percent */
    int64_t mem_mib;
    int64_t mem_total_mib;
    int64_t temp_c;
    int64_t power_w;
};

struct readings {
    double cpu_ratio; /* 0..1; READING_NONE = missing, as in all others */
    int64_t mem_used_mib;
    int64_t mem_total_mib;
    double disk_ratio;  /* of the fullest local file system */
    double net_rx_mbps; /* Mbit/s since the last round */
    double net_tx_mbps;
    double fabric_rx_mbps;
    double fabric_tx_mbps;
    struct gpu_reading gpus[GPUS_MAX];
    unsigned gpu_count; /* highest index seen + 1 */
    char driver_version[80];
};

#endif
