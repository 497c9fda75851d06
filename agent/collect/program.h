/*
 * Another program asked by a probe's child: words, no shell, a deadline, a bound on what it says.
 * It runs in a process group of its own that is killed as a whole.
 */
#ifndef AGENT_COLLECT_PROGRAM_H
#define AGENT_COLLECT_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"

enum program_end {
    PROGRAM_ENDED,   /* status and out are set */
    PROGRAM_MISSING, /* no such program in the folders */
    PROGRAM_TIMEOUT, /* killed after its deadline */
    PROGRAM_UNDEAD,  /* killed after its deadline, and it does not die: pid and started are set */
    PROGRAM_FAILED,  /* could not be started, or said too much; error is set */
};

struct program {
    const char *folders; /* separated by ':', searched in order; nothing else is run */
    int64_t deadline_us; /* clock_mono_us() */
    size_t out_max;
    struct buf out; /* standard output; the caller frees it */
    int status;     /* exit status, 128 + signal when it was ended by one */
    pid_t pid;
    uint64_t started; /* field 22 of /proc/<pid>/stat: tells it from a later process */
    int error;        /* errno */
};

/* argv ends with NULL; argv[0] is a name without '/'. For single-threaded processes. */
enum program_end program_run(struct program *program, const char *const *argv);
/* When a process was started, in ticks after the boot; 0 = there is none. */
uint64_t program_started(pid_t pid);
/* Whether that very process is still there. */
bool program_lives(pid_t pid, uint64_t started);

#endif
