/* Fuzzes key sets: whatever comes, each key is usable or left out with its reason. */
#include "tests/fuzz/fuzz.h"

#include "oidc/jwk.h"

#define SET_MAX 65536

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *error = NULL;
    if (size > SET_MAX) {
        return 0;
    }
    struct jwk_set *set = jwk_set_parse((struct str){(const char *)data, size}, &error);
    if (set == NULL) {
        FUZZ_CHECK(error != NULL);
        return 0;
    }
    FUZZ_CHECK(set->count <= JWK_SET_MAX_KEYS);
    for (size_t i = 0; i < set->count; i++) {
        FUZZ_CHECK(set->keys[i].pkey != NULL && set->keys[i].algs != 0);
    }
    for (size_t i = 0; i < set->skipped_count; i++) {
        FUZZ_CHECK(set->skipped[i].skip != JWK_SKIP_NONE && set->skipped[i].detail[0] != '\0');
        FUZZ_CHECK(jose_text_is_plain(set->skipped[i].kid));
    }
    jwk_set_free(set);
    return 0;
}
