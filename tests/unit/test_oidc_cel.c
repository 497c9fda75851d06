/* Promises of oidc/cel.h. */
#include <criterion/criterion.h>
#include <string.h>

#include "base/buf.h"
#include "oidc/cel.h"

static struct arena *arena;

static void make_arena(void)
{
    arena = arena_new(64U << 20);
}

static void drop_arena(void)
{
    arena_free(arena);
}

TestSuite(oidc_cel, .init = make_arena, .fini = drop_arena);

static const struct cel *compile(const char *text, enum cel_env env)
{
    bool unknown;
    const char *error = "";
    const struct cel *cel = cel_compile(arena, str_of(text), env, &unknown, &error);
    cr_assert_not_null(cel, "%s: %s", text, error);
    return cel;
}

/* Runs over these claims; false when it fails. */
static bool run(const char *text, const char *claims, struct cel_run *state, struct cel_value *ret)
{
    json_t *json = json_loads(claims, JSON_DECODE_INT_AS_REAL, NULL);
    cel_run_init(state, arena);
    cr_assert(cel_from_json(state, json, &state->claims));
    bool good = cel_eval(state, compile(text, CEL_ENV_CLAIMS), ret);
    json_decref(json);
    return good;
}

Test(oidc_cel, types_are_known_before_it_runs)
{
    static const struct {
        const char *text;
        enum cel_kind kind;
    } rows[] = {
        {"true", CEL_BOOL},
        {"1 + 2", CEL_INT},
        {"1.5", CEL_DOUBLE},
        {"'a' + 'b'", CEL_STRING},
        {"[1, 2]", CEL_LIST},
        {"claims", CEL_MAP},
        {"claims.x", CEL_ANY},
        {"claims.x.y", CEL_DYN},
        {"claims.?x", CEL_OPTIONAL},
        {"claims.?x.orValue('d')", CEL_ANY},
        {"claims.x == 1", CEL_BOOL},
        {"has(claims.x)", CEL_BOOL},
        {"'a' in claims.x", CEL_BOOL},
        {"dyn(claims.x).map(g, 'p' + g)", CEL_LIST},
        {"claims.x ? 'a' : 'b'", CEL_STRING},
        {"-(1) < 2 // a comment", CEL_BOOL},
    };
    for (size_t i = 0; i < COUNTOF(rows); i++) {
        cr_expect_eq(cel_type(compile(rows[i].text, CEL_ENV_CLAIMS)), rows[i].kind, "%s",
                     rows[i].text);
    }
    cr_expect_eq(cel_item_type(compile("dyn(claims.x).map(g, 'p')", CEL_ENV_CLAIMS)), CEL_STRING);
}

Test(oidc_cel, what_is_wrong_is_refused_with_its_place)
{
    static const struct {
        const char *text;
        bool unknown;
    } rows[] = {
        {"", false},
        {"1 +", false},
        {"user.name", false},
        {"'a' + 1", false},
        {"1 == 'a'", false},
        {"!'a'", false},
        {"'a' && true", false},
        {"claims.x.all(g, true)", false},
        {"nope(1)", true},
        {"'a'.startsWith(1)", false},
        {"size(1)", false},
        {"has(claims)", false},
        {"'\\q'", false},
        {"'a", false},
        {"claims.", false},
        {"a b", false},
        {"[1, 2", false},
        {"99999999999999999999", false},
        {"{1: 2}", true},
        {"true ? 1 : 'a'", false},
        {"1 < 'a'", false},
        {"'\\ud800'", false},
        {"1 ? 2 : 3", false},
    };
    for (size_t i = 0; i < COUNTOF(rows); i++) {
        bool unknown = false;
        const char *error = NULL;
        cr_expect_null(cel_compile(arena, str_of(rows[i].text), CEL_ENV_CLAIMS, &unknown, &error),
                       "%s", rows[i].text);
        cr_expect(error != NULL && error[0] != '\0', "%s", rows[i].text);
        cr_expect_eq(unknown, rows[i].unknown, "%s: %s", rows[i].text, error);
    }
}

Test(oidc_cel, the_variables_are_those_of_the_place)
{
    bool unknown;
    const char *error;
    cr_assert_not_null(compile("user.groups.all(g, g != user.username)", CEL_ENV_USER));
    cr_assert_null(cel_compile(arena, STR("claims.sub"), CEL_ENV_USER, &unknown, &error));
    cr_assert_null(cel_compile(arena, STR("user.nope"), CEL_ENV_USER, &unknown, &error));
}

