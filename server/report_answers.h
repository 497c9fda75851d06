/* The answer that nearly every report gets, made once for each interval it may tell. */
#ifndef SERVER_REPORT_ANSWERS_H
#define SERVER_REPORT_ANSWERS_H

#include <stdint.h>

struct MHD_Response;

/* Before the event loops start; the answers live as long as the process. */
void report_answers_make(int64_t interval_seconds);

/* "Nothing to do; report again in so many tenths of a second", as microhttpd sends it; any thread.
 * NULL = it was not made (intervals of many minutes have too many values). */
struct MHD_Response *report_answer_plain(int64_t tenths);

/* The body of an answer, up to the commands' array: printf format of interval in tenths (whole,
 * fraction), accepted, the insides of rejected, and reconnect. */
#define REPORT_ANSWER_HEAD \
    "{\"interval_seconds\":%lld.%lld,\"accepted\":%zu,\"rejected\":[%.*s],\"reconnect\":%s,"

#endif
