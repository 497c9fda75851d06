/* The GPUs as NVIDIA's driver shows them: readings, and the faults that only a look can find. */
#include "agent/collect/gpu.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/collect/gpu_faults.h"
#include "agent/collect/nvml_abi.h"
#include "base/file.h"
#include "base/log.h"

#define PCI_FOLDER "/sys/bus/pci/devices"
#define VENDOR_NVIDIA "0x10de"
/* Display controllers: 0x03xxxx. */
#define CLASS_DISPLAY "0x03"
/* A driver may be installed later. */
#define ABSENT_RETRY_US (600 * INT64_C(1000000))
#define NOT_LOADED_ROUNDS 3
#define TIMEOUT_FAULT 3
/* A killed process that is still there hangs inside the kernel. */
#define UNDEAD_US (10 * INT64_C(1000000))
#define MISSING_ROUNDS 3
#define SAMPLE_US (9 * INT64_C(1000000))

void gpu_init(struct gpu *gpu, const struct options *options, const struct grace *grace)
{
    *gpu = (struct gpu){.options = options, .grace = grace};
    collector_init(&gpu->collector, "gpu");
    probe_init(&gpu->probe, "muster-nvml", nvml_round, options->nvml_library,
               options->probe_timeout_seconds * 1000000);
}

static bool file_begins(const char *folder, const char *device, const char *name,
                        const char *prefix)
{
    CLEANUP(buf_free) struct buf data = {0};
    char path[PATH_MAX];

    (void)snprintf(path, sizeof(path), "%.3800s/%.64s/%s", folder, device, name);
    return file_read(path, 64, &data) == 0 && str_starts(buf_str(&data), str_of(prefix));
}

static bool is_passed_through(const char *folder, const char *device)
{
    char path[PATH_MAX];
    char target[PATH_MAX];

    (void)snprintf(path, sizeof(path), "%.3800s/%.64s/driver", folder, device);
    ssize_t len = readlink(path, target, sizeof(target) - 1);
    return len > 0 && str_ends((struct str){target, (size_t)len}, STR("/vfio-pci"));
}

bool gpu_hardware_present(const struct options *options)
{
    char folder[PATH_MAX];
    struct dirent *entry;
    bool found = false;

    DIR *dir = opendir(options_path(options, PCI_FOLDER, folder, sizeof(folder)));
    if (dir == NULL) {
        return false;
    }
    while (!found && (entry = readdir(dir)) != NULL) {
        found = entry->d_name[0] != '.' &&
                file_begins(folder, entry->d_name, "vendor", VENDOR_NVIDIA) &&
                file_begins(folder, entry->d_name, "class", CLASS_DISPLAY) &&
                !is_passed_through(folder, entry->d_name);
    }
    (void)closedir(dir);
    return found;
}

void gpu_ask(struct gpu *gpu, int64_t now_us)
{
    if (gpu->collector.state == COLLECTOR_ABSENT && gpu->collector.finished_once &&
        now_us - gpu->collector.heartbeat_us < ABSENT_RETRY_US) {
        return;
    }
    if (collector_may_try(&gpu->collector, now_us)) {
        (void)probe_ask(&gpu->probe, now_us);
    }
}

static void forget_values(struct gpu_reading *reading)
{
    reading->util = READING_NONE;
    reading->mem_mib = READING_NONE;
    reading->mem_total_mib = READING_NONE;
    reading->temp_c = READING_NONE;
    reading->power_w = READING_NONE;
}

static void forget_all(struct readings *readings)
{
    for (unsigned i = 0; i < readings->gpu_count; i++) {
        forget_values(&readings->gpus[i]);
    }
}

/* ---- no answer ---- */

/* One time-out is a hint; a child that does not die, or three in a row, is a hung driver. */
static void judge_timeout(struct gpu *gpu, struct faults *faults, bool undead)
{
    bool hung = undead || gpu->timeouts >= TIMEOUT_FAULT;
    struct finding finding = {.check = "gpu_unresponsive",
                              .severity = hung ? SEVERITY_CRITICAL : SEVERITY_WARNING,
                              .action = hung ? ACTION_REBOOT : ACTION_NONE,
                              .node_fault = hung,
                              .clears = CLEARS_EVENT,
                              .count = 1};
    struct fault_report report = {.finding = &finding, .source = "nvml"};

    finding_set_code(&finding, "timeout");
    finding_set_summary(&finding, "the GPU driver did not answer for %lld s%s",
                        (long long)gpu->options->probe_timeout_seconds,
                        undead              ? " and its probe cannot be ended"
                        : gpu->timeouts > 1 ? ", again"
                                            : "");
    faults_state(faults, &report, true);
}

