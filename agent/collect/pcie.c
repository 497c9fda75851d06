/* PCIe as the kernel counts and shows it: corrected errors, and links narrower than they could be.
 */
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "agent/collect/rates.h"
#include "agent/collect/source.h"
#include "agent/rules/pci.h"

#define FOLDER "/sys/bus/pci/devices"
#define DEVICES_MAX 256
#define WINDOW_S 600
/* A healthy link corrects a handful a day; a thousand in ten minutes is a bad slot or riser. */
#define CORRECTABLE_LIMIT 1000

/* Class codes (PCI-SIG): 02 network, 0108 NVMe, 03 display, 0604 bridge. */
static const char *const classes[] = {"0x02", "0x0108", "0x03", "0x0604"};
#define CLASS_GPU "0x03"
#define CLASS_BRIDGE "0x0604"

struct device {
    struct look *look;
    char folder[120];
    char address[24]; /* as the folder is named */
    struct pci pci;
    struct rate correctable;
    uint64_t nonfatal;
    uint64_t fatal;
    uint64_t widest; /* lanes seen by this agent, 0 = none */
    bool known;
};

static bool file_of(const struct device *device, const char *name, struct buf *data)
{
    char path[PATH_MAX];

    (void)snprintf(path, sizeof(path), "%s/%s", device->folder, name);
    return look_read(device->look, path, 4096, data);
}

/* "TOTAL_ERR_COR 12" at the end of a list of kinds. */
static bool read_total(const struct device *device, const char *name, const char *key,
                       uint64_t *ret_value)
{
    CLEANUP(buf_free) struct buf data = {0};
    struct str line;

    if (!file_of(device, name, &data)) {
        return false;
    }
    struct str rest = buf_str(&data);
    while (str_split(&rest, '\n', &line)) {
        struct str word;

        if (str_split(&line, ' ', &word) && str_eq_c(word, key)) {
            return str_parse_u64(str_trim(line), 0, UINT64_MAX, ret_value);
        }
    }
    return false;
}

static bool read_width(const struct device *device, const char *name, uint64_t *ret_value)
{
    CLEANUP(buf_free) struct buf data = {0};

    /* 63 and 255 are what a device that is gone reads as. */
    return file_of(device, name, &data) &&
           str_parse_u64(str_trim(buf_str(&data)), 1, 32, ret_value);
}

/* "<address> <nonfatal> <fatal> <widest> <rate>" of the look before. */
static void recall(struct device *device)
{
    struct str memory = device->look->memory;
    struct str line;

    while (!device->known && str_split(&memory, '\n', &line)) {
        struct str parts[4];
        bool good = true;

        for (size_t i = 0; i < COUNTOF(parts); i++) {
            good = good && str_split(&line, ' ', &parts[i]);
        }
        device->known = good && str_eq_c(parts[0], device->address) &&
                        str_parse_u64(parts[1], 0, UINT64_MAX, &device->nonfatal) &&
                        str_parse_u64(parts[2], 0, UINT64_MAX, &device->fatal) &&
                        str_parse_u64(parts[3], 0, 32, &device->widest) &&
                        rate_read(line, &device->correctable);
    }
}

static void tell_errors(const struct device *device, uint64_t grown, bool fatal)
{
    /* The kernel writes a line too, with the port's address. */
    if (grown == 0 || device->look->facts->kmsg_ok) {
        return;
    }
    struct finding *finding =
        look_add(device->look, "pcie_aer", device->pci.text, SEVERITY_WARNING);
    if (fatal) {
        classify_set_fault(finding, ACTION_REBOOT);
    }
    finding_set_code(finding, "%s", fatal ? "fatal" : "nonfatal");
    finding->count = grown;
    finding_set_summary(finding, "%s PCIe errors of %s", fatal ? "fatal" : "uncorrected",
                        device->pci.text);
}

static void judge_errors(struct device *device)
{
    uint64_t correctable = 0;
    uint64_t nonfatal = 0;
    uint64_t fatal = 0;
    int64_t now_us = device->look->at_us;

    if (!read_total(device, "aer_dev_correctable", "TOTAL_ERR_COR", &correctable) ||
        !read_total(device, "aer_dev_nonfatal", "TOTAL_ERR_NONFATAL", &nonfatal) ||
        !read_total(device, "aer_dev_fatal", "TOTAL_ERR_FATAL", &fatal)) {
        return;
    }
    if (!device->known) {
        rate_begin(&device->correctable, correctable, WINDOW_S, now_us);
    } else {
        uint64_t grown = rate_add(&device->correctable, correctable, WINDOW_S, now_us);

        if (grown >= CORRECTABLE_LIMIT) {
            struct finding *finding =
                look_add(device->look, "pcie_aer", device->pci.text, SEVERITY_WARNING);

            finding_set_code(finding, "correctable_rate");
            finding_set_summary(finding, "%s: %llu corrected PCIe errors in ten minutes",
                                device->pci.text, (unsigned long long)grown);
        }
        tell_errors(device, counter_grown(device->nonfatal, nonfatal), false);
        tell_errors(device, counter_grown(device->fatal, fatal), true);
    }
    device->nonfatal = nonfatal;
    device->fatal = fatal;
}

