/* A child process for reads that may hang in a driver: one question, one answer, a deadline. */
#include "agent/collect/probe.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"

#define CHILD_FD 3
/* While a killed child may still be dying. */
#define LOOK_US 1000000

void probe_init(struct probe *probe, const char *name, probe_round *round, const void *ctx,
                int64_t timeout_us)
{
    *probe = (struct probe){
        .name = name, .round = round, .ctx = ctx, .timeout_us = timeout_us, .fd = -1};
}

void probe_stop(struct probe *probe)
{
    cleanup_fd(&probe->fd);
    if (probe->pid > 0) {
        (void)kill(probe->pid, SIGKILL);
        /* Not waited for: it may never die. */
        (void)waitpid(probe->pid, NULL, WNOHANG);
        probe->pid = 0;
    }
    buf_free(&probe->answer);
}

/* The child's whole life. It is a copy of a process with threads: only this thread goes on, and it
 * uses neither the log nor the network. */
static void run_child(const struct probe *probe)
{
    CLEANUP(buf_free) struct buf answer = {0};
    sigset_t none;
    void *state = NULL;
    bool more = true;
    char question;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)prctl(PR_SET_NAME, probe->name);
    if (probe->fd != CHILD_FD && dup2(probe->fd, CHILD_FD) < 0) {
        _exit(1);
    }
    (void)close_range(CHILD_FD + 1, ~0U, 0);
    for (int i = 1; i < NSIG; i++) {
        (void)signal(i, SIG_DFL);
    }
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    while (more && recv(CHILD_FD, &question, 1, 0) == 1) {
        buf_clear(&answer);
        buf_reserve(&answer, 1);
        more = probe->round(&state, probe->ctx, &answer);
        if (answer.len > PROBE_ANSWER_MAX ||
            send(CHILD_FD, answer.ptr, answer.len, MSG_NOSIGNAL) < 0) {
            break;
        }
    }
    _exit(0);
}

static bool start_child(struct probe *probe)
{
    int pair[2];
    int size = (int)PROBE_ANSWER_MAX * 2;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
        log_error("probe %s: %s", probe->name, strerrordesc_np(errno));
        return false;
    }
    (void)setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
    pid_t pid = fork();
    if (pid == 0) {
        probe->fd = pair[1];
        run_child(probe);
    }
    (void)close(pair[1]);
    if (pid < 0) {
        log_error("probe %s: %s", probe->name, strerrordesc_np(errno));
        (void)close(pair[0]);
        return false;
    }
    probe->pid = pid;
    probe->fd = pair[0];
    probe->killed = false;
    return true;
}

/* True when the child has gone; says why. */
static bool reap(struct probe *probe)
{
    int status;
    pid_t done = waitpid(probe->pid, &status, WNOHANG);

    if (done == 0 || (done < 0 && errno == EINTR)) {
        return false;
    }
    if (done > 0 && WIFSIGNALED(status)) {
        (void)snprintf(probe->reason, sizeof(probe->reason), "ended by signal %d",
                       WTERMSIG(status));
    } else {
        (void)snprintf(probe->reason, sizeof(probe->reason), "ended without an answer");
    }
    probe->pid = 0;
    return true;
}

bool probe_ask(struct probe *probe, int64_t now_us)
{
    if (probe->busy || probe->killed) {
        return false;
    }
    if (probe->pid > 0 && send(probe->fd, "?", 1, MSG_NOSIGNAL | MSG_DONTWAIT) != 1) {
        /* It ended between two questions; the next start is a new one. */
        (void)kill(probe->pid, SIGKILL);
        cleanup_fd(&probe->fd);
        probe->killed = !reap(probe);
        if (probe->killed) {
            return false;
        }
    } else if (probe->pid > 0) {
        probe->busy = true;
    }
    if (!probe->busy) {
        if (!start_child(probe) || send(probe->fd, "?", 1, MSG_NOSIGNAL | MSG_DONTWAIT) != 1) {
            return false;
        }
        probe->busy = true;
    }
    probe->deadline_us = now_us + probe->timeout_us;
    return true;
}

static enum probe_news take_answer(struct probe *probe, int64_t now_us)
{
    buf_clear(&probe->answer);
    buf_reserve(&probe->answer, PROBE_ANSWER_MAX);
    ssize_t got = recv(probe->fd, probe->answer.ptr, PROBE_ANSWER_MAX, MSG_DONTWAIT);
    if (got > 0) {
        probe->answer.len = (size_t)got;
        probe->busy = false;
        return PROBE_ANSWERED;
    }
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return PROBE_NOTHING;
    }
    /* The other end is closed: the child ends by itself, and the next looks say how. */
    probe->busy = false;
    probe->killed = true;
    probe->ended = true;
    probe->killed_us = now_us;
    cleanup_fd(&probe->fd);
    return PROBE_NOTHING;
}

static enum probe_news look_at_dying(struct probe *probe, int64_t now_us)
{
    bool ended = probe->ended;

    if (!reap(probe)) {
        probe->deadline_us = now_us + LOOK_US / 20;
        if (now_us - probe->killed_us > LOOK_US) {
            (void)kill(probe->pid, SIGKILL);
            probe->deadline_us = now_us + LOOK_US;
        }
        return PROBE_NOTHING;
    }
    probe->killed = false;
    probe->ended = false;
    return ended ? PROBE_DIED : PROBE_GONE;
}

enum probe_news probe_tick(struct probe *probe, int64_t now_us)
{
    if (probe->killed) {
        return look_at_dying(probe, now_us);
    }
    if (!probe->busy) {
        /* One that ends after its answer is not left as a zombie. */
        if (probe->pid > 0 && reap(probe)) {
            cleanup_fd(&probe->fd);
        }
        return PROBE_NOTHING;
    }
    enum probe_news news = take_answer(probe, now_us);
    if (probe->killed) {
        return look_at_dying(probe, now_us);
    }
    if (news == PROBE_NOTHING && now_us >= probe->deadline_us) {
        probe->busy = false;
        cleanup_fd(&probe->fd);
        (void)kill(probe->pid, SIGKILL);
        probe->killed = !reap(probe);
        probe->killed_us = now_us;
        probe->deadline_us = now_us + LOOK_US / 20;
        return PROBE_TIMEOUT;
    }
    return news;
}

void probe_retire(struct probe *probe)
{
    if (probe->pid > 0 && !probe->busy && !probe->killed) {
        cleanup_fd(&probe->fd);
        (void)kill(probe->pid, SIGKILL);
        probe->killed = !reap(probe);
    }
    buf_free(&probe->answer);
}

int64_t probe_due(const struct probe *probe)
{
    return probe->busy || probe->killed ? probe->deadline_us : INT64_MAX;
}
