/* Promises of oidc/jose.h. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/crypto.h"
#include "oidc/jose.h"

static struct arena *arena;

static void make_arena(void)
{
    arena = arena_new(JOSE_ARENA_CAP);
}

static void drop_arena(void)
{
    arena_free(arena);
}

TestSuite(oidc_jose, .init = make_arena, .fini = drop_arena);

/* header.e30.AA with this header text. */
static struct str token_with(const char *header)
{
    char *text = arena_alloc(arena, crypto_b64_len(strlen(header)) + 16);
    crypto_b64(header, strlen(header), text);
    (void)memcpy(text + strlen(text), ".e30.AA", sizeof(".e30.AA"));
    return str_of(text);
}

static enum oidc_reason parse(struct str token, struct jws *ret)
{
    const char *detail = NULL;
    enum oidc_reason reason = jws_parse(arena, token, ret, &detail);
    cr_assert(reason == OIDC_OK || (detail != NULL && detail[0] != '\0'), "a refusal says why");
    return reason;
}

Test(oidc_jose, a_header_is_read)
{
    struct jws jws;
    struct str token =
        token_with("{\"alg\":\"ES256\",\"kid\":\"k\",\"typ\":\"JWT\",\"jku\":\"x\"}");
    cr_assert_eq(parse(token, &jws), OIDC_OK);
    cr_assert_eq(jws.alg, JOSE_ES256);
    cr_assert(jws.has_kid && str_eq_c(jws.kid, "k") && str_eq_c(jws.typ, "JWT"));
    cr_assert(str_eq_c(jws.payload, "{}") && jws.signature.len == 1);
    cr_assert_eq(jws.signing_input.len, token.len - strlen(".AA"));
}

Test(oidc_jose, headers_that_are_refused)
{
    static const struct {
        const char *header;
        enum oidc_reason reason;
    } rows[] = {
        {"{\"alg\":\"none\"}", OIDC_ALG_NOT_ALLOWED},
        {"{\"alg\":\"NoNe\"}", OIDC_ALG_NOT_ALLOWED},
        {"{\"alg\":\"HS256\"}", OIDC_ALG_NOT_ALLOWED},
        {"{\"alg\":\"rs256\"}", OIDC_ALG_NOT_ALLOWED},
        {"{}", OIDC_ALG_NOT_ALLOWED},
        {"{\"alg\":1}", OIDC_BAD_FORMAT},
        {"{\"alg\":\"RS256\",\"kid\":1}", OIDC_BAD_FORMAT},
        {"{\"alg\":\"RS256\",\"kid\":\"a\\u0000b\"}", OIDC_BAD_FORMAT},
        {"{\"alg\":\"RS256\",\"typ\":null}", OIDC_BAD_FORMAT},
        {"{\"alg\":\"RS256\",\"alg\":\"none\"}", OIDC_BAD_FORMAT},
        {"{\"alg\":\"RS256\",\"\\u0061lg\":\"none\"}", OIDC_BAD_FORMAT},
        {"{\"alg\":\"RS256\"} {}", OIDC_BAD_FORMAT},
        {"[\"RS256\"]", OIDC_BAD_FORMAT},
        {"", OIDC_BAD_FORMAT},
        {"{\"alg\":\"RS256\",\"crit\":[\"exp\"]}", OIDC_CRIT_UNSUPPORTED},
        {"{\"alg\":\"RS256\",\"crit\":[]}", OIDC_CRIT_UNSUPPORTED},
        {"{\"alg\":\"RS256\",\"crit\":null}", OIDC_CRIT_UNSUPPORTED},
        {"{\"alg\":\"RS256\",\"b64\":false}", OIDC_CRIT_UNSUPPORTED},
        {"{\"alg\":\"RS256\",\"b64\":\"true\"}", OIDC_CRIT_UNSUPPORTED},
    };
    for (size_t i = 0; i < COUNTOF(rows); i++) {
        struct jws jws;
        cr_expect_eq(parse(token_with(rows[i].header), &jws), rows[i].reason, "row %zu: %s", i,
                     rows[i].header);
    }
}

Test(oidc_jose, only_the_strict_compact_form_is_read)
{
    static const char *const bad[] = {
        "",
        ".",
        "..",
        "a.b",
        "a.b.c.d",
        "e30.e30",
        "e30=.e30.AA",
        "e30.e30.AA==",
        "e30.e30.AA\n",
        " e30.e30.AA",
        "e30.e3+.AA",
        "e30.e3/.AA",
        "e30.e3?.AA",
        "e30.e30.AB",
        "e30.e30.A",
        "{\"payload\":\"e30\"}",
    };
    for (size_t i = 0; i < COUNTOF(bad); i++) {
        struct jws jws;
        cr_expect_eq(parse(str_of(bad[i]), &jws), OIDC_BAD_FORMAT, "row %zu: %s", i, bad[i]);
    }
}

Test(oidc_jose, a_long_token_is_too_large_and_a_flood_of_dots_is_malformed)
{
    CLEANUP(buf_free) struct buf text = {0};
    struct jws jws;
    for (size_t i = 0; i <= JOSE_TOKEN_MAX; i++) {
        buf_add_char(&text, i == 20 || i == 40 ? '.' : 'A');
    }
    cr_assert_eq(parse(buf_str(&text), &jws), OIDC_TOO_LARGE);
    size_t used = arena_used(arena);
    memset(text.ptr, '.', text.len);
    cr_assert_eq(parse(buf_str(&text), &jws), OIDC_BAD_FORMAT);
    cr_assert_eq(arena_used(arena), used, "dots cost no memory");
}

Test(oidc_jose, quoted_text_is_fit_to_be_shown)
{
    cr_assert_str_eq(jose_quote(arena, STR("a\nb\x7f\xc2\x85\xff\xc3\xa9")), "a?b???\xc3\xa9");
    char text[500];
    memset(text, 'x', sizeof(text));
    cr_assert_eq(strlen(jose_quote(arena, (struct str){text, sizeof(text)})), 203);
}
