/* muster kube authn-config: an AuthenticationConfiguration judged before the API server reads it.
 */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "base/encode.h"
#include "base/file.h"
#include "cli/local.h"
#include "oidc/authn_config.h"

static void print_problems(struct enc *enc, const char *key, const struct authn_problem *items,
                           size_t count)
{
    enc_key(enc, key);
    enc_arr(enc);
    for (size_t i = 0; i < count; i++) {
        enc_obj(enc);
        enc_key(enc, "field");
        enc_cstr(enc, items[i].field);
        enc_key(enc, "code");
        enc_cstr(enc, items[i].code);
        enc_key(enc, "message");
        enc_cstr(enc, items[i].message);
        enc_obj_end(enc);
    }
    enc_arr_end(enc);
}

static void print_verdict(const struct authn_config *config)
{
    CLEANUP(buf_free) struct buf out = {0};
    struct enc enc;
    enc_init(&enc, &out);
    enc_obj(&enc);
    enc_key(&enc, "verdict");
    enc_cstr(&enc, config->error_count == 0 ? "accept" : "reject");
    print_problems(&enc, "errors", config->errors, config->error_count);
    print_problems(&enc, "warnings", config->warnings, config->warning_count);
    enc_obj_end(&enc);
    (void)printf("%s\n", out.ptr);
}

int authn_config_validate(int argc, char **argv)
{
    static const struct option rows[] = {{"service-account-issuer", required_argument, NULL, 's'},
                                         {NULL, 0, NULL, 0}};
    /* What kube-apiserver has when --service-account-issuer is the usual one. */
    struct str service_account_issuer = STR("https://kubernetes.default.svc");
    const char *why = "";
    int option;
    optind = 1;
    while ((option = getopt_long(argc + 1, argv - 1, "", rows, NULL)) == 's') {
        service_account_issuer = str_of(optarg);
    }
    if (option != -1 || optind != argc) {
        (void)fprintf(stderr,
                      "muster kube authn-config validate [--service-account-issuer URL] FILE\n");
        return 2;
    }
    const char *file = argv[optind - 1];
    CLEANUP(buf_free) struct buf text = {0};
    int failed = file_read(file, AUTHN_MAX_BYTES, &text);
    if (failed != 0) {
        (void)fprintf(stderr, "muster: %s: %s\n", file, strerror(failed));
        return 1;
    }
    CLEANUP(arena_freep) struct arena *arena = arena_new(AUTHN_ARENA_CAP);
    json_auto_t *root = authn_config_parse(arena, buf_str(&text), &why);
    struct authn_config config = {0};
    if (root == NULL) {
        config.errors[config.error_count++] = (struct authn_problem){
            "", "invalid", arena_printf(arena, "this is neither JSON nor YAML: %s", why)};
    } else {
        (void)!authn_config_read(arena, root, service_account_issuer, &config);
    }
    print_verdict(&config);
    return 0;
}
