/* Space on local file systems, asked for in a child: a dying disk may never answer. */
#include "agent/collect/disk.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/file.h"

#define FILE_MAX ((size_t)1024 * 1024)
#define MIB (UINT64_C(1024) * 1024)
/* Meta's gcm: warn at 85 %, act at 95 % or under 2 GiB. */
#define WARN_RATIO 0.85
#define FULL_RATIO 0.95
#define CLEAR_RATIO 0.83
#define FULL_FREE_MIB 2048
/* Boot and firmware partitions are small and full by design. */
#define SMALL_MIB 4096

static const char *const local_types[] = {"ext2",  "ext3", "ext4",     "xfs",
                                          "btrfs", "zfs",  "bcachefs", "f2fs"};

static bool is_local(struct str type)
{
    for (size_t i = 0; i < COUNTOF(local_types); i++) {
        if (str_eq_c(type, local_types[i])) {
            return true;
        }
    }
    return false;
}

/* "\040" for a blank and so on (getmntent(3)). */
static bool copy_path(struct str text, char *buf, size_t cap)
{
    size_t len = 0;

    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];

        if (len + 1 >= cap) {
            return false;
        }
        if (c == '\\' && text.len - i >= 4) {
            c = (char)((text.ptr[i + 1] - '0') << 6 | (text.ptr[i + 2] - '0') << 3 |
                       (text.ptr[i + 3] - '0'));
            i += 3;
        }
        buf[len++] = c;
    }
    buf[len] = '\0';
    return len > 0;
}

unsigned disk_parse_mounts(struct str text, struct disk_mount *mounts, unsigned cap)
{
    struct str devices[DISK_MOUNTS_MAX];
    struct str line;
    unsigned count = 0;

    while (count < cap && count < DISK_MOUNTS_MAX && str_split(&text, '\n', &line)) {
        struct str device;
        struct str path;
        struct str type;
        bool seen = false;

        if (!str_split(&line, ' ', &device) || !str_split(&line, ' ', &path) ||
            !str_split(&line, ' ', &type) || !is_local(type)) {
            continue;
        }
        for (unsigned i = 0; i < count; i++) {
            seen = seen || str_eq(devices[i], device);
        }
        if (!seen && copy_path(path, mounts[count].path, sizeof(mounts[count].path))) {
            devices[count++] = device;
        }
    }
    return count;
}

/* In the child. */
static bool disk_round(void **state, const void *ctx, struct buf *answer)
{
    CLEANUP(buf_free) struct buf data = {0};
    const struct options *options = ctx;
    struct disk_answer out = {.count = 0};
    char path[PATH_MAX];
    unsigned count;

    (void)state;
    out.failed =
        file_read(options_path(options, "/proc/mounts", path, sizeof(path)), FILE_MAX, &data);
    if (out.failed == 0) {
        count = disk_parse_mounts(buf_str(&data), out.mounts, DISK_MOUNTS_MAX);
        for (unsigned i = 0; i < count; i++) {
            struct disk_mount mount = out.mounts[i];
            struct statvfs info;

            if (statvfs(options_path(options, mount.path, path, sizeof(path)), &info) != 0 ||
                info.f_blocks == 0) {
                continue;
            }
            mount.total_mib = info.f_blocks * info.f_frsize / MIB;
            mount.free_mib = info.f_bavail * info.f_frsize / MIB;
            out.mounts[out.count++] = mount;
        }
    }
    buf_add(answer, &out, sizeof(out));
    /* A new child is cheaper than keeping one: there is nothing to remember. */
    return false;
}

void disk_init(struct disk *disk, const struct options *options)
{
    collector_init(&disk->collector, "disk");
    probe_init(&disk->probe, "muster-disk", disk_round, options,
               options->probe_timeout_seconds * 1000000);
}

static double used_ratio(const struct disk_mount *mount)
{
    return mount->total_mib == 0 ? 0 : 1.0 - (double)mount->free_mib / (double)mount->total_mib;
}

static void judge(const struct disk_mount *mount, struct faults *faults)
{
    double used = used_ratio(mount);
    bool open = faults_has(faults, "disk_full", mount->path);
    bool full = used >= FULL_RATIO || mount->free_mib < FULL_FREE_MIB;
    struct finding finding = {.check = "disk_full",
                              .severity = full ? SEVERITY_CRITICAL : SEVERITY_WARNING,
                              .clears = CLEARS_EVENT,
                              .count = 1};
    struct fault_report report = {.finding = &finding, .source = "agent"};

    if (mount->total_mib < SMALL_MIB) {
        return;
    }
    finding_set_device(&finding, str_of(mount->path), false);
    finding_set_summary(&finding, "%s is %.0f %% full, %llu MiB are left", mount->path, used * 100,
                        (unsigned long long)mount->free_mib);
    bool bad = full || used >= (open ? CLEAR_RATIO : WARN_RATIO);
    faults_state(faults, &report, bad);
}

static void take(struct disk *disk, struct readings *readings, struct faults *faults,
                 int64_t now_us)
{
    struct disk_answer answer;

    if (disk->probe.answer.len != sizeof(answer)) {
        collector_unknown(&disk->collector, now_us, "the answer has another size");
        return;
    }
    memcpy(&answer, disk->probe.answer.ptr, sizeof(answer));
    if (answer.failed != 0) {
        collector_unknown(&disk->collector, now_us, "/proc/mounts: %s",
                          strerrordesc_np(answer.failed));
        return;
    }
    if (answer.count == 0) {
        collector_absent(&disk->collector, now_us, "no local file system");
        return;
    }
    readings->disk_ratio = 0;
    for (unsigned i = 0; i < answer.count && i < DISK_MOUNTS_MAX; i++) {
        double used = used_ratio(&answer.mounts[i]);

        answer.mounts[i].path[sizeof(answer.mounts[i].path) - 1] = '\0';
        if (used > readings->disk_ratio && answer.mounts[i].total_mib >= SMALL_MIB) {
            readings->disk_ratio = used;
        }
        judge(&answer.mounts[i], faults);
    }
    collector_ok(&disk->collector, now_us);
}

void disk_news(struct disk *disk, enum probe_news news, struct readings *readings,
               struct faults *faults, int64_t now_us)
{
    if (news == PROBE_NOTHING || news == PROBE_GONE) {
        return;
    }
    readings->disk_ratio = READING_NONE;
    if (news == PROBE_ANSWERED) {
        take(disk, readings, faults, now_us);
    } else if (news == PROBE_TIMEOUT) {
        collector_unknown(&disk->collector, now_us, "a file system does not answer");
    } else {
        collector_unknown(&disk->collector, now_us, "the probe %s", disk->probe.reason);
    }
}
