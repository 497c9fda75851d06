/* Runs a program of the system with a deadline and takes what it prints. */
#ifndef BASE_CHILD_H
#define BASE_CHILD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/cleanup.h"

struct child_options {
    const char *const *argv; /* NULL-terminated; argv[0] is a path, or a name looked up in PATH */
    const char *const *env;  /* NULL-terminated "NAME=value"; NULL = this process's */
    int timeout_ms;          /* 1 to 600,000; then the whole process group is killed */
    size_t max_bytes;        /* of stdout; more ends it */
};

enum child_end {
    CHILD_EXITED,      /* status is its exit status */
    CHILD_KILLED,      /* by a signal that was not ours */
    CHILD_TIMED_OUT,   /* whether it had an effect nobody knows */
    CHILD_TOO_MUCH,    /* printed more than max_bytes */
    CHILD_NOT_STARTED, /* surely had no effect */
};

struct child_result {
    enum child_end end;
    int status;
    struct buf out;
    char error[256]; /* the first line of stderr, or why it did not start */
};

/* Blocks, at most timeout_ms and a moment. stdin is /dev/null. The result starts zeroed or holds
 * an earlier one, whose buffer is used again. Any thread. */
void child_run(const struct child_options *options, struct child_result *ret_result);
void child_result_free(struct child_result *result); /* for CLEANUP too */
/* True when it exited with 0. */
bool child_ok(const struct child_result *result);

#endif
