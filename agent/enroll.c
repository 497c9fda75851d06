/* The subcommands `enroll` and `inject`. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/commands.h"
#include "agent/identity.h"
#include "agent/options.h"
#include "agent/uplink.h"
#include "base/file.h"

static int refuse(const char *command, const char *error)
{
    (void)fprintf(stderr, "muster-agent %s: %s\n", command, error);
    return 2;
}

int command_enroll(int argc, char **argv)
{
    struct identity identity = {.key = NULL};
    struct options options;
    char error[512];

    if (!options_load(argc, argv, &options, error, sizeof(error))) {
        return refuse("enroll", error);
    }
    if (options.server_url[0] == '\0') {
        return refuse("enroll", "server_url is not set");
    }
    if (!identity_load(options.state_dir, &identity, error, sizeof(error))) {
        return refuse("enroll", error);
    }
    if (identity.enrolled) {
        (void)printf("already enrolled as node %s\n", identity.node_id);
        identity_free(&identity);
        return 0;
    }
    bool done = uplink_enroll_now(&options, &identity, error, sizeof(error));
    if (done) {
        (void)printf("enrolled %s as node %s\n", options.node_name, identity.node_id);
    }
    identity_free(&identity);
    return done ? 0 : refuse("enroll", error);
}

/* Cuts "--line TEXT" out of the options. */
static const char *cut_line(int *argc, char **argv)
{
    const char *line = NULL;
    int kept = 0;

    for (int i = 0; i < *argc; i++) {
        if (strcmp(argv[i], "--line") == 0 && i + 1 < *argc) {
            line = argv[++i];
        } else if (strncmp(argv[i], "--line=", 7) == 0) {
            line = argv[i] + 7;
        } else {
            argv[kept++] = argv[i];
        }
    }
    *argc = kept;
    return line;
}

int command_inject(int argc, char **argv)
{
    const char *line = cut_line(&argc, argv);
    struct options options;
    char path[PATH_MAX];
    char error[512];
    char text[1200];

    if (!options_load(argc, argv, &options, error, sizeof(error))) {
        return refuse("inject", error);
    }
    if (!options.accept_user_kmsg) {
        return refuse("inject", "this agent does not believe lines of processes; a test machine "
                                "sets accept_user_kmsg = true");
    }
    if (line == NULL || line[0] == '\0' || strlen(line) > 900 || strchr(line, '\n') != NULL) {
        return refuse("inject", "give --line TEXT, one line of at most 900 bytes");
    }
    int len = snprintf(text, sizeof(text), "<12>muster-inject: %s\n", line);
    (void)options_path(&options, "/dev/kmsg", path, sizeof(path));
    CLEANUP(cleanup_fd) int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0 || write(fd, text, (size_t)len) != len) {
        (void)snprintf(error, sizeof(error), "%.300s: %s", path, strerrordesc_np(errno));
        return refuse("inject", error);
    }
    return 0;
}
