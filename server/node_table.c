/* What each node said last: open addressing over the ids, which are random already. */
#include "server/node_table.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_CAP 1024

struct seen {
    struct uuid node; /* zero = free */
    uint64_t said;    /* boot id and readiness */
};

struct node_table {
    struct seen *slots;
    size_t cap; /* a power of two */
    size_t count;
};

static struct seen *new_slots(size_t cap)
{
    struct seen *slots = calloc(cap, sizeof *slots);
    if (slots == NULL) {
        abort();
    }
    return slots;
}

struct node_table *node_table_new(void)
{
    struct node_table *table = calloc(1, sizeof *table);
    if (table == NULL) {
        abort();
    }
    table->cap = FIRST_CAP;
    table->slots = new_slots(table->cap);
    return table;
}

void node_table_free(struct node_table *table)
{
    if (table != NULL) {
        free(table->slots);
        free(table);
    }
}

/* The slot of the node, or the free one where it belongs. */
static struct seen *find_slot(const struct node_table *table, const struct uuid *node)
{
    uint64_t hash;
    memcpy(&hash, node->bytes + 8, sizeof hash);
    /* Spreads ids that were counted up, as tests make them. */
    hash = (hash ^ hash >> 32) * UINT64_C(0x9e3779b97f4a7c15);
    for (size_t i = hash >> 40;; i++) {
        struct seen *slot = &table->slots[i & (table->cap - 1)];
        if (uuid_is_zero(&slot->node) || uuid_eq(&slot->node, node)) {
            return slot;
        }
    }
}

static void grow(struct node_table *table)
{
    struct seen *old = table->slots;
    size_t old_cap = table->cap;
    table->cap *= 2;
    table->slots = new_slots(table->cap);
    for (size_t i = 0; i < old_cap; i++) {
        if (!uuid_is_zero(&old[i].node)) {
            *find_slot(table, &old[i].node) = old[i];
        }
    }
    free(old);
}

static void make_room(struct node_table *table)
{
    if (table->count == NODE_TABLE_MAX) {
        memset(table->slots, 0, table->cap * sizeof *table->slots);
        table->count = 0;
    } else if (2 * (table->count + 1) > table->cap) {
        grow(table);
    }
}

bool node_table_note(struct node_table *table, const struct uuid *node, const struct uuid *boot_id,
                     bool ready)
{
    uint64_t halves[2];
    memcpy(halves, boot_id->bytes, sizeof halves);
    uint64_t said = (halves[0] ^ halves[1]) << 1 | (ready ? 1 : 0);
    struct seen *slot = find_slot(table, node);
    if (!uuid_is_zero(&slot->node)) {
        bool differs = slot->said != said;
        slot->said = said;
        return differs;
    }
    make_room(table);
    *find_slot(table, node) = (struct seen){*node, said};
    table->count++;
    return true;
}

size_t node_table_count(const struct node_table *table)
{
    return table->count;
}
