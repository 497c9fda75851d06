/* A batch of reports as arrays: columns of text, rounds of events. */
#include "server/ingest_batch.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"

#define STATE_COLUMNS 22
#define EVENT_COLUMNS 21
#define STRIKE_COLUMNS 4 /* org, node, seq, boot */
#define COLUMNS_MAX STATE_COLUMNS
/* Rounds that are built at once: what one transaction may hold beside the readings. */
#define ROUNDS_MAX 15
#define SLOTS_FIRST 256

/* A statement's arguments, a PostgreSQL array text each. */
struct columns {
    struct buf texts[COLUMNS_MAX];
    size_t count;
    size_t rows;
    struct db_args args;
};

/* What is known of a stream or of an incident's key while events are put in rounds. */
struct slot {
    uint64_t hash;
    uint64_t stamp; /* of the load that made it: others count as free */
    size_t entry;   /* the first entry with this key */
    int64_t last_seq;
    size_t round;
    uint8_t kind;
    uint8_t lines;
};

struct table {
    struct slot *slots;
    size_t cap; /* a power of two, at least twice the entries */
};

struct entry {
    const struct batch_item *item;
    const struct report_stream *stream;
    const struct report_event *event;
    size_t round;
    bool with_lines;
};

struct batch {
    struct columns state;
    struct columns rounds[ROUNDS_MAX];
    struct db_args strikes;
    bool state_due;
    struct entry entries[BATCH_EVENTS_MAX];
    size_t entry_count;
    size_t round_count;
    size_t round_next; /* the first round that was not given yet */
    struct table streams;
    struct table keys;
    uint64_t stamp;
};

struct batch *batch_new(void)
{
    struct batch *batch = calloc(1, sizeof *batch);
    if (batch == NULL) {
        abort();
    }
    return batch;
}

static void free_columns(struct columns *columns)
{
    for (size_t i = 0; i < COLUMNS_MAX; i++) {
        buf_free(&columns->texts[i]);
    }
}

void batch_free(struct batch *batch)
{
    if (batch == NULL) {
        return;
    }
    free_columns(&batch->state);
    for (size_t i = 0; i < ROUNDS_MAX; i++) {
        free_columns(&batch->rounds[i]);
    }
    free(batch->streams.slots);
    free(batch->keys.slots);
    free(batch);
}

static int compare_items(const void *a, const void *b)
{
    const struct batch_item *x = *(const struct batch_item *const *)a;
    const struct batch_item *y = *(const struct batch_item *const *)b;
    int order = memcmp(x->org.bytes, y->org.bytes, sizeof x->org.bytes);
    if (order == 0) {
        order = memcmp(x->node.bytes, y->node.bytes, sizeof x->node.bytes);
    }
    if (order == 0) {
        order = (x->report->seq > y->report->seq) - (x->report->seq < y->report->seq);
    }
    return order;
}

void batch_sort(struct batch_item **items, size_t count)
{
    qsort(items, count, sizeof(struct batch_item *), compare_items);
}

/* ------------------------------------------------------------------------------- columns */

static void columns_clear(struct columns *columns, size_t count)
{
    columns->count = count;
    columns->rows = 0;
    for (size_t i = 0; i < count; i++) {
        buf_clear(&columns->texts[i]);
    }
}

/* The column's buf, with room for `more` bytes after the separator. */
static struct buf *start_value(struct columns *columns, size_t column, size_t more)
{
    struct buf *text = &columns->texts[column];
    buf_reserve(text, more + 1);
    text->ptr[text->len++] = columns->rows == 0 ? '{' : ',';
    return text;
}

static void add_raw(struct columns *columns, size_t column, struct str value)
{
    struct buf *text = start_value(columns, column, value.len);
    if (value.len > 0) {
        memcpy(text->ptr + text->len, value.ptr, value.len);
        text->len += value.len;
    }
}

static void add_uuid(struct columns *columns, size_t column, const struct uuid *value)
{
    struct buf *text = start_value(columns, column, UUID_TEXT_LEN + 1);
    uuid_format(value, text->ptr + text->len);
    text->len += UUID_TEXT_LEN;
}

static void add_i64(struct columns *columns, size_t column, int64_t value)
{
    char digits[24];
    size_t at = sizeof digits;
    uint64_t left = value < 0 ? -(uint64_t)value : (uint64_t)value;
    do {
        digits[--at] = (char)('0' + left % 10);
        left /= 10;
    } while (left > 0);
    if (value < 0) {
        digits[--at] = '-';
    }
    add_raw(columns, column, (struct str){digits + at, sizeof digits - at});
}

