/* Compressed answers: what the client accepts, and br and gzip of a body. */
#include "server/encoding.h"

#include <limits.h>

#include <brotli/encode.h>
#define ZLIB_CONST /* next_in is const: only read */
#include <zlib.h>

/* Both run on the loop's thread: levels that give most of the gain for a few ms a megabyte. */
#define BROTLI_QUALITY_FAST 4
#define BROTLI_WINDOW 20
#define GZIP_LEVEL 4
#define GZIP_WINDOW (15 + 16) /* 16 asks zlib for the gzip wrapper */
#define GZIP_MEMORY 8

/* "0", "0.0", "0.000": the coding is refused. */
static bool is_zero_weight(struct str parameters)
{
    struct str part;
    while (str_split(&parameters, ';', &part)) {
        double weight = 1;
        part = str_trim(part);
        if (str_starts(part, STR("q=")) &&
            str_parse_double((struct str){part.ptr + 2, part.len - 2}, &weight)) {
            return weight <= 0;
        }
    }
    return false;
}

enum encoding encoding_choose(struct str accept_encoding)
{
    bool br = false;
    bool gzip = false;
    struct str item;
    while (str_split(&accept_encoding, ',', &item)) {
        struct str name;
        if (!str_split(&item, ';', &name) || is_zero_weight(item)) {
            continue;
        }
        name = str_trim(name);
        br = br || str_eq_nocase(name, STR("br"));
        gzip = gzip || str_eq_nocase(name, STR("gzip"));
    }
    return br ? ENCODING_BR : gzip ? ENCODING_GZIP : ENCODING_IDENTITY;
}

const char *encoding_name(enum encoding encoding)
{
    static const char *const names[] = {
        [ENCODING_IDENTITY] = NULL, [ENCODING_BR] = "br", [ENCODING_GZIP] = "gzip"};
    return names[encoding];
}

static bool compress_br(struct str body, struct buf *out)
{
    size_t len = body.len;
    buf_reserve(out, len);
    if (BrotliEncoderCompress(BROTLI_QUALITY_FAST, BROTLI_WINDOW, BROTLI_MODE_TEXT, body.len,
                              (const uint8_t *)body.ptr, &len,
                              (uint8_t *)out->ptr) == BROTLI_FALSE) {
        return false;
    }
    out->len = len;
    return true;
}

static bool compress_gzip(struct str body, struct buf *out)
{
    z_stream stream = {0};
    if (deflateInit2(&stream, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW, GZIP_MEMORY,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
        return false;
    }
    buf_reserve(out, body.len);
    stream.next_in = (z_const Bytef *)body.ptr;
    stream.avail_in = (uInt)body.len;
    stream.next_out = (Bytef *)out->ptr;
    stream.avail_out = (uInt)body.len;
    bool done = deflate(&stream, Z_FINISH) == Z_STREAM_END;
    out->len = done ? body.len - stream.avail_out : 0;
    (void)deflateEnd(&stream);
    return done;
}

bool encoding_compress(enum encoding encoding, struct str body, struct buf *out)
{
    if (body.len == 0 || body.len > INT_MAX) {
        return false;
    }
    switch (encoding) {
    case ENCODING_BR:
        return compress_br(body, out);
    case ENCODING_GZIP:
        return compress_gzip(body, out);
    case ENCODING_IDENTITY:
    default:
        return false;
    }
}
