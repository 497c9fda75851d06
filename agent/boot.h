/* Which boot of the node this is. */
#ifndef AGENT_BOOT_H
#define AGENT_BOOT_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/options.h"
#include "base/uuid.h"

struct boot {
    char id[UUID_TEXT_LEN + 1];
    int64_t kmsg_floor; /* kernel records up to this belong to an older boot; -1 = none do */
};

/*
 * The kernel's id, or that of boot_id_file: its first line is a UUID, its second may be
 * "kmsg_seq N". False with a sentence when neither can be read.
 */
bool boot_read(const struct options *options, struct boot *ret_boot, char *error,
               size_t error_cap) MUST_CHECK;
/* Parses the text of a boot id file. */
bool boot_parse(struct str text, struct boot *ret_boot) MUST_CHECK;

#endif
