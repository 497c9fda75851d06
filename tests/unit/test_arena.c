/* Promises of base/arena.h. */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"

Test(arena, allocations_are_aligned_and_do_not_overlap)
{
    CLEANUP(arena_freep) struct arena *arena = arena_new(1024 * 1024);
    char *blocks[200];

    for (size_t i = 0; i < COUNTOF(blocks); i++) {
        blocks[i] = arena_alloc(arena, i + 1);
        cr_assert_eq((uintptr_t)blocks[i] % 16, 0, "size %zu", i + 1);
        memset(blocks[i], (int)i, i + 1);
    }
    for (size_t i = 0; i < COUNTOF(blocks); i++) {
        for (size_t k = 0; k <= i; k++) {
            cr_assert_eq((unsigned char)blocks[i][k], i, "block %zu was overwritten", i);
        }
    }
}

Test(arena, one_allocation_may_take_the_whole_cap)
{
    CLEANUP(arena_freep) struct arena *arena = arena_new(4 * 1024 * 1024);
    char *big = arena_alloc(arena, 4 * 1024 * 1024);

    memset(big, 1, 4 * 1024 * 1024);
    cr_assert_eq(arena_used(arena), 4 * 1024 * 1024);
}

Test(arena, passing_the_cap_stops_the_program, .signal = SIGABRT)
{
    struct arena *arena = arena_new(64);

    (void)arena_alloc(arena, 48);
    (void)arena_alloc(arena, 32);
}

Test(arena, a_size_near_the_end_of_the_address_space_is_not_wrapped, .signal = SIGABRT)
{
    (void)arena_alloc(arena_new(SIZE_MAX), SIZE_MAX - 8);
}

Test(arena, reset_makes_all_room_free_again)
{
    CLEANUP(arena_freep) struct arena *arena = arena_new(100 * 1024);

    for (int i = 0; i < 100; i++) {
        memset(arena_alloc(arena, 90 * 1024), i, 90 * 1024);
        arena_reset(arena);
        cr_assert_eq(arena_used(arena), 0);
    }
}

Test(arena, zalloc_gives_zeros_after_reuse)
{
    CLEANUP(arena_freep) struct arena *arena = arena_new(1024 * 1024);
    static const char zeros[512];

    memset(arena_alloc(arena, 512), 0xff, 512);
    arena_reset(arena);
    cr_assert_eq(memcmp(arena_zalloc(arena, 512), zeros, 512), 0);
}

Test(arena, copied_text_ends_with_nul)
{
    CLEANUP(arena_freep) struct arena *arena = arena_new(1024);

    cr_assert_str_eq(arena_strndup(arena, "abcdef", 3), "abc");
    cr_assert_str_eq(arena_strndup(arena, NULL, 0), "");
}

Test(arena, printf_holds_text_of_any_length)
{
    CLEANUP(arena_freep) struct arena *arena = arena_new(64 * 1024);
    const char *text = arena_printf(arena, "%0*d", 20000, 7);

    cr_assert_eq(strlen(text), 20000);
    cr_assert_eq(text[19999], '7');
}

Test(arena, freeing_null_is_fine)
{
    struct arena *arena = NULL;

    arena_free(NULL);
    arena_freep(&arena);
}
