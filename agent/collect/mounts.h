/* The mount table, as far as it is judged. */
#ifndef AGENT_COLLECT_MOUNTS_H
#define AGENT_COLLECT_MOUNTS_H

#include <stdbool.h>

#include "base/cleanup.h"
#include "base/str.h"

enum mount_kind {
    MOUNT_OTHER,  /* the kernel's own, images, containers' layers */
    MOUNT_LOCAL,  /* on a disk of this node */
    MOUNT_REMOTE, /* behind a network: asking may hang */
};

struct mount_line {
    struct str device;
    char path[256];
    enum mount_kind kind;
    bool readonly;
    bool broken; /* the file system itself says that it stopped after an error */
};

/* A line of /proc/mounts (getmntent(3)). False for a line that is none. */
bool mount_parse(struct str line, struct mount_line *ret_mount) MUST_CHECK;

#endif
