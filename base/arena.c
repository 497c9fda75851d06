/* A bump allocator: many small allocations, one free. */
#include "base/arena.h"

#include <assert.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define ALIGNMENT 16
/* A plain request fits into the first block; later ones double so that big bodies need few. */
#define FIRST_BLOCK_BYTES ((size_t)8192)
#define LARGEST_BLOCK_BYTES ((size_t)256 * 1024)

struct block {
    struct block *next; /* the block before this one in time */
    size_t cap;
    size_t used;
    size_t unused_; /* keeps data aligned to 16 */
    char data[];
};

_Static_assert(sizeof(struct block) % ALIGNMENT == 0, "data must start aligned");

struct arena {
    struct block *newest;
    size_t cap_bytes;
    size_t used;
    size_t next_block_bytes;
};

static struct block *make_block(size_t cap)
{
    struct block *block = malloc(sizeof(*block) + cap);

    if (block == NULL) {
        abort();
    }
    block->next = NULL;
    block->cap = cap;
    block->used = 0;
    block->unused_ = 0;
    return block;
}

struct arena *arena_new(size_t cap_bytes)
{
    struct arena *arena = calloc(1, sizeof(*arena));

    if (arena == NULL) {
        abort();
    }
    arena->cap_bytes = cap_bytes;
    arena->newest = make_block(FIRST_BLOCK_BYTES);
    arena->next_block_bytes = FIRST_BLOCK_BYTES * 2;
    return arena;
}

/* Frees all blocks but the oldest, which is returned. */
static struct block *free_newer_blocks(struct arena *arena)
{
    struct block *block = arena->newest;

    while (block->next != NULL) {
        struct block *older = block->next;
        free(block);
        block = older;
    }
    return block;
}

void arena_free(struct arena *arena)
{
    if (arena == NULL) {
        return;
    }
    free(free_newer_blocks(arena));
    free(arena);
}

void arena_freep(struct arena **arena)
{
    arena_free(*arena);
    *arena = NULL;
}

void arena_reset(struct arena *arena)
{
    arena->newest = free_newer_blocks(arena);
    arena->newest->used = 0;
    arena->used = 0;
    arena->next_block_bytes = FIRST_BLOCK_BYTES * 2;
}

static void add_block(struct arena *arena, size_t at_least)
{
    size_t cap = arena->next_block_bytes;
    struct block *block;

    if (cap < at_least) {
        cap = at_least;
    } else if (arena->next_block_bytes < LARGEST_BLOCK_BYTES) {
        arena->next_block_bytes *= 2;
    }
    block = make_block(cap);
    block->next = arena->newest;
    arena->newest = block;
}

void *arena_alloc(struct arena *arena, size_t size)
{
    struct block *block = arena->newest;
    size_t rounded;
    void *ptr;

    assert(size <= SIZE_MAX - sizeof(struct block) - ALIGNMENT);
    rounded = (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    assert(arena->used <= arena->cap_bytes && rounded <= arena->cap_bytes - arena->used);
    if (rounded > block->cap - block->used) {
        add_block(arena, rounded);
        block = arena->newest;
    }
    ptr = block->data + block->used;
    block->used += rounded;
    arena->used += rounded;
    return ptr;
}

void *arena_zalloc(struct arena *arena, size_t size)
{
    void *ptr = arena_alloc(arena, size);

    memset(ptr, 0, size);
    return ptr;
}

char *arena_strndup(struct arena *arena, const char *text, size_t len)
{
    char *copy;

    assert(len < SIZE_MAX);
    copy = arena_alloc(arena, len + 1);
    if (len > 0) {
        memcpy(copy, text, len);
    }
    copy[len] = '\0';
    return copy;
}

char *arena_printf(struct arena *arena, const char *format, ...)
{
    va_list args;
    va_list again;
    char *text;
    int len;

    va_start(args, format);
    va_copy(again, args);
    len = vsnprintf(NULL, 0, format, args);
    va_end(args);
    assert(len >= 0);
    text = arena_alloc(arena, (size_t)len + 1);
    (void)vsnprintf(text, (size_t)len + 1, format, again);
    va_end(again);
    return text;
}

size_t arena_used(const struct arena *arena)
{
    return arena->used;
}
