/* An issuer's published keys: read once, each key judged alone, then only used. */
#include "oidc/jwk.h"

#include <openssl/evp.h>

#include "oidc/jwk_import.h"
#include "oidc/signature.h"

#define TRIES_MAX 16

#define SKIP_ROW(sym, word) [sym] = word,
static const char *const skip_words[JWK_SKIP_COUNT] = {[JWK_SKIP_NONE] = "",
                                                       JWK_SKIP_TABLE(SKIP_ROW)};
#undef SKIP_ROW

const char *jwk_skip_word(enum jwk_skip skip)
{
    return (size_t)skip < JWK_SKIP_COUNT ? skip_words[skip] : "";
}

void jwk_set_free(struct jwk_set *set)
{
    if (set != NULL) {
        for (size_t i = 0; i < set->count; i++) {
            EVP_PKEY_free(set->keys[i].pkey);
        }
        arena_free(set->arena);
        free(set);
    }
}

void jwk_set_freep(struct jwk_set **set)
{
    jwk_set_free(*set);
}

static void add_key(struct jwk_set *set, const json_t *item)
{
    struct jwk key = {0};
    struct jwk_skipped skipped = {.detail = ""};

    if (set->count + set->skipped_count >= JWK_SET_MAX_KEYS) {
        skipped.skip = JWK_SKIP_TOO_MANY;
        skipped.detail = "There are more keys in the set than are looked at.";
    } else {
        skipped.skip = jwk_import(set->arena, item, &key, &skipped.detail);
        skipped.kid = key.kid;
    }
    if (skipped.skip != JWK_SKIP_NONE) {
        set->skipped[set->skipped_count++] = skipped;
        return;
    }
    for (size_t i = 0; i < set->count; i++) {
        const struct jwk *other = &set->keys[i];
        if (other->has_kid && key.has_kid && other->kty == key.kty && str_eq(other->kid, key.kid)) {
            set->duplicate_kids++;
            break;
        }
    }
    set->keys[set->count++] = key;
}

struct jwk_set *jwk_set_parse(struct str text, const char **ret_error)
{
    const char *why = "";
    if (text.len > JWK_SET_MAX_BYTES) {
        *ret_error = "The key set has more than 1 MiB.";
        return NULL;
    }
    struct arena *arena = arena_new((size_t)8 * JWK_SET_MAX_BYTES);
    json_t *root = jose_read_object(arena, text, &why);
    const json_t *list = json_object_get(root, "keys");
    if (!json_is_array(list)) {
        *ret_error = root == NULL ? "The key set is not a JSON object without duplicate members."
                                  : "The key set has no array \"keys\".";
        json_decref(root);
        arena_free(arena);
        return NULL;
    }
    struct jwk_set *set = calloc(1, sizeof(*set));
    if (set == NULL) {
        abort();
    }
    size_t count = json_array_size(list);
    size_t seen = count <= JWK_SET_MAX_KEYS ? count : JWK_SET_MAX_KEYS + 1;
    set->arena = arena;
    set->keys = arena_zalloc(arena, (seen + 1) * sizeof(*set->keys));
    set->skipped = arena_zalloc(arena, (seen + 1) * sizeof(*set->skipped));
    for (size_t i = 0; i < seen; i++) {
        add_key(set, json_array_get(list, i));
    }
    json_decref(root);
    return set;
}

/* No key was found: says which one was left out when that explains it. */
static enum oidc_reason explain_missing(const struct jwk_set *set, const struct jws *jws,
                                        struct arena *arena, const char **ret_detail)
{
    const char *kid = jose_quote(arena, jws->kid);
    for (size_t i = 0; i < set->skipped_count; i++) {
        const struct jwk_skipped *skipped = &set->skipped[i];
        bool forgeable = skipped->skip == JWK_SKIP_FORGEABLE;
        if (jws->has_kid ? str_eq(skipped->kid, jws->kid) : forgeable) {
            *ret_detail = arena_printf(
                arena, "The key \"%s\" is in the set but is not used (%s): %s",
                jose_quote(arena, skipped->kid), jwk_skip_word(skipped->skip), skipped->detail);
            return forgeable ? OIDC_WEAK_KEY : OIDC_KEY_NOT_FOUND;
        }
    }
    *ret_detail = jws->has_kid
                      ? arena_printf(arena, "The set has no key \"%s\".", kid)
                      : "The header names no key, and no usable key of the set fits the algorithm.";
    return OIDC_KEY_NOT_FOUND;
}

enum oidc_reason jwk_set_verify(const struct jwk_set *set, const struct jws *jws, unsigned allowed,
                                struct arena *arena, const char **ret_detail)
{
    const char *alg = jose_algs[jws->alg].name;
    bool found = false;
    size_t tries = 0;

    if ((allowed & JOSE_ALG_BIT(jws->alg)) == 0) {
        *ret_detail = arena_printf(arena, "%s is not among the issuer's algorithms.", alg);
        return OIDC_ALG_NOT_ALLOWED;
    }
    for (size_t i = 0; i < set->count && tries < TRIES_MAX; i++) {
        const struct jwk *key = &set->keys[i];
        bool fits = (key->algs & JOSE_ALG_BIT(jws->alg)) != 0;
        if (jws->has_kid && !(key->has_kid && str_eq(key->kid, jws->kid))) {
            continue;
        }
        found = found || fits || jws->has_kid;
        if (fits) {
            tries++;
            if (signature_check(key, jws->alg, jws->signing_input, jws->signature)) {
                return OIDC_OK;
            }
        }
    }
    if (!found) {
        return explain_missing(set, jws, arena, ret_detail);
    }
    if (tries == 0) {
        *ret_detail = arena_printf(arena, "The key \"%s\" is not meant for %s.",
                                   jose_quote(arena, jws->kid), alg);
        return OIDC_ALG_KEY_MISMATCH;
    }
    *ret_detail = "The signature does not fit the issuer's key.";
    return OIDC_BAD_SIGNATURE;
}
