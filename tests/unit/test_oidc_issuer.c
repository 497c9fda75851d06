/* Promises of oidc/issuer.h. */
#include <criterion/criterion.h>
#include <string.h>

#include "oidc/alg.h"
#include "oidc/issuer.h"

static struct arena *arena;

static void make_arena(void)
{
    arena = arena_new(4U << 20);
}

static void drop_arena(void)
{
    arena_free(arena);
}

TestSuite(oidc_issuer, .init = make_arena, .fini = drop_arena);

/* The pointer of the first error, "" when there is none, NULL when the text is no JSON. */
static const char *read_issuer(const char *text, struct oidc_issuer *ret)
{
    static struct decode_errors errors;
    const char *detail = NULL;
    errors = (struct decode_errors){0};
    struct oidc_issuer_source source = {.text = str_of(text)};
    enum err err = oidc_issuer_read(arena, &source, ret, &errors, &detail);
    if (err == ERR_NONE) {
        return "";
    }
    return errors.count > 0 ? errors.items[0].pointer : NULL;
}

Test(oidc_issuer, what_is_not_said_has_a_safe_default)
{
    struct oidc_issuer issuer;
    cr_assert_str_eq(read_issuer("{\"issuer\":\"https://i.test\",\"client_id\":\"c\"}", &issuer),
                     "");
    cr_assert(str_eq_c(issuer.audiences.items[0], "c") && issuer.audiences.count == 1);
    cr_assert(str_eq_c(issuer.username.path[0], "sub") &&
              str_eq_c(issuer.groups.path[0], "groups"));
    cr_assert_eq(issuer.leeway_s, 60);
    cr_assert_eq(issuer.max_lifetime_s, 86400);
    cr_assert_eq(issuer.algs, JOSE_ALGS_ALL);
    cr_assert_eq(issuer.quirks, 0);
}

Test(oidc_issuer, wrong_fields_are_named)
{
#define BASE "\"issuer\":\"https://i.test\",\"audiences\":[\"a\"]"
    static const struct {
        const char *text;
        const char *pointer;
    } rows[] = {
        {"{\"issuer\":\"https://i.test\"}", "#/audiences"},
        {"{\"audiences\":[\"a\"]}", "#/issuer"},
        {"{\"issuer\":\"http://i.test\",\"audiences\":[\"a\"]}", "#/issuer"},
        {"{\"issuer\":\"https://127.0.0.1\",\"audiences\":[\"a\"]}", "#/issuer"},
        {"{" BASE ",\"nope\":1}", "#/nope"},
        {"{" BASE ",\"algorithms\":[\"HS256\"]}", "#/algorithms/0"},
        {"{" BASE ",\"algorithms\":[\"none\"]}", "#/algorithms/0"},
        {"{" BASE ",\"leeway_s\":61}", "#/leeway_s"},
        {"{" BASE ",\"max_lifetime_s\":1}", "#/max_lifetime_s"},
        {"{" BASE ",\"username_prefix\":\"\"}", "#/username_prefix"},
        {"{" BASE ",\"groups_claim\":\"g\",\"groups_path\":\"a.b\"}", "#/groups_path"},
        {"{" BASE ",\"groups_path\":\"a..b\"}", "#/groups_path"},
        {"{" BASE ",\"required_claims\":{\"hd\":1}}", "#/required_claims"},
        {"{" BASE ",\"entra_tenants\":[\"11111111-1111-1111-1111-111111111111\"]}",
         "#/entra_tenants"},
        {"{" BASE ",\"quirks\":[\"trust_me\"]}", "#/quirks/0"},
    };
    for (size_t i = 0; i < COUNTOF(rows); i++) {
        struct oidc_issuer issuer;
        const char *pointer = read_issuer(rows[i].text, &issuer);
        cr_expect(pointer != NULL && strcmp(pointer, rows[i].pointer) == 0, "row %zu: %s", i,
                  pointer != NULL ? pointer : "not JSON");
    }
}

