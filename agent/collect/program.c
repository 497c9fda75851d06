/* Another program asked by a probe's child: words, no shell, a deadline, a bound on what it says.
 */
#include "agent/collect/program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"

/* A killed process that is still there after this hangs inside the kernel. */
#define DYING_US 500000
#define PIECE 4096

static bool find_program(const char *folders, const char *name, char *path, size_t cap)
{
    struct str rest = str_of(folders);
    struct str folder;

    while (str_split(&rest, ':', &folder)) {
        if (folder.len == 0 || folder.len + strlen(name) + 2 > cap) {
            continue;
        }
        (void)snprintf(path, cap, "%.*s/%s", STR_FMT(folder), name);
        if (access(path, X_OK) == 0) {
            return true;
        }
    }
    return false;
}

/* In the program's process, before it is one. */
static void become(const struct program *program, const char *path, const char *const *argv,
                   int out)
{
    char search[PATH_MAX];
    char slurm[PATH_MAX];
    const char *configured = getenv("SLURM_CONF");
    char *environment[] = {(char *)"LC_ALL=C", search, slurm, NULL};
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)setpgid(0, 0);
    (void)snprintf(search, sizeof(search), "PATH=%s", program->folders);
    (void)snprintf(slurm, sizeof(slurm), "SLURM_CONF=%s", configured == NULL ? "" : configured);
    if (configured == NULL) {
        environment[2] = NULL;
    }
    if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 ||
        dup2(null, STDERR_FILENO) < 0) {
        _exit(127);
    }
    (void)close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
    (void)execve(path, (char *const *)(uintptr_t)argv, environment);
    _exit(127);
}

static int wait_ms(int64_t until_us)
{
    int64_t left_us = until_us - clock_mono_us();

    return left_us <= 0 ? 0 : (int)(left_us / 1000 + 1);
}

/* True at the end of what it says; false at the deadline or when it says too much. */
static bool read_all(struct program *program, int fd)
{
    for (;;) {
        struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
        int ready = poll(&poll_fd, 1, wait_ms(program->deadline_us));

        if (ready < 0 && errno == EINTR) {
            continue;
        }
        if (ready <= 0) {
            return false;
        }
        buf_reserve(&program->out, PIECE);
        ssize_t got = read(fd, program->out.ptr + program->out.len, PIECE);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return true;
        }
        program->out.len += (size_t)got;
        if (program->out.len > program->out_max) {
            program->error = EFBIG;
            return false;
        }
    }
}

/* True when it has ended by then. */
static bool reap(struct program *program, int pidfd, int64_t until_us)
{
    struct pollfd poll_fd = {.fd = pidfd, .events = POLLIN};
    int status = 0;

    while (poll(&poll_fd, 1, wait_ms(until_us)) < 0 && errno == EINTR) {
    }
    if (waitpid(program->pid, &status, WNOHANG) != program->pid) {
        return false;
    }
    program->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return true;
}

uint64_t program_started(pid_t pid)
{
    CLEANUP(buf_free) struct buf data = {0};
    char path[64];
    struct str part = {NULL, 0};
    uint64_t started = 0;

    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    if (file_read(path, 4096, &data) != 0) {
        return 0;
    }
    /* The name in brackets may hold anything, also brackets. */
    const char *close = memrchr(data.ptr, ')', data.len);
    if (close == NULL) {
        return 0;
    }
    struct str rest = {close + 1, (size_t)(data.ptr + data.len - close - 1)};
    rest = str_trim(rest);
    for (int field = 3; field <= 22; field++) {
        if (!str_split(&rest, ' ', &part)) {
            return 0;
        }
    }
    return str_parse_u64(part, 0, UINT64_MAX, &started) ? started : 0;
}

bool program_lives(pid_t pid, uint64_t started)
{
    return pid > 0 && started != 0 && program_started(pid) == started;
}

static enum program_end end_of(struct program *program, int pidfd, bool said_all)
{
    if (said_all && reap(program, pidfd, program->deadline_us)) {
        return PROGRAM_ENDED;
    }
    program->started = program_started(program->pid);
    (void)kill(-program->pid, SIGKILL);
    (void)kill(program->pid, SIGKILL);
    if (!reap(program, pidfd, clock_mono_us() + DYING_US)) {
        return PROGRAM_UNDEAD;
    }
    return program->error != 0 ? PROGRAM_FAILED : PROGRAM_TIMEOUT;
}

enum program_end program_run(struct program *program, const char *const *argv)
{
    char path[PATH_MAX];
    int pipe_fds[2];

    buf_clear(&program->out);
    program->error = 0;
    if (!find_program(program->folders, argv[0], path, sizeof(path))) {
        return PROGRAM_MISSING;
    }
    if (pipe2(pipe_fds, O_CLOEXEC) != 0) {
        program->error = errno;
        return PROGRAM_FAILED;
    }
    program->pid = fork();
    if (program->pid == 0) {
        become(program, path, argv, pipe_fds[1]);
    }
    (void)close(pipe_fds[1]);
    CLEANUP(cleanup_fd) int out = pipe_fds[0];
    if (program->pid < 0) {
        program->error = errno;
        return PROGRAM_FAILED;
    }
    (void)setpgid(program->pid, program->pid);
    CLEANUP(cleanup_fd) int pidfd = pidfd_open(program->pid, 0);
    return end_of(program, pidfd, read_all(program, out));
}
