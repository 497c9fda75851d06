/* Cursors come back as they were made, for their own list only. */
#include <criterion/criterion.h>

#include "server/cursor.h"

static struct arena *arena;

static void setup(void)
{
    arena = arena_new((size_t)1 << 20);
}

static void teardown(void)
{
    arena_free(arena);
}

TestSuite(cursor, .init = setup, .fini = teardown);

Test(cursor, comes_back_unchanged)
{
    struct str keys[] = {STR("gpu-17-03"), STR(""), STR("1764598000123456:42"), STR("naïve")};
    for (size_t i = 0; i < COUNTOF(keys); i++) {
        struct str back;
        struct str text = cursor_encode(arena, STR("/api/v1/nodes&state=x"), keys[i]);
        cr_assert(cursor_decode(arena, STR("/api/v1/nodes&state=x"), text, &back), "case %zu", i);
        cr_assert(str_eq(back, keys[i]), "case %zu", i);
    }
}

Test(cursor, of_other_filters_is_refused)
{
    struct str back;
    struct str text = cursor_encode(arena, STR("/a&state=x"), STR("k"));
    cr_assert_not(cursor_decode(arena, STR("/a&state=y"), text, &back));
    cr_assert_not(cursor_decode(arena, STR("/b&state=x"), text, &back));
    cr_assert_not(cursor_decode(arena, STR("/a"), text, &back));
}

Test(cursor, that_is_damaged_is_refused)
{
    struct str back;
    struct str good = cursor_encode(arena, STR("/a"), STR("keys"));
    struct str bad[] = {
        STR(""),
        STR("x"),
        STR("!!!!"),
        STR("AAAA"),
        {good.ptr, good.len - 1},
        {good.ptr, 8},
        {good.ptr + 1, good.len - 1},
    };
    for (size_t i = 0; i < COUNTOF(bad); i++) {
        /* A cut one may still be whole base64: then its hash or its keys differ. */
        bool taken = cursor_decode(arena, STR("/a"), bad[i], &back);
        cr_assert(!taken || back.len < 4, "case %zu", i);
    }
}

Test(cursor, whose_keys_are_no_text_is_refused)
{
    struct str back;
    struct str text = cursor_encode(arena, STR("/a"), (struct str){"\xff\xfe", 2});
    cr_assert_not(cursor_decode(arena, STR("/a"), text, &back));
    text = cursor_encode(arena, STR("/a"), (struct str){"a\0b", 3});
    cr_assert_not(cursor_decode(arena, STR("/a"), text, &back));
}

Test(cursor, that_is_too_long_is_refused)
{
    struct str back;
    char *long_text = arena_alloc(arena, 100000);
    for (size_t i = 0; i < 100000; i++) {
        long_text[i] = 'A';
    }
    cr_assert_not(cursor_decode(arena, STR("/a"), (struct str){long_text, 100000}, &back));
}
