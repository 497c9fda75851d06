/* Turns log records into incidents: one per fault, however many lines tell it. */
#include "agent/rules/engine.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "agent/rules/engine_internal.h"
#include "agent/rules/match.h"

/* A burst is one group until three minutes of silence (NVSentinel's default). */
#define WINDOW_US (180 * INT64_C(1000000))
/* The three lines of one message are written within microseconds. */
#define PENDING_US (2 * INT64_C(1000000))
#define CONTEXT_US (5 * INT64_C(1000000))
#define REPEAT_MAX 1000000

struct engine *engine_new(bool batch)
{
    struct engine *engine = calloc(1, sizeof(*engine));

    assert(engine != NULL);
    engine->batch = batch;
    engine->facts.nvswitch_count = -1;
    return engine;
}

void engine_free(struct engine *engine)
{
    if (engine == NULL) {
        return;
    }
    for (size_t i = 0; i < INCIDENTS_MAX; i++) {
        free(engine->incidents[i].lines);
    }
    free(engine);
}

void engine_set_facts(struct engine *engine, const struct facts *facts)
{
    engine->facts = *facts;
}

uint64_t engine_unparsed(const struct engine *engine)
{
    return engine->unparsed;
}

static bool is_open(const struct engine *engine, const struct incident *incident, int64_t now_us)
{
    return incident->used && (engine->batch || now_us - incident->touched_us <= WINDOW_US);
}

struct incident *engine_find(const struct feed *feed, const char *check, const char *device,
                             const char *code)
{
    struct incident *newest = NULL;

    for (size_t i = 0; i < INCIDENTS_MAX; i++) {
        struct incident *incident = &feed->engine->incidents[i];

        if (!is_open(feed->engine, incident, feed->now_us) ||
            (check != NULL && strcmp(incident->finding.check, check) != 0) ||
            (device != NULL && strcmp(incident->finding.device, device) != 0) ||
            (code != NULL && strcmp(incident->finding.code, code) != 0)) {
            continue;
        }
        if (newest == NULL || incident->order > newest->order) {
            newest = incident;
        }
    }
    return newest;
}

static void free_incident(struct incident *incident)
{
    free(incident->lines);
    *incident = (struct incident){.used = false};
}

/* A free place; when all are taken, the one silent for longest with nothing to tell, else the
 * mildest and oldest. */
static struct incident *make_room(struct engine *engine)
{
    struct incident *worst = NULL;

    for (size_t i = 0; i < INCIDENTS_MAX; i++) {
        struct incident *incident = &engine->incidents[i];

        if (!incident->used) {
            return incident;
        }
        if (worst == NULL || incident->changed < worst->changed ||
            (incident->changed == worst->changed &&
             (incident->finding.severity < worst->finding.severity ||
              (incident->finding.severity == worst->finding.severity &&
               incident->touched_us < worst->touched_us)))) {
            worst = incident;
        }
    }
    assert(worst != NULL);
    free_incident(worst);
    return worst;
}

static void copy_text(char *to, size_t cap, struct str text)
{
    size_t len = text.len < cap ? text.len : cap - 1;

    if (len > 0) {
        memcpy(to, text.ptr, len);
    }
    to[len] = '\0';
}

static void add_line(struct incident *incident, struct str text, int64_t at_us, bool opened)
{
    if (incident->lines == NULL) {
        incident->lines = calloc(EVIDENCE_MAX, sizeof(incident->lines[0]));
        assert(incident->lines != NULL);
    }
    if (incident->line_count == EVIDENCE_MAX) {
        return;
    }
    struct evidence *line = &incident->lines[incident->line_count++];
    line->at_us = at_us;
    line->opened = opened;
    copy_text(line->text, sizeof(line->text), text);
}

static void touch(const struct feed *feed, struct incident *incident)
{
    incident->touched_us = feed->now_us;
    incident->fresh = incident->fresh || !feed->record->stale;
    incident->changed = true;
    incident->last_us = feed->record->at_us;
    if (feed->record->seq > incident->last_seq) {
        incident->last_seq = feed->record->seq;
    }
    if (incident->first_us == 0) {
        incident->first_us = feed->record->at_us;
    }
}

void engine_note(const struct feed *feed, struct incident *incident)
{
    touch(feed, incident);
    add_line(incident, feed->text, feed->record->at_us, false);
}

/* Lines about the same GPU that were written just before belong to the story. */
static void add_context(const struct feed *feed, struct incident *incident)
{
    struct engine *engine = feed->engine;

    for (size_t i = 0; i < CONTEXT_MAX; i++) {
        struct context_line *line = &engine->context[(engine->context_next + i) % CONTEXT_MAX];

        if (line->device[0] != '\0' && strcmp(line->device, incident->finding.device) == 0 &&
            (engine->batch || feed->now_us - line->fed_us <= CONTEXT_US)) {
            add_line(incident, str_of(line->text), line->at_us, false);
            line->device[0] = '\0';
        }
    }
}

