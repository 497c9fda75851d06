/* Fuzzes discovery documents: one that is taken has the issuer's name and https addresses. */
#include "tests/fuzz/fuzz.h"

#include "oidc/discovery.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct oidc_issuer issuer;
    struct oidc_discovery found;
    const char *detail = NULL;
    if (size > DISCOVERY_MAX_BYTES) {
        return 0;
    }
    struct arena *arena = arena_new(4U << 20);
    oidc_issuer_init(&issuer);
    issuer.url = STR("https://i.test");
    enum oidc_reason reason = oidc_discovery_read(
        arena, &issuer, (struct str){(const char *)data, size}, false, &found, &detail);
    if (reason == OIDC_OK) {
        FUZZ_CHECK(str_starts(found.jwks_uri, STR("https://")));
        FUZZ_CHECK(found.token_endpoint.len == 0 ||
                   str_starts(found.token_endpoint, STR("https://")));
    } else {
        FUZZ_CHECK(detail != NULL);
    }
    arena_free(arena);
    return 0;
}