static void add_metric(struct columns *columns, size_t column, int32_t value)
{
    if (value == REPORT_UNKNOWN) {
        add_raw(columns, column, STR("NULL"));
    } else {
        add_i64(columns, column, value);
    }
}

static void add_bool(struct columns *columns, size_t column, bool value)
{
    add_raw(columns, column, value ? STR("t") : STR("f"));
}

/* In quotes, with \ before quotes and backslashes (PostgreSQL 8.15.6). */
static void add_text(struct columns *columns, size_t column, struct str value)
{
    struct buf *text = start_value(columns, column, 2 * value.len + 2);
    char *at = text->ptr + text->len;
    *at++ = '"';
    for (size_t i = 0; i < value.len; i++) {
        if (value.ptr[i] == '"' || value.ptr[i] == '\\') {
            *at++ = '\\';
        }
        *at++ = value.ptr[i];
    }
    *at++ = '"';
    text->len = (size_t)(at - text->ptr);
}

static void add_time(struct columns *columns, size_t column, int64_t us)
{
    char text[STR_RFC3339_LEN + 1];
    str_format_rfc3339(us, text);
    add_raw(columns, column, str_of(text));
}

/* Closes the arrays; the arguments point into the bufs until the next columns_clear. */
static void columns_finish(struct columns *columns)
{
    columns->args.count = 0;
    for (size_t i = 0; i < columns->count; i++) {
        buf_add_char(&columns->texts[i], '}');
        db_arg(&columns->args, columns->texts[i].ptr);
    }
}

/* ------------------------------------------------------------------------------- readings */

#define FIGURE_COUNT 4
/* What lists and the grid show of all GPUs of a node: the mean in permille, sums, the hottest. */
static void add_figures(struct columns *columns, size_t column, const struct report *report)
{
    const struct report_figures *figures = report->gpu_figures;
    const struct report_figures *util = &figures[GPU_UTIL];
    const struct {
        bool known;
        int64_t value;
    } values[FIGURE_COUNT] = {
        {util->read > 0, util->read > 0 ? 10 * util->sum / util->read : 0},
        {figures[GPU_MEM].read > 0, figures[GPU_MEM].sum},
        {figures[GPU_MEM_TOTAL].read > 0, figures[GPU_MEM_TOTAL].sum},
        {figures[GPU_TEMP].read > 0, figures[GPU_TEMP].max},
    };
    for (size_t i = 0; i < FIGURE_COUNT; i++) {
        int64_t value = values[i].value < INT32_MAX ? values[i].value : INT32_MAX;
        add_metric(columns, column + i, values[i].known ? (int32_t)value : REPORT_UNKNOWN);
    }
}

static void add_state(struct columns *columns, const struct batch_item *item)
{
    const struct report *report = item->report;
    add_uuid(columns, 0, &item->org);
    add_uuid(columns, 1, &item->node);
    add_i64(columns, 2, report->seq);
    add_uuid(columns, 3, &report->boot_id);
    add_bool(columns, 4, report->ready);
    for (size_t i = 0; i < READING_COUNT; i++) {
        add_metric(columns, 5 + i, report->metrics[i]);
    }
    for (size_t i = 0; i < GPU_COUNT; i++) {
        bool known = report->gpus[i].len > 0;
        add_raw(columns, 5 + READING_COUNT + i, known ? report->gpus[i] : STR("NULL"));
    }
    add_figures(columns, 5 + READING_COUNT + GPU_COUNT, report);
    columns->rows++;
}

static void build_state(struct batch *batch, struct batch_item *const *items, size_t count)
{
    _Static_assert(5 + READING_COUNT + GPU_COUNT + FIGURE_COUNT == STATE_COLUMNS,
                   "the arguments of ingest_state");
    columns_clear(&batch->state, STATE_COLUMNS);
    for (size_t i = 0; i < count; i++) {
        bool last = i + 1 == count || !uuid_eq(&items[i]->node, &items[i + 1]->node) ||
                    !uuid_eq(&items[i]->org, &items[i + 1]->org);
        if (last) {
            add_state(&batch->state, items[i]);
        }
    }
    columns_finish(&batch->state);
    batch->state_due = batch->state.rows > 0;
}

/* ------------------------------------------------------------------------------- rounds */

/* FNV-1a: keys are short, and a full comparison follows. */
static uint64_t hash_bytes(uint64_t hash, const void *data, size_t len)
{
    const unsigned char *at = data;
    for (size_t i = 0; i < len; i++) {
        hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    }
    /* The length parts "ab","c" from "a","bc". */
    return (hash ^ len) * UINT64_C(0x100000001b3);
}

#define HASH_START UINT64_C(0xcbf29ce484222325)

