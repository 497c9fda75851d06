/* A bump allocator: many small allocations, one free. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>

#include "base/cleanup.h"

struct arena;

/* cap_bytes bounds the sum of all allocations; passing it is a programmer's error (assert), because
 * every input is capped before it reaches an arena. Not thread safe. Aborts when memory is out. */
struct arena *arena_new(size_t cap_bytes);
void arena_free(struct arena *arena);   /* NULL is fine */
void arena_freep(struct arena **arena); /* for CLEANUP */
void arena_reset(struct arena *arena);  /* keeps the first block */

/* Never NULL; aligned to 16 bytes. */
void *arena_alloc(struct arena *arena, size_t size);
void *arena_zalloc(struct arena *arena, size_t size);
char *arena_strndup(struct arena *arena, const char *text, size_t len); /* NUL-terminated */
char *arena_printf(struct arena *arena, const char *format, ...) PRINTF_LIKE(2, 3);
size_t arena_used(const struct arena *arena);

#endif
