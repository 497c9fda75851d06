/* From what a look at the node found to what is told, by the rows of agent/rules/states.c. */
#ifndef AGENT_COLLECT_DEBOUNCE_H
#define AGENT_COLLECT_DEBOUNCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/collect/grace.h"
#include "agent/faults.h"
#include "agent/settings.h"

/* More than this at once from one source is not told one by one. */
#define DEBOUNCE_MAX 128

struct seen; /* one finding and how often it was seen */

struct debounce {
    const char *source;
    struct seen *list; /* NULL while nothing was found */
    size_t count;
    bool adopted; /* what an agent before this one told is known */
};

/* What the judging needs beside the findings. */
struct debounce_round {
    const struct finding *findings;
    size_t count;
    struct faults *faults;
    const struct grace *grace;
    bool silence;                    /* the source did not answer: nothing but that is judged */
    const struct settings *settings; /* looks in a row that the server wants; NULL = as delivered */
    bool nvml_ok;                    /* NVML answers: rows instead of it rest */
    int64_t now_us;
};

void debounce_init(struct debounce *debounce, const char *source);
void debounce_free(struct debounce *debounce);
/* One look that ended well. A look that failed says nothing: nothing begins or ends by it. */
void debounce_round(struct debounce *debounce, const struct debounce_round *round);

#endif
