/* muster oidc check: the server's judgement of a token, without a server. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/encode.h"
#include "base/file.h"
#include "cli/local.h"
#include "oidc/authn_config.h"
#include "oidc/verify.h"

#define ARENA_CAP (AUTHN_ARENA_CAP + JOSE_ARENA_CAP)

struct options {
    const char *config;
    const char *jwks;
    const char *client_id;
    const char *decrypt;
    bool allow_private;
    struct oidc_question question;
};

static int say(const char *what, const char *why)
{
    (void)fprintf(stderr, "muster: %s: %s\n", what, why);
    return 1;
}

static bool parse_use(const char *text, enum oidc_use *ret_use)
{
    static const char *const names[] = {
        [OIDC_ID_TOKEN] = "id", [OIDC_ACCESS_TOKEN] = "access", [OIDC_LOGOUT_TOKEN] = "logout"};
    for (size_t i = 0; i < COUNTOF(names); i++) {
        if (strcmp(text, names[i]) == 0) {
            *ret_use = (enum oidc_use)i;
            return true;
        }
    }
    return false;
}

static bool parse_options(int argc, char **argv, struct options *ret)
{
    static const struct option rows[] = {
        {"config", required_argument, NULL, 'c'},
        {"jwks", required_argument, NULL, 'k'},
        {"now", required_argument, NULL, 'n'},
        {"client-id", required_argument, NULL, 'i'},
        {"allow-private", no_argument, NULL, 'p'},
        {"decrypt", required_argument, NULL, 'd'},
        {"use", required_argument, NULL, 'u'},
        {"nonce", required_argument, NULL, 'o'},
        {NULL, 0, NULL, 0},
    };
    /* getopt passes over the first word, the program's name: here the command's last word. */
    int option;
    bool good = true;
    ret->question.now_s = clock_wall_us() / 1000000;
    optind = 1;
    while (good && (option = getopt_long(argc + 1, argv - 1, "", rows, NULL)) != -1) {
        if (option == 'c') {
            ret->config = optarg;
        } else if (option == 'k') {
            ret->jwks = optarg;
        } else if (option == 'n') {
            good = str_parse_i64(str_of(optarg), 0, INT32_MAX * INT64_C(64), &ret->question.now_s);
        } else if (option == 'i') {
            ret->client_id = optarg;
        } else if (option == 'd') {
            ret->decrypt = optarg;
        } else if (option == 'p') {
            ret->allow_private = true;
        } else if (option == 'u') {
            good = parse_use(optarg, &ret->question.use);
        } else if (option == 'o') {
            ret->question.has_nonce = true;
            ret->question.nonce = str_of(optarg);
        } else {
            good = false;
        }
    }
    return good && optind == argc + 1 && ret->config != NULL && ret->jwks != NULL;
}

/* All of standard input up to just more than a token may have: the rest changes nothing. */
static bool read_token(struct buf *token)
{
    while (token->len <= JOSE_TOKEN_MAX) {
        char chunk[4096];
        ssize_t got = read(STDIN_FILENO, chunk, sizeof(chunk));
        if (got < 0) {
            return false;
        }
        if (got == 0) {
            break;
        }
        buf_add(token, chunk, (size_t)got);
    }
    return true;
}

static void print_texts(struct enc *enc, const char *key, const struct str *items, size_t count)
{
    enc_key(enc, key);
    enc_arr(enc);
    for (size_t i = 0; i < count; i++) {
        enc_str(enc, items[i]);
    }
    enc_arr_end(enc);
}

/* Values of one key stand together. */
static void print_extra(struct enc *enc, const struct oidc_verdict *verdict)
{
    enc_key(enc, "extra");
    enc_obj(enc);
    for (size_t i = 0; i < verdict->extra_count; i++) {
        struct str key = verdict->extra[i].name;
        bool same = i > 0 && str_eq(verdict->extra[i - 1].name, key);
        if (!same && i > 0) {
            enc_arr_end(enc);
        }
        if (!same) {
            enc_key_str(enc, key);
            enc_arr(enc);
        }
        enc_str(enc, verdict->extra[i].value);
    }
    enc_arr_end(enc);
    enc_obj_end(enc);
}

