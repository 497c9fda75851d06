/* What each node said last of its boot and readiness, to notice that it changed. One thread. */
#ifndef SERVER_NODE_TABLE_H
#define SERVER_NODE_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/uuid.h"

/* 24 bytes a node; with more nodes than this the table is emptied and learns anew. */
#define NODE_TABLE_MAX (1u << 18)

struct node_table;

struct node_table *node_table_new(void);
void node_table_free(struct node_table *table); /* NULL is fine */
/* Remembers; true when it is the first word of the node or differs from the one before. */
bool node_table_note(struct node_table *table, const struct uuid *node, const struct uuid *boot_id,
                     bool ready);
size_t node_table_count(const struct node_table *table);

#endif
