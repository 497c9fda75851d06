/* The agent's configuration: /etc/muster/agent.conf, then MUSTER_* variables, then options. */
#ifndef AGENT_OPTIONS_H
#define AGENT_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

#define OPTIONS_FILE "/etc/muster/agent.conf"
#define NODE_NAME_CAP 254

struct options {
    const char *server_url;
    const char *ca_file; /* "" = the system's */
    const char *state_dir;
    const char *node_name; /* never empty after options_load */
    const char *join_token_file;
    const char *join_token;
    const char *boot_id_file; /* "" = the kernel's */
    const char *root;         /* in front of /proc, /sys and /dev; "" = none */
    const char *nvml_library;
    const char *allowed_actions; /* comma separated */
    const char *reboot_program;  /* words separated by blanks; no shell */
    const char *reset_gpu_program;
    const char *deny_file;
    const char *rack; /* the node's place; "" = not said */
    const char *leaf;
    const char *partition;
    const char *log_level;
    const char *programs_path;  /* folders of scontrol, chronyc ..., separated by ':' */
    const char *services;       /* "auto", or units separated by commas */
    const char *expected_ports; /* interfaces, InfiniBand ports or PCI addresses, by commas */
    const char *slurm_node;     /* this node's name in Slurm; "" = the host name's first part */
    const char *dcgm_url;       /* of dcgm-exporter, on loopback; "" = not asked */
    const char *fabric_manager_log;
    const char *driver_grace_file; /* while it is young, the driver is being exchanged */
    const char *check_cgroup;      /* folder of a cgroup that command checks run in; "" = none */
    int64_t expected_gpus;         /* -1 = not said */
    int64_t expected_port_gbps;    /* 0 = not said */
    int64_t collect_interval_ms;   /* between two looks of a source; 0 = as it has it */
    int64_t boot_grace_seconds;
    int64_t driver_grace_seconds;
    int64_t destructive_per_hour;
    int64_t interval_seconds; /* 0 = what the server says */
    int64_t probe_timeout_seconds;
    int64_t spool_mib;
    int64_t reboot_deadline_seconds;
    bool command_checks; /* the ceiling: whether command checks of the server run here */
    bool accept_user_kmsg;
    bool log_json;
};

/*
 * argv holds options only. --config FILE (default OPTIONS_FILE, which may be absent) names the
 * file. False with a sentence in error on any refusal. Sets up the log.
 */
bool options_load(int argc, char **argv, struct options *ret_options, char *error,
                  size_t error_cap) MUST_CHECK;
/* A path below root: "<root><path>". The text lives in buf. */
const char *options_path(const struct options *options, const char *path, char *buf, size_t cap);

#endif
