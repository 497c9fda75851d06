/* What this node should have, as its configuration says: GPUs and network ports. */
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/collect/source.h"
#include "agent/rules/pci.h"

#define IB "/sys/class/infiniband"
#define NET "/sys/class/net"
#define PCI "/sys/bus/pci/devices"

static bool exists(const struct look *look, const char *path)
{
    char full[PATH_MAX];

    return access(options_path(look->facts->options, path, full, sizeof(full)), F_OK) == 0;
}

/* ---- GPUs ---- */

static bool begins(const struct look *look, const char *device, const char *file,
                   const char *prefix)
{
    CLEANUP(buf_free) struct buf data = {0};
    char path[128];

    (void)snprintf(path, sizeof(path), PCI "/%.20s/%.20s", device, file);
    return look_read(look, path, 64, &data) && str_starts(buf_str(&data), str_of(prefix));
}

/* On the bus, whether or not a driver is there: NVIDIA's display controllers. */
static unsigned count_on_bus(const struct look *look)
{
    char path[PATH_MAX];
    struct dirent *entry;
    unsigned count = 0;
    DIR *dir = opendir(options_path(look->facts->options, PCI, path, sizeof(path)));

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        count += entry->d_name[0] != '.' && begins(look, entry->d_name, "vendor", "0x10de") &&
                 begins(look, entry->d_name, "class", "0x03");
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return count;
}

/* What agent.conf says of this very node holds before what the server says of its kind. */
static int64_t expected_gpus(const struct look *look)
{
    int64_t own = look->facts->options->expected_gpus;

    return own >= 0 || look->facts->settings == NULL ? own : look->facts->settings->expected_gpus;
}

static int64_t expected_gbps(const struct look *look)
{
    int64_t own = look->facts->options->expected_port_gbps;

    return own > 0 || look->facts->settings == NULL ? own
                                                    : look->facts->settings->expected_port_gbps;
}

static struct str expected_ports(const struct look *look)
{
    struct str own = str_of(look->facts->options->expected_ports);

    return own.len > 0 || look->facts->settings == NULL
               ? own
               : str_of(look->facts->settings->expected_ports);
}

static void judge_gpus(struct look *look)
{
    int64_t wanted = expected_gpus(look);
    /* One that was lost on the way is told by name, and still counts here. */
    int64_t found = look->facts->nvml_ok ? (int64_t)look->facts->readings->gpu_count
                                         : (int64_t)count_on_bus(look);

    if (wanted >= 0 && !look->facts->gpus_asked) {
        look_unknown(look, "the GPU driver was not asked yet");
        return;
    }
    if (wanted < 0 || found >= wanted) {
        return;
    }
    struct finding *finding = look_add(look, "gpu_count", "", SEVERITY_CRITICAL);
    classify_set_fault(finding, ACTION_REBOOT);
    finding_set_code(finding, "%lld<%lld", (long long)found, (long long)wanted);
    (void)snprintf(finding->fold_code, sizeof(finding->fold_code), "missing");
    finding_set_summary(finding, "%lld of %lld GPUs are there", (long long)found,
                        (long long)wanted);
}

/* ---- ports ---- */

static void tell_missing(struct look *look, const char *port)
{
    struct finding *finding = look_add(look, "nic_count", port, SEVERITY_CRITICAL);

    classify_set_fault(finding, ACTION_FAILOVER);
    finding_set_code(finding, "missing");
    finding_set_summary(finding, "network port %s is not there", port);
}

static void add_line(struct look *look, const char *folder, const char *file, struct buf *lines)
{
    CLEANUP(buf_free) struct buf data = {0};
    char path[200];

    (void)snprintf(path, sizeof(path), "%.150s/%s", folder, file);
    if (look_read(look, path, 128, &data)) {
        struct str text = str_trim(buf_str(&data));

        buf_printf(lines, "%s: %.*s\n", path, text.len > 100 ? 100 : (int)text.len, text.ptr);
    }
}

/* The port's files go through the rules of `classify --source ib`. */
static void judge_infiniband(struct look *look, const char *port, const char *folder)
{
    CLEANUP(buf_free) struct buf lines = {0};
    struct classify *classify = look->classify;
    size_t first = classify->count;

    add_line(look, folder, "state", &lines);
    add_line(look, folder, "phys_state", &lines);
    add_line(look, folder, "rate", &lines);
    look->context.expected_port = 1;
    look->context.expected_rate_gbps = expected_gbps(look);
    classify_ib(classify, buf_str(&lines));
    for (size_t i = first; i < classify->count; i++) {
        struct finding *finding = &classify->findings[i];
        bool rate = strncmp(finding->code, "rate", 4) == 0;

        finding_set_device(finding, str_of(port), false);
        (void)snprintf(finding->fold_code, sizeof(finding->fold_code), "%s",
                       rate ? "rate" : "expected");
        finding_set_summary(finding, "InfiniBand port %s: %s", port, finding->code);
    }
}

static void judge_interface(struct look *look, const char *port, const char *folder)
{
    char path[200];
    uint64_t carrier;

    (void)snprintf(path, sizeof(path), "%.150s/carrier", folder);
    /* An interface that is switched off has no readable carrier: it is down as well. */
    if (look_number(look, path, &carrier) && carrier == 1) {
        return;
    }
    struct finding *finding = look_add(look, "eth_link", port, SEVERITY_WARNING);
    finding_set_code(finding, "expected");
    finding_set_summary(finding, "network port %s has no carrier", port);
}

static void judge_port(struct look *look, struct str name)
{
    char port[40];
    char folder[120];
    struct str device = name;
    struct str number = STR("1");
    struct pci pci;

    (void)snprintf(port, sizeof(port), "%.*s", STR_FMT(name));
    if (pci_parse(name, &pci)) {
        (void)snprintf(folder, sizeof(folder), PCI "/%s.0", pci.text);
        if (!exists(look, folder)) {
            tell_missing(look, port);
        }
        return;
    }
    ptrdiff_t slash = str_find(name, STR("/"), 0);
    if (slash > 0) {
        number = (struct str){name.ptr + slash + 1, name.len - (size_t)slash - 1};
        device.len = (size_t)slash;
    }
    (void)snprintf(folder, sizeof(folder), NET "/%.*s", STR_FMT(device));
    if (slash < 0 && exists(look, folder)) {
        judge_interface(look, port, folder);
        return;
    }
    (void)snprintf(folder, sizeof(folder), IB "/%.*s/ports/%.*s", STR_FMT(device), STR_FMT(number));
    if (exists(look, folder)) {
        judge_infiniband(look, port, folder);
    } else {
        tell_missing(look, port);
    }
}

static void look_at_expected(struct look *look)
{
    struct str rest = expected_ports(look);
    struct str part;

    if (expected_gpus(look) < 0 && rest.len == 0) {
        look_absent(look, "neither agent.conf nor the server says what is expected");
        /* Before the server has said anything, what it expects is not known. */
        look->ends = look->facts->settings != NULL && look->facts->settings->version[0] != '\0';
        return;
    }
    judge_gpus(look);
    while (str_split(&rest, ',', &part)) {
        part = str_trim(part);
        if (part.len > 0 && part.len < 32) {
            judge_port(look, part);
        }
    }
}

const struct source_kind source_expected = {.name = "expected",
                                            .period_s = 30,
                                            .patience = 1,
                                            .look = look_at_expected,
                                            .silent = "the devices do not answer"};
