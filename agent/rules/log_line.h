/* Log lines as the kernel, journald and syslog write them, cut into their parts. */
#ifndef AGENT_RULES_LOG_LINE_H
#define AGENT_RULES_LOG_LINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

/* One record of /dev/kmsg: "prio,seq,usec,flags[,...];text\n KEY=value\n" (kernel:
 * Documentation/ABI/testing/dev-kmsg). */
struct kmsg_record {
    unsigned priority; /* 0 emergency .. 7 debug */
    unsigned facility; /* 0 = the kernel itself; 1 = written by a process */
    uint64_t seq;
    int64_t uptime_us;
    bool continues;  /* flag c: a piece of a line */
    struct str text; /* still with \xNN escapes; without the KEY=value lines */
};

/* False unless the record has the kernel's form. text points into record. */
bool kmsg_parse(struct str record, struct kmsg_record *ret_record) MUST_CHECK;
/* Decodes \xNN (which also carries line breaks) into buf, at most cap bytes. */
struct str kmsg_unescape(struct str text, char *buf, size_t cap);

struct log_line {
    struct str ident; /* "kernel", a service's name, or empty when the line names none */
    struct str text;
    int64_t uptime_us; /* from "[ 12.345678]", -1 = none */
    bool is_raw;       /* a /dev/kmsg record; raw holds its numbers */
    struct kmsg_record raw;
};

/* A line of dmesg or of a file of kernel lines, with whatever is in front: raw records,
 * "[ 12.345678]", "[Fri Aug 30 11:43:09 2024]", "Feb 23 03:28:16 host kernel:", "kern: warning:".
 */
void kernel_line_parse(struct str line, struct log_line *ret_line);
/* "[<30>]Dec  1 15:00:01 host ident[812]: text", an RFC 3339 time in its place, or "ident: text".
 */
void syslog_line_parse(struct str line, struct log_line *ret_line);

#endif
