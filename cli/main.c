/* muster: the command line. */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/config.h"
#include "base/file.h"
#include "base/log.h"
#include "cli/commands.h"
#include "cli/store.h"

#define TOKEN_MAX 16384
#define TOKEN_FILE ".muster/admin.token"

static const char *server;
static const char *token_file;
static const char *token_text;
static const char *ca_file;
static const char *cluster;
static const char *comment;
static bool json;
static bool yes;

static const struct config_key keys[] = {
    {"server", CONFIG_STR, &server, "http://127.0.0.1:8080", 0, 0, "The server's address."},
    {"token_file", CONFIG_STR, &token_file, TOKEN_FILE, 0, 0, "File with an API token."},
    {"token", CONFIG_SECRET, &token_text, "", 0, 0,
     "The API token itself; goes before token_file."},
    {"ca_file", CONFIG_STR, &ca_file, "", 0, 0, "Certificates to trust for https."},
    {"cluster", CONFIG_STR, &cluster, "", 0, 0, "The cluster's name, where there are several."},
    {"comment", CONFIG_STR, &comment, "", 0, 0, "Why; kept in the history."},
    {"json", CONFIG_BOOL, &json, "false", 0, 0, "Print JSON."},
    {"yes", CONFIG_BOOL, &yes, "false", 0, 0, "Do not ask before a repair is approved."},
};

static void show_usage(FILE *out)
{
    (void)fprintf(out, "muster [options] COMMAND\n\nCommands:\n");
    for (size_t i = 0; i < command_rows_count; i++) {
        char words[64];
        (void)snprintf(words, sizeof(words), "%s %s", command_rows[i].words,
                       command_rows[i].operands);
        (void)fprintf(out, "  %-28s %s\n", words, command_rows[i].help);
    }
    (void)fprintf(out, "\nOptions (also as MUSTER_NAME in the environment):\n");
    for (size_t i = 0; i < COUNTOF(keys); i++) {
        (void)fprintf(out, "  --%-26s %s\n", keys[i].name, keys[i].help);
    }
}

/* True for an option whose value is the next word. */
static bool takes_value(const char *option)
{
    for (size_t i = 0; i < COUNTOF(keys); i++) {
        if (strcmp(option + 2, keys[i].name) == 0) {
            return keys[i].type != CONFIG_BOOL;
        }
    }
    return strchr(option, '=') == NULL && strcmp(option, "--token-file") == 0;
}

/* Splits the words into options and the rest; both keep their order. A bare switch gets "=true". */
static void split_words(int argc, char **argv, char **options, int *ret_options, char **words,
                        int *ret_words)
{
    static char switches[2][16] = {"--json=true", "--yes=true"};
    *ret_options = *ret_words = 0;
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "--", 2) != 0) {
            words[(*ret_words)++] = argv[i];
        } else if (strcmp(argv[i], "--json") == 0 || strcmp(argv[i], "--yes") == 0) {
            options[(*ret_options)++] = switches[strcmp(argv[i], "--yes") == 0];
        } else {
            options[(*ret_options)++] = argv[i];
            if (takes_value(argv[i]) && i + 1 < argc) {
                options[(*ret_options)++] = argv[++i];
            }
        }
    }
}

/* The row whose words begin the line; *ret_used says how many words they are. */
static const struct command_row *find_command(int count, char **words, int *ret_used)
{
    for (size_t i = 0; i < command_rows_count; i++) {
        struct str rest = str_of(command_rows[i].words);
        struct str word;
        int used = 0;
        bool same = true;
        while (str_split(&rest, ' ', &word)) {
            same = same && used < count && str_eq_c(word, words[used]);
            used++;
        }
        if (same) {
            *ret_used = used;
            return &command_rows[i];
        }
    }
    return NULL;
}

/* The row of a command without a server. Its words come first, since its options are its own. */
static const struct command_row *find_local(int argc, char **argv, int *ret_used)
{
    const struct command_row *row = find_command(argc - 1, argv + 1, ret_used);
    return row != NULL && row->run_local != NULL ? row : NULL;
}

/* The token to ask with: given, in a file that was named, kept by `muster login`, or the file of
 * the local trial. False after printing what to do. */
static bool find_token(struct buf *token)
{
    json_t *kept = NULL;
    if (token_text[0] != '\0') {
        buf_add_c(token, token_text);
        return true;
    }
    if (strcmp(token_file, TOKEN_FILE) == 0 && (kept = store_get(server)) != NULL) {
        buf_add_c(token, json_string_value(json_object_get(kept, "access_token")));
        json_decref(kept);
        return true;
    }
    CLEANUP(buf_free) struct buf data = {0};
    int failed = file_read(token_file, TOKEN_MAX, &data);
    if (failed != 0) {
        (void)fprintf(stderr,
                      "muster: not signed in to %s, and the token file %s cannot be read: %s. Run "
                      "`muster login --server URL`, or give --token_file FILE.\n",
                      server, token_file, strerror(failed));
        return false;
    }
    struct str trimmed = str_trim(buf_str(&data));
    buf_add(token, trimmed.ptr, trimmed.len);
    return true;
}

static int run_row(const struct command_row *row, int argc, char **argv)
{
    CLEANUP(buf_free) struct buf token = {0};
    if (argc < row->operand_count) {
        (void)fprintf(stderr, "muster: %s needs %s\n", row->words, row->operands);
        return 2;
    }
    if (!row->without_token && !find_token(&token)) {
        return 2;
    }
    const char *ca = ca_file[0] != '\0' ? ca_file : NULL;
    struct command_line line = {
        .client = client_new(server, token.ptr != NULL ? token.ptr : "", ca),
        .server = server,
        .ca_file = ca,
        .cluster = cluster[0] != '\0' ? cluster : NULL,
        .json = json,
        .argc = argc,
        .argv = argv,
        .comment = comment,
        .yes = yes,
    };
    int status = row->run(&line);
    client_free(line.client);
    return status;
}

int main(int argc, char **argv)
{
    log_setup("muster", LOG_WARNING, false);
    int own = 0;
    const struct command_row *local = find_local(argc, argv, &own);
    if (local != NULL) {
        return local->run_local(argc - 1 - own, argv + 1 + own);
    }
    char **options = calloc((size_t)argc * 2 + 2, sizeof(*options));
    char **words = calloc((size_t)argc + 1, sizeof(*words));
    int option_count;
    int word_count;
    int status = 2;
    if (options == NULL || words == NULL) {
        return 1;
    }
    split_words(argc, argv, options, &option_count, words, &word_count);
    char error[256];
    struct config_source source = {.argc = option_count, .argv = options};
    int used = 0;
    const struct command_row *row = find_command(word_count, words, &used);
    if (word_count == 0 || strcmp(words[0], "help") == 0) {
        show_usage(stdout);
        status = 0;
    } else if (strcmp(words[0], "version") == 0) {
        (void)printf("muster %s\n", MUSTER_VERSION);
        status = 0;
    } else if (!config_load(keys, COUNTOF(keys), &source, error, sizeof(error))) {
        (void)fprintf(stderr, "muster: %s\n", error);
    } else if (row == NULL || row->run_local != NULL) {
        (void)fprintf(stderr, "muster: there is no command %s here. `muster help` lists them.\n",
                      words[0]);
    } else {
        status = run_row(row, word_count - used, words + used);
    }
    free(words);
    free(options);
    return status;
}
