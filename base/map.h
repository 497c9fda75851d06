/* A hash table from short byte keys to pointers. */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct map;

/* Keys are copied (<= 64 bytes: a longer one is never found, and putting it is a programmer's
 * error); free_value may be NULL and is not called for NULL. Not thread safe. SipHash-keyed. */
struct map *map_new(void (*free_value)(void *value));
void map_free(struct map *map);
void *map_get(const struct map *map, struct str key);
void map_put(struct map *map, struct str key, void *value); /* frees the value it replaces */
bool map_remove(struct map *map, struct str key);           /* true when it was there */
size_t map_count(const struct map *map);
/* Calls for each entry, in no order; returning false from the callback removes the entry. The
 * callback must not change the map in another way. */
void map_each(struct map *map, bool (*visit)(struct str key, void *value, void *ctx), void *ctx);
/* The hash itself, SipHash-2-4, for tests of its vectors and for other keyed tables. */
uint64_t map_siphash(const uint64_t key[2], struct str data);

#endif
