/* Faults that the readings of one GPU show. */
#include "agent/collect/gpu_faults.h"

#include <string.h>

#include "agent/collect/nvml_abi.h"
#include "agent/rules/xid.h"

/* One failed reading is noise (azhpc-diagnostics #77). */
#define FAILED_READS 3
#define NARROW_ROUNDS 3
#define BUSY_PERCENT 10
/* nvml.h nvmlClocksEventReason*; a sample holds these bits only. */
#define BIT_SW_THERMAL 0x20
#define BIT_HW_THERMAL 0x40
#define BIT_POWER_BRAKE 0x80
/* Raised in 6 of 10 minutes, cleared under 1 of 10. */
#define RAISE_PERCENT 60
#define CLEAR_PERCENT 10

static struct finding make(const char *check, const struct gpu_reading *reading)
{
    struct finding finding = {.check = check, .clears = CLEARS_EVENT, .count = 1};

    finding_set_device(&finding, str_of(reading->pci.text), true);
    return finding;
}

static void state(struct faults *faults, const struct finding *finding, bool bad)
{
    struct fault_report report = {.finding = finding, .source = "nvml"};

    faults_state(faults, &report, bad);
}

static void set_fault(struct finding *finding, enum action action)
{
    finding->severity = SEVERITY_CRITICAL;
    finding->action = action;
    finding->node_fault = true;
}

/* A kernel line about this GPU says more than the state that follows from it. */
static bool is_told(const struct faults *faults, const char *check, const char *device)
{
    return !faults_has(faults, check, device) && faults_has_node_fault(faults, device);
}

static void judge_lost(struct gpu_memory *memory, const struct nvml_gpu *seen,
                       struct gpu_reading *reading, struct faults *faults)
{
    bool lost = seen->handle_status == NVML_ERROR_GPU_IS_LOST ||
                seen->read_status == NVML_ERROR_GPU_IS_LOST;
    struct finding finding = make("gpu_lost", reading);
    struct fault_report report = {.finding = &finding, .source = "nvml"};

    memory->missing = 0;
    if (!lost) {
        reading->lost = false;
        return;
    }
    if (!reading->lost && !faults_has(faults, "gpu_lost", reading->pci.text)) {
        finding_set_code(&finding, "GPU_IS_LOST");
        finding_set_summary(&finding, "GPU %s is lost, says the driver", reading->pci.text);
        set_fault(&finding, ACTION_REBOOT);
        finding.clears = CLEARS_NEW_BOOT;
        faults_tell(faults, &report);
    }
    reading->lost = true;
}

static void judge_recovery(struct gpu_memory *memory, const struct nvml_gpu *seen,
                           const struct gpu_reading *reading, struct faults *faults)
{
    const struct recovery_row *row;
    struct finding finding = make("gpu_recovery_action", reading);

    if (seen->recovery_action < 0 ||
        (row = recovery_find((uint32_t)seen->recovery_action)) == NULL) {
        return;
    }
    finding_set_code_number(&finding, 154);
    finding.severity = SEVERITY_WARNING;
    if (row->action != ACTION_NONE) {
        set_fault(&finding, row->action);
    }
    finding_set_summary(&finding, "GPU %s: the driver's recovery action is \"%s\"",
                        reading->pci.text, row->text);
    if (row->value == 0) {
        if (memory->recovery_asked) {
            /* It asked and is content now: what a reset ends has ended. */
            faults_clear(faults, NULL, reading->pci.text, finding.summary);
        }
        memory->recovery_asked = false;
        return;
    }
    memory->recovery_asked = true;
    if (!is_told(faults, "gpu_recovery_action", reading->pci.text)) {
        state(faults, &finding, true);
    }
}

static void judge_memory(const struct nvml_gpu *seen, const struct gpu_reading *reading,
                         struct faults *faults)
{
    struct finding finding = make("gpu_row_remap", reading);

    if (seen->remap_pending >= 0 && seen->remap_failed >= 0) {
        bool failed = seen->remap_failed > 0;

        finding_set_code(&finding, failed ? "failure" : "pending");
        finding.severity = SEVERITY_WARNING;
        finding.action = ACTION_RESET_GPU;
        if (failed) {
            set_fault(&finding, ACTION_REMOVE);
        }
        finding_set_summary(&finding,
                            failed ? "GPU %s: memory rows can no longer be remapped"
                                   : "GPU %s: a remapped memory row waits for a reset",
                            reading->pci.text);
        state(faults, &finding, failed || seen->remap_pending > 0);
    }
    if (seen->ecc_uncorrected >= 0) {
        finding = make("gpu_ecc", reading);
        finding_set_code(&finding, "dbe");
        set_fault(&finding, ACTION_RESET_GPU);
        finding_set_summary(&finding,
                            "GPU %s: %lld uncorrectable memory errors since the driver "
                            "was loaded",
                            reading->pci.text, (long long)seen->ecc_uncorrected);
        state(faults, &finding, seen->ecc_uncorrected > 0);
    }
}

