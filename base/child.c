/* A program in a process group of its own, its output read until it ends or the time is over. */
#include "base/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

#define CHUNK 16384
#define LOOK_MS 20 /* for the end of a child that has closed its output */

extern char **environ;

struct running {
    pid_t pid;
    int out;
    int err;
};

static void note_failure(struct child_result *result, const char *program, int error)
{
    result->end = CHILD_NOT_STARTED;
    (void)snprintf(result->error, sizeof result->error, "%s cannot be started: %s", program,
                   strerrordesc_np(error));
}

static int spawn(const struct child_options *options, int out, int err, pid_t *ret_pid)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t none;
    /* posix_spawnp takes the arrays without const and leaves them as they are. */
    char *const *argv = (char *const *)(uintptr_t)options->argv;
    char *const *env = options->env == NULL ? environ : (char *const *)(uintptr_t)options->env;

    sigemptyset(&none);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files, err, STDERR_FILENO);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setpgroup(&attr, 0);
    posix_spawnattr_setsigmask(&attr, &none);
    int error = posix_spawnp(ret_pid, argv[0], &files, &attr, argv, env);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&files);
    return error;
}

static bool start(const struct child_options *options, struct running *ret_run,
                  struct child_result *result)
{
    int out[2];
    int err[2];

    if (pipe2(out, O_CLOEXEC) != 0) {
        note_failure(result, options->argv[0], errno);
        return false;
    }
    if (pipe2(err, O_CLOEXEC) != 0) {
        note_failure(result, options->argv[0], errno);
        close(out[0]);
        close(out[1]);
        return false;
    }
    int error = spawn(options, out[1], err[1], &ret_run->pid);
    close(out[1]);
    close(err[1]);
    if (error != 0) {
        note_failure(result, options->argv[0], error);
        close(out[0]);
        close(err[0]);
        return false;
    }
    ret_run->out = out[0];
    ret_run->err = err[0];
    return true;
}

/* False at the end of the stream. */
static bool read_some(int fd, struct buf *into, size_t max)
{
    char chunk[CHUNK];
    ssize_t got = read(fd, chunk, sizeof chunk);

    if (got > 0) {
        size_t room = max > into->len ? max - into->len : 0;
        buf_add(into, chunk, (size_t)got < room ? (size_t)got : room);
    }
    return got > 0 || (got < 0 && errno == EINTR);
}

/* Reads until both streams have ended; why it stopped before that, else CHILD_EXITED. */
static enum child_end read_output(struct running *run, const struct child_options *options,
                                  int64_t until_us, struct child_result *result, struct buf *errors)
{
    while (run->out >= 0 || run->err >= 0) {
        struct pollfd polls[2] = {{.fd = run->out, .events = POLLIN},
                                  {.fd = run->err, .events = POLLIN}};
        int64_t left_us = until_us - clock_mono_us();
        if (left_us <= 0) {
            return CHILD_TIMED_OUT;
        }
        if (poll(polls, 2, (int)(left_us / 1000) + 1) < 0 && errno != EINTR) {
            return CHILD_TIMED_OUT;
        }
        /* One byte over the limit tells too much from just enough. */
        if (polls[0].revents != 0 && !read_some(run->out, &result->out, options->max_bytes + 1)) {
            close(run->out);
            run->out = -1;
        }
        if (polls[1].revents != 0 && !read_some(run->err, errors, sizeof result->error)) {
            close(run->err);
            run->err = -1;
        }
        if (result->out.len > options->max_bytes) {
            return CHILD_TOO_MUCH;
        }
    }
    return CHILD_EXITED;
}

static void close_streams(struct running *run)
{
    if (run->out >= 0) {
        close(run->out);
    }
    if (run->err >= 0) {
        close(run->err);
    }
}

/* Waits for the end; false when it is not there in time. */
static bool reap(pid_t pid, int64_t until_us, int *ret_status)
{
    for (;;) {
        pid_t got = waitpid(pid, ret_status, WNOHANG);
        if (got == pid || (got < 0 && errno != EINTR)) {
            return true;
        }
        if (clock_mono_us() >= until_us) {
            return false;
        }
        (void)poll(NULL, 0, LOOK_MS);
    }
}

static void keep_first_line(const struct buf *errors, struct child_result *result)
{
    struct str text = buf_str(errors);
    struct str line = {0};

    if (text.len > 0 && str_split(&text, '\n', &line)) {
        (void)snprintf(result->error, sizeof result->error, "%.*s", STR_FMT(line));
    }
}

void child_run(const struct child_options *options, struct child_result *ret_result)
{
    int64_t until_us = clock_mono_us() + (int64_t)options->timeout_ms * 1000;
    CLEANUP(buf_free) struct buf errors = {0};
    struct running run;
    int status = 0;

    buf_clear(&ret_result->out);
    ret_result->error[0] = '\0';
    ret_result->status = -1;
    if (!start(options, &run, ret_result)) {
        return;
    }
    ret_result->end = read_output(&run, options, until_us, ret_result, &errors);
    close_streams(&run);
    if (ret_result->end == CHILD_EXITED && !reap(run.pid, until_us, &status)) {
        ret_result->end = CHILD_TIMED_OUT;
    }
    if (ret_result->end != CHILD_EXITED) {
        /* What it started goes too. One in state D is left for the kernel to end. */
        (void)kill(-run.pid, SIGKILL);
        (void)reap(run.pid, clock_mono_us() + 1000000, &status);
    } else if (WIFEXITED(status)) {
        ret_result->status = WEXITSTATUS(status);
    } else {
        ret_result->end = CHILD_KILLED;
    }
    keep_first_line(&errors, ret_result);
}

void child_result_free(struct child_result *result)
{
    buf_free(&result->out);
}

bool child_ok(const struct child_result *result)
{
    return result->end == CHILD_EXITED && result->status == 0;
}
