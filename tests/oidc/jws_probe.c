/* For tests: one token judged by us and by cjose. Reads {"jwks","token"} or, for an encrypted
 * token,
 * {"private","token"} a line, answers a line. */
#include <cjose/cjose.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "oidc/jwe.h"
#include "oidc/jwk.h"

#define LINE_MAX_BYTES (1U << 20)

/* cjose picks no key by itself: the token passes when it passes with any key that has its kid. */
static bool cjose_accepts(const json_t *keys, const char *token, size_t len)
{
    cjose_err err;
    bool good = false;
    cjose_jws_t *jws = cjose_jws_import(token, len, &err);
    if (jws == NULL) {
        return false;
    }
    const char *kid = cjose_header_get(cjose_jws_get_protected(jws), CJOSE_HDR_KID, &err);
    for (size_t i = 0; !good && i < json_array_size(keys); i++) {
        const char *own = json_string_value(json_object_get(json_array_get(keys, i), "kid"));
        if (kid != NULL && (own == NULL || strcmp(kid, own) != 0)) {
            continue;
        }
        char *text = json_dumps(json_array_get(keys, i), 0);
        cjose_jwk_t *jwk = text != NULL ? cjose_jwk_import(text, strlen(text), &err) : NULL;
        good = jwk != NULL && cjose_jws_verify(jws, jwk, &err);
        cjose_jwk_release(jwk);
        free(text);
    }
    cjose_jws_release(jws);
    return good;
}

/* In a child: cjose aborts on base64 of 4n + 1 characters. "true", "false" or "null" for a crash.
 */
static const char *cjose_verdict(const json_t *keys, struct str token)
{
    int status = 0;
    (void)fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        if (freopen("/dev/null", "w", stderr) == NULL) {
            _exit(1);
        }
        _exit(cjose_accepts(keys, token.ptr, token.len) ? 0 : 1);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) {
        return "null";
    }
    return WEXITSTATUS(status) == 0 ? "true" : "false";
}

static const char *our_verdict(const json_t *jwks, struct str token)
{
    const char *detail = "";
    char *text = json_dumps(jwks, 0);
    struct arena *arena = arena_new(JOSE_ARENA_CAP);
    struct jwk_set *set = jwk_set_parse(str_of(text), &detail);
    struct jws jws;
    enum oidc_reason reason = OIDC_BAD_FORMAT;
    if (set != NULL) {
        reason = jws_parse(arena, token, &jws, &detail);
        if (reason == OIDC_OK) {
            reason = jwk_set_verify(set, &jws, JOSE_ALGS_ALL, arena, &detail);
        }
    }
    jwk_set_free(set);
    arena_free(arena);
    free(text);
    return oidc_reason_code(reason);
}

static const char *open_verdict(const json_t *private, struct str token)
{
    const char *detail = "";
    char *text = json_dumps(private, 0);
    struct arena *arena = arena_new(JOSE_ARENA_CAP);
    struct jwe_keys *keys = jwe_keys_parse(str_of(text), &detail);
    struct str inner;
    enum oidc_reason reason =
        keys != NULL ? jwe_open(arena, keys, token, &inner, &detail) : OIDC_WEAK_KEY;
    jwe_keys_free(keys);
    arena_free(arena);
    free(text);
    return oidc_reason_code(reason);
}

int main(void)
{
    char *line = malloc(LINE_MAX_BYTES);
    while (line != NULL && fgets(line, LINE_MAX_BYTES, stdin) != NULL) {
        json_t *row = json_loads(line, JSON_ALLOW_NUL, NULL);
        const json_t *jwks = json_object_get(row, "jwks");
        const json_t *token = json_object_get(row, "token");
        if (!json_is_string(token)) {
            (void)fprintf(stderr, "a line is not {\"jwks\", \"token\"}\n");
            return 1;
        }
        struct str text = {json_string_value(token), json_string_length(token)};
        const json_t *private = json_object_get(row, "private");
        if (private != NULL) {
            (void)printf("{\"ours\":\"%s\"}\n", open_verdict(private, text));
            json_decref(row);
            continue;
        }
        (void)printf("{\"ours\":\"%s\",\"cjose\":%s}\n", our_verdict(jwks, text),
                     cjose_verdict(json_object_get(jwks, "keys"), text));
        json_decref(row);
    }
    free(line);
    return 0;
}
