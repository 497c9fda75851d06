/* Metric checks of an organization's own: thresholds for the readings of the agent itself. */
#include "agent/custom/metric.h"

#include <stdio.h>
#include <string.h>

static double share(int64_t part, int64_t whole)
{
    return part < 0 || whole <= 0 ? READING_NONE : (double)part / (double)whole;
}

static double read_node(const struct readings *readings, enum own_metric metric)
{
    const double values[METRIC_GPU_UTIL] = {
        [METRIC_CPU_RATIO] = readings->cpu_ratio,
        [METRIC_MEM_RATIO] = share(readings->mem_used_mib, readings->mem_total_mib),
        [METRIC_DISK_RATIO] = readings->disk_ratio,
        [METRIC_NET_RX_MBPS] = readings->net_rx_mbps,
        [METRIC_NET_TX_MBPS] = readings->net_tx_mbps,
        [METRIC_FABRIC_RX_MBPS] = readings->fabric_rx_mbps,
        [METRIC_FABRIC_TX_MBPS] = readings->fabric_tx_mbps,
    };

    return values[metric];
}

static double read_gpu(const struct gpu_reading *gpu, enum own_metric metric)
{
    if (metric == METRIC_GPU_UTIL) {
        return (double)gpu->util;
    }
    if (metric == METRIC_GPU_MEM_RATIO) {
        return share(gpu->mem_mib, gpu->mem_total_mib);
    }
    return metric == METRIC_GPU_TEMP_C ? (double)gpu->temp_c : (double)gpu->power_w;
}

struct reading {
    double value;
    const char *device; /* "" = the node */
    int64_t *bad_since_us;
};

static void tell(const struct own_check *check, const struct reading *reading,
                 struct faults *faults, bool bad)
{
    struct finding finding = {.check = check->id,
                              .severity = check->severity,
                              .action = check->action,
                              .node_fault = check->action != ACTION_NONE,
                              .clears = CLEARS_EVENT,
                              .count = 1};
    struct fault_report report = {.finding = &finding, .source = "custom"};

    finding_set_code(&finding, "%s", own_metric_name(check->metric));
    finding_set_device(&finding, str_of(reading->device), reading->device[0] != '\0');
    if (bad) {
        finding_set_summary(&finding, "%.80s%s%s: %s is %.6g, %s %.6g",
                            check->title[0] != '\0' ? check->title : check->id,
                            reading->device[0] != '\0' ? " of " : "", reading->device,
                            own_metric_name(check->metric), reading->value,
                            check->above ? "above" : "below", check->threshold);
    } else {
        finding_set_summary(&finding, "the reading is good again");
    }
    faults_reading(faults, &report, bad);
}

static bool is_beyond(const struct own_check *check, double value, double threshold)
{
    return check->above ? value > threshold : value < threshold;
}

static void judge(const struct own_check *check, const struct reading *reading,
                  struct faults *faults, int64_t now_us)
{
    if (reading->value < 0) {
        return; /* missing */
    }
    if (is_beyond(check, reading->value, check->threshold)) {
        *reading->bad_since_us = *reading->bad_since_us == 0 ? now_us : *reading->bad_since_us;
        if (now_us - *reading->bad_since_us >= check->for_seconds * 1000000) {
            tell(check, reading, faults, true);
        }
        return;
    }
    *reading->bad_since_us = 0;
    /* Between the two thresholds what is open stays open. */
    if (!is_beyond(check, reading->value, check->clear_threshold) &&
        faults_has(faults, check->id, reading->device)) {
        tell(check, reading, faults, false);
    }
}

void own_metrics_reset(struct own_metrics *metrics)
{
    (void)memset(metrics, 0, sizeof(*metrics));
}

void own_metrics_judge(struct own_metrics *metrics, const struct settings *settings,
                       const struct readings *readings, struct faults *faults, int64_t now_us)
{
    for (size_t i = 0; i < settings->check_count; i++) {
        const struct own_check *check = &settings->checks[i];
        int64_t *since = metrics->bad_since_us[i];

        if (check->is_command) {
            continue;
        }
        if (check->metric < METRIC_GPU_UTIL) {
            struct reading reading = {read_node(readings, check->metric), "", &since[GPUS_MAX]};

            judge(check, &reading, faults, now_us);
            continue;
        }
        for (unsigned g = 0; g < readings->gpu_count; g++) {
            const struct gpu_reading *gpu = &readings->gpus[g];
            struct reading reading = {read_gpu(gpu, check->metric), gpu->pci.text, &since[g]};

            if (gpu->known && !gpu->lost) {
                judge(check, &reading, faults, now_us);
            }
        }
    }
}
