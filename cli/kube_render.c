/* muster kube authn-config render: issuers written as an AuthenticationConfiguration. */
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "cli/local.h"
#include "oidc/authn_config.h"
#include "oidc/authn_render.h"

#define ARENA_CAP (16U << 20)

static bool read_one(struct arena *arena, const char *file, struct oidc_issuer *ret)
{
    CLEANUP(buf_free) struct buf text = {0};
    struct decode_errors errors = {0};
    const char *detail = NULL;
    int failed = file_read(file, OIDC_CONFIG_MAX_BYTES, &text);
    if (failed != 0) {
        (void)fprintf(stderr, "muster: %s: %s\n", file, strerror(failed));
        return false;
    }
    struct str kept = {arena_strndup(arena, text.ptr != NULL ? text.ptr : "", text.len), text.len};
    struct oidc_issuer_source source = {kept, STR(""), true};
    enum err err = oidc_issuer_read(arena, &source, ret, &errors, &detail);
    for (size_t i = 0; i < errors.count; i++) {
        (void)fprintf(stderr, "muster: %s: %s: %s\n", file, errors.items[i].pointer,
                      errors.items[i].detail);
    }
    if (err != ERR_NONE && errors.count == 0) {
        (void)fprintf(stderr, "muster: %s: %s\n", file,
                      detail != NULL ? detail : err_info(err)->title);
    }
    return err == ERR_NONE;
}

int authn_config_print(int argc, char **argv)
{
    CLEANUP(arena_freep) struct arena *arena = arena_new(ARENA_CAP);
    CLEANUP(buf_free) struct buf out = {0};
    struct oidc_issuer issuers[AUTHN_ISSUERS_MAX];
    if (argc < 1 || argc > AUTHN_ISSUERS_MAX || argv[0][0] == '-') {
        (void)fprintf(stderr, "muster kube authn-config render FILE...   (issuers, 1 to %d)\n",
                      AUTHN_ISSUERS_MAX);
        return 2;
    }
    for (int i = 0; i < argc; i++) {
        if (!read_one(arena, argv[i], &issuers[i])) {
            return 1;
        }
    }
    const char *obstacle = authn_config_render(arena, issuers, (size_t)argc, &out);
    if (obstacle != NULL) {
        (void)fprintf(stderr, "muster: %s\n", obstacle);
        return 1;
    }
    (void)fputs(out.ptr, stdout);
    return 0;
}
