/* InfiniBand ports from /sys/class/infiniband, read in a child: the files ask the adapter's
 * firmware. */
#include "agent/collect/fabric.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/collect/network.h"
#include "base/file.h"

#define FOLDER "/sys/class/infiniband"
#define ACTIVE 4
#define LINK_UP 5
/* gpud: a link that comes back within four minutes was retrained, not lost. */
#define DOWN_US (240 * INT64_C(1000000))
#define STABLE_US (600 * INT64_C(1000000))
#define HUSH_US (86400 * INT64_C(1000000))

static bool read_number(const char *folder, const char *name, uint64_t *ret_value)
{
    CLEANUP(buf_free) struct buf data = {0};
    char path[PATH_MAX];
    struct str part;

    (void)snprintf(path, sizeof(path), "%.3900s/%s", folder, name);
    if (file_read(path, 128, &data) != 0) {
        return false;
    }
    struct str text = str_trim(buf_str(&data));
    /* "4: ACTIVE" or a plain number */
    return str_split(&text, ':', &part) && str_parse_u64(part, 0, UINT64_MAX, ret_value);
}

static bool is_infiniband(const char *folder)
{
    CLEANUP(buf_free) struct buf data = {0};
    char path[PATH_MAX];

    (void)snprintf(path, sizeof(path), "%.3900s/link_layer", folder);
    return file_read(path, 64, &data) != 0 || str_eq_c(str_trim(buf_str(&data)), "InfiniBand");
}

static void read_port(const char *folder, const char *name, struct fabric_answer *out)
{
    struct fabric_port *port = &out->ports[out->count];
    uint64_t value;

    if (!is_infiniband(folder)) {
        return; /* its traffic is counted as Ethernet */
    }
    *port = (struct fabric_port){.state = -1, .phys_state = -1};
    (void)snprintf(port->name, sizeof(port->name), "%.47s", name);
    if (read_number(folder, "state", &value) && value < 16) {
        port->state = (int)value;
    }
    if (read_number(folder, "phys_state", &value) && value < 16) {
        port->phys_state = (int)value;
    }
    port->counted = port->state == ACTIVE &&
                    read_number(folder, "counters/port_rcv_data", &port->rx_words) &&
                    read_number(folder, "counters/port_xmit_data", &port->tx_words);
    out->count++;
}

static void read_device(const char *device_folder, const char *device, struct fabric_answer *out)
{
    char path[PATH_MAX];
    char port_folder[PATH_MAX];
    char name[320];
    struct dirent *entry;

    /* A virtual function's counters may not be read; the driver would log it each time. */
    (void)snprintf(path, sizeof(path), "%.3800s/device/physfn", device_folder);
    if (access(path, F_OK) == 0) {
        return;
    }
    (void)snprintf(path, sizeof(path), "%.3800s/ports", device_folder);
    DIR *dir = opendir(path);
    if (dir == NULL) {
        return;
    }
    while ((entry = readdir(dir)) != NULL && out->count < FABRIC_PORTS_MAX) {
        if (entry->d_name[0] != '.') {
            (void)snprintf(port_folder, sizeof(port_folder), "%.3820s/%.16s", path, entry->d_name);
            (void)snprintf(name, sizeof(name), "%.30s/%.15s", device, entry->d_name);
            read_port(port_folder, name, out);
        }
    }
    (void)closedir(dir);
}

/* In the child. */
static bool fabric_round(void **state, const void *ctx, struct buf *answer)
{
    const struct options *options = ctx;
    struct fabric_answer out = {.count = 0};
    char folder[PATH_MAX];
    char device[PATH_MAX];
    struct dirent *entry;

    (void)state;
    DIR *dir = opendir(options_path(options, FOLDER, folder, sizeof(folder)));
    if (dir == NULL) {
        out.failed = errno;
    } else {
        while ((entry = readdir(dir)) != NULL && out.count < FABRIC_PORTS_MAX) {
            if (entry->d_name[0] != '.') {
                (void)snprintf(device, sizeof(device), "%.3700s/%.64s", folder, entry->d_name);
                read_device(device, entry->d_name, &out);
            }
        }
        (void)closedir(dir);
    }
    buf_add(answer, &out, sizeof(out));
    return false;
}

void fabric_init(struct fabric *fabric, const struct options *options)
{
    *fabric = (struct fabric){.options = options};
    collector_init(&fabric->collector, "fabric");
    probe_init(&fabric->probe, "muster-fabric", fabric_round, options,
               options->probe_timeout_seconds * 1000000);
}

void fabric_hush(struct fabric *fabric, int64_t now_us)
{
    fabric->quiet_until_us = now_us + HUSH_US;
    fabric->at_us = 0;
    probe_retire(&fabric->probe);
}

void fabric_ask(struct fabric *fabric, int64_t now_us)
{
    char folder[PATH_MAX];

    if (access(options_path(fabric->options, FOLDER, folder, sizeof(folder)), F_OK) != 0) {
        collector_absent(&fabric->collector, now_us, "no InfiniBand adapter");
        return;
    }
    if (now_us < fabric->quiet_until_us) {
        collector_unknown(&fabric->collector, now_us,
                          "reading the counters made the driver write errors; paused for a day");
        return;
    }
    if (collector_may_try(&fabric->collector, now_us)) {
        (void)probe_ask(&fabric->probe, now_us);
    }
}

