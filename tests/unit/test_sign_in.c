/* Promises of server/sign_in.h. */
#include <criterion/criterion.h>
#include <string.h>

#include "server/sign_in.h"

static struct arena *arena;

static void make_arena(void)
{
    arena = arena_new((size_t)1 << 20);
}

static void drop_arena(void)
{
    arena_free(arena);
}

TestSuite(sign_in, .init = make_arena, .fini = drop_arena);

Test(sign_in, a_try_is_resumed_from_its_state_and_the_browsers_secret)
{
    struct sign_in_try begun;
    struct sign_in_try again;
    sign_in_begin(&begun);
    cr_assert(sign_in_resume(str_of(begun.state), str_of(begun.browser), &again));
    cr_assert_eq(memcmp(&begun, &again, sizeof begun), 0);
}

Test(sign_in, no_two_tries_share_a_secret)
{
    struct sign_in_try one;
    struct sign_in_try two;
    sign_in_begin(&one);
    sign_in_begin(&two);
    const char *all[] = {one.state, one.browser, one.nonce, one.verifier, one.challenge,
                         two.state, two.browser, two.nonce, two.verifier, two.challenge};
    for (size_t i = 0; i < COUNTOF(all); i++) {
        cr_assert_eq(strlen(all[i]), SIGN_IN_SECRET_LEN);
        for (size_t k = i + 1; k < COUNTOF(all); k++) {
            cr_assert_str_neq(all[i], all[k]);
        }
    }
}

Test(sign_in, a_secret_of_another_shape_is_refused)
{
    struct sign_in_try begun;
    struct sign_in_try again;
    sign_in_begin(&begun);
    cr_assert_not(sign_in_resume(STR(""), str_of(begun.browser), &again));
    cr_assert_not(sign_in_resume(str_of(begun.state), STR("short"), &again));
    begun.browser[3] = '=';
    cr_assert_not(sign_in_resume(str_of(begun.state), str_of(begun.browser), &again));
}

Test(sign_in, the_challenge_is_the_verifiers_hash)
{
    /* RFC 7636 appendix B has the pair; here the pair of a try is held to the same rule. */
    struct sign_in_try begun;
    uint8_t hash[SHA256_LEN];
    char wanted[SIGN_IN_SECRET_LEN + 1];
    sign_in_begin(&begun);
    crypto_sha256(str_of(begun.verifier), hash);
    crypto_b64(hash, sizeof hash, wanted);
    cr_assert_str_eq(begun.challenge, wanted);
}

Test(sign_in, only_our_own_pages_are_returned_to)
{
    static const struct {
        const char *wanted;
        const char *got;
    } cases[] = {
        {"/", "/"},
        {"/clusters/1?tab=nodes&a=%2F", "/clusters/1?tab=nodes&a=%2F"},
        {"/device?user_code=ABCD-EFGH", "/device?user_code=ABCD-EFGH"},
        {"", "/"},
        {"//evil.example.test", "/"},
        {"/\\evil.example.test", "/"},
        {"https://evil.example.test", "/"},
        {"/%2f%5cevil.example.test/a?https://cp.example.test/", "/"},
        {"/%5Cevil.example.test", "/"},
        {"/a//evil.example.test", "/"},
        {"javascript:alert(1)", "/"},
        {"clusters", "/"},
        {"/a\r\nSet-Cookie: x=1", "/"},
        {"/a\tb", "/"},
        {"/\xc3\xa4", "/"},
        {"/auth/sign-in/x", "/"},
        {"/api/v1/me", "/"},
    };
    for (size_t i = 0; i < COUNTOF(cases); i++) {
        struct str got = sign_in_return_to(str_of(cases[i].wanted));
        cr_assert(str_eq_c(got, cases[i].got), "%s gave %.*s", cases[i].wanted, STR_FMT(got));
    }
    char *longer = arena_alloc(arena, SIGN_IN_RETURN_MAX + 1);
    memset(longer, 'a', SIGN_IN_RETURN_MAX + 1);
    longer[0] = '/';
    cr_assert(str_eq_c(sign_in_return_to((struct str){longer, SIGN_IN_RETURN_MAX + 1}), "/"));
}

Test(sign_in, an_answer_may_hold_foreign_parameters)
{
    struct sign_in_answer answer;
    cr_assert(sign_in_read_answer(arena, STR("code=a%2Fb&state=s&session_state=x&scope=a+b&iss=i"),
                                  &answer));
    cr_assert(str_eq_c(answer.code, "a/b") && str_eq_c(answer.state, "s"));
    cr_assert(str_eq_c(answer.iss, "i"));
    cr_assert_null(answer.error.ptr);
}

