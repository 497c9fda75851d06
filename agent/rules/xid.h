/* NVIDIA's Xid and SXid codes: what each means and what it asks for. */
#ifndef AGENT_RULES_XID_H
#define AGENT_RULES_XID_H

#include <stddef.h>
#include <stdint.h>

#include "agent/rules/finding.h"

/* Whom a code is about; app = never a node fault alone. */
enum xid_scope {
    XID_SCOPE_APP,
    XID_SCOPE_GPU,
    XID_SCOPE_LINK,
    XID_SCOPE_FABRIC,
    XID_SCOPE_NODE,
    XID_SCOPE_UNKNOWN,
};

struct xid_row {
    uint32_t code;
    const char *check;
    const char *meaning;
    enum xid_scope scope;
    enum severity severity;
    enum action action;
    bool by_text; /* severity and action stand in the line itself */
};

enum nvlink5_verdict {
    NVLINK5_UNKNOWN, /* no rule fits: record only */
    NVLINK5_IGNORE,
    NVLINK5_EVALUATE, /* act only when an Xid 154 asks for it */
    NVLINK5_RESET,
};

struct nvlink5_mask {
    uint32_t mask;
    uint32_t value;
};

struct nvlink5_row {
    uint32_t xid;
    const char *units[2];   /* unit names in the line; the second may be NULL */
    struct nvlink5_mask v1; /* drivers before R575: subcode in bits 9:5 */
    struct nvlink5_mask v2; /* from R575 on: bits 6:0 */
    uint32_t status[2];
    size_t status_count; /* 0 = any */
    enum nvlink5_verdict verdict;
};

struct recovery_row {
    uint32_t value;
    const char *text;
    enum action action;
};

/* Made from xid.json; sorted by code. */
extern const struct xid_row xid_rows[];
extern const size_t xid_row_count;
extern const struct xid_row sxid_rows[];
extern const size_t sxid_row_count;
extern const struct nvlink5_row nvlink5_rows[];
extern const size_t nvlink5_row_count;
extern const struct recovery_row recovery_rows[];
extern const size_t recovery_row_count;

/* What a code alone says about a GPU (device: PCI address, or index from tools). Codes that are not
 * in the table are a warning and nothing more. count is 1. */
void xid_describe(uint32_t code, const char *device, struct finding *ret_finding);
const struct xid_row *xid_find(uint32_t code);  /* NULL = not in the table */
const struct xid_row *sxid_find(uint32_t code); /* NULL = not in the table */
/* words: the hexadecimal words in parentheses; fewer than two = NVLINK5_UNKNOWN. Both encodings are
 * tried: their subcodes do not collide (a test walks the table). */
enum nvlink5_verdict nvlink5_decode(uint32_t xid, struct str unit, const uint32_t *words,
                                    size_t count);
const struct recovery_row *recovery_find(uint32_t value); /* NULL = unknown */

#endif