static unsigned percent_with(const struct gpu_memory *memory, uint8_t bit)
{
    unsigned hits = 0;

    for (unsigned i = 0; i < memory->clock_count; i++) {
        hits += (memory->clock_bits[i] & bit) != 0;
    }
    return hits * 100 / CLOCK_SAMPLES;
}

static void judge_clock(const struct gpu_memory *memory, const struct gpu_reading *reading,
                        struct faults *faults, uint8_t bit, const char *check)
{
    struct finding finding = make(check, reading);
    bool open = faults_has(faults, check, reading->pci.text);
    unsigned percent = percent_with(memory, bit);

    finding_set_code(&finding, bit == BIT_POWER_BRAKE ? "hw_power_brake" : "hw_thermal");
    set_fault(&finding, ACTION_FAILOVER);
    finding_set_summary(
        &finding, "GPU %s: %s in %u of 100 samples of ten minutes", reading->pci.text,
        bit == BIT_POWER_BRAKE ? "external power brake" : "thermal slowdown", percent);
    state(faults, &finding, percent >= (open ? CLEAR_PERCENT : RAISE_PERCENT));
}

static void judge_clocks(struct gpu_memory *memory, const struct nvml_gpu *seen,
                         const struct gpu_reading *reading, struct faults *faults)
{
    if (seen->clock_reasons < 0) {
        return;
    }
    memory->clock_bits[memory->clock_next] =
        (uint8_t)(seen->clock_reasons & (BIT_SW_THERMAL | BIT_HW_THERMAL | BIT_POWER_BRAKE));
    memory->clock_next = (memory->clock_next + 1) % CLOCK_SAMPLES;
    if (memory->clock_count < CLOCK_SAMPLES) {
        memory->clock_count++;
    }
    judge_clock(memory, reading, faults, BIT_HW_THERMAL, "gpu_thermal");
    judge_clock(memory, reading, faults, BIT_POWER_BRAKE, "gpu_power_brake");
}

static void judge_width(struct gpu_memory *memory, const struct nvml_gpu *seen,
                        const struct gpu_reading *reading, struct faults *faults)
{
    struct finding finding = make("gpu_pcie", reading);

    if (seen->pcie_width < 1 || seen->pcie_width_max < 1) {
        return;
    }
    /* Links may rest when idle; only under load is a narrow link a fault. */
    if (seen->pcie_width >= seen->pcie_width_max) {
        memory->narrow = 0;
    } else if (seen->util >= BUSY_PERCENT) {
        memory->narrow++;
    }
    finding_set_code(&finding, "width %lld<%lld", (long long)seen->pcie_width,
                     (long long)seen->pcie_width_max);
    (void)memcpy(finding.fold_code, "width", sizeof("width"));
    set_fault(&finding, ACTION_REBOOT);
    finding_set_summary(&finding, "GPU %s: PCIe link has %lld of %lld lanes", reading->pci.text,
                        (long long)seen->pcie_width, (long long)seen->pcie_width_max);
    if (memory->narrow == 0 || memory->narrow >= NARROW_ROUNDS) {
        state(faults, &finding, memory->narrow >= NARROW_ROUNDS);
    }
}

static void judge_sensor(struct gpu_memory *memory, const struct nvml_gpu *seen,
                         const struct gpu_reading *reading, struct faults *faults)
{
    int status = seen->handle_status != NVML_SUCCESS ? seen->handle_status : seen->read_status;
    struct finding finding = make("gpu_sensor", reading);

    if (status == NVML_SUCCESS || status == NVML_ERROR_GPU_IS_LOST) {
        memory->failed_reads = 0;
    } else {
        memory->failed_reads++;
    }
    finding_set_code(&finding, "unreadable");
    finding.severity = SEVERITY_WARNING;
    finding_set_summary(&finding, "GPU %s: readings fail (NVML status %d)", reading->pci.text,
                        status);
    if (memory->failed_reads == 0 || memory->failed_reads >= FAILED_READS) {
        state(faults, &finding, memory->failed_reads >= FAILED_READS);
    }
}

void gpu_judge(struct gpu_memory *memory, const struct nvml_gpu *seen, struct gpu_reading *reading,
               struct faults *faults, bool sample)
{
    if (!reading->known) {
        return; /* nothing to name it by */
    }
    judge_lost(memory, seen, reading, faults);
    judge_sensor(memory, seen, reading, faults);
    if (reading->lost || seen->handle_status != NVML_SUCCESS) {
        return;
    }
    judge_recovery(memory, seen, reading, faults);
    judge_memory(seen, reading, faults);
    judge_width(memory, seen, reading, faults);
    if (sample) {
        judge_clocks(memory, seen, reading, faults);
    }
}
