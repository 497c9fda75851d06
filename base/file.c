/* Files: bounded reads and durable writes. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* /proc and /sys say size 0; most of their files fit into one read of this. */
#define READ_STEP ((size_t)16 * 1024)

void cleanup_fd(int *fd)
{
    if (*fd >= 0) {
        int saved = errno;
        (void)close(*fd);
        errno = saved;
        *fd = -1;
    }
}

static int read_to_end(int fd, size_t max, struct buf *data)
{
    for (;;) {
        size_t step = READ_STEP;
        ssize_t got;

        if (max - data->len < step) {
            /* One byte past the limit tells "exactly max" from "too big". */
            step = max - data->len + 1;
        }
        buf_reserve(data, step);
        got = read(fd, data->ptr + data->len, step);
        if (got < 0) {
            if (errno == EINTR) {
                continue;
            }
            return errno;
        }
        if (got == 0) {
            return 0;
        }
        if ((size_t)got > max - data->len) {
            return EFBIG;
        }
        data->len += (size_t)got;
        data->ptr[data->len] = '\0';
    }
}

int file_read(const char *path, size_t max, struct buf *ret_data)
{
    /* O_NONBLOCK: a FIFO put in place of a file must not hang the program. */
    CLEANUP(cleanup_fd) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    int error;

    buf_clear(ret_data);
    if (fd < 0) {
        return errno;
    }
    buf_reserve(ret_data, 0);
    error = read_to_end(fd, max, ret_data);
    if (error != 0) {
        buf_clear(ret_data);
    }
    return error;
}

int file_write_all(int fd, struct str data)
{
    while (data.len > 0) {
        ssize_t done = write(fd, data.ptr, data.len);

        if (done < 0) {
            if (errno == EINTR) {
                continue;
            }
            return errno;
        }
        data.ptr += done;
        data.len -= (size_t)done;
    }
    return 0;
}

static int sync_folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    char folder[PATH_MAX];
    size_t len = slash == NULL ? 1 : (size_t)(slash - path);

    if (len >= sizeof(folder)) {
        return ENAMETOOLONG;
    }
    if (slash == NULL) {
        folder[0] = '.';
    } else if (len == 0) {
        folder[0] = '/';
        len = 1;
    } else {
        memcpy(folder, path, len);
    }
    folder[len] = '\0';

    CLEANUP(cleanup_fd) int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fsync(fd) != 0) {
        return errno;
    }
    return 0;
}

static int fill_file(int fd, struct str data, mode_t mode)
{
    int error;

    if (fchmod(fd, mode) != 0) {
        return errno;
    }
    error = file_write_all(fd, data);
    if (error != 0) {
        return error;
    }
    return fsync(fd) == 0 ? 0 : errno;
}

static int write_beside(const char *path, struct str data, mode_t mode,
                        int (*put)(const char *from, const char *to))
{
    char temporary[PATH_MAX];
    int len = snprintf(temporary, sizeof(temporary), "%s.tmp.XXXXXX", path);
    int error;

    if (len < 0 || (size_t)len >= sizeof(temporary)) {
        return ENAMETOOLONG;
    }
    CLEANUP(cleanup_fd) int fd = mkostemp(temporary, O_CLOEXEC);
    if (fd < 0) {
        return errno;
    }
    error = fill_file(fd, data, mode);
    if (error == 0 && put(temporary, path) != 0) {
        error = errno;
    }
    /* After a rename the name is gone. */
    (void)unlink(temporary);
    return error != 0 ? error : sync_folder_of(path);
}

int file_write_durable(const char *path, struct str data, mode_t mode)
{
    return write_beside(path, data, mode, rename);
}

int file_create_durable(const char *path, struct str data, mode_t mode)
{
    return write_beside(path, data, mode, link);
}

static int make_dir(const char *path, mode_t mode)
{
    struct stat info;
    int error;

    if (mkdir(path, mode) == 0) {
        return 0;
    }
    error = errno;
    if (stat(path, &info) == 0) {
        return S_ISDIR(info.st_mode) ? 0 : ENOTDIR;
    }
    return error;
}

int file_make_dirs(const char *path, mode_t mode)
{
    char part[PATH_MAX];
    size_t len = strlen(path);

    if (len == 0) {
        return ENOENT;
    }
    if (len >= sizeof(part)) {
        return ENAMETOOLONG;
    }
    memcpy(part, path, len + 1);
    for (size_t i = 1; i < len; i++) {
        int error;

        if (part[i] != '/') {
            continue;
        }
        part[i] = '\0';
        error = make_dir(part, mode);
        if (error != 0) {
            return error;
        }
        part[i] = '/';
    }
    return make_dir(part, mode);
}
