/* NVIDIA's Xid and SXid codes: what each means and what it asks for. */
#include "agent/rules/xid.h"

#include <stdlib.h>

static int compare_code(const void *key, const void *row)
{
    uint32_t code = *(const uint32_t *)key;
    uint32_t other = ((const struct xid_row *)row)->code;

    return code < other ? -1 : code > other;
}

const struct xid_row *xid_find(uint32_t code)
{
    return bsearch(&code, xid_rows, xid_row_count, sizeof(xid_rows[0]), compare_code);
}

const struct xid_row *sxid_find(uint32_t code)
{
    return bsearch(&code, sxid_rows, sxid_row_count, sizeof(sxid_rows[0]), compare_code);
}

static bool unit_fits(const struct nvlink5_row *row, struct str unit)
{
    return str_eq_c(unit, row->units[0]) ||
           (row->units[1] != NULL && str_eq_c(unit, row->units[1]));
}

static bool word_fits(const struct nvlink5_row *row, uint32_t word)
{
    return (word & row->v1.mask) == row->v1.value || (word & row->v2.mask) == row->v2.value;
}

static bool status_fits(const struct nvlink5_row *row, uint32_t status)
{
    for (size_t i = 0; i < row->status_count; i++) {
        if (row->status[i] == status) {
            return true;
        }
    }
    return row->status_count == 0;
}

enum nvlink5_verdict nvlink5_decode(uint32_t xid, struct str unit, const uint32_t *words,
                                    size_t count)
{
    if (count < 2) {
        return NVLINK5_UNKNOWN;
    }
    for (size_t i = 0; i < nvlink5_row_count; i++) {
        const struct nvlink5_row *row = &nvlink5_rows[i];

        if (row->xid == xid && unit_fits(row, unit) && word_fits(row, words[0]) &&
            status_fits(row, words[1])) {
            return row->verdict;
        }
    }
    return NVLINK5_UNKNOWN;
}

const struct recovery_row *recovery_find(uint32_t value)
{
    for (size_t i = 0; i < recovery_row_count; i++) {
        if (recovery_rows[i].value == value) {
            return &recovery_rows[i];
        }
    }
    return NULL;
}

void xid_describe(uint32_t code, const char *device, struct finding *ret_finding)
{
    const struct xid_row *row = xid_find(code);
    struct finding *finding = ret_finding;

    *finding = (struct finding){.check = "gpu_xid",
                                .severity = SEVERITY_WARNING,
                                .clears = CLEARS_QUIET,
                                .quiet_seconds = QUIET_DEFAULT_SECONDS,
                                .count = 1};
    finding_set_code_number(finding, code);
    finding_set_device(finding, str_of(device), true);
    if (row == NULL) {
        finding_set_summary(finding, "GPU %s: Xid %u, which is not in the table", device, code);
        return;
    }
    finding->check = row->check;
    finding->severity = row->severity;
    finding->action = row->action;
    finding->clears = clears_by_action(row->action);
    finding->node_fault = row->severity == SEVERITY_CRITICAL && row->scope != XID_SCOPE_APP;
    finding->deferred = row->severity == SEVERITY_WARNING && row->action != ACTION_NONE;
    if (code == 79) {
        finding_set_summary(finding, "GPU %s fell off the bus (Xid 79)", device);
    } else {
        finding_set_summary(finding, "GPU %s: %s (Xid %u)", device, row->meaning, code);
    }
}
