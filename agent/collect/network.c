/* Bytes through Ethernet ports, from /sys/class/net. */
#include "agent/collect/network.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

#define PORTS_MAX 1024

struct sums {
    uint64_t rx_bytes;
    uint64_t tx_bytes;
    unsigned ports;
    unsigned unreadable;
};

void network_init(struct network *network)
{
    *network = (struct network){.at_us = 0};
    collector_init(&network->collector, "network");
}

double network_rate(uint64_t before, uint64_t now, int64_t elapsed_us)
{
    if (now < before || elapsed_us <= 0) {
        return READING_NONE;
    }
    return (double)(now - before) * 8 / (double)elapsed_us;
}

static bool read_counter(const char *folder, const char *port, const char *name,
                         uint64_t *ret_value)
{
    CLEANUP(buf_free) struct buf data = {0};
    char path[PATH_MAX];

    (void)snprintf(path, sizeof(path), "%.3000s/%.64s/statistics/%s", folder, port, name);
    return file_read(path, 64, &data) == 0 &&
           str_parse_u64(str_trim(buf_str(&data)), 0, UINT64_MAX, ret_value);
}

static bool has_hardware(const char *folder, const char *port)
{
    char path[PATH_MAX];

    (void)snprintf(path, sizeof(path), "%.3000s/%.64s/device", folder, port);
    return access(path, F_OK) == 0;
}

static void add_port(const char *folder, const char *port, struct sums *sums)
{
    uint64_t rx;
    uint64_t tx;

    if (!read_counter(folder, port, "rx_bytes", &rx) ||
        !read_counter(folder, port, "tx_bytes", &tx)) {
        sums->unreadable++;
        return;
    }
    sums->rx_bytes += rx;
    sums->tx_bytes += tx;
    sums->ports++;
}

/* IP over InfiniBand is the fabric's traffic again. */
static bool is_counted(const char *port)
{
    return port[0] != '.' && strcmp(port, "lo") != 0 && strncmp(port, "ib", 2) != 0;
}

static void collect_ports(const char *folder, DIR *dir, bool hardware_only, struct sums *sums)
{
    struct dirent *entry;
    unsigned seen = 0;

    rewinddir(dir);
    while ((entry = readdir(dir)) != NULL && seen++ < PORTS_MAX) {
        if (is_counted(entry->d_name) && (!hardware_only || has_hardware(folder, entry->d_name))) {
            add_port(folder, entry->d_name, sums);
        }
    }
}

void network_collect(struct network *network, const struct options *options,
                     struct readings *readings, int64_t now_us)
{
    struct sums sums = {.ports = 0};
    char folder[PATH_MAX];

    readings->net_rx_mbps = READING_NONE;
    readings->net_tx_mbps = READING_NONE;
    DIR *dir = opendir(options_path(options, "/sys/class/net", folder, sizeof(folder)));
    if (dir == NULL) {
        collector_unknown(&network->collector, now_us, "/sys/class/net: %s",
                          strerrordesc_np(errno));
        return;
    }
    collect_ports(folder, dir, true, &sums);
    if (sums.ports == 0 && sums.unreadable == 0) {
        collect_ports(folder, dir, false, &sums);
    }
    (void)closedir(dir);
    if (sums.unreadable > 0) {
        network->at_us = 0;
        collector_unknown(&network->collector, now_us, "counters of %u ports cannot be read",
                          sums.unreadable);
        return;
    }
    if (network->at_us != 0 && network->ports == sums.ports) {
        int64_t elapsed_us = now_us - network->at_us;

        readings->net_rx_mbps = network_rate(network->rx_bytes, sums.rx_bytes, elapsed_us);
        readings->net_tx_mbps = network_rate(network->tx_bytes, sums.tx_bytes, elapsed_us);
    }
    network->rx_bytes = sums.rx_bytes;
    network->tx_bytes = sums.tx_bytes;
    network->ports = sums.ports;
    network->at_us = now_us;
    if (sums.ports == 0) {
        collector_absent(&network->collector, now_us, "no network port");
    } else {
        collector_ok(&network->collector, now_us);
    }
}
