/* Signatures of messages to programs elsewhere, and the pauses between tries. */
#include "server/webhook_sign.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/crypto.h"

#define SECRET_PREFIX "whsec_"
#define SIGNATURE_PREFIX "v1,"
#define KEY_MIN 24
#define KEY_MAX 64
/* 5 s, 15 s, 45 s ... and every 8 hours from the ninth try on: 17 tries in three days. */
#define PAUSE_FIRST_S 5
#define PAUSE_MAX_S 28800

void webhook_secret_text(struct str key, char text[WEBHOOK_SECRET_CAP])
{
    char base64[WEBHOOK_SECRET_CAP];

    assert(crypto_base64_len(key.len) + sizeof(SECRET_PREFIX) <= WEBHOOK_SECRET_CAP);
    crypto_base64(key.ptr, key.len, base64);
    (void)snprintf(text, WEBHOOK_SECRET_CAP, SECRET_PREFIX "%.56s", base64);
}

bool webhook_secret_key(struct arena *arena, struct str text, struct str *ret_key)
{
    if (!str_starts(text, STR(SECRET_PREFIX))) {
        return false;
    }
    struct str rest = {text.ptr + sizeof(SECRET_PREFIX) - 1,
                       text.len - (sizeof(SECRET_PREFIX) - 1)};
    while (rest.len > 0 && rest.ptr[rest.len - 1] == '=') {
        rest.len--;
    }
    char *url = arena_strndup(arena, rest.ptr, rest.len);
    for (size_t i = 0; i < rest.len; i++) {
        url[i] = url[i] == '+' ? '-' : url[i] == '/' ? '_' : url[i];
    }
    uint8_t *key = arena_alloc(arena, KEY_MAX);
    size_t len = 0;
    if (!crypto_unb64((struct str){url, rest.len}, key, KEY_MAX, &len) || len < KEY_MIN) {
        return false;
    }
    *ret_key = (struct str){(const char *)key, len};
    return true;
}

void webhook_sign(struct str key, struct str id, int64_t timestamp_s, struct str body,
                  char text[WEBHOOK_SIGNATURE_CAP])
{
    CLEANUP(buf_free) struct buf signed_text = {0};
    uint8_t mac[SHA256_LEN];
    char base64[WEBHOOK_SIGNATURE_CAP];

    buf_printf(&signed_text, "%.*s.%" PRId64 ".", STR_FMT(id), timestamp_s);
    buf_add(&signed_text, body.ptr, body.len);
    crypto_hmac_sha256(key, buf_str(&signed_text), mac);
    crypto_base64(mac, sizeof(mac), base64);
    (void)snprintf(text, WEBHOOK_SIGNATURE_CAP, SIGNATURE_PREFIX "%.48s", base64);
}

bool webhook_verify(struct str key, struct str id, int64_t timestamp_s, struct str body,
                    struct str signatures)
{
    char right[WEBHOOK_SIGNATURE_CAP];
    struct str item;
    bool found = false;

    webhook_sign(key, id, timestamp_s, body, right);
    struct str wanted = str_of(right);
    while (str_split(&signatures, ' ', &item)) {
        found |= item.len == wanted.len && crypto_equal(item.ptr, wanted.ptr, wanted.len);
    }
    return found;
}

int64_t webhook_pause_s(int64_t attempts)
{
    int64_t pause = PAUSE_FIRST_S;

    for (int64_t i = 1; i < attempts && pause < PAUSE_MAX_S; i++) {
        pause *= 3;
    }
    return pause < PAUSE_MAX_S ? pause : PAUSE_MAX_S;
}
