/* The child that loads NVML and reads the GPUs. */
#include "agent/collect/nvml_child.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "agent/collect/nvml_abi.h"

/* Values beyond these are no readings: a driver in trouble returns anything. */
#define UTIL_MAX 100
#define TEMP_MAX 150
#define POWER_MAX_MW 20000000
#define MEMORY_MAX (UINT64_C(1) << 44)
#define WIDTH_MAX 64
#define MIB (UINT64_C(1024) * 1024)

/* X(member, symbol, parameters) */
#define NVML_FUNCTIONS(X)                                                                          \
    X(init, "nvmlInit_v2", (void))                                                                 \
    X(shutdown, "nvmlShutdown", (void))                                                            \
    X(driver_version, "nvmlSystemGetDriverVersion", (char *, unsigned))                            \
    X(count, "nvmlDeviceGetCount_v2", (unsigned *))                                                \
    X(handle, "nvmlDeviceGetHandleByIndex_v2", (unsigned, nvml_device *))                          \
    X(uuid, "nvmlDeviceGetUUID", (nvml_device, char *, unsigned))                                  \
    X(serial, "nvmlDeviceGetSerial", (nvml_device, char *, unsigned))                              \
    X(name, "nvmlDeviceGetName", (nvml_device, char *, unsigned))                                  \
    X(firmware, "nvmlDeviceGetVbiosVersion", (nvml_device, char *, unsigned))                      \
    X(pci, "nvmlDeviceGetPciInfo_v3", (nvml_device, struct nvml_pci_info *))                       \
    X(memory, "nvmlDeviceGetMemoryInfo", (nvml_device, struct nvml_memory *))                      \
    X(memory_v2, "nvmlDeviceGetMemoryInfo_v2", (nvml_device, struct nvml_memory_v2 *))             \
    X(utilization, "nvmlDeviceGetUtilizationRates", (nvml_device, struct nvml_utilization *))      \
    X(temperature, "nvmlDeviceGetTemperature", (nvml_device, unsigned, unsigned *))                \
    X(power, "nvmlDeviceGetPowerUsage", (nvml_device, unsigned *))                                 \
    X(fields, "nvmlDeviceGetFieldValues", (nvml_device, int, struct nvml_field_value *))           \
    X(remapped, "nvmlDeviceGetRemappedRows",                                                       \
      (nvml_device, unsigned *, unsigned *, unsigned *, unsigned *))                               \
    X(ecc, "nvmlDeviceGetTotalEccErrors", (nvml_device, unsigned, unsigned, unsigned long long *)) \
    X(clock_reasons, "nvmlDeviceGetCurrentClocksEventReasons",                                     \
      (nvml_device, unsigned long long *))                                                         \
    X(clock_reasons_old, "nvmlDeviceGetCurrentClocksThrottleReasons",                              \
      (nvml_device, unsigned long long *))                                                         \
    X(width, "nvmlDeviceGetCurrPcieLinkWidth", (nvml_device, unsigned *))                          \
    X(width_max, "nvmlDeviceGetMaxPcieLinkWidth", (nvml_device, unsigned *))

#define NVML_MEMBER(member, symbol, parameters) int(*member) parameters;
struct nvml {
    void *library;
    bool initialised;
    /* Names do not change while the driver stays loaded; some are slow to read. */
    struct nvml_gpu identities[GPUS_MAX];
    NVML_FUNCTIONS(NVML_MEMBER)
};
#undef NVML_MEMBER

static void find_functions(struct nvml *nvml)
{
#define NVML_FIND(member, symbol, parameters) \
    *(void **)&nvml->member = dlsym(nvml->library, symbol);
    NVML_FUNCTIONS(NVML_FIND)
#undef NVML_FIND
}

static struct nvml *load(const char *name, struct nvml_answer *answer)
{
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);

    if (library == NULL) {
        const char *why = dlerror();

        (void)snprintf(answer->error, sizeof(answer->error), "%s", why != NULL ? why : name);
        return NULL;
    }
    struct nvml *nvml = calloc(1, sizeof(*nvml));
    if (nvml == NULL) {
        abort();
    }
    nvml->library = library;
    find_functions(nvml);
    if (nvml->init == NULL || nvml->count == NULL || nvml->handle == NULL) {
        (void)snprintf(answer->error, sizeof(answer->error), "%s lacks functions of NVML", name);
        free(nvml);
        return NULL;
    }
    return nvml;
}

