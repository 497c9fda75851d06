/* Requests that can be read in two ways are refused. */
#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>

#include "server/exchange.h"

Test(refuse, plain_addresses_pass)
{
    static const char *const good[] = {
        "/", "/api/v1/nodes?q=a%2Fb&x=%20", "/a%20b", "/a-._~!$&'()*+,;=:@b", "/x?a=b?c", "/%7e"};
    for (size_t i = 0; i < COUNTOF(good); i++) {
        const char *detail = NULL;
        cr_assert_eq(refuse_uri(str_of(good[i]), &detail), ERR_NONE, "case %zu", i);
    }
}

Test(refuse, odd_addresses_do_not)
{
    static const char *const bad[] = {
        "",       "a",     "*",     "http://h/", "/%00",  "/a%2fb",  "/a%2Fb",
        "/a%5Cb", "/%",    "/%4",   "/%zz",      "/a b",  "/a\tb",   "/a#b",
        "/a\\b",  "/\x7f", "/\x80", "/%0a",      "/?%00", "/?a=%1f",
    };
    for (size_t i = 0; i < COUNTOF(bad); i++) {
        const char *detail = NULL;
        cr_assert_eq(refuse_uri(str_of(bad[i]), &detail), ERR_BAD_REQUEST, "case %zu", i);
        cr_assert_not_null(detail, "case %zu", i);
    }
}

Test(refuse, an_address_of_8192_bytes_passes_and_one_more_does_not)
{
    char *uri = calloc(1, 8193);
    const char *detail = NULL;
    memset(uri, 'a', 8193);
    uri[0] = '/';
    cr_assert_eq(refuse_uri((struct str){uri, 8192}, &detail), ERR_NONE);
    cr_assert_eq(refuse_uri((struct str){uri, 8193}, &detail), ERR_URI_TOO_LONG);
    free(uri);
}

Test(refuse, a_header_that_may_stand_once_is_refused_twice)
{
    static const struct {
        const char *name;
        enum err again;
    } cases[] = {
        {"Host", ERR_BAD_REQUEST},
        {"host", ERR_BAD_REQUEST},
        {"Content-Length", ERR_BAD_REQUEST},
        {"AUTHORIZATION", ERR_BAD_REQUEST},
        {"Cookie", ERR_BAD_REQUEST},
        {"If-Match", ERR_BAD_REQUEST},
        {"Accept", ERR_NONE},
        {"X-Forwarded-For", ERR_NONE},
        {"X-Other", ERR_NONE},
    };
    for (size_t i = 0; i < COUNTOF(cases); i++) {
        struct str headers[HEADER_COUNT] = {{0}};
        const char *detail = NULL;
        struct str name = str_of(cases[i].name);
        cr_assert_eq(refuse_header(name, STR("1"), headers, &detail), ERR_NONE, "case %zu", i);
        cr_assert_eq(refuse_header(name, STR("1"), headers, &detail), cases[i].again, "case %zu",
                     i);
    }
}

Test(refuse, an_empty_header_counts_as_there)
{
    struct str headers[HEADER_COUNT] = {{0}};
    const char *detail = NULL;
    struct str none = {0};
    cr_assert_eq(refuse_header(STR("Authorization"), none, headers, &detail), ERR_NONE);
    cr_assert_not_null(headers[HEADER_AUTHORIZATION].ptr);
    cr_assert_eq(refuse_header(STR("Authorization"), STR("x"), headers, &detail), ERR_BAD_REQUEST);
}

Test(refuse, control_characters_in_headers_are_refused)
{
    struct str headers[HEADER_COUNT] = {{0}};
    const char *detail = NULL;
    cr_assert_eq(refuse_header(STR("X-A"), STR("a\tb"), headers, &detail), ERR_NONE);
    cr_assert_eq(refuse_header(STR("X-A"), STR("a\rb"), headers, &detail), ERR_BAD_REQUEST);
    cr_assert_eq(refuse_header(STR("X-A"), STR("a\x7f"), headers, &detail), ERR_BAD_REQUEST);
    cr_assert_eq(refuse_header(STR("X\x01"), STR("a"), headers, &detail), ERR_BAD_REQUEST);
}

Test(refuse, framing_has_one_reading)
{
    static const struct {
        const char *length;
        const char *coding;
        const char *host;
        enum err wanted;
    } cases[] = {
        {"5", NULL, "muster.example:8080", ERR_NONE},
        {NULL, "chunked", "[::1]:8080", ERR_NONE},
        {NULL, "Chunked", "h", ERR_NONE},
        {"5", "chunked", "h", ERR_BAD_REQUEST},
        {"+5", NULL, "h", ERR_BAD_REQUEST},
        {"5 ", NULL, "h", ERR_BAD_REQUEST},
        {"0x5", NULL, "h", ERR_BAD_REQUEST},
        {"5,5", NULL, "h", ERR_BAD_REQUEST},
        {"99999999999999999999", NULL, "h", ERR_BAD_REQUEST},
        {NULL, "chunked, gzip", "h", ERR_BAD_REQUEST},
        {NULL, "identity", "h", ERR_BAD_REQUEST},
        {NULL, NULL, "", ERR_BAD_REQUEST},
        {NULL, NULL, "a b", ERR_BAD_REQUEST},
        {NULL, NULL, "a/b", ERR_BAD_REQUEST},
        {NULL, NULL, "a@b", ERR_BAD_REQUEST},
    };
    for (size_t i = 0; i < COUNTOF(cases); i++) {
        struct str headers[HEADER_COUNT] = {{0}};
        const char *detail = NULL;
        headers[HEADER_CONTENT_LENGTH] = str_of(cases[i].length);
        headers[HEADER_TRANSFER_ENCODING] = str_of(cases[i].coding);
        headers[HEADER_HOST] = str_of(cases[i].host);
        cr_assert_eq(refuse_framing(headers, &detail), cases[i].wanted, "case %zu", i);
    }
}
