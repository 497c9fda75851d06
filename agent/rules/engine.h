/*
 * Turns log records into incidents: one per fault, however many lines tell it. The same engine runs
 * behind the agent's kernel reader (stream) and behind `classify` (batch: the whole input is one
 * window and codes may still change until the end).
 */
#ifndef AGENT_RULES_ENGINE_H
#define AGENT_RULES_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/rules/finding.h"

/* Longest text that is looked at; the rest of a record is cut off. */
#define RECORD_TEXT_MAX 2048

struct record {
    struct str ident;  /* the service that wrote it; empty = the kernel */
    struct str text;   /* without time stamps and prefixes; may hold line breaks */
    int64_t at_us;     /* wall clock, 0 = unknown */
    int64_t uptime_us; /* since boot, -1 = unknown */
    int64_t seq;       /* of the kernel's log, 0 = unknown */
    uint64_t repeat;   /* how often it was written, at least 1 */
    bool stale;        /* history: of an older boot, or handled before */
};

/* What the rules know about the node beside the lines. */
struct facts {
    bool driver_hangs;  /* a GPU probe timed out */
    bool driver_works;  /* host tools reach the driver */
    int nvswitch_count; /* -1 = unknown */
};

struct evidence {
    int64_t at_us;
    bool opened; /* the line that opened the incident */
    char text[256];
};

#define EVIDENCE_MAX 8

struct incident {
    struct finding finding; /* count: occurrences since the last take */
    struct evidence *lines; /* since the last take */
    size_t line_count;
    int64_t first_us; /* wall clock of the first and last line, 0 = unknown */
    int64_t last_us;
    int64_t last_seq; /* of the newest line, 0 = unknown */
    /* The engine's own: */
    int64_t touched_us;    /* clock of engine_feed */
    int64_t not_before_us; /* held back until then, for what may follow */
    uint64_t order;        /* of opening */
    uint64_t part;         /* what the rule counts repeats of, such as a CPU */
    uint64_t repeats;      /* of that part, since the opening */
    enum severity told;    /* the severity it was last given out with */
    bool used;
    bool taken; /* was given out: check, code and device stay as they are */
    bool fresh; /* at least one line is not history */
    bool changed;
};

struct engine;

struct engine *engine_new(bool batch);
void engine_free(struct engine *engine);
void engine_set_facts(struct engine *engine, const struct facts *facts);
/* One record; now_us is a clock that never goes back (any in a batch). In a stream, stale records
 * only give context. */
void engine_feed(struct engine *engine, const struct record *record, int64_t now_us);
/*
 * Calls for each incident with news, in the order of opening, and starts their counts anew. In a
 * stream urgent_only leaves out what is neither critical nor new, and held incidents always wait.
 * The incident is valid during the call only.
 */
void engine_take(struct engine *engine, int64_t now_us, bool urgent_only,
                 void (*take)(const struct incident *incident, void *ctx), void *ctx);
/* When a held incident may be taken: the clock of engine_feed, INT64_MAX = none waits. */
int64_t engine_next_due(const struct engine *engine);
/* True when a new critical incident waits that may be taken now. */
bool engine_has_urgent(const struct engine *engine, int64_t now_us);
/* True when so many incidents have news that some of them should be taken before the next line:
 * what finds no room then is lost. */
bool engine_is_full(const struct engine *engine);
/* Lines with the word Xid that could not be read. */
uint64_t engine_unparsed(const struct engine *engine);

#endif
