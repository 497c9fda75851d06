/* Writing JSON: a small writer over a buf that keeps commas and escapes right. */
#ifndef BASE_ENCODE_H
#define BASE_ENCODE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/uuid.h"

struct enc {
    struct buf *buf;
    bool need_comma;
};

/* enc_init does not clear the buf: it appends. */
void enc_init(struct enc *enc, struct buf *buf);
void enc_obj(struct enc *enc);     /* { */
void enc_obj_end(struct enc *enc); /* } */
void enc_arr(struct enc *enc);
void enc_arr_end(struct enc *enc);
void enc_key(struct enc *enc, const char *key);    /* key is a literal, not escaped */
void enc_key_str(struct enc *enc, struct str key); /* a key from outside, escaped like enc_str */
void enc_str(struct enc *enc,
             struct str value); /* invalid UTF-8 becomes U+FFFD; control characters escaped */
void enc_cstr(struct enc *enc, const char *value); /* NULL writes null */
void enc_i64(struct enc *enc, int64_t value);
void enc_double(struct enc *enc, double value, int decimals); /* not finite writes null */
void enc_double_exact(struct enc *enc, double value); /* shortest text that reads back the same */
void enc_bool(struct enc *enc, bool value);
void enc_null(struct enc *enc);
void enc_raw(struct enc *enc, struct str json); /* already JSON */
void enc_uuid(struct enc *enc, const struct uuid *value);
void enc_time(struct enc *enc, int64_t us); /* RFC 3339 UTC */

#endif
