/* Commands that need no server: they judge files and tokens on the spot. */
#ifndef CLI_LOCAL_H
#define CLI_LOCAL_H

/* argv holds the words after the command's own. Exit 0: a verdict was printed, whatever it says;
 * 1: a file or the input cannot be used; 2: wrong options. */
int oidc_check(int argc, char **argv);
int authn_config_validate(int argc, char **argv);
int authn_config_print(int argc, char **argv);

#endif
