/* `musterd init`: the first organization, project, cluster, administrator and API token. */
#ifndef SERVER_INIT_H
#define SERVER_INIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"

struct init_options {
    const char *org; /* names: DNS labels */
    const char *project;
    const char *cluster;
    const char *admin;             /* the person who signs in by a one-time link */
    const char *token_file;        /* 0600; an existing token in it is kept */
    bool demo;                     /* the org's nodes are simulated: no command reaches a machine */
    int64_t healthy_delay_seconds; /* of the new cluster; quiet time that proves a repair */
};

/* Runs as the owner (database_migrate); running it again changes nothing. 0, or a sentence in
 * error. */
enum err init_run(const struct init_options *options, char *error, size_t error_cap) MUST_CHECK;

#endif