/* A function that is missing or not supported says nothing; anything else is a failed reading. */
static bool good(struct nvml_gpu *gpu, int status)
{
    if (status == NVML_SUCCESS) {
        return true;
    }
    if (status != NVML_ERROR_NOT_SUPPORTED && status != NVML_ERROR_FUNCTION_NOT_FOUND &&
        status != NVML_ERROR_NO_PERMISSION && status != NVML_ERROR_NOT_FOUND &&
        (gpu->read_status == NVML_SUCCESS || status == NVML_ERROR_GPU_IS_LOST)) {
        gpu->read_status = status;
    }
    return false;
}

#define CALL(nvml, gpu, member, ...) \
    ((nvml)->member != NULL && good((gpu), (nvml)->member(__VA_ARGS__)))

static void read_identity(const struct nvml *nvml, nvml_device device, struct nvml_gpu *gpu)
{
    struct nvml_pci_info pci = {.domain = 0};

    if (!CALL(nvml, gpu, uuid, device, gpu->uuid, sizeof(gpu->uuid))) {
        gpu->uuid[0] = '\0';
    }
    if (!CALL(nvml, gpu, serial, device, gpu->serial, sizeof(gpu->serial))) {
        gpu->serial[0] = '\0';
    }
    if (!CALL(nvml, gpu, name, device, gpu->name, sizeof(gpu->name))) {
        gpu->name[0] = '\0';
    }
    if (!CALL(nvml, gpu, firmware, device, gpu->firmware, sizeof(gpu->firmware))) {
        gpu->firmware[0] = '\0';
    }
    if (CALL(nvml, gpu, pci, device, &pci)) {
        (void)snprintf(gpu->bus_id, sizeof(gpu->bus_id), "%.31s", pci.bus_id);
    }
}

static void copy_identity(struct nvml *nvml, unsigned index, nvml_device device,
                          struct nvml_gpu *gpu)
{
    struct nvml_gpu *known = &nvml->identities[index];

    if (known->uuid[0] == '\0' || known->bus_id[0] == '\0') {
        *known = (struct nvml_gpu){.read_status = NVML_SUCCESS};
        read_identity(nvml, device, known);
        if (known->read_status != NVML_SUCCESS) {
            gpu->read_status = known->read_status;
        }
    }
    memcpy(gpu->uuid, known->uuid, sizeof(gpu->uuid));
    memcpy(gpu->serial, known->serial, sizeof(gpu->serial));
    memcpy(gpu->name, known->name, sizeof(gpu->name));
    memcpy(gpu->firmware, known->firmware, sizeof(gpu->firmware));
    memcpy(gpu->bus_id, known->bus_id, sizeof(gpu->bus_id));
}

static void read_memory(const struct nvml *nvml, nvml_device device, struct nvml_gpu *gpu)
{
    struct nvml_memory_v2 v2 = {.version = NVML_MEMORY_V2};
    struct nvml_memory v1 = {.total = 0};
    unsigned long long total;
    unsigned long long used;

    if (CALL(nvml, gpu, memory_v2, device, &v2)) {
        total = v2.total;
        used = v2.used;
    } else if (CALL(nvml, gpu, memory, device, &v1)) {
        total = v1.total;
        used = v1.used;
    } else {
        return;
    }
    if (total > 0 && total <= MEMORY_MAX && used <= total) {
        gpu->mem_total_mib = (int64_t)(total / MIB);
        gpu->mem_mib = (int64_t)(used / MIB);
    }
}

static void read_load(const struct nvml *nvml, nvml_device device, struct nvml_gpu *gpu)
{
    struct nvml_utilization utilization = {.gpu = 0};
    unsigned value = 0;

    if (CALL(nvml, gpu, utilization, device, &utilization) && utilization.gpu <= UTIL_MAX) {
        gpu->util = utilization.gpu;
    }
    if (CALL(nvml, gpu, temperature, device, NVML_TEMPERATURE_GPU, &value) && value <= TEMP_MAX) {
        gpu->temp_c = value;
    }
    if (CALL(nvml, gpu, power, device, &value) && value <= POWER_MAX_MW) {
        gpu->power_w = (value + 500) / 1000;
    }
}

