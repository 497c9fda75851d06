/* What the engine's files share. */
#ifndef AGENT_RULES_ENGINE_INTERNAL_H
#define AGENT_RULES_ENGINE_INTERNAL_H

#include "agent/rules/engine.h"
#include "agent/rules/pci.h"

#define INCIDENTS_MAX 256
#define CONTEXT_MAX 4

/* A line that names a GPU without being a fault: evidence for what follows. */
struct context_line {
    char device[FINDING_DEVICE_CAP];
    char text[256];
    int64_t at_us;
    int64_t fed_us;
};

struct engine {
    bool batch;
    struct facts facts;
    struct incident incidents[INCIDENTS_MAX];
    uint64_t next_order;
    uint64_t unparsed;
    /* "NVRM: The NVIDIA GPU ..." waits for its next lines. */
    char pending[RECORD_TEXT_MAX];
    int64_t pending_us;
    struct context_line context[CONTEXT_MAX];
    size_t context_next;
};

/* One record on its way through the rules. */
struct feed {
    struct engine *engine;
    const struct record *record;
    struct str text; /* joined to one line */
    int64_t now_us;
};

/* The newest open incident of that check (NULL = any), on that device (NULL = any), with that code
 * (NULL = any), inside the window. */
struct incident *engine_find(const struct feed *feed, const char *check, const char *device,
                             const char *code);
/* Folds the finding into the incident with the same key, or opens one. */
struct incident *engine_add(const struct feed *feed, const struct finding *finding);
/* Adds the record's line as evidence, without counting. */
void engine_note(const struct feed *feed, struct incident *incident);
/* Raises severity, action and the node-fault mark to those of the finding where they are higher. */
void engine_escalate(struct incident *incident, const struct finding *finding);
/* Moves the evidence of an incident that was not given out yet into another, and drops it. */
void engine_absorb(struct incident *root, struct incident *victim);
void engine_remember(const struct feed *feed, struct str device);

/* True when the line was theirs. */
bool xid_feed(const struct feed *feed);
bool sxid_feed(const struct feed *feed);
bool pattern_feed(const struct feed *feed);

#endif
