/* What the installation's owner lets Muster drive: schedulers, machines and provisioners, from one
 * file. */
#ifndef SERVER_REPAIR_EXECUTORS_TARGETS_H
#define SERVER_REPAIR_EXECUTORS_TARGETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "server/repair/action.h"

/*
 * The file is JSON (configuration key executors_file; docs/executors.md has the fields). It names
 * hosts, programs and files with secrets; no org can change it. Texts end with a NUL byte and live
 * until the process ends.
 */
#define TARGETS_FILE_MAX ((size_t)1 << 20) /* bytes */
#define TARGETS_MAX 64                     /* schedulers */
#define MACHINES_MAX 16384
#define PROVISIONERS_MAX 64

struct scheduler;
struct machine_driver;

/* The controller (BMC) of one node. Fields of another kind are empty. */
struct machine {
    struct str org;
    struct str cluster;
    struct str node;
    const struct machine_driver *driver;
    struct str user;
    struct str password_file; /* read at each use */
    struct str host;          /* ipmi: a name or an address */
    int64_t port;             /* ipmi; 623 */
    int64_t cipher_suite;     /* ipmi: 0 to 17; 3 is what every controller has, 17 the newest */
    struct str url;           /* redfish: https://host[:port] */
    struct str system;        /* redfish: the id of the host system; empty = the only one */
    struct str ca_file;       /* redfish */
    int64_t timeout_s;        /* of one call; 1 to 60 */
};

/* The operator's own automation of one cluster. */
struct hook_target {
    struct str org;
    struct str cluster;
    unsigned actions;       /* bits 1 << enum repair_action that it carries out */
    struct str url;         /* https:// */
    struct str status_url;  /* https://, with {id} in it; empty = it cannot be asked */
    struct str secret_file; /* read at each use */
    struct str ca_file;
    int64_t timeout_s; /* of one call; 1 to 60 */
};
#define HOOKS_MAX 64
#define HOOK_ACTIONS                                                           \
    (1u << ACTION_RESET_GPU | 1u << ACTION_REBOOT | 1u << ACTION_POWER_CYCLE | \
     1u << ACTION_REPROVISION)
/* What installs and powers the machines of one cluster: an OpenStack Ironic. It owns all of their
 * controllers, so none of them is in `machines`. */
struct provisioner {
    struct str org;
    struct str cluster;
    struct str url; /* https://host[:port][/path]; http:// to this host only */
    struct str ca_file;
    struct str user;           /* HTTP basic */
    struct str password_file;  /* read at each use */
    struct str token_file;     /* X-Auth-Token, read at each use */
    struct str resource_class; /* of the cluster's spares */
    struct str image_source;   /* what a spare is installed with; empty = no failover */
    struct str image_checksum;
    struct str user_data_file; /* configuration of what is installed on a spare */
    int64_t timeout_s;         /* of one call; 1 to 60 */
    int64_t power_s;           /* a change of power must show within; 1 to 3600 */
    int64_t poll_s;            /* between two looks at what takes long; 1 to 60 */
    int64_t install_s;         /* an installation must end within; 1 to 86400 */
};

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

/* NULL = the node's controller is not known. */
const struct machine *machine_find(struct str org, struct str cluster, struct str node);
/* NULL = no provisioner is configured for it. */
const struct provisioner *provisioner_find(struct str org, struct str cluster);
size_t provisioners_count(void);
const struct provisioner *provisioner_at(size_t index);
/* All clusters that have one, "org/cluster", as PostgreSQL's text of an array. */
const char *provisioner_names(void);
/* All nodes that have one, "org/cluster/node", as PostgreSQL's text of an array. */
const char *machine_names(void);

/* NULL = the cluster has no automation of its own. */
const struct hook_target *hook_find(struct str org, struct str cluster);
/* What it does there: bits 1 << enum repair_action; 0 = nothing. */
unsigned hook_actions(struct str org, struct str cluster);
/* All of that, "org/cluster/action", as PostgreSQL's text of an array. */
const char *hook_names(void);

#endif
