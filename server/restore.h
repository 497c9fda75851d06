/* `musterd migrate --after-restore`: what is true of a database that came back from a backup. */
#ifndef SERVER_RESTORE_H
#define SERVER_RESTORE_H

#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"

/*
 * In one transaction: the restore generation goes up, so that agents obey new orders and no old
 * one; commands that were under way are withdrawn; every open repair becomes unknown, to be settled
 * by evidence or a person; each org's audit log says so. The servers should be stopped meanwhile.
 * After config_read and db_setup. `error` is a sentence.
 */
enum err restore_run(char *error, size_t error_cap) MUST_CHECK;

#endif