/* What card and slot can both do; a link that never had it is how the board is wired. */
static void judge_width(struct device *device, bool gpu)
{
    uint64_t width;
    uint64_t most;
    uint64_t slot;

    if (!read_width(device, "current_link_width", &width) ||
        !read_width(device, "max_link_width", &most)) {
        return;
    }
    if (read_width(device, "../max_link_width", &slot) && slot < most) {
        most = slot;
    }
    if (width > device->widest) {
        device->widest = width;
    }
    if (width >= most || gpu) {
        return; /* GPUs narrow their links when idle; NVML knows when they are busy */
    }
    struct finding *finding = look_add(device->look, "pcie_link", device->pci.text,
                                       width < device->widest ? SEVERITY_WARNING : SEVERITY_INFO);
    finding_set_code(finding, "width %llu<%llu", (unsigned long long)width,
                     (unsigned long long)most);
    (void)snprintf(finding->fold_code, sizeof(finding->fold_code), "width");
    finding_set_summary(finding, "PCIe link of %s has %llu of %llu lanes", device->pci.text,
                        (unsigned long long)width, (unsigned long long)most);
}

/* "16.0 GT/s PCIe" in tenths. */
static bool read_speed(const struct device *device, const char *name, uint64_t *ret_value)
{
    CLEANUP(buf_free) struct buf data = {0};
    struct str part;
    double value;

    if (!file_of(device, name, &data)) {
        return false;
    }
    struct str rest = buf_str(&data);
    if (!str_split(&rest, ' ', &part) || !str_parse_double(part, &value) || value < 1 ||
        value > 1000) {
        return false;
    }
    *ret_value = (uint64_t)(value * 10 + 0.5);
    return true;
}

static void judge_speed(struct device *device)
{
    uint64_t speed;
    uint64_t most;
    uint64_t slot;

    if (!read_speed(device, "current_link_speed", &speed) ||
        !read_speed(device, "max_link_speed", &most)) {
        return;
    }
    if (read_speed(device, "../max_link_speed", &slot) && slot < most) {
        most = slot;
    }
    if (speed >= most) {
        return;
    }
    struct finding *finding = look_add(device->look, "pcie_link", device->pci.text, SEVERITY_INFO);
    finding_set_code(finding, "speed %llu.%llu<%llu.%llu", (unsigned long long)speed / 10,
                     (unsigned long long)speed % 10, (unsigned long long)most / 10,
                     (unsigned long long)most % 10);
    (void)snprintf(finding->fold_code, sizeof(finding->fold_code), "speed");
    finding_set_summary(finding, "PCIe link of %s runs at %llu.%llu of %llu.%llu GT/s",
                        device->pci.text, (unsigned long long)speed / 10,
                        (unsigned long long)speed % 10, (unsigned long long)most / 10,
                        (unsigned long long)most % 10);
}

static bool is_watched(const struct device *device, bool *ret_gpu, bool *ret_bridge)
{
    CLEANUP(buf_free) struct buf data = {0};
    bool watched = false;

    if (!file_of(device, "class", &data)) {
        return false;
    }
    for (size_t i = 0; i < COUNTOF(classes); i++) {
        watched = watched || str_starts(buf_str(&data), str_of(classes[i]));
    }
    *ret_gpu = str_starts(buf_str(&data), STR(CLASS_GPU));
    *ret_bridge = str_starts(buf_str(&data), STR(CLASS_BRIDGE));
    return watched;
}

static bool judge_device(struct look *look, const char *name)
{
    struct device device = {.look = look};
    bool gpu = false;
    bool bridge = false;

    (void)snprintf(device.address, sizeof(device.address), "%.20s", name);
    (void)snprintf(device.folder, sizeof(device.folder), FOLDER "/%.20s", name);
    if (!pci_parse(str_of(device.address), &device.pci) || !is_watched(&device, &gpu, &bridge)) {
        return false;
    }
    recall(&device);
    judge_errors(&device);
    if (!bridge) {
        judge_width(&device, gpu);
    }
    if (!bridge && !gpu) {
        judge_speed(&device);
    }
    buf_printf(&look->next, "%s %llu %llu %llu ", device.address,
               (unsigned long long)device.nonfatal, (unsigned long long)device.fatal,
               (unsigned long long)device.widest);
    rate_write(&device.correctable, &look->next);
    buf_add_char(&look->next, '\n');
    return true;
}

static void look_at_pcie(struct look *look)
{
    char path[PATH_MAX];
    struct dirent *entry;
    unsigned count = 0;
    DIR *dir = opendir(options_path(look->facts->options, FOLDER, path, sizeof(path)));

    while (dir != NULL && count < DEVICES_MAX && (entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] != '.') {
            count += judge_device(look, entry->d_name);
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    if (count == 0) {
        look_absent(look, "no PCI Express device");
    }
}

const struct source_kind source_pcie = {.name = "pcie",
                                        .period_s = 60,
                                        .patience = 1,
                                        .look = look_at_pcie,
                                        .silent = "a PCI device does not answer"};