Test(sign_in, an_answer_with_a_parameter_twice_is_refused)
{
    static const char *const queries[] = {
        "code=a&code=b&state=s",   "code=a&state=s&state=s",  "code=a&state=s&iss=a&iss=b",
        "error=x&error=y&state=s", "code=a&state=s&%63ode=b", "code=%zz&state=s",
        "code=a&state=s&%00=b",
    };
    struct sign_in_answer answer;
    for (size_t i = 0; i < COUNTOF(queries); i++) {
        cr_assert_not(sign_in_read_answer(arena, str_of(queries[i]), &answer), "%s", queries[i]);
    }
}

Test(sign_in, an_answer_cannot_hide_a_double_behind_foreign_parameters)
{
    struct sign_in_answer answer;
    CLEANUP(buf_free) struct buf query = {0};
    for (int i = 0; i < 40; i++) {
        buf_printf(&query, "x%d=1&", i);
    }
    buf_add_c(&query, "code=a&code=b&state=s");
    cr_assert_not(sign_in_read_answer(arena, buf_str(&query), &answer));
}

Test(sign_in, the_address_has_all_that_protects_the_flow)
{
    static const struct str scopes[] = {{"openid", 6}, {"email", 5}};
    const struct sign_in_request request = {
        .endpoint = STR("https://idp.example/auth"),
        .client_id = STR("a b&c"),
        .redirect_uri = "https://muster.example/auth/callback",
        .scopes = scopes,
        .scope_count = COUNTOF(scopes),
    };
    struct sign_in_try attempt;
    CLEANUP(buf_free) struct buf url = {0};
    sign_in_begin(&attempt);
    sign_in_write_url(&request, &attempt, &url);
    const char *wanted = arena_printf(
        arena,
        "https://idp.example/auth?response_type=code&client_id=a%%20b%%26c&redirect_uri="
        "https%%3A%%2F%%2Fmuster.example%%2Fauth%%2Fcallback&scope=openid%%20email&state=%s&"
        "nonce=%s&code_challenge=%s&code_challenge_method=S256",
        attempt.state, attempt.nonce, attempt.challenge);
    cr_assert_str_eq(url.ptr, wanted);
    cr_assert_null(strstr(url.ptr, attempt.verifier));
    cr_assert_null(strstr(url.ptr, attempt.browser));
}

Test(sign_in, an_endpoint_may_have_a_query_of_its_own)
{
    CLEANUP(buf_free) struct buf url = {0};
    buf_add_c(&url, "https://idp.example/auth?p=policy");
    sign_in_add_field(&url, true, "a", STR("1"));
    cr_assert_str_eq(url.ptr, "https://idp.example/auth?p=policy&a=1");
}

Test(sign_in, several_tabs_have_a_cookie_each)
{
    char one[SIGN_IN_COOKIE_NAME_MAX];
    char two[SIGN_IN_COOKIE_NAME_MAX];
    sign_in_cookie_name(STR("state-1"), true, one);
    sign_in_cookie_name(STR("state-2"), true, two);
    cr_assert_str_neq(one, two);
    cr_assert_eq(strncmp(one, "__Host-", 7), 0);
    struct str cookies =
        str_of(arena_printf(arena, "a=b; %s=first; __Host-muster=x; %s=second", one, two));
    cr_assert(str_eq_c(sign_in_cookie(cookies, STR("state-1"), true), "first"));
    cr_assert(str_eq_c(sign_in_cookie(cookies, STR("state-2"), true), "second"));
    cr_assert_null(sign_in_cookie(cookies, STR("state-3"), true).ptr);
    cr_assert_null(sign_in_cookie(cookies, STR("state-1"), false).ptr);
    struct str doubled = str_of(arena_printf(arena, "%s=first; %s=second", one, one));
    cr_assert_null(sign_in_cookie(doubled, STR("state-1"), true).ptr);
}

Test(sign_in, a_browser_keeps_at_most_eight_tries)
{
    CLEANUP(buf_free) struct buf cookies = {0};
    struct str names[SIGN_IN_TABS_MAX];
    for (int i = 0; i < SIGN_IN_TABS_MAX - 1; i++) {
        buf_printf(&cookies, "muster_login_%d=x; ", i);
    }
    cr_assert_eq(sign_in_stale_cookies(buf_str(&cookies), false, names), 0);
    buf_add_c(&cookies, "muster_login_7=x; muster_login_8=x; other=1");
    cr_assert_eq(sign_in_stale_cookies(buf_str(&cookies), false, names), 2);
    cr_assert(str_eq_c(names[0], "muster_login_0") && str_eq_c(names[1], "muster_login_1"));
}