static struct fabric_memory *remember(struct fabric *fabric, const char *name)
{
    for (size_t i = 0; i < fabric->memory_count; i++) {
        if (strcmp(fabric->memory[i].name, name) == 0) {
            return &fabric->memory[i];
        }
    }
    if (fabric->memory_count == FABRIC_PORTS_MAX) {
        return NULL;
    }
    struct fabric_memory *memory = &fabric->memory[fabric->memory_count++];
    *memory = (struct fabric_memory){.was_active = false};
    (void)snprintf(memory->name, sizeof(memory->name), "%s", name);
    return memory;
}

/* Only a port that has worked is expected to work: which ports should be cabled is not known here.
 */
static void judge(struct fabric *fabric, const struct fabric_port *port, struct faults *faults,
                  int64_t now_us)
{
    struct fabric_memory *memory = remember(fabric, port->name);
    bool phys_up = port->phys_state == LINK_UP;
    struct finding finding = {.check = "ib_link",
                              .severity = phys_up ? SEVERITY_WARNING : SEVERITY_CRITICAL,
                              .action = phys_up ? ACTION_NONE : ACTION_FAILOVER,
                              .node_fault = !phys_up,
                              .clears = CLEARS_EVENT,
                              .count = 1};
    struct fault_report report = {.finding = &finding, .source = "agent"};

    if (memory == NULL || port->state < 0) {
        return;
    }
    finding_set_code(&finding, "down");
    finding_set_device(&finding, str_of(port->name), false);
    if (port->state == ACTIVE) {
        memory->was_active = true;
        memory->down_since_us = 0;
        if (memory->up_since_us == 0) {
            memory->up_since_us = now_us;
        }
        finding_set_summary(&finding, "InfiniBand port %s is active again", port->name);
        if (now_us - memory->up_since_us >= STABLE_US) {
            faults_state(faults, &report, false);
        }
        return;
    }
    memory->up_since_us = 0;
    if (!memory->was_active) {
        return;
    }
    if (memory->down_since_us == 0) {
        memory->down_since_us = now_us;
    }
    if (now_us - memory->down_since_us >= DOWN_US) {
        finding_set_summary(&finding, "InfiniBand port %s is down%s", port->name,
                            phys_up ? ", its cable is up: look at the subnet manager" : "");
        faults_state(faults, &report, true);
    }
}

static void take(struct fabric *fabric, struct readings *readings, struct faults *faults,
                 int64_t now_us)
{
    struct fabric_answer answer;
    uint64_t rx = 0;
    uint64_t tx = 0;
    unsigned counted = 0;

    if (fabric->probe.answer.len != sizeof(answer)) {
        collector_unknown(&fabric->collector, now_us, "the answer has another size");
        return;
    }
    memcpy(&answer, fabric->probe.answer.ptr, sizeof(answer));
    if (answer.failed != 0) {
        collector_unknown(&fabric->collector, now_us, FOLDER ": %s",
                          strerrordesc_np(answer.failed));
        return;
    }
    for (unsigned i = 0; i < answer.count && i < FABRIC_PORTS_MAX; i++) {
        struct fabric_port *port = &answer.ports[i];

        port->name[sizeof(port->name) - 1] = '\0';
        if (port->counted) {
            rx += port->rx_words;
            tx += port->tx_words;
            counted++;
        }
        judge(fabric, port, faults, now_us);
    }
    if (fabric->at_us != 0 && counted == fabric->counted && counted > 0) {
        int64_t elapsed_us = now_us - fabric->at_us;

        /* The counters count words of four bytes (IBTA PortCounters). */
        readings->fabric_rx_mbps = network_rate(fabric->rx_words * 4, rx * 4, elapsed_us);
        readings->fabric_tx_mbps = network_rate(fabric->tx_words * 4, tx * 4, elapsed_us);
    }
    fabric->rx_words = rx;
    fabric->tx_words = tx;
    fabric->counted = counted;
    fabric->at_us = now_us;
    if (answer.count == 0) {
        collector_absent(&fabric->collector, now_us, "no InfiniBand port");
    } else {
        collector_ok(&fabric->collector, now_us);
    }
}

void fabric_news(struct fabric *fabric, enum probe_news news, struct readings *readings,
                 struct faults *faults, int64_t now_us)
{
    if (news == PROBE_NOTHING || news == PROBE_GONE) {
        return;
    }
    readings->fabric_rx_mbps = READING_NONE;
    readings->fabric_tx_mbps = READING_NONE;
    if (news == PROBE_ANSWERED) {
        take(fabric, readings, faults, now_us);
    } else if (news == PROBE_TIMEOUT) {
        collector_unknown(&fabric->collector, now_us, "an InfiniBand adapter does not answer");
    } else {
        collector_unknown(&fabric->collector, now_us, "the probe %s", fabric->probe.reason);
    }
}
