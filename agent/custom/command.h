/*
 * Command checks of an organization's own: programs with limits, at most two at once, as another
 * user, killed at their deadline. Their exit status is read as Nagios' plugins have it: 0 good, 1
 * warning, 2 critical; everything else says something about the check, not about the node.
 */
#ifndef AGENT_CUSTOM_COMMAND_H
#define AGENT_CUSTOM_COMMAND_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/faults.h"
#include "agent/options.h"
#include "agent/settings.h"
#include "base/buf.h"

#define OWN_COMMANDS_AT_ONCE 2

/* What is remembered of each check, in the order of the settings. */
struct own_command {
    char id[SETTINGS_NAME_CAP];
    int64_t version;
    int64_t due_us;
    unsigned bad; /* runs in a row that failed: warning or critical */
    unsigned odd; /* runs in a row that said nothing of the node */
    unsigned good;
    pid_t undead; /* a killed program that does not die: no second one is started behind it */
    uint64_t started;
};

struct own_run {
    size_t at; /* its check in the settings */
    pid_t pid; /* 0 = none runs here */
    int out;   /* its output, -1 = closed */
    int64_t deadline_us;
    bool killed;
    struct buf text;
};

struct own_commands {
    struct own_command list[SETTINGS_CHECKS_MAX];
    size_t count;
    struct own_run runs[OWN_COMMANDS_AT_ONCE];
};

void own_commands_init(struct own_commands *commands);
/* Takes over what is known of checks that did not change; what runs is killed. allowed: this node's
 * configuration lets command checks run. */
void own_commands_set(struct own_commands *commands, const struct settings *settings, bool allowed,
                      int64_t now_us);
/* Starts what is due, takes what has ended, kills what is late. */
void own_commands_tick(struct own_commands *commands, const struct settings *settings,
                       const struct options *options, struct faults *faults, int64_t now_us);
/* Kills what runs. */
void own_commands_stop(struct own_commands *commands);
int64_t own_commands_due(const struct own_commands *commands);
/* The descriptor of a run for poll, -1 = none. */
int own_commands_fd(const struct own_commands *commands, size_t run);

/* What one run says; text is its output. For tests. */
void own_command_result(struct own_command *command, const struct own_check *check, int status,
                        struct str text, struct faults *faults);

#endif
