/* Promises of base/err.h. */
#include <criterion/criterion.h>
#include <string.h>

#include "base/err.h"

Test(err, every_kind_has_a_status_a_code_and_a_title)
{
    for (int err = ERR_NONE + 1; err < ERR_COUNT; err++) {
        const struct err_info *info = err_info((enum err)err);

        cr_assert_geq(info->status, 400, "kind %d", err);
        cr_assert_leq(info->status, 599, "kind %d", err);
        cr_assert_gt(strlen(info->title), 0, "kind %d", err);
        cr_assert_neq(info->title[strlen(info->title) - 1], '.', "kind %d", err);
        cr_assert_eq(strspn(info->code, "abcdefghijklmnopqrstuvwxyz_"), strlen(info->code),
                     "code %s", info->code);
    }
}

Test(err, no_two_kinds_share_a_code)
{
    for (int a = ERR_NONE + 1; a < ERR_COUNT; a++) {
        for (int b = a + 1; b < ERR_COUNT; b++) {
            cr_assert_str_neq(err_info((enum err)a)->code, err_info((enum err)b)->code);
        }
    }
}

Test(err, an_unknown_kind_is_shown_as_internal)
{
    const struct err_info *internal = err_info(ERR_INTERNAL);

    cr_assert_eq(err_info(ERR_NONE), internal);
    cr_assert_eq(err_info(ERR_COUNT), internal);
    cr_assert_eq(err_info((enum err) - 1), internal);
    cr_assert_eq(internal->status, 500);
}