static void read_health(const struct nvml *nvml, nvml_device device, struct nvml_gpu *gpu)
{
    struct nvml_field_value field = {.field_id = NVML_FIELD_RECOVERY_ACTION};
    unsigned long long wide = 0;
    unsigned numbers[4] = {0};

    if (CALL(nvml, gpu, fields, device, 1, &field) && field.status == NVML_SUCCESS &&
        field.value.ui <= 255) {
        gpu->recovery_action = field.value.ui;
    }
    if (CALL(nvml, gpu, remapped, device, &numbers[0], &numbers[1], &numbers[2], &numbers[3]) &&
        numbers[2] <= 1 && numbers[3] <= 1) {
        gpu->remap_pending = numbers[2];
        gpu->remap_failed = numbers[3];
    }
    if (CALL(nvml, gpu, ecc, device, NVML_MEMORY_ERROR_UNCORRECTED, NVML_ECC_VOLATILE, &wide) &&
        wide <= INT32_MAX) {
        gpu->ecc_uncorrected = (int64_t)wide;
    }
    if (CALL(nvml, gpu, clock_reasons, device, &wide) ||
        CALL(nvml, gpu, clock_reasons_old, device, &wide)) {
        gpu->clock_reasons = (int64_t)(wide & INT32_MAX);
    }
    if (CALL(nvml, gpu, width, device, &numbers[0]) && numbers[0] <= WIDTH_MAX &&
        CALL(nvml, gpu, width_max, device, &numbers[1]) && numbers[1] <= WIDTH_MAX) {
        gpu->pcie_width = numbers[0];
        gpu->pcie_width_max = numbers[1];
    }
}

static void read_gpu(struct nvml *nvml, unsigned index, struct nvml_gpu *gpu)
{
    nvml_device device = NULL;

    *gpu = (struct nvml_gpu){.util = READING_NONE,
                             .mem_mib = READING_NONE,
                             .mem_total_mib = READING_NONE,
                             .temp_c = READING_NONE,
                             .power_w = READING_NONE,
                             .recovery_action = READING_NONE,
                             .remap_pending = READING_NONE,
                             .remap_failed = READING_NONE,
                             .ecc_uncorrected = READING_NONE,
                             .clock_reasons = READING_NONE,
                             .pcie_width = READING_NONE,
                             .pcie_width_max = READING_NONE};
    gpu->handle_status = nvml->handle(index, &device);
    if (gpu->handle_status != NVML_SUCCESS) {
        return;
    }
    copy_identity(nvml, index, device, gpu);
    read_memory(nvml, device, gpu);
    read_load(nvml, device, gpu);
    read_health(nvml, device, gpu);
}

static bool read_all(struct nvml *nvml, struct nvml_answer *answer)
{
    if (!nvml->initialised) {
        answer->init_status = nvml->init();
        if (answer->init_status != NVML_SUCCESS) {
            return false;
        }
        nvml->initialised = true;
    }
    if (nvml->driver_version != NULL &&
        nvml->driver_version(answer->driver_version, sizeof(answer->driver_version)) !=
            NVML_SUCCESS) {
        answer->driver_version[0] = '\0';
    }
    answer->init_status = nvml->count(&answer->count);
    if (answer->init_status == NVML_SUCCESS && answer->count > GPUS_MAX) {
        answer->init_status = NVML_ERROR_UNKNOWN;
    }
    if (answer->init_status != NVML_SUCCESS) {
        answer->count = 0;
        return false;
    }
    for (unsigned i = 0; i < answer->count; i++) {
        read_gpu(nvml, i, &answer->gpus[i]);
    }
    return true;
}

/* After a failure the child ends: the next one loads the library anew, as a changed driver needs.
 */
bool nvml_round(void **state, const void *ctx, struct buf *answer)
{
    struct nvml_answer out = {.count = 0};
    struct nvml *nvml = *state;
    bool more = false;

    if (nvml == NULL) {
        nvml = load(ctx, &out);
        *state = nvml;
    }
    if (nvml != NULL) {
        out.library = true;
        more = read_all(nvml, &out);
    }
    buf_add(answer, &out, offsetof(struct nvml_answer, gpus) + out.count * sizeof(struct nvml_gpu));
    return more;
}

bool nvml_answer_read(struct str data, struct nvml_answer *ret_answer)
{
    size_t head = offsetof(struct nvml_answer, gpus);

    if (data.len < head || data.len > sizeof(*ret_answer)) {
        return false;
    }
    memset(ret_answer, 0, sizeof(*ret_answer));
    memcpy(ret_answer, data.ptr, data.len);
    if (ret_answer->count > GPUS_MAX ||
        data.len != head + ret_answer->count * sizeof(struct nvml_gpu)) {
        return false;
    }
    ret_answer->error[sizeof(ret_answer->error) - 1] = '\0';
    ret_answer->driver_version[sizeof(ret_answer->driver_version) - 1] = '\0';
    for (unsigned i = 0; i < ret_answer->count; i++) {
        struct nvml_gpu *gpu = &ret_answer->gpus[i];

        gpu->uuid[sizeof(gpu->uuid) - 1] = '\0';
        gpu->serial[sizeof(gpu->serial) - 1] = '\0';
        gpu->name[sizeof(gpu->name) - 1] = '\0';
        gpu->firmware[sizeof(gpu->firmware) - 1] = '\0';
        gpu->bus_id[sizeof(gpu->bus_id) - 1] = '\0';
    }
    return true;
}
