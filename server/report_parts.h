/* The decoder's parts, one a member of the report: for report.c only. */
#ifndef SERVER_REPORT_PARTS_H
#define SERVER_REPORT_PARTS_H

#include "base/json.h"
#include "server/report.h"

struct report_reader {
    struct json_reader json;
    struct arena *arena;
    struct report *report;
    int64_t received_us;
    int64_t sent_at_us; /* 0 = absent */
    size_t event_cap;   /* allocated events */
    size_t reject_cap;  /* allocated rejects */
    size_t clear_count;
    enum err err;       /* the first failure that is not malformed JSON */
    const char *detail; /* its sentence */
};

/* Each stands on its value (or has entered it) and leaves the reader after it. False = give up:
 * json.error or err is set. */
bool report_read_streams(struct report_reader *reader, enum json_type type);
bool report_read_inventory(struct report_reader *reader, enum json_type type);
bool report_read_collectors(struct report_reader *reader, enum json_type type);
bool report_read_results(struct report_reader *reader, enum json_type type);

/* Helpers of all parts. */
bool report_fail(struct report_reader *reader, enum err err, const char *detail); /* false */
/* The text of the string the reader stands on, cut to max bytes at a character; false and ptr NULL
 * when it is no string. In the body where it has no escapes, else in the arena. */
bool report_text(struct report_reader *reader, enum json_type type, size_t max,
                 struct str *ret_text);
/* A whole number, rounded when it is a fraction; false outside min..max or for another type. */
bool report_number(struct report_reader *reader, enum json_type type, int64_t min, int64_t max,
                   int64_t *ret_value);
/* s cut to at most max bytes, not inside a character. */
struct str report_cut(struct str s, size_t max);

#endif