static uint64_t hash_stream(const struct entry *entry)
{
    uint64_t hash = hash_bytes(HASH_START, entry->item->node.bytes, sizeof entry->item->node.bytes);
    hash = hash_bytes(hash, entry->stream->boot_id.bytes, sizeof entry->stream->boot_id.bytes);
    return hash_bytes(hash, &entry->stream->stream, sizeof entry->stream->stream);
}

static uint64_t hash_key(const struct entry *entry)
{
    uint64_t hash = hash_bytes(HASH_START, entry->item->node.bytes, sizeof entry->item->node.bytes);
    hash = hash_bytes(hash, entry->event->check_id.ptr, entry->event->check_id.len);
    hash = hash_bytes(hash, entry->event->code.ptr, entry->event->code.len);
    return hash_bytes(hash, entry->event->device.ptr, entry->event->device.len);
}

static bool same_stream(const struct entry *a, const struct entry *b)
{
    return uuid_eq(&a->item->node, &b->item->node) && uuid_eq(&a->item->org, &b->item->org) &&
           uuid_eq(&a->stream->boot_id, &b->stream->boot_id) &&
           a->stream->stream == b->stream->stream;
}

static bool same_key(const struct entry *a, const struct entry *b)
{
    return uuid_eq(&a->item->node, &b->item->node) && uuid_eq(&a->item->org, &b->item->org) &&
           str_eq(a->event->check_id, b->event->check_id) &&
           str_eq(a->event->code, b->event->code) && str_eq(a->event->device, b->event->device);
}

static void table_reserve(struct table *table, size_t entries)
{
    size_t cap = table->cap == 0 ? SLOTS_FIRST : table->cap;
    while (cap < 2 * entries) {
        cap *= 2;
    }
    if (cap == table->cap) {
        return;
    }
    free(table->slots);
    table->slots = calloc(cap, sizeof *table->slots);
    if (table->slots == NULL) {
        abort();
    }
    table->cap = cap;
}

/* The slot of entry `at`, made when it is new. */
static struct slot *find_slot(struct batch *batch, struct table *table, size_t at, uint64_t hash,
                              bool (*same)(const struct entry *a, const struct entry *b))
{
    for (size_t i = hash & (table->cap - 1);; i = (i + 1) & (table->cap - 1)) {
        struct slot *slot = &table->slots[i];
        if (slot->stamp != batch->stamp) {
            *slot = (struct slot){
                .hash = hash,
                .stamp = batch->stamp,
                .entry = at,
                .kind = REPORT_NOTE,
            };
            return slot;
        }
        if (slot->hash == hash && same(&batch->entries[slot->entry], &batch->entries[at])) {
            return slot;
        }
    }
}

/*
 * Puts the event `at` in its round; false when it stands in the batch already. A statement can open
 * or close a key, not both, so each turn of a key begins a new round; and a stream's marks only
 * rise, so no event may stand in an earlier round than one before it in its stream.
 */
static bool place_entry(struct batch *batch, size_t at)
{
    struct entry *entry = &batch->entries[at];
    struct slot *stream = find_slot(batch, &batch->streams, at, hash_stream(entry), same_stream);
    if (entry->event->seq <= stream->last_seq) {
        return false;
    }
    stream->last_seq = entry->event->seq;
    entry->round = stream->round;
    entry->with_lines = false;
    if (entry->event->kind != REPORT_NOTE) {
        struct slot *key = find_slot(batch, &batch->keys, at, hash_key(entry), same_key);
        bool turns = key->kind != REPORT_NOTE && key->kind != entry->event->kind;
        size_t round = key->round + (turns ? 1 : 0);
        entry->round = round > entry->round ? round : entry->round;
        /* An incident keeps the first lines; more of them in one batch would only be parsed. */
        entry->with_lines = turns || key->lines < REPORT_LINES_MAX;
        if (entry->with_lines) {
            key->lines = (uint8_t)((turns ? 0 : key->lines) + entry->event->line_count);
        }
        key->round = entry->round;
        key->kind = entry->event->kind;
    }
    stream->round = entry->round;
    return true;
}

static void place_events(struct batch *batch, const struct batch_item *item)
{
    const struct report *report = item->report;
    for (size_t s = 0; s < report->stream_count; s++) {
        const struct report_stream *stream = &report->streams[s];
        for (size_t i = stream->first; i < stream->first + stream->count; i++) {
            assert(batch->entry_count < BATCH_EVENTS_MAX);
            batch->entries[batch->entry_count] = (struct entry){
                .item = item,
                .stream = stream,
                .event = &report->events[i],
            };
            if (!place_entry(batch, batch->entry_count)) {
                continue;
            }
            size_t round = batch->entries[batch->entry_count].round;
            batch->round_count = round >= batch->round_count ? round + 1 : batch->round_count;
            batch->entry_count++;
        }
    }
}

