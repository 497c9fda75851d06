/* Ids: RFC 9562 UUIDs. */
#include "base/uuid.h"

#include <string.h>

#include "base/clock.h"
#include "base/crypto.h"

static void set_version(struct uuid *uuid, unsigned version)
{
    uuid->bytes[6] = (uint8_t)((uuid->bytes[6] & 0x0f) | (version << 4));
    uuid->bytes[8] = (uint8_t)((uuid->bytes[8] & 0x3f) | 0x80);
}

struct uuid uuid_v7(void)
{
    int64_t us = clock_wall_us();
    uint64_t ms = us < 0 ? 0 : (uint64_t)us / 1000;
    uint64_t below_ms = us < 0 ? 0 : (uint64_t)us % 1000;
    struct uuid uuid;

    crypto_random(uuid.bytes, sizeof(uuid.bytes));
    for (int i = 0; i < 6; i++) {
        uuid.bytes[i] = (uint8_t)(ms >> (40 - 8 * i));
    }
    /* RFC 9562 6.2 method 3: the 12 bits after the milliseconds hold the fraction, so that ids of
     * one process sort by microsecond. */
    below_ms = below_ms * 4096 / 1000;
    uuid.bytes[6] = (uint8_t)(below_ms >> 8);
    uuid.bytes[7] = (uint8_t)below_ms;
    set_version(&uuid, 7);
    return uuid;
}

struct uuid uuid_v4(void)
{
    struct uuid uuid;

    crypto_random(uuid.bytes, sizeof(uuid.bytes));
    set_version(&uuid, 4);
    return uuid;
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    if (c >= 'A' && c <= 'F') {
        return c - 'A' + 10;
    }
    return -1;
}

static bool is_dash_place(size_t i)
{
    return i == 8 || i == 13 || i == 18 || i == 23;
}

bool uuid_parse(struct str text, struct uuid *ret_uuid)
{
    struct uuid uuid = {0};
    size_t nibbles = 0;

    if (text.len != UUID_TEXT_LEN) {
        return false;
    }
    for (size_t i = 0; i < UUID_TEXT_LEN; i++) {
        int value;

        if (is_dash_place(i)) {
            if (text.ptr[i] != '-') {
                return false;
            }
            continue;
        }
        value = hex_value(text.ptr[i]);
        if (value < 0) {
            return false;
        }
        uuid.bytes[nibbles / 2] = (uint8_t)(uuid.bytes[nibbles / 2] << 4 | value);
        nibbles++;
    }
    *ret_uuid = uuid;
    return true;
}

void uuid_format(const struct uuid *uuid, char text[UUID_TEXT_LEN + 1])
{
    static const char digits[] = "0123456789abcdef";
    size_t at = 0;

    for (size_t i = 0; i < sizeof(uuid->bytes); i++) {
        if (is_dash_place(at)) {
            text[at++] = '-';
        }
        text[at++] = digits[uuid->bytes[i] >> 4];
        text[at++] = digits[uuid->bytes[i] & 0x0f];
    }
    text[at] = '\0';
}

bool uuid_eq(const struct uuid *a, const struct uuid *b)
{
    return memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

bool uuid_is_zero(const struct uuid *uuid)
{
    static const struct uuid zero;

    return uuid_eq(uuid, &zero);
}
