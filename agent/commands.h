/* The subcommands of muster-agent: each takes what follows its name and returns the exit status. */
#ifndef AGENT_COMMANDS_H
#define AGENT_COMMANDS_H

int command_run(int argc, char **argv);
int command_enroll(int argc, char **argv);
int command_classify(int argc, char **argv);
int command_inject(int argc, char **argv);

#endif