static void end_timeout(struct gpu *gpu, struct faults *faults)
{
    gpu->timeouts = 0;
    faults_clear(faults, "gpu_unresponsive", NULL, "the GPU driver answers again");
}

/* ---- an answer ---- */

static void judge_driver(struct gpu *gpu, const struct nvml_answer *answer, struct faults *faults,
                         int64_t now_us)
{
    bool mismatch = answer->init_status == NVML_ERROR_LIB_RM_VERSION_MISMATCH;
    bool missing = answer->init_status == NVML_ERROR_DRIVER_NOT_LOADED;
    struct finding finding = {.check = "driver_not_loaded",
                              .severity = SEVERITY_CRITICAL,
                              .action = ACTION_REBOOT,
                              .node_fault = true,
                              .clears = CLEARS_EVENT,
                              .count = 1};
    struct fault_report report = {.finding = &finding, .source = "nvml"};

    gpu->not_loaded = missing ? gpu->not_loaded + 1 : 0;
    finding_set_code_number(&finding, NVML_ERROR_DRIVER_NOT_LOADED);
    finding_set_summary(&finding, missing ? "the NVIDIA driver is not loaded"
                                          : "the NVIDIA driver is loaded");
    if (!missing ||
        (gpu->not_loaded >= NOT_LOADED_ROUNDS && !grace_holds(gpu->grace, GRACE_DRIVER, now_us))) {
        faults_state(faults, &report, missing);
    }
    finding.check = "driver_mismatch";
    finding.code_type = CODE_NONE;
    finding.code[0] = '\0';
    finding_set_summary(&finding, mismatch ? "NVIDIA's libraries and kernel module have different "
                                             "versions"
                                           : "NVIDIA's libraries and kernel module fit together");
    faults_state(faults, &report, mismatch);
}

static void fail(struct gpu *gpu, const struct nvml_answer *answer, struct readings *readings,
                 struct faults *faults, int64_t now_us)
{
    bool hardware = gpu_hardware_present(gpu->options);

    forget_all(readings);
    gpu->works = false;
    if (!hardware && readings->gpu_count == 0) {
        collector_absent(&gpu->collector, now_us, "no NVIDIA hardware");
        probe_retire(&gpu->probe);
        return;
    }
    if (!answer->library) {
        collector_unknown(&gpu->collector, now_us, "NVML: %s", answer->error);
        return;
    }
    judge_driver(gpu, answer, faults, now_us);
    collector_unknown(&gpu->collector, now_us, "NVML answers status %d", answer->init_status);
}

/* Copies what one GPU is; true when it changed. */
static bool take_identity(const struct nvml_gpu *seen, struct gpu_reading *reading)
{
    struct pci pci;

    if (!pci_parse(str_of(seen->bus_id), &pci)) {
        return false;
    }
    bool changed = !reading->known || strcmp(reading->uuid, seen->uuid) != 0 ||
                   strcmp(reading->pci.text, pci.text) != 0;
    reading->known = true;
    reading->pci = pci;
    (void)memcpy(reading->uuid, seen->uuid, sizeof(reading->uuid));
    (void)memcpy(reading->serial, seen->serial, sizeof(reading->serial));
    (void)memcpy(reading->name, seen->name, sizeof(reading->name));
    (void)memcpy(reading->firmware, seen->firmware, sizeof(reading->firmware));
    return changed;
}

static void take_values(const struct nvml_gpu *seen, struct gpu_reading *reading)
{
    forget_values(reading);
    if (seen->handle_status != NVML_SUCCESS || reading->lost) {
        return;
    }
    reading->util = seen->util;
    reading->mem_mib = seen->mem_mib;
    reading->mem_total_mib = seen->mem_total_mib;
    reading->temp_c = seen->temp_c;
    reading->power_w = seen->power_w;
}

static void judge_missing(struct gpu_memory *memory, struct gpu_reading *reading,
                          struct faults *faults)
{
    struct finding finding = {.check = "gpu_lost",
                              .severity = SEVERITY_CRITICAL,
                              .action = ACTION_REBOOT,
                              .node_fault = true,
                              .clears = CLEARS_NEW_BOOT,
                              .count = 1};
    struct fault_report report = {.finding = &finding, .source = "nvml"};

