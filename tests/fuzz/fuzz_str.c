/* The strict parsers: what one of them takes must be written and read back the same. */
#include "tests/fuzz/fuzz.h"

#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "base/crypto.h"
#include "base/encode.h"
#include "base/str.h"
#include "base/uuid.h"

static void check_numbers(struct str text)
{
    char copy[64];
    int64_t number;
    uint64_t hex;
    double real;

    if (str_parse_i64(text, INT64_MIN, INT64_MAX, &number) && str_parse_double(text, &real)) {
        FUZZ_CHECK(real == (double)number);
    }
    (void)!str_parse_hex_u64(text, &hex);
    if (str_parse_double(text, &real)) {
        FUZZ_CHECK(isfinite(real));
        if (text.len < sizeof(copy)) {
            memcpy(copy, text.ptr, text.len);
            copy[text.len] = '\0';
            FUZZ_CHECK(real == strtod(copy, NULL));
        }
    }
}

static void check_time(struct str text)
{
    char written[STR_RFC3339_LEN + 1];
    int64_t us;
    int64_t back;

    if (!str_parse_rfc3339(text, &us)) {
        return;
    }
    str_format_rfc3339(us, written);
    FUZZ_CHECK(str_parse_rfc3339(str_of(written), &back));
    /* An offset may lead out of the years that can be written. */
    FUZZ_CHECK(back == us || us < -62167219200000000 || us > 253402300799999999);
}

static void check_names(struct str text)
{
    char written[UUID_TEXT_LEN + 1];
    struct uuid uuid;

    if (str_is_dns_label(text)) {
        FUZZ_CHECK(str_is_host_name(text));
    }
    if (str_is_host_name(text)) {
        FUZZ_CHECK(str_is_utf8(text));
    }
    if (uuid_parse(text, &uuid)) {
        uuid_format(&uuid, written);
        FUZZ_CHECK(str_eq_nocase(text, str_of(written)));
    }
}

static void check_base64(struct str text)
{
    uint8_t bytes[256];
    char written[344];
    size_t len;

    if (crypto_unb64(text, bytes, sizeof(bytes), &len)) {
        FUZZ_CHECK(crypto_b64_len(len) == text.len);
        crypto_b64(bytes, len, written);
        FUZZ_CHECK(str_eq_c(text, written));
    }
}

/* Any bytes become valid UTF-8 in JSON text. */
static void check_encoding(struct str text)
{
    struct buf buf = {0};
    struct enc enc;

    enc_init(&enc, &buf);
    enc_str(&enc, text);
    FUZZ_CHECK(str_is_utf8(buf_str(&buf)));
    buf_free(&buf);
}

static void check_splitting(struct str text)
{
    struct str rest = text;
    struct str part;
    size_t total = 0;

    while (str_split(&rest, ',', &part)) {
        FUZZ_CHECK(part.len == 0 || memchr(part.ptr, ',', part.len) == NULL);
        total += part.len + 1;
    }
    FUZZ_CHECK(total == text.len || total == text.len + 1);
    FUZZ_CHECK(str_trim(text).len <= text.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};

    check_numbers(text);
    check_time(text);
    check_names(text);
    check_base64(text);
    check_encoding(text);
    check_splitting(text);
    return 0;
}
