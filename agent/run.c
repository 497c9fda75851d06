/* The subcommand `run`: one loop that never waits for a driver or for the network. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/commands.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"

#define FDS_MAX (8 + SOURCES + OWN_COMMANDS_AT_ONCE)
/* The loop looks around at least this often. */
#define POLL_MAX_US (60 * INT64_C(1000000))

static const char *state_path(const struct agent *agent, const char *name, char *buf)
{
    (void)snprintf(buf, PATH_MAX, "%.3072s/%s", agent->options.state_dir, name);
    return buf;
}

/* ---- start ---- */

static bool open_signals(struct agent *agent)
{
    sigset_t set;

    (void)signal(SIGPIPE, SIG_IGN);
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGCHLD);
    if (sigprocmask(SIG_BLOCK, &set, NULL) != 0) {
        return false;
    }
    agent->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    agent->notify_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return agent->signal_fd >= 0 && agent->notify_fd >= 0;
}

/* Two agents with one key would look like a cloned node. */
static bool lock_state(const struct agent *agent, char *error, size_t error_cap)
{
    char path[PATH_MAX];
    /* Held until the program ends. */
    int fd = open(state_path(agent, "lock", path), O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    if (fd < 0) {
        (void)snprintf(error, error_cap, "%.300s: %s", path, strerrordesc_np(errno));
        return false;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        (void)snprintf(error, error_cap, "another agent already uses %.300s",
                       agent->options.state_dir);
        (void)close(fd);
        return false;
    }
    return true;
}

static bool open_state(struct agent *agent, char *error, size_t error_cap)
{
    char path[PATH_MAX];
    uint64_t cap_bytes = (uint64_t)agent->options.spool_mib * 1024 * 1024;

    if (!identity_load(agent->options.state_dir, &agent->identity, error, error_cap) ||
        !lock_state(agent, error, error_cap) ||
        !boot_read(&agent->options, &agent->boot, error, error_cap) ||
        !sequence_open(&agent->sequence, state_path(agent, "seq", path), error, error_cap)) {
        return false;
    }
    (void)state_path(agent, "spool", path);
    agent->spool = spool_open(path, agent->boot.id, cap_bytes, error, error_cap);
    if (agent->spool == NULL) {
        return false;
    }
    if (spool_find_old(path, agent->boot.id, agent->old_boot)) {
        agent->old_spool = spool_open(path, agent->old_boot, UINT64_MAX, error, error_cap);
    }
    agent->faults = faults_open(state_path(agent, "open", path), agent->spool, agent->boot.id);
    faults_begin_boot(agent->faults);
    agent->act = act_open(&agent->options, &agent->identity, agent->boot.id);
    return true;
}

static bool start(struct agent *agent, char *error, size_t error_cap)
{
    if (agent->options.server_url[0] == '\0') {
        (void)snprintf(error, error_cap, "server_url is not set");
        return false;
    }
    if (!open_signals(agent)) {
        (void)snprintf(error, error_cap, "signals: %s", strerrordesc_np(errno));
        return false;
    }
    /* Children of the program before a re-exec. */
    while (waitpid(-1, NULL, WNOHANG) > 0) {
    }
    if (!open_state(agent, error, error_cap)) {
        return false;
    }
    watch_init(agent);
    agent->watching = true;
    deliver_init(agent, clock_mono_us());
    agent->uplink = uplink_start(&agent->options, &agent->identity, agent->notify_fd);
    if (agent->uplink == NULL) {
        (void)snprintf(error, error_cap, "no thread can be started: %s", strerrordesc_np(errno));
        return false;
    }
    return true;
}

/* ---- loop ---- */

static void read_signals(struct agent *agent)
{
    struct signalfd_siginfo info;

    while (read(agent->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        if (info.ssi_signo != SIGCHLD) {
            agent->stopping = true;
        }
    }
}

/* Only the stand-in for a reboot changes the id of a running boot. */
static void look_at_boot(struct agent *agent)
{
    struct boot boot;
    char error[400];

    if (agent->options.boot_id_file[0] == '\0') {
        return;
    }
    if (boot_read(&agent->options, &boot, error, sizeof(error)) &&
        strcmp(boot.id, agent->boot.id) != 0) {
        log_info("the boot id changed: starting anew, as after a reboot");
        agent->rebooted = true;
    }
}

/* What a reset ends, on each GPU that was reset. */
static void clear_gpus(struct agent *agent)
{
    struct str rest = str_of(act_gpus(agent->act));
    struct str part;
    char gpu[16];

    while (str_split(&rest, ',', &part)) {
        (void)snprintf(gpu, sizeof(gpu), "%.*s", STR_FMT(part));
        faults_clear(agent->faults, NULL, gpu, "the GPU was reset");
    }
}

static void look_at_act(struct agent *agent, int64_t now_us)
{
    switch (act_tick(agent->act, now_us)) {
    case ACT_GPU_RESET:
        clear_gpus(agent);
        break;
    case ACT_REBOOTING:
        look_at_boot(agent);
        break;
    case ACT_NOTHING:
    case ACT_ENDED:
    default:
        break;
    }
}

static int wait_ms(const struct agent *agent, int64_t now_us)
{
    int64_t dues[] = {deliver_due(agent), watch_due(agent, now_us), act_due(agent->act)};
    int64_t wait_us = POLL_MAX_US;

    for (size_t i = 0; i < COUNTOF(dues); i++) {
        int64_t left = dues[i] - now_us;

        wait_us = left < wait_us ? left : wait_us;
    }
    return wait_us <= 0 ? 0 : (int)((wait_us + 999) / 1000);
}

static size_t add_fd(struct pollfd *fds, size_t count, int fd)
{
    if (fd < 0) {
        return count;
    }
    fds[count] = (struct pollfd){.fd = fd, .events = POLLIN};
    return count + 1;
}

static void turn(struct agent *agent)
{
    struct pollfd fds[FDS_MAX];
    size_t count = 0;
    uint64_t ignored;
    int64_t now_us = clock_mono_us();

    count = add_fd(fds, count, agent->signal_fd);
    count = add_fd(fds, count, agent->notify_fd);
    count = add_fd(fds, count, kmsg_fd(&agent->kmsg, now_us));
    count = add_fd(fds, count, agent->gpu.probe.busy ? agent->gpu.probe.fd : -1);
    count = add_fd(fds, count, agent->disk.probe.busy ? agent->disk.probe.fd : -1);
    count = add_fd(fds, count, agent->fabric.probe.busy ? agent->fabric.probe.fd : -1);
    for (size_t i = 0; i < SOURCES; i++) {
        const struct probe *probe = &agent->sources[i].probe;

        count = add_fd(fds, count, probe->busy ? probe->fd : -1);
    }
    for (size_t i = 0; i < OWN_COMMANDS_AT_ONCE; i++) {
        count = add_fd(fds, count, own_commands_fd(&agent->custom.commands, i));
    }
    if (poll(fds, count, wait_ms(agent, now_us)) < 0 && errno != EINTR) {
        log_error("poll: %s", strerrordesc_np(errno));
        agent->stopping = true;
        return;
    }
    now_us = clock_mono_us();
    read_signals(agent);
    watch_tick(agent, now_us);
    if (read(agent->notify_fd, &ignored, sizeof(ignored)) > 0) {
        deliver_result(agent, now_us);
    }
    look_at_act(agent, now_us);
    faults_save(agent->faults);
    deliver_tick(agent, now_us);
}

static void loop(struct agent *agent)
{
    int64_t boot_look_us = 0;

    while (!agent->stopping && !agent->rebooted) {
        turn(agent);
        if (clock_mono_us() - boot_look_us > 500000) {
            boot_look_us = clock_mono_us();
            look_at_boot(agent);
        }
    }
    /* What was seen but not told yet. */
    (void)kmsg_tell(&agent->kmsg, agent->faults, true, clock_mono_us());
    faults_flush(agent->faults);
}

static void stop(struct agent *agent)
{
    uplink_stop(agent->uplink);
    if (agent->watching) {
        watch_stop(agent);
    }
    act_close(agent->act);
    faults_close(agent->faults);
    spool_close(agent->spool);
    spool_close(agent->old_spool);
    identity_free(&agent->identity);
    cleanup_fd(&agent->signal_fd);
    cleanup_fd(&agent->notify_fd);
}

static int refuse(const char *error)
{
    (void)fprintf(stderr, "muster-agent run: %s\n", error);
    return 2;
}

int command_run(int argc, char **argv)
{
    struct agent *agent = calloc(1, sizeof(*agent));
    char error[512];

    if (agent == NULL) {
        return refuse("no memory");
    }
    agent->signal_fd = -1;
    agent->notify_fd = -1;
    if (!options_load(argc, argv, &agent->options, error, sizeof(error)) ||
        !start(agent, error, sizeof(error))) {
        stop(agent);
        free(agent);
        return refuse(error);
    }
    log_info("watching %s for %s", agent->options.node_name, agent->options.server_url);
    loop(agent);
    bool again = agent->rebooted;
    stop(agent);
    free(agent);
    if (again) {
        /* argv belongs to main: the program's name and "run" stand before it. */
        (void)execv("/proc/self/exe", argv - 2);
        return refuse("the program could not be started anew");
    }
    return 0;
}
