/* Answers to reports that carry neither events nor results: built once, sent to all. */
#include "server/report_answers.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/str.h"
#include "server/exchange.h"

/* Intervals are jittered by a tenth: 40 s have 81 values. */
#define ANSWERS_MAX 128
#define BODY_MAX 128

/* Written before the event loops start, read-only afterwards. */
static struct {
    int64_t first; /* tenths of a second */
    size_t count;
    char bodies[ANSWERS_MAX][BODY_MAX];
    struct MHD_Response *responses[ANSWERS_MAX];
} answers;

void report_answers_make(int64_t interval_seconds)
{
    static const struct ready_header headers[] = {
        {"Content-Type", "application/json"},
        {"Cache-Control", "no-store"},
    };
    int64_t first = interval_seconds * 9;
    int64_t count = interval_seconds * 2 + 1;
    if (count > ANSWERS_MAX) {
        return;
    }
    answers.first = first;
    answers.count = (size_t)count;
    for (size_t i = 0; i < answers.count; i++) {
        long long tenths = (long long)first + (long long)i;
        (void)snprintf(answers.bodies[i], BODY_MAX, REPORT_ANSWER_HEAD "\"commands\":[]}",
                       tenths / 10, tenths % 10, (size_t)0, 0, "", "false");
        answers.responses[i] = respond_make(str_of(answers.bodies[i]), headers, COUNTOF(headers));
    }
}

struct MHD_Response *report_answer_plain(int64_t tenths)
{
    int64_t place = tenths - answers.first;
    return place < 0 || place >= (int64_t)answers.count ? NULL : answers.responses[place];
}
