/* The subcommand `inject`: writes a marked kernel line, or a marked fault of any check. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/commands.h"
#include "agent/options.h"
#include "agent/rules/checks.h"
#include "agent/rules/injection.h"
#include "base/buf.h"
#include "base/file.h"

#define LINE_MAX_BYTES 900

/* Options of this command alone, beside those of the configuration. */
static const char *const words[] = {"check", "code", "device", "severity", "action"};

struct wishes {
    const char *line;
    const char *values[COUNTOF(words)];
    bool clear;
    bool list;
};

static int refuse(const char *error)
{
    (void)fprintf(stderr, "muster-agent inject: %s\n", error);
    return 2;
}

/* "--name value" or "--name=value"; moves *at over a separate value. NULL = another option. */
static const char *take_value(const char *name, int argc, char **argv, int *at)
{
    size_t len = strlen(name);

    if (strncmp(argv[*at], "--", 2) != 0 || strncmp(argv[*at] + 2, name, len) != 0) {
        return NULL;
    }
    const char *rest = argv[*at] + 2 + len;
    if (*rest == '=') {
        return rest + 1;
    }
    return *rest == '\0' && *at + 1 < argc ? argv[++*at] : NULL;
}

static bool take_wish(struct wishes *wishes, int argc, char **argv, int *at)
{
    const char *value = take_value("line", argc, argv, at);

    if (value != NULL) {
        wishes->line = value;
        return true;
    }
    for (size_t i = 0; i < COUNTOF(words); i++) {
        value = take_value(words[i], argc, argv, at);
        if (value != NULL) {
            wishes->values[i] = value;
            return true;
        }
    }
    if (strcmp(argv[*at], "--clear") == 0) {
        wishes->clear = true;
        return true;
    }
    if (strcmp(argv[*at], "--list") == 0) {
        wishes->list = true;
        return true;
    }
    return false;
}

/* Takes this command's own options out; the rest stays in order. */
static int cut_wishes(int argc, char **argv, struct wishes *wishes)
{
    int kept = 0;

    for (int i = 0; i < argc; i++) {
        if (!take_wish(wishes, argc, argv, &i)) {
            argv[kept++] = argv[i];
        }
    }
    return kept;
}

static bool has_break(const char *text)
{
    return strpbrk(text, "\r\n") != NULL;
}

/* The text behind the mark; false with a sentence in error. */
static bool make_text(const struct wishes *wishes, struct buf *text, const char **error)
{
    struct finding ignored;

    if (wishes->line != NULL) {
        buf_add_c(text, wishes->line);
        *error = "give --line TEXT, one line of at most 900 bytes";
        return text->len > 0 && text->len <= LINE_MAX_BYTES && !has_break(wishes->line);
    }
    *error = "give --line TEXT, or --check NAME (--list shows them) with --code, --device, "
             "--severity, --action or --clear";
    if (wishes->values[0] == NULL) {
        return false;
    }
    for (size_t i = 0; i < COUNTOF(words); i++) {
        if (wishes->values[i] != NULL) {
            buf_printf(text, "%s%s=%s", i > 0 ? " " : "", words[i], wishes->values[i]);
        }
    }
    if (wishes->clear) {
        buf_add_c(text, " clear=yes");
    }
    *error = "there is no such check, severity or action, or a value holds blanks";
    return text->len <= LINE_MAX_BYTES && !has_break(text->ptr) &&
           injection_parse(buf_str(text), &ignored);
}

int command_inject(int argc, char **argv)
{
    CLEANUP(buf_free) struct buf text = {0};
    CLEANUP(buf_free) struct buf line = {0};
    struct wishes wishes = {.line = NULL};
    struct options options;
    const char *why;
    char path[PATH_MAX];
    char error[512];

    argc = cut_wishes(argc, argv, &wishes);
    if (wishes.list) {
        for (size_t i = 0; i < check_row_count; i++) {
            (void)printf("%s\n", check_rows[i].id);
        }
        return 0;
    }
    if (!options_load(argc, argv, &options, error, sizeof(error))) {
        return refuse(error);
    }
    if (!options.accept_user_kmsg) {
        return refuse("this agent does not believe lines of processes; a test machine sets "
                      "accept_user_kmsg = true");
    }
    if (!make_text(&wishes, &text, &why)) {
        return refuse(why);
    }
    buf_printf(&line, "<12>" INJECTION_MARK "%s\n", text.ptr);
    (void)options_path(&options, "/dev/kmsg", path, sizeof(path));
    CLEANUP(cleanup_fd) int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0 || write(fd, line.ptr, line.len) != (ssize_t)line.len) {
        (void)snprintf(error, sizeof(error), "%.300s: %s", path, strerrordesc_np(errno));
        return refuse(error);
    }
    return 0;
}
