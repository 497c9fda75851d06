/* Ids: RFC 9562 UUIDs. */
#ifndef BASE_UUID_H
#define BASE_UUID_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

struct uuid {
    uint8_t bytes[16];
};

#define UUID_TEXT_LEN 36

struct uuid uuid_v7(void); /* time ordered, from clock_wall_us() and the system's randomness */
struct uuid uuid_v4(void);
bool uuid_parse(struct str text, struct uuid *ret_uuid) MUST_CHECK; /* 8-4-4-4-12, any case */
void uuid_format(const struct uuid *uuid, char text[UUID_TEXT_LEN + 1]);
bool uuid_eq(const struct uuid *a, const struct uuid *b);
bool uuid_is_zero(const struct uuid *uuid);

#endif
