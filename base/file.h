/* Files: bounded reads and durable writes. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/str.h"

/* 0, or an errno (the buf is empty then). Replaces what the buf held and keeps its memory. More
 * than max bytes is EFBIG. Works for /proc and /sys files. */
int file_read(const char *path, size_t max, struct buf *ret_data) MUST_CHECK;
/* Writes a temporary file beside it, fsyncs it, renames, fsyncs the folder. 0 or an errno. */
int file_write_durable(const char *path, struct str data, mode_t mode) MUST_CHECK;
/* The same for a file that must not be there yet: EEXIST when it is (of two at once one wins). */
int file_create_durable(const char *path, struct str data, mode_t mode) MUST_CHECK;
/* mkdir -p with mode for the folders it makes. 0 or an errno. */
int file_make_dirs(const char *path, mode_t mode) MUST_CHECK;
/* Writes all of data to fd, retrying short writes and EINTR. 0 or an errno. */
int file_write_all(int fd, struct str data) MUST_CHECK;

#endif
