/* Metric checks of an organization's own: thresholds for the readings of the agent itself. */
#ifndef AGENT_CUSTOM_METRIC_H
#define AGENT_CUSTOM_METRIC_H

#include <stdint.h>

#include "agent/collect/readings.h"
#include "agent/faults.h"
#include "agent/settings.h"

/* Since when each fails, by check and GPU; the last place is that of the node. 0 = it does not. */
struct own_metrics {
    int64_t bad_since_us[SETTINGS_CHECKS_MAX][GPUS_MAX + 1];
};

/* The settings changed: what was counted so far is of other rules. */
void own_metrics_reset(struct own_metrics *metrics);
/* One round of readings. A reading that is missing neither lasts nor ends anything. */
void own_metrics_judge(struct own_metrics *metrics, const struct settings *settings,
                       const struct readings *readings, struct faults *faults, int64_t now_us);

#endif
