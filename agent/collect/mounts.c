/* Mounts that became read-only, and remote ones that do not answer. */
#include "agent/collect/mounts.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/collect/program.h"
#include "agent/collect/source.h"
#include "base/clock.h"
#include "base/file.h"

#define TABLE_MAX ((size_t)1024 * 1024)
#define MOUNTS_MAX 256
#define REMOTE_MAX 32
/* A mount that answers does so in milliseconds; the settle time is the debounce's. */
#define ANSWER_US 3000000
#define DYING_US 300000

static const char *const local_types[] = {"ext2",  "ext3", "ext4",     "xfs",
                                          "btrfs", "zfs",  "bcachefs", "f2fs"};
static const char *const remote_types[] = {
    "nfs",    "nfs4",       "lustre",   "ceph",         "fuse.ceph-fuse", "beegfs",         "gpfs",
    "wekafs", "fuse.sshfs", "cifs",     "smb3",         "glusterfs",      "fuse.glusterfs", "pvfs2",
    "9p",     "afs",        "orangefs", "fuse.juicefs", "fuse.mount-s3"};

static bool is_in(struct str type, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (str_eq_c(type, list[i])) {
            return true;
        }
    }
    return false;
}

static bool has_option(struct str options, const char *name)
{
    struct str part;

    while (str_split(&options, ',', &part)) {
        if (str_eq_c(part, name)) {
            return true;
        }
    }
    return false;
}

/* "\040" for a blank and so on. */
static bool copy_path(struct str text, char *path, size_t cap)
{
    size_t len = 0;

    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];

        if (len + 1 >= cap) {
            return false;
        }
        if (c == '\\' && text.len - i >= 4) {
            c = (char)(((text.ptr[i + 1] - '0') & 7) << 6 | ((text.ptr[i + 2] - '0') & 7) << 3 |
                       ((text.ptr[i + 3] - '0') & 7));
            i += 3;
        }
        path[len++] = c == '\0' || c == '\n' ? '?' : c;
    }
    path[len] = '\0';
    return len > 0 && path[0] == '/';
}

bool mount_parse(struct str line, struct mount_line *ret_mount)
{
    struct str path;
    struct str type;
    struct str options;

    *ret_mount = (struct mount_line){.kind = MOUNT_OTHER};
    if (!str_split(&line, ' ', &ret_mount->device) || !str_split(&line, ' ', &path) ||
        !str_split(&line, ' ', &type) || !str_split(&line, ' ', &options) ||
        !copy_path(path, ret_mount->path, sizeof(ret_mount->path))) {
        return false;
    }
    if (is_in(type, local_types, COUNTOF(local_types))) {
        ret_mount->kind = MOUNT_LOCAL;
    } else if (is_in(type, remote_types, COUNTOF(remote_types))) {
        ret_mount->kind = MOUNT_REMOTE;
    }
    ret_mount->readonly = has_option(options, "ro");
    ret_mount->broken = has_option(options, "emergency_ro") || has_option(options, "shutdown");
    return true;
}

/* ---- read-only ---- */

/* "w <path>": it was writable before. */
static bool was_writable(struct str memory, const char *path)
{
    struct str line;

    while (str_split(&memory, '\n', &line)) {
        if (line.len > 2 && line.ptr[0] == 'w' &&
            str_eq_c((struct str){line.ptr + 2, line.len - 2}, path)) {
            return true;
        }
    }
    return false;
}

static void judge_readonly(struct look *look, const struct mount_line *mount)
{
    bool before = was_writable(look->memory, mount->path);

    if (before || !mount->readonly) {
        buf_printf(&look->next, "w %s\n", mount->path);
    }
    if (!mount->broken && !(mount->readonly && before)) {
        return;
    }
    struct finding *finding = look_add(look, "fs_readonly", mount->path, SEVERITY_CRITICAL);
    classify_set_fault(finding, ACTION_REBOOT);
    finding_set_code(finding, "readonly");
    finding_set_summary(finding, "%.120s was writable and is read-only now", mount->path);
}

/* ---- remote ---- */

