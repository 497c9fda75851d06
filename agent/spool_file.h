/* The spool's files: records with a checksum, and the marks. */
#ifndef AGENT_SPOOL_FILE_H
#define AGENT_SPOOL_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct segment {
    uint64_t number;
    uint64_t bytes;   /* of whole records */
    uint64_t records; /* whole ones at the front of the file */
};

struct spool_marks {
    struct {
        uint64_t acked;   /* number of the last acknowledged event */
        uint64_t segment; /* first segment with an event that is not acknowledged */
        uint64_t skip;    /* acknowledged records at its front */
        uint64_t in_flight;
    } streams[3];
    uint64_t dropped;
};

/* "0-00000012.log" */
bool spool_file_name_parse(struct str name, unsigned *ret_stream, uint64_t *ret_number) MUST_CHECK;
/* "<checksum, 8 hexadecimal digits> <json>\n" */
void spool_record_write(struct str json, struct buf *out);
/* False when the line (without its line break) is no whole record. */
bool spool_record_parse(struct str line, struct str *ret_json) MUST_CHECK;
/* Sets bytes and records; the first record that is not whole ends the file. */
void spool_segment_scan(const char *path, struct segment *segment);
/* Calls for at most `records` records, in order, until the callback says no: then false. */
bool spool_segment_each(const char *path, uint64_t records,
                        bool (*visit)(struct str json, void *ctx), void *ctx);
/* All zero when there are none or they cannot be read. */
void spool_marks_read(const char *path, struct spool_marks *ret_marks);
/* In one step as seen by a restart, but not synced to disk. 0 or an errno. */
int spool_marks_write(const char *path, const struct spool_marks *marks) MUST_CHECK;

#endif