void engine_remember(const struct feed *feed, struct str device)
{
    struct engine *engine = feed->engine;
    struct context_line *line = &engine->context[engine->context_next];

    engine->context_next = (engine->context_next + 1) % CONTEXT_MAX;
    copy_text(line->device, sizeof(line->device), device);
    copy_text(line->text, sizeof(line->text), feed->text);
    line->at_us = feed->record->at_us;
    line->fed_us = feed->now_us;
}

static const char *key_code(const struct finding *finding)
{
    return finding->fold_code[0] != '\0' ? finding->fold_code : finding->code;
}

static struct incident *find_same(const struct feed *feed, const struct finding *finding)
{
    for (size_t i = 0; i < INCIDENTS_MAX; i++) {
        struct incident *incident = &feed->engine->incidents[i];

        if (is_open(feed->engine, incident, feed->now_us) &&
            incident->finding.clear == finding->clear &&
            strcmp(incident->finding.check, finding->check) == 0 &&
            strcmp(incident->finding.device, finding->device) == 0 &&
            strcmp(key_code(&incident->finding), key_code(finding)) == 0) {
            return incident;
        }
    }
    return NULL;
}

void engine_escalate(struct incident *incident, const struct finding *finding)
{
    struct finding *mine = &incident->finding;

    if (finding->severity > mine->severity) {
        mine->severity = finding->severity;
    }
    if (finding->action > mine->action) {
        mine->action = finding->action;
        mine->clears = finding->clears;
        mine->quiet_seconds = finding->quiet_seconds;
    }
    mine->node_fault = mine->node_fault || finding->node_fault;
    mine->deferred = mine->deferred && finding->deferred;
}

struct incident *engine_add(const struct feed *feed, const struct finding *finding)
{
    struct incident *incident = find_same(feed, finding);
    bool opens = incident == NULL;
    uint64_t repeat = feed->record->repeat < REPEAT_MAX ? feed->record->repeat : REPEAT_MAX;

    if (opens) {
        incident = make_room(feed->engine);
        incident->used = true;
        incident->finding = *finding;
        incident->finding.count = 0;
        incident->order = feed->engine->next_order++;
        incident->not_before_us = INT64_MIN;
        add_context(feed, incident);
    }
    incident->finding.count += repeat;
    touch(feed, incident);
    add_line(incident, feed->text, feed->record->at_us, opens);
    return incident;
}

void engine_absorb(struct incident *root, struct incident *victim)
{
    for (size_t i = 0; i < victim->line_count; i++) {
        add_line(root, str_of(victim->lines[i].text), victim->lines[i].at_us, false);
    }
    if (victim->first_us != 0 && victim->first_us < root->first_us) {
        root->first_us = victim->first_us;
    }
    if (victim->last_seq > root->last_seq) {
        root->last_seq = victim->last_seq;
    }
    root->fresh = root->fresh || victim->fresh;
    engine_escalate(root, &victim->finding);
    if (victim->order < root->order) {
        root->order = victim->order;
    }
    free_incident(victim);
}

/* Line breaks become blanks, and the driver's name is kept at the front only. */
static struct str join_lines(struct str text, char *buf, size_t cap)
{
    struct str part;
    size_t len = 0;

    text = str_trim(text);
    while (str_split(&text, '\n', &part)) {
        part = str_trim(part);
        if (len > 0 && str_starts(part, STR("NVRM: "))) {
            part.ptr += 6;
            part.len -= 6;
        }
        if (len > 0 && len < cap) {
            buf[len++] = ' ';
        }
        size_t room = cap - len;
        size_t take = part.len < room ? part.len : room;
        if (take > 0) {
            memcpy(buf + len, part.ptr, take);
        }
        len += take;
    }
    for (size_t i = 0; i < len; i++) {
        if ((unsigned char)buf[i] < 0x20) {
            buf[i] = ' ';
        }
    }
    return (struct str){buf, len};
}

/* "message repeated 9 times: [ text ]" (rsyslog). */
static struct str unfold_repeat(struct str text, uint64_t *repeat)
{
    struct match match;
    uint64_t times;

    if (!match_text("message repeated %d times: [*]", text, &match) ||
        !str_parse_u64(match.captures[0], 1, REPEAT_MAX, &times)) {
        return text;
    }
    ptrdiff_t open = str_find(text, STR("["), 0);
    *repeat = times;
    return str_trim((struct str){text.ptr + open + 1, text.len - (size_t)open - 2});
}

