/* Promises of server/webhook_sign.h. */
#include <criterion/criterion.h>
#include <string.h>

#include "server/webhook_sign.h"

/* The example of Standard Webhooks' own documents. */
#define SECRET "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
#define ID "msg_p5jXN8AQM9LWM0D4loKWxJek"
#define AT 1614265330
#define BODY "{\"test\": 2432232314}"
#define SIGNATURE "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="

static struct arena *arena;

static void set_up(void)
{
    arena = arena_new(1 << 16);
}

static void tear_down(void)
{
    arena_free(arena);
}

TestSuite(webhook_sign, .init = set_up, .fini = tear_down);

static struct str known_key(void)
{
    struct str key = {0};
    cr_assert(webhook_secret_key(arena, STR(SECRET), &key));
    return key;
}

Test(webhook_sign, a_signature_is_that_of_the_standard)
{
    char text[WEBHOOK_SIGNATURE_CAP];
    webhook_sign(known_key(), STR(ID), AT, STR(BODY), text);
    cr_assert_str_eq(text, SIGNATURE);
}

Test(webhook_sign, one_right_signature_among_several_is_enough)
{
    struct str key = known_key();
    cr_assert(webhook_verify(key, STR(ID), AT, STR(BODY), STR("v1,AAAA " SIGNATURE)));
    cr_assert_not(webhook_verify(key, STR(ID), AT, STR(BODY), STR("v1,AAAA v2,BBBB")));
    cr_assert_not(webhook_verify(key, STR(ID), AT, STR(BODY), STR("")));
}

Test(webhook_sign, another_id_time_or_body_is_refused)
{
    struct str key = known_key();
    cr_assert_not(webhook_verify(key, STR("msg_x"), AT, STR(BODY), STR(SIGNATURE)));
    cr_assert_not(webhook_verify(key, STR(ID), AT + 1, STR(BODY), STR(SIGNATURE)));
    cr_assert_not(webhook_verify(key, STR(ID), AT, STR("{}"), STR(SIGNATURE)));
}

Test(webhook_sign, a_secret_as_text_gives_its_key_back)
{
    char text[WEBHOOK_SECRET_CAP];
    char bytes[WEBHOOK_KEY_LEN];
    struct str key = {bytes, sizeof(bytes)};
    struct str back = {0};
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (char)(251 + i * 7);
    }
    webhook_secret_text(key, text);
    cr_assert(webhook_secret_key(arena, str_of(text), &back));
    cr_assert(str_eq(back, key));
}

Test(webhook_sign, what_is_no_secret_is_refused)
{
    static const char *const texts[] = {"", "whsec_", "whsec_!!!", "whsec_YWJj",
                                        "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"};
    struct str key;
    for (size_t i = 0; i < COUNTOF(texts); i++) {
        cr_expect_not(webhook_secret_key(arena, str_of(texts[i]), &key), "%zu", i);
    }
}

Test(webhook_sign, the_pauses_between_tries_fill_three_days)
{
    int64_t sum = 0;
    int tries = 0;
    while (sum < 72 * 3600) {
        int64_t pause = webhook_pause_s(++tries);
        cr_assert(pause >= 5 && pause <= 8 * 3600);
        cr_assert_geq(webhook_pause_s(tries + 1), pause);
        sum += pause;
    }
    cr_assert_leq(tries, 20);
}
