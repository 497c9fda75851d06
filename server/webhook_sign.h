/* Signatures of messages to programs elsewhere, and the pauses between tries. Pure. */
#ifndef SERVER_WEBHOOK_SIGN_H
#define SERVER_WEBHOOK_SIGN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/str.h"

/* Standard Webhooks (standardwebhooks.com): a secret is whsec_ and the base64 of its key. */
#define WEBHOOK_KEY_LEN 32
#define WEBHOOK_SECRET_CAP 64
#define WEBHOOK_SIGNATURE_CAP 64
/* key has WEBHOOK_KEY_LEN bytes. */
void webhook_secret_text(struct str key, char text[WEBHOOK_SECRET_CAP]);
/* The key of such a text, 24 to 64 bytes, in the arena. False for what is none. */
bool webhook_secret_key(struct arena *arena, struct str text, struct str *ret_key) MUST_CHECK;
/* "v1," and the base64 of HMAC-SHA256 over "id.timestamp.body". */
void webhook_sign(struct str key, struct str id, int64_t timestamp_s, struct str body,
                  char text[WEBHOOK_SIGNATURE_CAP]);
/* One of the signatures, parted by spaces, is right. Constant time for each. */
bool webhook_verify(struct str key, struct str id, int64_t timestamp_s, struct str body,
                    struct str signatures) MUST_CHECK;

/* Seconds until the next try after `attempts` tries, before chance takes or gives a fifth. */
int64_t webhook_pause_s(int64_t attempts);

#endif