static void start_events(struct batch *batch, size_t events)
{
    batch->entry_count = 0;
    batch->round_count = 0;
    batch->round_next = 0;
    batch->stamp++;
    if (events > 0) {
        table_reserve(&batch->streams, events);
        table_reserve(&batch->keys, events);
    }
}

static void add_event(struct columns *columns, const struct entry *entry)
{
    const struct report_event *event = entry->event;
    struct uuid id = uuid_v7();
    add_uuid(columns, 0, &entry->item->org);
    add_uuid(columns, 1, &entry->item->cluster);
    add_uuid(columns, 2, &entry->item->node);
    add_uuid(columns, 3, &entry->stream->boot_id);
    add_i64(columns, 4, entry->stream->stream);
    add_i64(columns, 5, event->seq);
    add_i64(columns, 6, event->kind);
    add_uuid(columns, 7, &id);
    add_time(columns, 8, event->at_us);
    add_text(columns, 9, event->device);
    add_text(columns, 10, event->check_id);
    add_text(columns, 11, event->code);
    add_text(columns, 12, str_of(event->severity));
    add_text(columns, 13, str_of(event->action));
    add_bool(columns, 14, event->node_fault);
    add_text(columns, 15, str_of(event->clears));
    add_i64(columns, 16, event->quiet_seconds);
    add_i64(columns, 17, event->count);
    add_text(columns, 18, event->summary);
    add_text(columns, 19, entry->with_lines ? event->lines : (struct str){0});
    if (event->kernel_seq > 0) {
        add_i64(columns, 20, event->kernel_seq);
    } else {
        add_raw(columns, 20, STR("NULL"));
    }
    columns->rows++;
}

static void build_round(struct batch *batch, struct columns *columns, size_t round)
{
    columns_clear(columns, EVENT_COLUMNS);
    for (size_t i = 0; i < batch->entry_count; i++) {
        if (batch->entries[i].round == round) {
            add_event(columns, &batch->entries[i]);
        }
    }
    columns_finish(columns);
}

/* ------------------------------------------------------------------------------- the batch */

void batch_load_state(struct batch *batch, struct batch_item *const *items, size_t count)
{
    start_events(batch, 0);
    build_state(batch, items, count);
}

void batch_load(struct batch *batch, struct batch_item *const *items, size_t count)
{
    size_t events = 0;
    for (size_t i = 0; i < count; i++) {
        events += items[i]->report->event_count;
    }
    start_events(batch, events);
    build_state(batch, items, count);
    for (size_t i = 0; i < count && events > 0; i++) {
        place_events(batch, items[i]);
    }
}

void batch_load_event(struct batch *batch, const struct batch_item *item, size_t event)
{
    start_events(batch, 1);
    batch->state_due = false;
    const struct report *report = item->report;
    for (size_t s = 0; s < report->stream_count; s++) {
        const struct report_stream *stream = &report->streams[s];
        if (event >= stream->first && event < stream->first + stream->count) {
            batch->entries[0] = (struct entry){
                .item = item,
                .stream = stream,
                .event = &report->events[event],
                .with_lines = true,
            };
            batch->entry_count = 1;
            batch->round_count = 1;
        }
    }
}

size_t batch_rows(const struct batch *batch)
{
    return batch->state.rows;
}

size_t batch_events(const struct batch *batch)
{
    return batch->entry_count;
}

struct db_unit batch_strikes(struct batch *batch)
{
    _Static_assert(STRIKE_COLUMNS <= STATE_COLUMNS, "the first columns of the readings");
    batch->strikes.count = 0;
    for (size_t i = 0; i < STRIKE_COLUMNS; i++) {
        db_arg(&batch->strikes, batch->state.args.values[i]);
    }
    return (struct db_unit){.sql = SQL_INGEST_STRIKES, .args = &batch->strikes};
}

size_t batch_units(struct batch *batch, struct db_unit *units, size_t max)
{
    size_t count = 0;
    if (batch->state_due) {
        units[count++] = (struct db_unit){.sql = SQL_INGEST_STATE, .args = &batch->state.args};
        batch->state_due = false;
    }
    for (size_t i = 0; i < ROUNDS_MAX && count < max && batch->round_next < batch->round_count;
         i++) {
        build_round(batch, &batch->rounds[i], batch->round_next++);
        units[count++] = (struct db_unit){.sql = SQL_INGEST_EVENTS, .args = &batch->rounds[i].args};
    }
    return count;
}