Test(oidc_issuer, addresses_are_judged_as_they_stand)
{
    static const char *const bad[] = {
        "",
        "i.test",
        "http://i.test",
        "https://",
        "https://u:p@i.test",
        "https://i.test?x=1",
        "https://i.test#f",
        "https://i.test/ x",
        "https:///x",
        "https://i.test\\@x",
        "https://i.test/\n",
    };
    for (size_t i = 0; i < COUNTOF(bad); i++) {
        cr_expect_not_null(oidc_url_problem(str_of(bad[i])), "%s", bad[i]);
    }
    cr_assert_null(oidc_url_problem(STR("https://i.test:8443/t/v2.0/")));
    cr_assert_null(oidc_url_problem(STR("https://[2001:db8::1]/")));
    static const char *const private[] = {
        "https://127.0.0.1", "https://10.0.0.1:8443/x", "https://169.254.169.254",
        "https://[::1]/",    "https://2130706433",      "https://0x7f.1",
        "https://[fd00::1]",
    };
    for (size_t i = 0; i < COUNTOF(private); i++) {
        cr_expect(oidc_url_is_private(str_of(private[i])), "%s", private[i]);
    }
    cr_assert_not(oidc_url_is_private(STR("https://8.8.8.8")));
    cr_assert_not(oidc_url_is_private(STR("https://i.test")));
}

Test(oidc_issuer, a_path_has_plain_and_bracketed_parts)
{
    struct oidc_mapping mapping;
    cr_assert(oidc_path_parse(STR("realm_access.roles"), &mapping) && mapping.path_len == 2);
    cr_assert(oidc_path_parse(STR("a[\"b.c\"].d['e']"), &mapping) && mapping.path_len == 4);
    cr_assert(str_eq_c(mapping.path[1], "b.c") && str_eq_c(mapping.path[3], "e"));
    cr_assert(oidc_path_parse(STR("[\"https://x.test/groups\"]"), &mapping));
    cr_assert(str_eq_c(mapping.path[0], "https://x.test/groups"));
    static const char *const bad[] = {"",   ".",    "a.",     ".a",      "a..b",
                                      "a[", "a[b]", "a[\"b]", "a[\"\"]", "a.b.c.d.e.f.g.h.i"};
    for (size_t i = 0; i < COUNTOF(bad); i++) {
        cr_expect_not(oidc_path_parse(str_of(bad[i]), &mapping), "%s", bad[i]);
    }
}

#define TENANT "11111111-1111-1111-1111-111111111111"

Test(oidc_issuer, iss_is_compared_byte_for_byte_but_for_two_exceptions)
{
    struct str tenants[] = {STR(TENANT)};
    struct oidc_issuer issuer = {.url = STR("https://i.test/")};
    cr_assert(oidc_issuer_matches(&issuer, STR("https://i.test/"), STR("")));
    cr_assert_not(oidc_issuer_matches(&issuer, STR("https://i.test"), STR("")));
    cr_assert_not(oidc_issuer_matches(&issuer, STR("https://I.test/"), STR("")));
    issuer.url = STR("https://accounts.google.com");
    cr_assert(oidc_issuer_matches(&issuer, STR("accounts.google.com"), STR("")));
    issuer.url = STR("https://login.microsoftonline.com/common/v2.0");
    struct str iss = STR("https://login.microsoftonline.com/" TENANT "/v2.0");
    cr_assert_not(oidc_issuer_matches(&issuer, iss, STR(TENANT)), "no tenant is listed");
    issuer.entra_tenants = (struct str_list){tenants, 1};
    cr_assert(oidc_issuer_matches(&issuer, iss, STR(TENANT)));
    cr_assert_not(oidc_issuer_matches(&issuer, iss, STR("")));
    cr_assert_not(
        oidc_issuer_matches(&issuer, STR("https://login.microsoftonline.com/"), STR("x")));
}