Test(oidc_cel, a_missing_key_is_told_from_other_failures)
{
    struct cel_run state;
    struct cel_value value;
    cr_assert_not(run("claims.a.b", "{\"a\":{}}", &state, &value));
    cr_assert(state.missing && str_eq_c(state.missing_key, "b"));
    cr_assert_not(run("claims.a + 1 == 2", "{\"a\":\"x\"}", &state, &value));
    cr_assert_not(state.missing);
}

Test(oidc_cel, what_decides_hides_a_failure_beside_it)
{
    struct cel_run state;
    struct cel_value value;
    cr_assert(run("claims.a == 1 || true", "{}", &state, &value) && value.flag);
    cr_assert(run("false && claims.a == 1", "{}", &state, &value) && !value.flag);
    cr_assert_not(run("claims.a == 1 && true", "{}", &state, &value));
    cr_assert(run("[1, 2].exists(x, x == 2 || x == claims.a)", "{}", &state, &value) && value.flag);
}

Test(oidc_cel, whole_numbers_stay_whole)
{
    struct cel_run state;
    struct cel_value value;
    cr_assert(run("claims.n + 1", "{\"n\":1796000000}", &state, &value));
    cr_assert(value.kind == CEL_INT && value.number == 1796000001);
    cr_assert(run("claims.n * 2", "{\"n\":1.5}", &state, &value));
    cr_assert(value.kind == CEL_INT || value.kind == CEL_DOUBLE);
    cr_assert_not(run("9223372036854775807 + 1 == 0", "{}", &state, &value));
    cr_assert_not(run("1 / 0 == 0", "{}", &state, &value));
}

Test(oidc_cel, claims_that_are_read_are_seen_in_any_spelling)
{
    cr_assert(cel_uses_claim(compile("claims.email", CEL_ENV_CLAIMS), "email"));
    cr_assert(cel_uses_claim(compile("'a' + claims['email']", CEL_ENV_CLAIMS), "email"));
    cr_assert(cel_uses_claim(compile("claims.?email.orValue('')", CEL_ENV_CLAIMS), "email"));
    cr_assert(cel_uses_claim(compile("has(claims.email)", CEL_ENV_CLAIMS), "email"));
    cr_assert_not(cel_uses_claim(compile("claims.x.email", CEL_ENV_CLAIMS), "email"));
}

Test(oidc_cel, steps_and_memory_are_bounded)
{
    struct cel_run state;
    struct cel_value value;
    CLEANUP(buf_free) struct buf loops = {0};
    for (size_t i = 0; i < 10; i++) {
        buf_printf(&loops, "dyn(claims.l).all(v%zu,", i);
    }
    buf_add_c(&loops, "true))))))))))");
    cr_assert_not(run(loops.ptr, "{\"l\":[1,2,3,4,5,6,7,8,9]}", &state, &value));
    cr_assert_eq(state.steps_left * state.bytes_left, 0);
    buf_clear(&loops);
    buf_add_c(&loops, "claims.s");
    for (size_t i = 0; i < 200; i++) {
        buf_add_c(&loops, " + claims.s");
    }
    char claims[20000];
    memset(claims, 'x', sizeof(claims));
    memcpy(claims, "{\"s\":\"", 6);
    memcpy(claims + sizeof(claims) - 3, "\"}", 3);
    cr_assert_not(run(loops.ptr, claims, &state, &value));
    cr_assert_eq(state.bytes_left, 0);
}

Test(oidc_cel, deep_and_large_expressions_are_refused)
{
    CLEANUP(buf_free) struct buf text = {0};
    bool unknown;
    const char *error;
    for (size_t i = 0; i < 4000; i++) {
        buf_add_char(&text, i < 2000 ? '(' : ')');
    }
    cr_assert_null(cel_compile(arena, buf_str(&text), CEL_ENV_CLAIMS, &unknown, &error));
    buf_clear(&text);
    buf_add_c(&text, "1");
    for (size_t i = 0; i < 2000; i++) {
        buf_add_c(&text, "+1");
    }
    cr_assert_null(cel_compile(arena, buf_str(&text), CEL_ENV_CLAIMS, &unknown, &error));
}