static void print_valid(struct enc *enc, const struct oidc_verdict *verdict)
{
    enc_key(enc, "username");
    enc_str(enc, verdict->username);
    print_texts(enc, "groups", verdict->groups.items, verdict->groups.count);
    enc_key(enc, "issuer");
    enc_str(enc, verdict->issuer);
    enc_key(enc, "subject");
    enc_str(enc, verdict->subject);
    if (verdict->uid.len > 0) {
        enc_key(enc, "uid");
        enc_str(enc, verdict->uid);
    }
    if (verdict->extra_count > 0) {
        print_extra(enc, verdict);
    }
}

static void print_verdict(const struct oidc_verdict *verdict, const struct jwk_set *keys)
{
    CLEANUP(buf_free) struct buf out = {0};
    struct enc enc;
    enc_init(&enc, &out);
    enc_obj(&enc);
    enc_key(&enc, "valid");
    enc_bool(&enc, verdict->reason == OIDC_OK);
    if (verdict->reason == OIDC_OK) {
        print_valid(&enc, verdict);
    } else {
        enc_key(&enc, "reason");
        enc_cstr(&enc, oidc_reason_code(verdict->reason));
        enc_key(&enc, "detail");
        enc_cstr(&enc, verdict->detail);
        enc_key(&enc, "check");
        enc_cstr(&enc, oidc_checks[verdict->stopped].word);
    }
    struct str warnings[OIDC_WARNINGS_MAX];
    for (size_t i = 0; i < verdict->warning_count; i++) {
        warnings[i] = str_of(verdict->warnings[i]);
    }
    print_texts(&enc, "warnings", warnings, verdict->warning_count);
    enc_key(&enc, "keys_skipped");
    enc_arr(&enc);
    for (size_t i = 0; i < keys->skipped_count; i++) {
        enc_obj(&enc);
        enc_key(&enc, "kid");
        enc_str(&enc, keys->skipped[i].kid);
        enc_key(&enc, "reason");
        enc_cstr(&enc, jwk_skip_word(keys->skipped[i].skip));
        enc_key(&enc, "detail");
        enc_cstr(&enc, keys->skipped[i].detail);
        enc_obj_end(&enc);
    }
    enc_arr_end(&enc);
    enc_obj_end(&enc);
    (void)printf("%s\n", out.ptr);
}

static bool show_problems(const char *file, const struct authn_config *config)
{
    for (size_t i = 0; i < config->error_count; i++) {
        (void)fprintf(stderr, "muster: %s: %s: %s\n", file, config->errors[i].field,
                      config->errors[i].message);
    }
    return false;
}

/* An AuthenticationConfiguration; expressions that are not run here make it useless for a check. */
static bool read_authn(struct arena *arena, const struct options *options, const json_t *root,
                       struct oidc_issuer **ret_issuers, size_t *ret_count)
{
    struct authn_config config;
    /* What loads and then refuses every login is used: the verdict says why. */
    if (!authn_config_read(arena, root, STR(""), &config) &&
        config.error_count > config.own_count) {
        return show_problems(options->config, &config);
    }
    for (size_t i = 0; i < config.issuer_count; i++) {
        const char *function = oidc_issuer_not_run(&config.issuers[i]);
        if (function != NULL) {
            (void)fprintf(stderr,
                          "muster: %s: jwt[%zu]: the CEL function %s is not evaluated here, so no "
                          "token can be judged\n",
                          options->config, i, function);
            return false;
        }
        if (options->client_id != NULL) {
            config.issuers[i].client_id = str_of(options->client_id);
        }
    }
    if (config.issuer_count == 0) {
        (void)say(options->config, "it has no issuer (jwt)");
        return false;
    }
    *ret_issuers = config.issuers;
    *ret_count = config.issuer_count;
    return true;
}

