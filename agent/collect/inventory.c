/* What the machine is made of: sent when it changed. */
#include "agent/collect/inventory.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/encode.h"
#include "base/file.h"

#define DISKS_MAX 64
#define TEXT_MAX 127
/* Rounding, so that a clock that is being set does not make news. */
#define BOOTED_STEP_S 60

static struct str read_line(const char *path, struct buf *data)
{
    struct str line;

    if (file_read(path, 4096, data) != 0) {
        return (struct str){NULL, 0};
    }
    struct str rest = buf_str(data);
    if (!str_split(&rest, '\n', &line)) {
        return (struct str){NULL, 0};
    }
    line = str_trim(line);
    return line.len > TEXT_MAX ? (struct str){line.ptr, TEXT_MAX} : line;
}

static void add_text(struct enc *enc, const char *key, struct str value)
{
    if (value.len > 0) {
        enc_key(enc, key);
        enc_str(enc, value);
    }
}

static void add_os_image(struct enc *enc)
{
    CLEANUP(buf_free) struct buf data = {0};
    struct str line;

    if (file_read("/etc/os-release", 16384, &data) != 0) {
        return;
    }
    struct str rest = buf_str(&data);
    while (str_split(&rest, '\n', &line)) {
        if (str_starts(line, STR("PRETTY_NAME=\"")) && line.len > 14) {
            add_text(enc, "os_image", (struct str){line.ptr + 13, line.len - 14});
        }
    }
}

/* The first global address: what the SSH command will name. */
static void add_address(struct enc *enc)
{
    struct ifaddrs *list;
    char text[INET6_ADDRSTRLEN] = "";

    if (getifaddrs(&list) != 0) {
        return;
    }
    for (struct ifaddrs *at = list; at != NULL && text[0] == '\0'; at = at->ifa_next) {
        if (at->ifa_addr == NULL || (at->ifa_flags & IFF_UP) == 0 ||
            (at->ifa_flags & IFF_LOOPBACK) != 0 || at->ifa_addr->sa_family != AF_INET) {
            continue;
        }
        struct sockaddr_in address;
        memcpy(&address, at->ifa_addr, sizeof(address));
        (void)inet_ntop(AF_INET, &address.sin_addr, text, sizeof(text));
    }
    freeifaddrs(list);
    add_text(enc, "address", str_of(text));
}

static void add_booted_at(const struct options *options, struct enc *enc)
{
    CLEANUP(buf_free) struct buf data = {0};
    char path[PATH_MAX];
    struct str part;
    double uptime_s;

    if (file_read(options_path(options, "/proc/uptime", path, sizeof(path)), 128, &data) != 0) {
        return;
    }
    struct str rest = buf_str(&data);
    if (!str_split(&rest, ' ', &part) || !str_parse_double(part, &uptime_s) || uptime_s < 0 ||
        uptime_s > 1e10) {
        return;
    }
    int64_t booted_s = clock_wall_us() / 1000000 - (int64_t)uptime_s;
    enc_key(enc, "booted_at");
    enc_time(enc, (booted_s + BOOTED_STEP_S / 2) / BOOTED_STEP_S * BOOTED_STEP_S * 1000000);
}

static void add_gpu(struct enc *enc, const struct gpu_reading *gpu, unsigned index)
{
    const char *serial = gpu->serial[0] != '\0' && strcmp(gpu->serial, "0") != 0 ? gpu->serial
                         : gpu->uuid[0] != '\0'                                  ? gpu->uuid
                                                                                 : gpu->pci.text;

    enc_obj(enc);
    enc_key(enc, "type");
    enc_cstr(enc, "gpu");
    enc_key(enc, "index");
    enc_i64(enc, index);
    enc_key(enc, "serial");
    enc_cstr(enc, serial);
    enc_key(enc, "uuid");
    enc_cstr(enc, gpu->uuid);
    enc_key(enc, "pci");
    enc_cstr(enc, gpu->pci.text);
    enc_key(enc, "model");
    enc_cstr(enc, gpu->name);
    enc_key(enc, "firmware");
    enc_cstr(enc, gpu->firmware);
    if (gpu->mem_total_mib >= 0) {
        enc_key(enc, "memory_mib");
        enc_i64(enc, gpu->mem_total_mib);
    }
    enc_obj_end(enc);
}

