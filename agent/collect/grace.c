/* Times in which missing things are no fault yet. Each has a deadline: what never ends is told. */
#include "agent/collect/grace.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"

#define VERSION_FILE "/sys/module/nvidia/version"

void grace_init(struct grace *grace, const struct options *options)
{
    *grace = (struct grace){.options = options};
}

static void read_uptime(struct grace *grace)
{
    CLEANUP(buf_free) struct buf data = {0};
    char path[PATH_MAX];
    struct str part;
    double seconds;

    if (file_read(options_path(grace->options, "/proc/uptime", path, sizeof(path)), 128, &data) !=
        0) {
        struct timespec up;

        /* The grace must end even so. */
        grace->uptime_s = clock_gettime(CLOCK_BOOTTIME, &up) == 0 ? up.tv_sec : INT32_MAX;
        return;
    }
    struct str rest = buf_str(&data);
    if (str_split(&rest, ' ', &part) && str_parse_double(part, &seconds) && seconds >= 0 &&
        seconds < 1e10) {
        grace->uptime_s = (int64_t)seconds;
    }
}

static void begin_driver(struct grace *grace, const char *why, int64_t now_us)
{
    if (grace->driver_end_us == 0) {
        log_info("%s: missing GPUs are no fault for %lld s", why,
                 (long long)grace->options->driver_grace_seconds);
        grace->driver_end_us = now_us + grace->options->driver_grace_seconds * 1000000;
    }
}

static void look_at_module(struct grace *grace, int64_t now_us)
{
    CLEANUP(buf_free) struct buf data = {0};
    char path[PATH_MAX];
    char version[sizeof(grace->version)] = "";

    if (file_read(options_path(grace->options, VERSION_FILE, path, sizeof(path)), 256, &data) ==
        0) {
        struct str text = str_trim(buf_str(&data));

        (void)snprintf(version, sizeof(version), "%.*s", text.len > 60 ? 60 : (int)text.len,
                       text.ptr);
    }
    if (version[0] == '\0') {
        if (grace->had_driver) {
            begin_driver(grace, "NVIDIA's driver was unloaded", now_us);
            grace->had_driver = false;
        }
        return;
    }
    if (grace->version[0] != '\0' && strcmp(grace->version, version) != 0) {
        begin_driver(grace, "NVIDIA's driver has another version", now_us);
    }
    (void)memcpy(grace->version, version, sizeof(grace->version));
    grace->had_driver = true;
}

/* The marker's own age is the deadline: a forgotten one hides nothing. */
static void look_at_marker(struct grace *grace, int64_t now_us)
{
    char path[PATH_MAX];
    struct stat info;

    if (grace->options->driver_grace_file[0] == '\0' ||
        stat(options_path(grace->options, grace->options->driver_grace_file, path, sizeof(path)),
             &info) != 0) {
        return;
    }
    int64_t left_s =
        info.st_mtim.tv_sec + grace->options->driver_grace_seconds - clock_wall_us() / 1000000;
    if (left_s > 0 && left_s <= grace->options->driver_grace_seconds) {
        int64_t end_us = now_us + left_s * 1000000;

        grace->driver_end_us = end_us > grace->driver_end_us ? end_us : grace->driver_end_us;
    }
}

void grace_look(struct grace *grace, int64_t now_us)
{
    if (grace->driver_end_us != 0 && now_us >= grace->driver_end_us) {
        grace->driver_end_us = 0;
    }
    read_uptime(grace);
    look_at_module(grace, now_us);
    look_at_marker(grace, now_us);
}

bool grace_holds(const struct grace *grace, enum state_grace kind, int64_t now_us)
{
    bool boot = grace->uptime_s < grace->options->boot_grace_seconds;

    switch (kind) {
    case GRACE_BOOT:
        return boot;
    case GRACE_DRIVER:
        return boot || (grace->driver_end_us != 0 && now_us < grace->driver_end_us);
    case GRACE_NONE:
    default:
        return false;
    }
}
