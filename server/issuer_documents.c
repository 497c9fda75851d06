/* An issuer's discovery document and key set, fetched and read. */
#include "server/issuer_documents.h"

#include "base/encode.h"
#include "server/fetch.h"

#define KEEP_MIN_S 60
#define KEEP_MAX_S 86400
#define KEEP_DEFAULT_S 600
#define UNUSABLE_SHOWN 32

static struct str keep(struct arena *arena, struct str text)
{
    return (struct str){arena_strndup(arena, text.ptr, text.len), text.len};
}

static struct str get(struct arena *arena, const struct oidc_issuer *issuer, const char *url,
                      const char *what, struct issuer_documents *ret)
{
    struct http_answer answer = {0};
    struct str text = {0};
    const struct fetch fetch = {.url = url, .ca_certificate = issuer->ca_certificate};
    fetch_json(&fetch, &answer);
    if (answer.status != 200) {
        ret->error = arena_printf(arena, "The %s cannot be had: %s.", what, answer.error);
    } else {
        text = keep(arena, buf_str(&answer.body));
        ret->keep_s = answer.max_age_s < 0            ? KEEP_DEFAULT_S
                      : answer.max_age_s < KEEP_MIN_S ? KEEP_MIN_S
                      : answer.max_age_s > KEEP_MAX_S ? KEEP_MAX_S
                                                      : answer.max_age_s;
    }
    http_answer_free(&answer);
    return text;
}

static void read_discovery(struct arena *arena, const struct oidc_issuer *issuer, struct str text,
                           struct issuer_documents *ret)
{
    struct str url = issuer->url;
    bool allowed = fetch_is_allowed(arena_strndup(arena, url.ptr, url.len));
    const char *detail = "";
    ret->discovery_reason =
        oidc_discovery_read(arena, issuer, text, allowed, &ret->discovery, &detail);
    ret->has_discovery = ret->discovery_reason == OIDC_OK;
    if (!ret->has_discovery) {
        ret->error = arena_printf(arena, "The discovery document cannot be used: %s", detail);
    }
}

static void fetch_discovery(struct arena *arena, const struct oidc_issuer *issuer,
                            struct issuer_documents *ret)
{
    const char *url =
        issuer->discovery_url.len > 0
            ? arena_strndup(arena, issuer->discovery_url.ptr, issuer->discovery_url.len)
            : oidc_discovery_url(arena, issuer->url);
    ret->has_discovery = false;
    ret->error = NULL;
    ret->discovery_text = get(arena, issuer, url, "discovery document", ret);
    ret->reached = ret->discovery_text.ptr != NULL;
    ret->discovery_reason = OIDC_IDP_UNAVAILABLE;
    if (!ret->reached) {
        return;
    }
    if (ret->discovery_text.len > DISCOVERY_MAX_BYTES) {
        ret->error = "The discovery document has more than 256 KiB.";
        return;
    }
    read_discovery(arena, issuer, ret->discovery_text, ret);
}

static void fetch_keys(struct arena *arena, const struct oidc_issuer *issuer,
                       struct issuer_documents *ret)
{
    struct str uri = ret->discovery.jwks_uri;
    const char *error = NULL;
    ret->error = NULL;
    ret->keys_text = get(arena, issuer, arena_strndup(arena, uri.ptr, uri.len), "key set", ret);
    if (ret->keys_text.ptr == NULL) {
        return;
    }
    ret->keys = jwk_set_parse(ret->keys_text, &error);
    if (ret->keys == NULL) {
        ret->error = arena_printf(arena, "The key set cannot be used: %s", error);
    }
}

void issuer_documents_fetch(struct arena *arena, const struct oidc_issuer *issuer,
                            struct str stored, struct issuer_documents *ret)
{
    *ret = (struct issuer_documents){0};
    if (stored.len > 0) {
        read_discovery(arena, issuer, stored, ret);
    }
    if (ret->has_discovery) {
        fetch_keys(arena, issuer, ret);
        if (ret->keys != NULL) {
            return;
        }
    }
    fetch_discovery(arena, issuer, ret);
    if (ret->has_discovery) {
        fetch_keys(arena, issuer, ret);
    }
}

struct str issuer_documents_unusable(struct arena *arena, const struct jwk_set *keys)
{
    CLEANUP(buf_free) struct buf text = {0};
    struct enc enc;
    enc_init(&enc, &text);
    enc_arr(&enc);
    for (size_t i = 0; i < keys->skipped_count && i < UNUSABLE_SHOWN; i++) {
        const struct jwk_skipped *skipped = &keys->skipped[i];
        enc_obj(&enc);
        enc_key(&enc, "kid");
        if (skipped->kid.len > 0) {
            enc_str(&enc,
                    skipped->kid.len > 255 ? (struct str){skipped->kid.ptr, 255} : skipped->kid);
        } else {
            enc_null(&enc);
        }
        enc_key(&enc, "reason");
        enc_cstr(&enc, jwk_skip_word(skipped->skip));
        enc_obj_end(&enc);
    }
    enc_arr_end(&enc);
    return keep(arena, buf_str(&text));
}
