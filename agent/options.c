/* The agent's configuration: /etc/muster/agent.conf, then MUSTER_* variables, then options. */
#include "agent/options.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/config.h"
#include "base/log.h"

#define ARGS_MAX 128

/* Variables that tests and other programs of ours use. */
static const char *const foreign[] = {"MUSTER_FAKE_NVML",  "MUSTER_BUILD",  "MUSTERD_STRIPPED",
                                      "MUSTER_WYCHEPROOF", "MUSTER_CONFIG", NULL};

static struct options loaded;
static char host_name[NODE_NAME_CAP];

/* clang-format off */
static const struct config_key keys[] = {
    {"server_url", CONFIG_STR, &loaded.server_url, "", 0, 1024, "Address of the server, https://host[:port]; plain http for loopback only."},
    {"ca_file", CONFIG_STR, &loaded.ca_file, "", 0, 4096, "PEM file of certificate authorities; empty = the system's."},
    {"state_dir", CONFIG_STR, &loaded.state_dir, "/var/lib/muster-agent", 1, 3072, "Folder for key, spool and command log; must survive a reboot."},
    {"node_name", CONFIG_STR, &loaded.node_name, "", 0, 253, "Name of this node; empty = the host name."},
    {"join_token_file", CONFIG_STR, &loaded.join_token_file, "", 0, 4096, "File with the join token, read when the node is not enrolled yet."},
    {"join_token", CONFIG_SECRET, &loaded.join_token, "", 0, 255, "Join token itself; prefer the file."},
    {"boot_id_file", CONFIG_STR, &loaded.boot_id_file, "", 0, 4096, "File with the boot id in place of the kernel's; for tests and the local demo."},
    {"root", CONFIG_STR, &loaded.root, "", 0, 2048, "Folder put in front of /proc, /sys and /dev; for tests."},
    {"nvml_library", CONFIG_STR, &loaded.nvml_library, "libnvidia-ml.so.1", 1, 4096, "NVIDIA's management library."},
    {"accept_user_kmsg", CONFIG_BOOL, &loaded.accept_user_kmsg, "false", 0, 0, "Also believe kernel log lines written by processes; for tests and the local demo."},
    {"allowed_actions", CONFIG_STR, &loaded.allowed_actions, "reboot,reset_gpu", 0, 255, "Actions this node carries out, comma separated; no signature lifts this."},
    {"destructive_per_hour", CONFIG_I64, &loaded.destructive_per_hour, "1", 0, 3600, "Interrupting actions begun per hour, at most."},
    {"reboot_program", CONFIG_STR, &loaded.reboot_program, "systemctl reboot", 1, 4096, "Program and arguments for a reboot, separated by blanks; no shell."},
    {"reset_gpu_program", CONFIG_STR, &loaded.reset_gpu_program, "nvidia-smi --gpu-reset -i {gpus}", 1, 4096, "Program and arguments for a GPU reset; {gpus} is their PCI addresses, joined by commas."},
    {"command_checks", CONFIG_BOOL, &loaded.command_checks, "false", 0, 0, "Run the command checks that the server sends; no signature lifts this."},
    {"check_cgroup", CONFIG_STR, &loaded.check_cgroup, "", 0, 3800, "Folder of a cgroup (version 2) that command checks run in; empty = none."},
    {"deny_file", CONFIG_STR, &loaded.deny_file, "/etc/muster/deny", 1, 4096, "While this file exists every command is refused."},
    {"rack", CONFIG_STR, &loaded.rack, "", 0, 63, "The rack this node stands in; groups nodes and limits repairs."},
    {"leaf", CONFIG_STR, &loaded.leaf, "", 0, 63, "The leaf switch this node hangs on."},
    {"partition", CONFIG_STR, &loaded.partition, "", 0, 63, "The scheduler's partition of this node."},
    {"expected_gpus", CONFIG_I64, &loaded.expected_gpus, "-1", -1, 64, "GPUs this node should have; -1 = not said."},
    {"expected_ports", CONFIG_STR, &loaded.expected_ports, "", 0, 1024, "Network ports this node should have, comma separated: interface, InfiniBand device/port, or PCI address."},
    {"expected_port_gbps", CONFIG_I64, &loaded.expected_port_gbps, "0", 0, 10000, "Gbit/s each expected InfiniBand port should run at; 0 = not said."},
    {"services", CONFIG_STR, &loaded.services, "auto", 0, 1024, "Units that should run, comma separated; auto = those of the known ones that are enabled."},
    {"slurm_node", CONFIG_STR, &loaded.slurm_node, "", 0, 253, "This node's name in Slurm; empty = the first part of node_name."},
    {"dcgm_url", CONFIG_STR, &loaded.dcgm_url, "http://127.0.0.1:9400/metrics", 0, 255, "Metrics of dcgm-exporter, on loopback; empty = not asked."},
    {"fabric_manager_log", CONFIG_STR, &loaded.fabric_manager_log, "/var/log/fabricmanager.log", 1, 2048, "Log of NVIDIA's fabric manager."},
    {"programs_path", CONFIG_STR, &loaded.programs_path, "/usr/sbin:/usr/bin:/sbin:/bin", 1, 2048, "Folders of the programs that are asked, separated by colons."},
    {"boot_grace_seconds", CONFIG_I64, &loaded.boot_grace_seconds, "600", 0, 7200, "After a boot, missing things are no fault for so long."},
    {"driver_grace_seconds", CONFIG_I64, &loaded.driver_grace_seconds, "900", 0, 7200, "While NVIDIA's driver is exchanged, missing GPUs are no fault for so long."},
    {"driver_grace_file", CONFIG_STR, &loaded.driver_grace_file, "/run/muster/driver-upgrade", 0, 2048, "While this file is younger than driver_grace_seconds, the driver is being exchanged."},
    {"collect_interval_ms", CONFIG_I64, &loaded.collect_interval_ms, "0", 0, 3600000, "Milliseconds between two looks of each source; 0 = as each source has it; for tests."},
    {"interval_seconds", CONFIG_I64, &loaded.interval_seconds, "0", 0, 3600, "Seconds between reports; 0 = as the server says."},
    {"probe_timeout_seconds", CONFIG_I64, &loaded.probe_timeout_seconds, "10", 1, 600, "Seconds after which a probe of a driver counts as not answered."},
    {"reboot_deadline_seconds", CONFIG_I64, &loaded.reboot_deadline_seconds, "600", 5, 86400, "Seconds after which a reboot that did not come counts as failed."},
    {"spool_mib", CONFIG_I64, &loaded.spool_mib, "64", 1, 4096, "MiB of events kept on disk while the server is away."},
    {"log_level", CONFIG_STR, &loaded.log_level, "info", 1, 16, "debug, info, warning or error."},
    {"log_json", CONFIG_BOOL, &loaded.log_json, "true", 0, 0, "One JSON object a line; false = plain text."},
};
/* clang-format on */