    forget_values(reading);
    if (!reading->known || ++memory->missing != MISSING_ROUNDS) {
        return;
    }
    reading->lost = true;
    if (faults_has(faults, "gpu_lost", reading->pci.text)) {
        return;
    }
    finding_set_device(&finding, str_of(reading->pci.text), true);
    finding_set_code(&finding, "missing");
    finding_set_summary(&finding, "GPU %s is no longer listed by the driver", reading->pci.text);
    faults_tell(faults, &report);
}

/* Places are kept by index, but a list that got shorter has moved up: go by UUID. */
static unsigned place_of(const struct nvml_gpu *seen, unsigned index,
                         const struct readings *readings)
{
    for (unsigned i = 0; i < readings->gpu_count && seen->uuid[0] != '\0'; i++) {
        if (readings->gpus[i].known && strcmp(readings->gpus[i].uuid, seen->uuid) == 0) {
            return i;
        }
    }
    return index;
}

static void take(struct gpu *gpu, const struct nvml_answer *answer, struct readings *readings,
                 struct faults *faults, int64_t now_us)
{
    bool present[GPUS_MAX] = {false};
    bool sample = now_us - gpu->sampled_us >= SAMPLE_US;

    if (readings->gpu_count < answer->count) {
        for (unsigned i = readings->gpu_count; i < answer->count; i++) {
            readings->gpus[i] = (struct gpu_reading){.known = false};
            forget_values(&readings->gpus[i]);
        }
        readings->gpu_count = answer->count;
        gpu->inventory_news = true;
    }
    for (unsigned i = 0; i < answer->count; i++) {
        const struct nvml_gpu *seen = &answer->gpus[i];
        unsigned place = place_of(seen, i, readings);
        struct gpu_reading *reading = &readings->gpus[place];

        present[place] = true;
        gpu->inventory_news = take_identity(seen, reading) || gpu->inventory_news;
        gpu_judge(&gpu->memory[place], seen, reading, faults, sample);
        take_values(seen, reading);
    }
    for (unsigned i = 0; i < readings->gpu_count; i++) {
        /* A driver that is being exchanged lists its GPUs one after the other. */
        if (!present[i] && !grace_holds(gpu->grace, GRACE_DRIVER, now_us)) {
            judge_missing(&gpu->memory[i], &readings->gpus[i], faults);
        }
    }
    if (sample) {
        gpu->sampled_us = now_us;
    }
    if (strcmp(readings->driver_version, answer->driver_version) != 0) {
        (void)memcpy(readings->driver_version, answer->driver_version,
                     sizeof(readings->driver_version));
        gpu->inventory_news = true;
    }
}

static void take_answer(struct gpu *gpu, struct readings *readings, struct faults *faults,
                        int64_t now_us)
{
    struct nvml_answer answer;

    if (!nvml_answer_read(buf_str(&gpu->probe.answer), &answer)) {
        forget_all(readings);
        collector_unknown(&gpu->collector, now_us, "the answer of the NVML probe has no form");
        return;
    }
    end_timeout(gpu, faults);
    if (!answer.library || answer.init_status != NVML_SUCCESS) {
        fail(gpu, &answer, readings, faults, now_us);
        return;
    }
    gpu->works = true;
    judge_driver(gpu, &answer, faults, now_us);
    take(gpu, &answer, readings, faults, now_us);
    if (answer.count == 0 && readings->gpu_count == 0) {
        collector_absent(&gpu->collector, now_us, "the driver shows no GPU");
        return;
    }
    collector_ok(&gpu->collector, now_us);
}

void gpu_news(struct gpu *gpu, enum probe_news news, struct readings *readings,
              struct faults *faults, int64_t now_us)
{
    switch (news) {
    case PROBE_ANSWERED:
        take_answer(gpu, readings, faults, now_us);
        return;
    case PROBE_TIMEOUT:
        gpu->timeouts++;
        gpu->works = false;
        forget_all(readings);
        judge_timeout(gpu, faults, false);
        collector_unknown(&gpu->collector, now_us, "the GPU driver did not answer for %lld s",
                          (long long)gpu->options->probe_timeout_seconds);
        return;
    case PROBE_DIED:
        gpu->works = false;
        forget_all(readings);
        collector_unknown(&gpu->collector, now_us, "the NVML probe %s", gpu->probe.reason);
        return;
    case PROBE_NOTHING:
        if (gpu->probe.killed && gpu->timeouts > 0 && now_us - gpu->probe.killed_us >= UNDEAD_US) {
            judge_timeout(gpu, faults, true);
        }
        return;
    case PROBE_GONE:
    default:
        return;
    }
}
