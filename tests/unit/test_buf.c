/* Promises of base/buf.h. */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"

Test(buf, what_is_added_stands_in_order_and_ends_with_nul)
{
    CLEANUP(buf_free) struct buf buf = {0};

    buf_add(&buf, "ab\0c", 4);
    buf_add_char(&buf, 'd');
    buf_add_c(&buf, "ef");
    buf_printf(&buf, "%d", 42);
    cr_assert_eq(buf.len, 9);
    cr_assert_eq(memcmp(buf.ptr, "ab\0cdef42", 10), 0);
}

Test(buf, it_grows_over_many_adds)
{
    CLEANUP(buf_free) struct buf buf = {0};

    for (int i = 0; i < 100000; i++) {
        buf_add_char(&buf, (char)('a' + i % 26));
    }
    cr_assert_eq(buf.len, 100000);
    for (size_t i = 0; i < buf.len; i++) {
        cr_assert_eq(buf.ptr[i], (char)('a' + i % 26));
    }
}

Test(buf, printf_is_not_cut_at_the_present_room)
{
    CLEANUP(buf_free) struct buf buf = {0};

    buf_add_c(&buf, "x");
    buf_printf(&buf, "%0*d", 5000, 3);
    cr_assert_eq(buf.len, 5001);
    cr_assert_eq(strlen(buf.ptr), 5001);
}

Test(buf, clear_keeps_the_memory_and_empties_the_text)
{
    CLEANUP(buf_free) struct buf buf = {0};
    char *before;

    buf_add_c(&buf, "secret");
    before = buf.ptr;
    buf_clear(&buf);
    cr_assert_eq(buf.len, 0);
    cr_assert_eq(buf.ptr, before);
    cr_assert_str_eq(buf.ptr, "");
}

Test(buf, a_freed_buf_can_be_used_again)
{
    struct buf buf = {0};

    buf_add_c(&buf, "one");
    buf_free(&buf);
    cr_assert_null(buf.ptr);
    buf_add_c(&buf, "two");
    cr_assert(str_eq(buf_str(&buf), STR("two")));
    buf_free(&buf);
}

Test(buf, adding_nothing_makes_an_empty_text)
{
    CLEANUP(buf_free) struct buf buf = {0};

    buf_add(&buf, NULL, 0);
    cr_assert_str_eq(buf.ptr, "");
}

Test(buf, an_impossible_size_stops_the_program, .signal = SIGABRT)
{
    struct buf buf = {0};

    buf_reserve(&buf, SIZE_MAX - 4);
}