/* "h <pid> <started> <path>": a child that asked there and cannot be ended. */
static bool still_hangs(struct look *look, const char *path)
{
    struct str memory = look->memory;
    struct str line;

    while (str_split(&memory, '\n', &line)) {
        struct str part;
        uint64_t pid;
        uint64_t started;

        if (!str_split(&line, ' ', &part) || !str_eq_c(part, "h") ||
            !str_split(&line, ' ', &part) || !str_parse_u64(part, 1, INT32_MAX, &pid) ||
            !str_split(&line, ' ', &part) || !str_parse_u64(part, 1, UINT64_MAX, &started) ||
            !str_eq_c(line, path) || !program_lives((pid_t)pid, started)) {
            continue;
        }
        buf_printf(&look->next, "h %llu %llu %s\n", (unsigned long long)pid,
                   (unsigned long long)started, path);
        return true;
    }
    return false;
}

static bool ended_by(int pidfd, pid_t pid, int64_t until_us)
{
    for (;;) {
        struct pollfd poll_fd = {.fd = pidfd, .events = POLLIN};
        int64_t left_us = until_us - clock_mono_us();
        int ready = poll(&poll_fd, 1, left_us <= 0 ? 0 : (int)(left_us / 1000 + 1));

        if (ready < 0 && errno == EINTR) {
            continue;
        }
        return ready > 0 && waitpid(pid, NULL, WNOHANG) == pid;
    }
}

/* Asks in a child. True when there was an answer, of whatever kind. */
static bool answers(struct look *look, const char *path, int64_t until_us)
{
    char full[PATH_MAX];
    struct statfs info;
    pid_t pid;

    (void)options_path(look->facts->options, path, full, sizeof(full));
    pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)statfs(full, &info);
        _exit(0);
    }
    if (pid < 0) {
        return true; /* nothing is known */
    }
    uint64_t started = program_started(pid);
    CLEANUP(cleanup_fd) int pidfd = pidfd_open(pid, 0);
    if (ended_by(pidfd, pid, until_us)) {
        return true;
    }
    (void)kill(pid, SIGKILL);
    if (!ended_by(pidfd, pid, clock_mono_us() + DYING_US)) {
        buf_printf(&look->next, "h %d %llu %s\n", (int)pid, (unsigned long long)started, path);
    }
    return false;
}

static void judge_remote(struct look *look, const struct mount_line *mount, int64_t end_us)
{
    int64_t now_us = clock_mono_us();
    int64_t until_us = now_us + ANSWER_US < end_us ? now_us + ANSWER_US : end_us;
    bool hangs = still_hangs(look, mount->path);

    if (!hangs && (now_us >= end_us || answers(look, mount->path, until_us))) {
        return;
    }
    struct finding *finding = look_add(look, "mount_hung", mount->path, SEVERITY_WARNING);
    finding_set_code(finding, "no_answer");
    finding_set_summary(finding, "%.100s (%.*s) does not answer", mount->path,
                        mount->device.len > 60 ? 60 : (int)mount->device.len, mount->device.ptr);
}

static void look_at_mounts(struct look *look)
{
    CLEANUP(buf_free) struct buf data = {0};
    int64_t end_us = look->deadline_us - DYING_US;
    unsigned local = 0;
    unsigned remote = 0;
    struct str line;

    if (!look_read(look, "/proc/mounts", TABLE_MAX, &data)) {
        look_unknown(look, "/proc/mounts cannot be read");
        return;
    }
    struct str rest = buf_str(&data);
    while (str_split(&rest, '\n', &line)) {
        struct mount_line mount;

        if (!mount_parse(line, &mount)) {
            continue;
        }
        if (mount.kind == MOUNT_LOCAL && local < MOUNTS_MAX) {
            local++;
            judge_readonly(look, &mount);
        } else if (mount.kind == MOUNT_REMOTE && remote < REMOTE_MAX) {
            remote++;
            judge_remote(look, &mount, end_us);
        }
    }
    if (local + remote == 0) {
        look_absent(look, "no file system on a disk or behind a network");
    }
}

const struct source_kind source_mounts = {.name = "mounts",
                                          .period_s = 30,
                                          .patience = 1,
                                          .look = look_at_mounts,
                                          .silent = "the mount table does not answer"};
