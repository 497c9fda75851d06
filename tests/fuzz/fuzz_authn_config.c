/* Fuzzes AuthenticationConfigurations in JSON and YAML: one that is accepted can judge a token. */
#include "tests/fuzz/fuzz.h"

#include "oidc/authn_config.h"

#define TEXT_MAX 65536

/* Runs each expression over some claims, within its budget. */
static void run_rules(struct arena *arena, const struct oidc_issuer *issuer, const json_t *claims)
{
    struct cel_run run;
    struct cel_value value;
    cel_run_init(&run, arena);
    FUZZ_CHECK(cel_from_json(&run, claims, &run.claims));
    for (size_t i = 0; i < issuer->claim_rule_count; i++) {
        if (cel_eval(&run, issuer->claim_rules[i].expression, &value)) {
            FUZZ_CHECK(value.kind == CEL_BOOL);
        } else {
            FUZZ_CHECK(run.error != NULL);
        }
    }
    if (issuer->username.expression != NULL) {
        (void)!cel_eval(&run, issuer->username.expression, &value);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *error = NULL;
    struct authn_config config;
    if (size > TEXT_MAX) {
        return 0;
    }
    struct arena *arena = arena_new(AUTHN_ARENA_CAP);
    struct arena *scratch = arena_new(CEL_ARENA_CAP);
    json_t *claims =
        json_loads("{\"sub\":\"u\",\"groups\":[\"a\",\"b\"],\"n\":5,\"o\":{\"x\":true}}",
                   JSON_DECODE_INT_AS_REAL, NULL);
    json_t *root = authn_config_parse(arena, (struct str){(const char *)data, size}, &error);
    if (root == NULL) {
        FUZZ_CHECK(error != NULL);
    } else if (authn_config_read(arena, root, STR(""), &config)) {
        FUZZ_CHECK(config.error_count == 0);
        for (size_t i = 0; i < config.issuer_count; i++) {
            FUZZ_CHECK(config.issuers[i].audiences.count > 0);
            arena_reset(scratch);
            run_rules(scratch, &config.issuers[i], claims);
        }
    } else {
        FUZZ_CHECK(config.error_count > 0);
    }
    json_decref(root);
    json_decref(claims);
    arena_free(scratch);
    arena_free(arena);
    return 0;
}
