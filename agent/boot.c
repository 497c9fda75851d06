/* Which boot of the node this is. */
#include "agent/boot.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"

#define KERNEL_BOOT_ID "/proc/sys/kernel/random/boot_id"
#define FILE_MAX 4096

bool boot_parse(struct str text, struct boot *ret_boot)
{
    struct str line;
    struct uuid uuid;
    uint64_t seq;

    if (!str_split(&text, '\n', &line) || !uuid_parse(str_trim(line), &uuid)) {
        return false;
    }
    uuid_format(&uuid, ret_boot->id);
    ret_boot->kmsg_floor = -1;
    while (str_split(&text, '\n', &line)) {
        line = str_trim(line);
        if (!str_starts(line, STR("kmsg_seq "))) {
            continue;
        }
        line.ptr += 9;
        line.len -= 9;
        if (!str_parse_u64(line, 0, INT64_MAX, &seq)) {
            return false;
        }
        ret_boot->kmsg_floor = (int64_t)seq;
    }
    return true;
}

bool boot_read(const struct options *options, struct boot *ret_boot, char *error, size_t error_cap)
{
    CLEANUP(buf_free) struct buf data = {0};
    char path[PATH_MAX];
    int failed;

    if (options->boot_id_file[0] != '\0') {
        (void)snprintf(path, sizeof(path), "%s", options->boot_id_file);
    } else {
        (void)options_path(options, KERNEL_BOOT_ID, path, sizeof(path));
    }
    failed = file_read(path, FILE_MAX, &data);
    if (failed != 0) {
        (void)snprintf(error, error_cap, "the boot id cannot be read from %.300s: %s", path,
                       strerrordesc_np(failed));
        return false;
    }
    if (!boot_parse(buf_str(&data), ret_boot)) {
        (void)snprintf(error, error_cap, "%.300s does not hold a boot id", path);
        return false;
    }
    return true;
}
