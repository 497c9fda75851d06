/* Compressed answers: what is chosen, and that it comes back. */
#include <criterion/criterion.h>

#include <brotli/decode.h>
#include <string.h>
#include <zlib.h>

#include "server/encoding.h"

Test(encoding, takes_the_best_that_is_accepted)
{
    static const struct {
        const char *accept;
        enum encoding wanted;
    } cases[] = {
        {NULL, ENCODING_IDENTITY},
        {"", ENCODING_IDENTITY},
        {"gzip", ENCODING_GZIP},
        {"gzip, deflate, br, zstd", ENCODING_BR},
        {"br;q=0, gzip", ENCODING_GZIP},
        {"br;q=0.000,gzip;q=0", ENCODING_IDENTITY},
        {"BR", ENCODING_BR},
        {"brotli", ENCODING_IDENTITY},
        {"gzip;q=0.1", ENCODING_GZIP},
        {"identity", ENCODING_IDENTITY},
        {"*", ENCODING_IDENTITY},
    };
    for (size_t i = 0; i < COUNTOF(cases); i++) {
        cr_assert_eq(encoding_choose(str_of(cases[i].accept)), cases[i].wanted, "case %zu", i);
    }
}

static char body[20000];

static void fill(void)
{
    for (size_t i = 0; i < sizeof(body); i++) {
        body[i] = "{\"state\":\"healthy\"},"[i % 20];
    }
}

Test(encoding, brotli_comes_back, .init = fill)
{
    CLEANUP(buf_free) struct buf out = {0};
    uint8_t back[sizeof(body)];
    size_t len = sizeof(back);
    cr_assert(encoding_compress(ENCODING_BR, (struct str){body, sizeof(body)}, &out));
    cr_assert_lt(out.len, sizeof(body) / 10);
    cr_assert_eq(BrotliDecoderDecompress(out.len, (const uint8_t *)out.ptr, &len, back),
                 BROTLI_DECODER_RESULT_SUCCESS);
    cr_assert(len == sizeof(body) && memcmp(back, body, len) == 0);
}

Test(encoding, gzip_comes_back, .init = fill)
{
    CLEANUP(buf_free) struct buf out = {0};
    char back[sizeof(body)];
    z_stream stream = {0};
    cr_assert(encoding_compress(ENCODING_GZIP, (struct str){body, sizeof(body)}, &out));
    cr_assert_eq(inflateInit2(&stream, 15 + 16), Z_OK);
    stream.next_in = (Bytef *)out.ptr;
    stream.avail_in = (uInt)out.len;
    stream.next_out = (Bytef *)back;
    stream.avail_out = sizeof(back);
    cr_assert_eq(inflate(&stream, Z_FINISH), Z_STREAM_END);
    cr_assert(stream.avail_out == 0 && memcmp(back, body, sizeof(body)) == 0);
    (void)inflateEnd(&stream);
}

Test(encoding, what_does_not_shrink_is_left_alone)
{
    CLEANUP(buf_free) struct buf out = {0};
    cr_assert_not(encoding_compress(ENCODING_GZIP, STR("x"), &out));
    cr_assert_not(encoding_compress(ENCODING_BR, STR("x"), &out));
    cr_assert_not(encoding_compress(ENCODING_IDENTITY, STR("xxxxxxxxxxxxxxxxxxxxxxxx"), &out));
    cr_assert_not(encoding_compress(ENCODING_BR, STR(""), &out));
}
