/* What the installation's owner lets Muster drive: schedulers and machines, from one file. */
#ifndef SERVER_REPAIR_EXECUTORS_TARGETS_H
#define SERVER_REPAIR_EXECUTORS_TARGETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/str.h"

/*
 * The file is JSON (configuration key executors_file; docs/executors.md has the fields). It names
 * hosts, programs and files with secrets; no org can change it. Texts end with a NUL byte and live
 * until the process ends.
 */
#define TARGETS_FILE_MAX ((size_t)1 << 20) /* bytes */
#define TARGETS_MAX 64                     /* schedulers */

struct scheduler;

/* The scheduler of one cluster. Fields of another kind are empty. */
struct scheduler_target {
    struct str org;
    struct str cluster;
    const struct scheduler *scheduler;
    struct str config;  /* slurm: slurm.conf; empty = the clients' own default */
    struct str bin_dir; /* slurm: where scontrol, sinfo and squeue are; empty = PATH */
    struct str server;  /* kubernetes: https://host:port */
    struct str ca_file;
    struct str token_file; /* read at each use: tokens are rotated by the kubelet */
    struct str certificate_file;
    struct str key_file;
    int64_t timeout_s; /* of one call; 1 to 60 */
};

/* Reads the file once, before any thread starts. "" = there is none. False with a sentence that
 * names the entry and the field. */
bool targets_read(const char *path, char *error, size_t error_cap) MUST_CHECK;

size_t targets_count(void);
const struct scheduler_target *target_at(size_t index);
/* NULL = no scheduler is configured for it. */
const struct scheduler_target *target_find(struct str org, struct str cluster);

#endif