static bool refuse(char *error, size_t error_cap, const char *format, const char *detail)
{
    (void)snprintf(error, error_cap, "%s%s", format, detail);
    return false;
}

/* Takes --config out of the options; the rest stays in order. */
static bool cut_config(int argc, char **argv, struct config_source *source, char **rest)
{
    int count = 0;

    if (argc > ARGS_MAX) {
        return false;
    }
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--config") == 0 && i + 1 < argc) {
            source->file = argv[++i];
            source->must_exist = true;
        } else if (strncmp(argv[i], "--config=", 9) == 0) {
            source->file = argv[i] + 9;
            source->must_exist = true;
        } else {
            rest[count++] = argv[i];
        }
    }
    source->argc = count;
    source->argv = rest;
    return true;
}

static bool name_node(char *error, size_t error_cap)
{
    if (loaded.node_name[0] == '\0') {
        if (gethostname(host_name, sizeof(host_name) - 1) != 0) {
            return refuse(error, error_cap, "the host name cannot be read; set node_name", "");
        }
        loaded.node_name = host_name;
    }
    if (!str_is_host_name(str_of(loaded.node_name))) {
        return refuse(error, error_cap, "node_name must be a host name (RFC 1123), not ",
                      loaded.node_name);
    }
    return true;
}

bool options_load(int argc, char **argv, struct options *ret_options, char *error, size_t error_cap)
{
    struct config_source source = {.file = OPTIONS_FILE, .foreign = foreign};
    char *rest[ARGS_MAX];
    enum log_level level;

    if (!cut_config(argc, argv, &source, rest)) {
        return refuse(error, error_cap, "there are too many options", "");
    }
    if (!config_load(keys, COUNTOF(keys), &source, error, error_cap) ||
        !name_node(error, error_cap)) {
        return false;
    }
    if (!log_level_parse(loaded.log_level, &level)) {
        return refuse(error, error_cap, "log_level must be debug, info, warning or error, not ",
                      loaded.log_level);
    }
    struct str url = str_of(loaded.server_url);
    if (url.len > 0 && !str_starts(url, STR("https://")) && !str_starts(url, STR("http://"))) {
        return refuse(error, error_cap, "server_url must begin with https://, not ",
                      loaded.server_url);
    }
    log_setup("muster-agent", level, loaded.log_json);
    *ret_options = loaded;
    return true;
}

const char *options_path(const struct options *options, const char *path, char *buf, size_t cap)
{
    (void)snprintf(buf, cap, "%s%s", options->root, path);
    return buf;
}
