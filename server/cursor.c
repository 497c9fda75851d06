/* Cursors of lists: base64url of {format version, hash of the list's scope, keys of the last row}.
 */
#include "server/cursor.h"

#include <string.h>

#include "base/crypto.h"

#define FORMAT_VERSION 1
#define HASH_LEN 8 /* tells filters apart; it is no proof against a forger, who gains nothing */
#define HEAD_LEN (1 + HASH_LEN)

static void write_head(struct str scope, uint8_t head[HEAD_LEN])
{
    uint8_t hash[SHA256_LEN];
    crypto_sha256(scope, hash);
    head[0] = FORMAT_VERSION;
    memcpy(head + 1, hash, HASH_LEN);
}

struct str cursor_encode(struct arena *arena, struct str scope, struct str keys)
{
    size_t len = HEAD_LEN + keys.len;
    uint8_t *data = arena_alloc(arena, len);
    write_head(scope, data);
    if (keys.len > 0) {
        memcpy(data + HEAD_LEN, keys.ptr, keys.len);
    }
    char *text = arena_alloc(arena, crypto_b64_len(len) + 1);
    crypto_b64(data, len, text);
    return (struct str){text, crypto_b64_len(len)};
}

bool cursor_decode(struct arena *arena, struct str scope, struct str cursor, struct str *ret_keys)
{
    uint8_t head[HEAD_LEN];
    size_t cap = HEAD_LEN + CURSOR_KEYS_MAX;
    uint8_t *data = arena_alloc(arena, cap);
    size_t len = 0;

    if (cursor.len > crypto_b64_len(cap) || !crypto_unb64(cursor, data, cap, &len) ||
        len < HEAD_LEN) {
        return false;
    }
    write_head(scope, head);
    struct str keys = {(const char *)data + HEAD_LEN, len - HEAD_LEN};
    if (memcmp(head, data, HEAD_LEN) != 0 || !str_is_utf8(keys)) {
        return false;
    }
    *ret_keys = keys;
    return true;
}