static void add_disk(struct enc *enc, const char *folder, const char *name)
{
    CLEANUP(buf_free) struct buf data = {0};
    char path[PATH_MAX];

    (void)snprintf(path, sizeof(path), "%.3900s/%.64s/serial", folder, name);
    struct str serial = read_line(path, &data);
    if (serial.len == 0) {
        return; /* what names the part is missing */
    }
    enc_obj(enc);
    enc_key(enc, "type");
    enc_cstr(enc, "disk");
    add_text(enc, "serial", serial);
    (void)snprintf(path, sizeof(path), "%.3900s/%.64s/model", folder, name);
    add_text(enc, "model", read_line(path, &data));
    (void)snprintf(path, sizeof(path), "%.3900s/%.64s/firmware_rev", folder, name);
    add_text(enc, "firmware", read_line(path, &data));
    enc_obj_end(enc);
}

static void add_devices(const struct options *options, const struct readings *readings,
                        struct enc *enc)
{
    char folder[PATH_MAX];
    struct dirent *entry;
    unsigned count = 0;

    enc_key(enc, "devices");
    enc_arr(enc);
    for (unsigned i = 0; i < readings->gpu_count; i++) {
        if (readings->gpus[i].known && !readings->gpus[i].lost) {
            add_gpu(enc, &readings->gpus[i], i);
        }
    }
    DIR *dir = opendir(options_path(options, "/sys/class/nvme", folder, sizeof(folder)));
    while (dir != NULL && count < DISKS_MAX && (entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] != '.') {
            add_disk(enc, folder, entry->d_name);
            count++;
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    enc_arr_end(enc);
}

static void build(const struct options *options, const struct readings *readings, struct buf *out)
{
    CLEANUP(buf_free) struct buf data = {0};
    char path[PATH_MAX];
    struct utsname system;
    struct enc enc;

    enc_init(&enc, out);
    enc_obj(&enc);
    enc_key(&enc, "agent_version");
    enc_cstr(&enc, MUSTER_VERSION);
    if (uname(&system) == 0) {
        enc_key(&enc, "kernel");
        enc_cstr(&enc, system.release);
    }
    add_os_image(&enc);
    add_text(&enc, "driver_version", str_of(readings->driver_version));
    if (readings->gpu_count > 0) {
        add_text(&enc, "gpu_type", str_of(readings->gpus[0].name));
    }
    add_text(
        &enc, "host_serial",
        read_line(options_path(options, "/sys/class/dmi/id/product_serial", path, sizeof(path)),
                  &data));
    add_address(&enc);
    add_text(&enc, "rack", str_of(options->rack));
    add_text(&enc, "leaf", str_of(options->leaf));
    add_text(&enc, "partition", str_of(options->partition));
    enc_key(&enc, "cpus");
    enc_i64(&enc, sysconf(_SC_NPROCESSORS_ONLN));
    if (readings->mem_total_mib >= 0) {
        enc_key(&enc, "memory_mib");
        enc_i64(&enc, readings->mem_total_mib);
    }
    add_booted_at(options, &enc);
    add_devices(options, readings, &enc);
    enc_obj_end(&enc);
}

void inventory_init(struct inventory *inventory)
{
    *inventory = (struct inventory){.news = false};
    collector_init(&inventory->collector, "inventory");
}

void inventory_free(struct inventory *inventory)
{
    buf_free(&inventory->json);
}

void inventory_collect(struct inventory *inventory, const struct options *options,
                       const struct readings *readings, int64_t now_us)
{
    struct buf fresh = {0};

    build(options, readings, &fresh);
    if (inventory->built_us == 0 || !str_eq(buf_str(&fresh), buf_str(&inventory->json))) {
        inventory->news = true;
        inventory->in_report = false;
        buf_free(&inventory->json);
        inventory->json = fresh;
    } else {
        buf_free(&fresh);
    }
    inventory->built_us = now_us;
    collector_ok(&inventory->collector, now_us);
}
