/* A hash table from short byte keys to pointers. */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include <stddef.h>

#include "base/str.h"

struct map;

/* Keys are copied (<= 64 bytes); free_value may be NULL. Not thread safe. SipHash-keyed. */
struct map *map_new(void (*free_value)(void *value));
void map_free(struct map *map);
void *map_get(const struct map *map, struct str key);
void map_put(struct map *map, struct str key, void *value); /* frees the value it replaces */
bool map_remove(struct map *map, struct str key);           /* true when it was there */
size_t map_count(const struct map *map);
/* Calls for each entry; returning false from the callback removes the entry. */
void map_each(struct map *map, bool (*visit)(struct str key, void *value, void *ctx), void *ctx);

#endif
