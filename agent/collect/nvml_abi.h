/*
 * The part of NVIDIA's management library (NVML) that is used here, written from its documented
 * binary interface: function names, status codes, structs with their sizes. The library itself is
 * found with dlopen, in a child process only.
 */
#ifndef AGENT_COLLECT_NVML_ABI_H
#define AGENT_COLLECT_NVML_ABI_H

#include <stdint.h>

typedef void *nvml_device; /* opaque */

/* nvmlReturn_t */
enum nvml_status {
    NVML_SUCCESS = 0,
    NVML_ERROR_UNINITIALIZED = 1,
    NVML_ERROR_INVALID_ARGUMENT = 2,
    NVML_ERROR_NOT_SUPPORTED = 3,
    NVML_ERROR_NO_PERMISSION = 4,
    NVML_ERROR_NOT_FOUND = 6,
    NVML_ERROR_DRIVER_NOT_LOADED = 9,
    NVML_ERROR_TIMEOUT = 10,
    NVML_ERROR_LIBRARY_NOT_FOUND = 12,
    NVML_ERROR_FUNCTION_NOT_FOUND = 13,
    NVML_ERROR_GPU_IS_LOST = 15,
    NVML_ERROR_RESET_REQUIRED = 16,
    NVML_ERROR_LIB_RM_VERSION_MISMATCH = 18,
    NVML_ERROR_UNKNOWN = 999,
};

/* nvmlPciInfo_t since nvmlDeviceGetPciInfo_v3 */
struct nvml_pci_info {
    char bus_id_legacy[16];
    unsigned domain;
    unsigned bus;
    unsigned device;
    unsigned pci_device_id;
    unsigned pci_subsystem_id;
    char bus_id[32];
};
_Static_assert(sizeof(struct nvml_pci_info) == 68, "nvmlPciInfo_t");

/* nvmlMemory_t */
struct nvml_memory {
    unsigned long long total;
    unsigned long long free;
    unsigned long long used;
};
_Static_assert(sizeof(struct nvml_memory) == 24, "nvmlMemory_t");

/* nvmlMemory_v2_t: what v1 counted as used is split into reserved and used */
struct nvml_memory_v2 {
    unsigned version;
    unsigned long long total;
    unsigned long long reserved;
    unsigned long long free;
    unsigned long long used;
};
_Static_assert(sizeof(struct nvml_memory_v2) == 40, "nvmlMemory_v2_t");
#define NVML_MEMORY_V2 ((unsigned)sizeof(struct nvml_memory_v2) | 2U << 24)

/* nvmlUtilization_t, percent */
struct nvml_utilization {
    unsigned gpu;
    unsigned memory;
};

union nvml_value {
    double d;
    int i;
    unsigned ui;
    unsigned long ul;
    unsigned long long ull;
    signed long long ll;
};

/* nvmlFieldValue_t */
struct nvml_field_value {
    unsigned field_id;
    unsigned scope_id;
    long long timestamp;
    long long latency_us;
    int value_type;
    int status;
    union nvml_value value;
};
_Static_assert(sizeof(struct nvml_field_value) == 40, "nvmlFieldValue_t");

#define NVML_FIELD_RECOVERY_ACTION 230 /* NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, an unsigned int */
#define NVML_TEMPERATURE_GPU 0
#define NVML_MEMORY_ERROR_UNCORRECTED 1
#define NVML_ECC_VOLATILE 0

#endif
