/* What `muster` can do, as a table. */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/client.h"

struct command_line {
    struct client *client;
    const char *server;
    const char *ca_file; /* NULL = the system's */
    const char *cluster; /* name; NULL = the only one */
    bool json;
    int argc; /* after the command's own words */
    char **argv;
    const char *comment; /* --comment, "" when absent */
    bool yes;            /* --yes: do not ask */
};

struct command_row {
    const char *words;    /* "node show" */
    const char *operands; /* "NAME" */
    int operand_count;
    const char *help;
    int (*run)(const struct command_line *line); /* exit status */
    int (*run_local)(int argc, char **argv);     /* instead of run: no server, options of its own */
    bool without_token;                          /* run asks as nobody */
};

extern const struct command_row command_rows[];
extern const size_t command_rows_count;

#endif
