/* Disks' own opinion of themselves: `smartctl -j`, one disk after the other. */
#include "agent/collect/source.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define DISKS_MAX 32
/* smartctl(8), exit status: wrong command line, device cannot be opened. */
#define CANNOT_OPEN 3

struct disks {
    char names[DISKS_MAX][24];
    unsigned count;
};

static bool is_ata(const struct look *look, const char *name)
{
    CLEANUP(buf_free) struct buf data = {0};
    char path[128];

    (void)snprintf(path, sizeof(path), "/sys/block/%.20s/device/vendor", name);
    return look_read(look, path, 64, &data) && str_eq_c(str_trim(buf_str(&data)), "ATA");
}

static void list_disks(const struct look *look, const char *folder, const char *prefix,
                       struct disks *disks)
{
    char path[PATH_MAX];
    struct dirent *entry;
    DIR *dir = opendir(options_path(look->facts->options, folder, path, sizeof(path)));

    while (dir != NULL && disks->count < DISKS_MAX && (entry = readdir(dir)) != NULL) {
        const char *name = entry->d_name;

        if (strncmp(name, prefix, strlen(prefix)) != 0 || strlen(name) > 20 ||
            (strcmp(prefix, "sd") == 0 && !is_ata(look, name))) {
            continue;
        }
        (void)snprintf(disks->names[disks->count++], sizeof(disks->names[0]), "%.20s", name);
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
}

/* False when nothing was learnt about it. */
static bool ask_disk(struct look *look, const char *name)
{
    char device[64];
    /* A sleeping disk is left asleep. */
    const char *argv[] = {"smartctl", "-j", "-n", "standby,0", "-H", "-A", device, NULL};
    CLEANUP(buf_free) struct buf out = {0};
    int status = 0;

    (void)snprintf(device, sizeof(device), "/dev/%s", name);
    if (look_program(look, argv, &out, &status)) {
        classify_smartctl(look->classify, buf_str(&out));
        return (status & CANNOT_OPEN) == 0;
    }
    if (!look->timed_out) {
        return false;
    }
    /* A disk that does not answer is a finding about the disk. */
    bool nvme = strncmp(name, "nvme", 4) == 0;
    struct finding *finding =
        look_add(look, nvme ? "disk_nvme" : "disk_ata", name, SEVERITY_WARNING);
    finding_set_code(finding, "no_answer");
    finding_set_summary(finding, "disk %s does not answer smartctl", name);
    if (look->undead == 0) {
        look->state = COLLECTOR_OK;
        look->timed_out = false;
    }
    return true;
}

static void look_at_disks(struct look *look)
{
    struct disks disks = {.count = 0};
    int64_t end_us = look->deadline_us;
    unsigned learnt = 0;

    if (!look_has_program(look, "smartctl")) {
        look_absent(look, "smartctl is not installed");
        return;
    }
    list_disks(look, "/sys/class/nvme", "nvme", &disks);
    list_disks(look, "/sys/block", "sd", &disks);
    if (disks.count == 0) {
        look_absent(look, "no NVMe or ATA disk");
        return;
    }
    for (unsigned i = 0; i < disks.count && look->undead == 0; i++) {
        int64_t now_us = clock_mono_us();

        look->deadline_us = now_us + (end_us - now_us) / (disks.count - i);
        learnt += ask_disk(look, disks.names[i]);
    }
    if (look->undead != 0) {
        /* The disk was found; those behind it were not asked. */
        look->state = COLLECTOR_OK;
    } else if (learnt == 0 && look->state == COLLECTOR_OK) {
        look_unknown(look, "smartctl can open no disk");
    }
}

const struct source_kind source_smart = {.name = "smart",
                                         .period_s = 600,
                                         .patience = 3,
                                         .look = look_at_disks,
                                         .silent = "smartctl did not answer"};
