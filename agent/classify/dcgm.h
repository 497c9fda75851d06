/* Metrics of dcgm-exporter, sample by sample. */
#ifndef AGENT_CLASSIFY_DCGM_H
#define AGENT_CLASSIFY_DCGM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/str.h"

/* NAME{label="value",...} number */
struct dcgm_sample {
    struct str name;
    struct str labels;
    struct str value;
};

bool dcgm_parse(struct str line, struct dcgm_sample *ret_sample) MUST_CHECK;
/* Empty when there is none. */
struct str dcgm_label(const struct dcgm_sample *sample, const char *name);
/* False for what is no count: blank values, NaN, text. */
bool dcgm_count(const struct dcgm_sample *sample, int64_t *ret_value) MUST_CHECK;
bool dcgm_is_xid_gauge(struct str name);   /* the last Xid, for ever */
bool dcgm_is_xid_counter(struct str name); /* of one Xid, within some minutes */

#endif
