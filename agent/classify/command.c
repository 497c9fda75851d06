/* The subcommand `classify`: standard input to JSON lines. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/classify/classify.h"
#include "agent/commands.h"
#include "base/file.h"

static int refuse(const char *format, const char *detail)
{
    (void)fprintf(stderr, "muster-agent classify: ");
    (void)fprintf(stderr, "%s%s\n", format, detail);
    return 2;
}

static void list_sources(void)
{
    (void)fprintf(stderr, "Sources:");
    for (size_t i = 0; i < classify_source_count; i++) {
        (void)fprintf(stderr, " %s", classify_sources[i].name);
    }
    (void)fprintf(stderr, "\n");
}

/* 0, or an errno; more than CLASSIFY_INPUT_MAX is EFBIG. */
static int read_input(struct buf *input)
{
    char piece[64 * 1024];

    for (;;) {
        ssize_t got = read(STDIN_FILENO, piece, sizeof(piece));

        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return errno;
        }
        if (got == 0) {
            return 0;
        }
        if (input->len + (size_t)got > CLASSIFY_INPUT_MAX) {
            return EFBIG;
        }
        buf_add(input, piece, (size_t)got);
    }
}

/* "--name value" or "--name=value"; moves *index over a separate value. */
static const char *option_value(const char *name, int argc, char **argv, int *index)
{
    size_t len = strlen(name);

    if (argv[*index] == NULL || strncmp(argv[*index], name, len) != 0) {
        return NULL;
    }
    if (argv[*index][len] == '=') {
        return argv[*index] + len + 1;
    }
    if (argv[*index][len] == '\0' && *index + 1 < argc) {
        (*index)++;
        return argv[*index];
    }
    return NULL;
}

int command_classify(int argc, char **argv)
{
    CLEANUP(buf_free) struct buf input = {0};
    CLEANUP(buf_free) struct buf out = {0};
    const char *source = NULL;
    const char *context = "";
    const char *error = NULL;
    bool events = false;

    for (int i = 0; i < argc; i++) {
        if (argv[i] != NULL && strcmp(argv[i], "--events") == 0) {
            events = true;
            continue;
        }
        const char *value = option_value("--source", argc, argv, &i);

        if (value != NULL) {
            source = value;
            continue;
        }
        value = option_value("--context", argc, argv, &i);
        if (value == NULL) {
            return refuse("unknown or incomplete option ", argv[i]);
        }
        context = value;
    }
    if (source == NULL) {
        list_sources();
        return refuse("give --source NAME", "");
    }
    int failed = read_input(&input);
    if (failed == EFBIG) {
        return refuse("the input is larger than 16 MiB; give it in pieces", "");
    }
    if (failed != 0) {
        return refuse("standard input cannot be read: ", strerrordesc_np(failed));
    }
    bool done =
        events ? classify_run_events(str_of(source), str_of(context), buf_str(&input), &out, &error)
               : classify_run(str_of(source), str_of(context), buf_str(&input), &out, &error);
    if (!done) {
        list_sources();
        return refuse(error, "");
    }
    failed = file_write_all(STDOUT_FILENO, buf_str(&out));
    return failed == 0 ? 0 : refuse("standard output cannot be written: ", strerrordesc_np(failed));
}
