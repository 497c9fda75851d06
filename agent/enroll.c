/* The subcommand `enroll`. */
#include <stdio.h>

#include "agent/commands.h"
#include "agent/identity.h"
#include "agent/options.h"
#include "agent/uplink.h"

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
