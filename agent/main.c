/* muster-agent: watches one node, reports what it sees, and carries out what it is told. */
#include <stdio.h>
#include <string.h>

#include "agent/commands.h"
#include "base/cleanup.h"

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
} commands[] = {
    {"run", command_run, "watch this node and report to the server"},
    {"enroll", command_enroll, "join a cluster with a join token"},
    {"classify", command_classify, "judge logs and tools' output on standard input"},
    {"inject", command_inject, "write a marked kernel line; on test machines only"},
};

static void print_help(FILE *out)
{
    (void)fprintf(out, "Usage: muster-agent COMMAND [OPTIONS]\n\nCommands:\n");
    for (size_t i = 0; i < COUNTOF(commands); i++) {
        (void)fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].help);
    }
    (void)fprintf(out, "  %-10s %s\n  %-10s %s\n", "version", "print the version", "help",
                  "print this");
    (void)fprintf(
        out, "\nThe configuration is /etc/muster/agent.conf (--config FILE); each key is also an "
             "option.\n");
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";

    for (size_t i = 0; i < COUNTOF(commands); i++) {
        if (strcmp(name, commands[i].name) == 0) {
            return commands[i].run(argc - 2, argv + 2);
        }
    }
    if (strcmp(name, "version") == 0 || strcmp(name, "--version") == 0) {
        (void)printf("muster-agent %s\n", MUSTER_VERSION);
        return 0;
    }
    if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0) {
        print_help(stdout);
        return 0;
    }
    if (name[0] != '\0') {
        (void)fprintf(stderr, "muster-agent: there is no command \"%s\".\n", name);
    }
    print_help(stderr);
    return 2;
}