/* The old fallen-off message is three lines, which may be three records. True when the record was
 * the beginning or the middle of one; at its end feed->text is the whole. */
static bool gather(struct feed *feed, char *buf, size_t cap)
{
    struct engine *engine = feed->engine;
    struct match match;
    bool waiting = engine->pending[0] != '\0' &&
                   (engine->batch || feed->now_us - engine->pending_us <= PENDING_US);

    if (match_text("NVRM: The NVIDIA GPU %p*", feed->text, &match) &&
        str_find(feed->text, STR("fallen off the bus"), 0) < 0) {
        copy_text(engine->pending, sizeof(engine->pending), feed->text);
        engine->pending_us = feed->now_us;
        return true;
    }
    if (!waiting || (!match_text("NVRM: (PCI ID: *", feed->text, &match) &&
                     !match_text("NVRM: fallen off the bus*", feed->text, &match))) {
        return false;
    }
    int len = snprintf(buf, cap, "%s %.*s", engine->pending, (int)(feed->text.len - 6),
                       feed->text.ptr + 6);
    feed->text = (struct str){buf, len < 0 ? 0 : ((size_t)len < cap ? (size_t)len : cap - 1)};
    if (str_find(feed->text, STR("fallen off the bus"), 0) < 0) {
        copy_text(engine->pending, sizeof(engine->pending), feed->text);
        return true;
    }
    engine->pending[0] = '\0';
    return false;
}

void engine_feed(struct engine *engine, const struct record *record, int64_t now_us)
{
    char joined[RECORD_TEXT_MAX];
    char gathered[RECORD_TEXT_MAX];
    struct record copy = *record;
    struct feed feed = {.engine = engine, .record = &copy, .now_us = now_us};

    if (record->stale && !engine->batch) {
        return;
    }
    if (copy.repeat == 0) {
        copy.repeat = 1;
    }
    feed.text = unfold_repeat(join_lines(record->text, joined, sizeof(joined)), &copy.repeat);
    if (feed.text.len == 0) {
        return;
    }
    if (record->ident.len == 0 &&
        (gather(&feed, gathered, sizeof(gathered)) || xid_feed(&feed) || sxid_feed(&feed))) {
        return;
    }
    (void)pattern_feed(&feed);
}

static int compare_order(const void *a, const void *b)
{
    const struct incident *left = *(const struct incident *const *)a;
    const struct incident *right = *(const struct incident *const *)b;

    return left->order < right->order ? -1 : left->order > right->order;
}

static bool is_urgent(const struct incident *incident)
{
    return incident->changed && incident->finding.severity == SEVERITY_CRITICAL &&
           (!incident->taken || incident->told < SEVERITY_CRITICAL);
}

static void reset_news(struct incident *incident)
{
    incident->taken = true;
    incident->told = incident->finding.severity;
    incident->changed = false;
    incident->finding.count = 0;
    incident->line_count = 0;
    incident->first_us = 0;
    free(incident->lines);
    incident->lines = NULL;
}

void engine_take(struct engine *engine, int64_t now_us, bool urgent_only,
                 void (*take)(const struct incident *incident, void *ctx), void *ctx)
{
    struct incident *found[INCIDENTS_MAX];
    size_t count = 0;

    for (size_t i = 0; i < INCIDENTS_MAX; i++) {
        struct incident *incident = &engine->incidents[i];

        if (!incident->used) {
            continue;
        }
        if (incident->changed && (engine->batch || now_us >= incident->not_before_us) &&
            (!urgent_only || is_urgent(incident))) {
            found[count++] = incident;
        } else if (!incident->changed && !is_open(engine, incident, now_us)) {
            free_incident(incident);
        }
    }
    qsort(found, count, sizeof(struct incident *), compare_order);
    for (size_t i = 0; i < count; i++) {
        if (!found[i]->fresh) {
            finding_demote(&found[i]->finding);
        }
        take(found[i], ctx);
        reset_news(found[i]);
    }
}

int64_t engine_next_due(const struct engine *engine)
{
    int64_t due = INT64_MAX;

    for (size_t i = 0; i < INCIDENTS_MAX; i++) {
        const struct incident *incident = &engine->incidents[i];

        if (incident->used && is_urgent(incident) && incident->not_before_us < due) {
            due = incident->not_before_us;
        }
    }
    return due;
}

bool engine_has_urgent(const struct engine *engine, int64_t now_us)
{
    return engine_next_due(engine) <= now_us;
}

bool engine_is_full(const struct engine *engine)
{
    size_t count = 0;

    for (size_t i = 0; i < INCIDENTS_MAX; i++) {
        count += engine->incidents[i].used && engine->incidents[i].changed;
    }
    return count >= INCIDENTS_MAX / 2;
}