/* An issuer as the API takes it. JSON is decoded as it stands, YAML by way of JSON. */
static bool read_issuer(struct arena *arena, const struct options *options, struct str text,
                        const json_t *root, struct oidc_issuer *ret)
{
    struct decode_errors errors = {0};
    const char *detail = NULL;
    CLEANUP(cleanup_free) char *dumped = json_dumps(root, JSON_COMPACT);
    if (dumped != NULL && str_trim(text).ptr[0] != '{') {
        text = str_of(arena_strndup(arena, dumped, strlen(dumped)));
    }
    struct oidc_issuer_source source = {text, str_of(options->client_id), options->allow_private};
    enum err err = oidc_issuer_read(arena, &source, ret, &errors, &detail);
    for (size_t i = 0; i < errors.count; i++) {
        (void)fprintf(stderr, "muster: %s: %s: %s\n", options->config, errors.items[i].pointer,
                      errors.items[i].detail);
    }
    if (err != ERR_NONE && errors.count == 0) {
        (void)say(options->config, detail != NULL ? detail : err_info(err)->title);
    }
    return err == ERR_NONE;
}

static int judge(struct arena *arena, const struct options *options, struct str text,
                 const struct jwk_set *keys, struct str token)
{
    struct oidc_issuer one;
    struct oidc_issuer *issuers = &one;
    size_t count = 1;
    struct oidc_verdict verdict;
    const char *why = "";
    json_auto_t *root = authn_config_parse(arena, text, &why);
    if (root == NULL) {
        return say(options->config, why);
    }
    bool good = authn_config_is_one(root) ? read_authn(arena, options, root, &issuers, &count)
                                          : read_issuer(arena, options, text, root, &one);
    if (!good) {
        return 1;
    }
    const struct oidc_issuer *issuer =
        oidc_find_issuer(arena, issuers, count, options->question.decrypt, token);
    oidc_verify(arena, issuer != NULL ? issuer : &issuers[0], keys, token, &options->question,
                &verdict);
    print_verdict(&verdict, keys);
    return 0;
}

/* Our private keys, where the issuer encrypts its tokens. */
static bool read_private_keys(const char *file, struct jwe_keys **ret_keys)
{
    CLEANUP(buf_free) struct buf text = {0};
    const char *why = "";
    int failed = file_read(file, JWK_SET_MAX_BYTES, &text);
    if (failed != 0) {
        (void)say(file, strerror(failed));
        return false;
    }
    *ret_keys = jwe_keys_parse(buf_str(&text), &why);
    if (*ret_keys == NULL) {
        (void)say(file, why);
    }
    return *ret_keys != NULL;
}

int oidc_check(int argc, char **argv)
{
    struct options options = {0};
    const char *why = "";
    if (!parse_options(argc, argv, &options)) {
        (void)fprintf(stderr, "muster oidc check --config FILE --jwks FILE [--now UNIX] "
                              "[--client-id ID] [--use id|access|logout] [--nonce TEXT] "
                              "[--decrypt JWKS] [--allow-private] < token\n");
        return 2;
    }
    CLEANUP(buf_free) struct buf config = {0};
    CLEANUP(buf_free) struct buf jwks = {0};
    CLEANUP(buf_free) struct buf token = {0};
    int failed = file_read(options.config, AUTHN_MAX_BYTES, &config);
    if (failed != 0) {
        return say(options.config, strerror(failed));
    }
    failed = file_read(options.jwks, JWK_SET_MAX_BYTES, &jwks);
    if (failed != 0) {
        return say(options.jwks, strerror(failed));
    }
    if (!read_token(&token)) {
        return say("the token on standard input", strerror(errno));
    }
    CLEANUP(arena_freep) struct arena *arena = arena_new(ARENA_CAP);
    CLEANUP(jwk_set_freep) struct jwk_set *keys = jwk_set_parse(buf_str(&jwks), &why);
    if (keys == NULL) {
        return say(options.jwks, why);
    }
    struct jwe_keys *decrypt = NULL;
    if (options.decrypt != NULL && !read_private_keys(options.decrypt, &decrypt)) {
        return 1;
    }
    options.question.decrypt = decrypt;
    int status = judge(arena, &options, buf_str(&config), keys, buf_str(&token));
    jwe_keys_free(decrypt);
    return status;
}
