/* Command checks of an organization's own: programs with limits, at most two at once. */
#include "agent/custom/command.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/collect/program.h"
#include "base/clock.h"
#include "base/crypto.h"
#include "base/file.h"
#include "base/log.h"

/* Exit statuses as Nagios' plugins have them (its guidelines for plugins, 2.4). */
#define NAGIOS_OK 0
#define NAGIOS_WARNING 1
#define NAGIOS_CRITICAL 2
/* Our own, beyond what a program can exit with. */
#define STATUS_TIMEOUT 1000
#define STATUS_SIGNAL 1100 /* and its number */
#define STATUS_NOT_STARTED 127

/* A killed process that is still there after this hangs inside the kernel. */
#define DYING_US 1000000
/* New checks begin within this, not all at once. */
#define SPREAD_US (10 * INT64_C(1000000))
#define MIB (1024 * 1024)
/* linux/ioprio.h: the class that runs only when the disk is idle, for the calling process. */
#define IOPRIO_IDLE (3 << 13)
#define IOPRIO_WHO_PROCESS 1

void own_commands_init(struct own_commands *commands)
{
    *commands = (struct own_commands){.count = 0};
    for (size_t i = 0; i < OWN_COMMANDS_AT_ONCE; i++) {
        commands->runs[i].out = -1;
    }
}

static void end_run(struct own_run *run)
{
    cleanup_fd(&run->out);
    buf_free(&run->text);
    *run = (struct own_run){.out = -1};
}

static void kill_group(pid_t pid)
{
    (void)kill(-pid, SIGKILL);
    (void)kill(pid, SIGKILL);
}

void own_commands_stop(struct own_commands *commands)
{
    for (size_t i = 0; i < OWN_COMMANDS_AT_ONCE; i++) {
        if (commands->runs[i].pid > 0) {
            kill_group(commands->runs[i].pid);
            end_run(&commands->runs[i]);
        }
    }
}

static int64_t spread_us(int64_t interval_seconds)
{
    uint32_t number;
    int64_t most = interval_seconds * 1000000 < SPREAD_US ? interval_seconds * 1000000 : SPREAD_US;

    crypto_random(&number, sizeof(number));
    return most * (int64_t)(number % 1000) / 1000;
}

void own_commands_set(struct own_commands *commands, const struct settings *settings, bool allowed,
                      int64_t now_us)
{
    struct own_command list[SETTINGS_CHECKS_MAX];

    own_commands_stop(commands);
    for (size_t i = 0; i < settings->check_count; i++) {
        const struct own_check *check = &settings->checks[i];

        list[i] = (struct own_command){.version = check->version,
                                       .due_us = check->is_command && allowed
                                                     ? now_us + spread_us(check->interval_seconds)
                                                     : INT64_MAX};
        (void)snprintf(list[i].id, sizeof(list[i].id), "%s", check->id);
        for (size_t k = 0; k < commands->count; k++) {
            const struct own_command *old = &commands->list[k];

            if (strcmp(old->id, check->id) == 0 && old->version == check->version) {
                list[i] = *old;
            }
        }
    }
    (void)memcpy(commands->list, list, settings->check_count * sizeof(list[0]));
    commands->count = settings->check_count;
}

/* ---- what a run says ---- */

static void put_line(struct evidence *line, struct str text)
{
    *line = (struct evidence){.at_us = clock_wall_us()};
    (void)snprintf(line->text, sizeof(line->text), "%.*s", text.len > 255 ? 255 : (int)text.len,
                   text.ptr);
    for (char *c = line->text; *c != '\0'; c++) {
        *c = (unsigned char)*c < ' ' || (unsigned char)*c > '~' ? '?' : *c;
    }
}

static size_t take_lines(struct str text, struct evidence lines[EVIDENCE_MAX])
{
    struct str line;
    size_t count = 0;

    while (count < EVIDENCE_MAX && str_split(&text, '\n', &line)) {
        line = str_trim(line);
        if (line.len > 0) {
            put_line(&lines[count++], line);
        }
    }
    return count;
}

static void describe(int status, char *text, size_t cap)
{
    if (status == STATUS_TIMEOUT) {
        (void)snprintf(text, cap, "it did not end in time");
    } else if (status > STATUS_SIGNAL) {
        (void)snprintf(text, cap, "signal %d ended it", status - STATUS_SIGNAL);
    } else {
        (void)snprintf(text, cap, "exit status %d", status);
    }
}

static void tell(const struct own_check *check, const char *code, int status, struct str text,
                 struct faults *faults)
{
    struct evidence lines[EVIDENCE_MAX];
    bool failed = strcmp(code, "failed") == 0;
    enum severity worst = status == NAGIOS_CRITICAL ? SEVERITY_CRITICAL : SEVERITY_WARNING;
    struct finding finding = {.check = check->id, .clears = CLEARS_EVENT, .count = 1};
    struct fault_report report = {.finding = &finding, .source = "custom", .lines = lines};
    char how[64];

    finding.severity = check->severity < worst ? check->severity : worst;
    finding.action = failed && finding.severity == SEVERITY_CRITICAL ? check->action : ACTION_NONE;
    finding.node_fault = finding.action != ACTION_NONE;
    finding_set_code(&finding, "%s", code);
    report.line_count = take_lines(text, lines);
    describe(status, how, sizeof(how));
    finding_set_summary(
        &finding, "%.60s %s: %.100s", check->title[0] != '\0' ? check->title : check->id,
        failed ? "fails" : "cannot tell", failed && report.line_count > 0 ? lines[0].text : how);
    faults_reading(faults, &report, true);
}

static void tell_good(const struct own_check *check, const char *code, struct faults *faults)
{
    struct finding finding = {.check = check->id, .clears = CLEARS_EVENT, .count = 1};
    struct fault_report report = {.finding = &finding, .source = "custom"};

    finding_set_code(&finding, "%s", code);
    finding_set_summary(&finding, "the check succeeds again");
    faults_reading(faults, &report, false);
}

void own_command_result(struct own_command *command, const struct own_check *check, int status,
                        struct str text, struct faults *faults)
{
    bool failed = status == NAGIOS_WARNING || status == NAGIOS_CRITICAL;

    if (status == NAGIOS_OK) {
        command->bad = command->odd = 0;
        if (++command->good >= check->clear_after) {
            tell_good(check, "failed", faults);
            tell_good(check, "unknown", faults);
        }
        return;
    }
    command->good = 0;
    if (failed) {
        /* It speaks of the node again. */
        command->odd = 0;
        tell_good(check, "unknown", faults);
        if (++command->bad >= check->raise_after) {
            tell(check, "failed", status, text, faults);
        }
    } else if (++command->odd >= check->raise_after) {
        tell(check, "unknown", status, text, faults);
    }
}

/* ---- starting ---- */

/* All that the child needs, made before the fork: after it only async-signal-safe calls are left,
 * because other threads may hold locks. */
struct start {
    char *argv[SETTINGS_WORDS_MAX + 1];
    uid_t uid;
    gid_t gid;
    bool changes_user;
    int out;
    int cgroup; /* cgroup.procs of check_cgroup, -1 = none */
    int64_t timeout_seconds;
};

static void set_limit(int what, rlim_t most)
{
    struct rlimit limit = {most, most};

    (void)setrlimit((__rlimit_resource_t)what, &limit);
}

static void limit_child(const struct start *start)
{
    set_limit(RLIMIT_CORE, 0);
    set_limit(RLIMIT_CPU, (rlim_t)start->timeout_seconds + 1);
    set_limit(RLIMIT_FSIZE, (rlim_t)64 * MIB);
    set_limit(RLIMIT_DATA, (rlim_t)1024 * MIB);
    set_limit(RLIMIT_NOFILE, 256);
    (void)setpriority(PRIO_PROCESS, 0, 19);
    (void)syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IOPRIO_IDLE);
}

static void become(const struct start *start)
{
    static char *const environment[] = {(char *)"LC_ALL=C",
                                        (char *)"PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL};
    sigset_t none;
    int null = open("/dev/null", O_RDWR);

    (void)setpgid(0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(start->out, STDOUT_FILENO) < 0 ||
        dup2(start->out, STDERR_FILENO) < 0 || chdir("/") != 0) {
        _exit(STATUS_NOT_STARTED);
    }
    if (start->cgroup >= 0 && write(start->cgroup, "0", 1) != 1) {
        _exit(STATUS_NOT_STARTED);
    }
    limit_child(start);
    if (start->changes_user &&
        (setgroups(0, NULL) != 0 || setgid(start->gid) != 0 || setuid(start->uid) != 0)) {
        _exit(STATUS_NOT_STARTED);
    }
    (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* a change of user takes it away */
    (void)umask(077);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)signal(SIGPIPE, SIG_DFL);
    (void)close_range(STDERR_FILENO + 1, ~0U, 0);
    (void)execve(start->argv[0], start->argv, environment);
    _exit(STATUS_NOT_STARTED);
}

static void split_words(const struct own_check *check, char **argv)
{
    size_t at = 0;
    size_t count = 0;

    if (check->word_count == 0) {
        argv[count++] = (char *)"/bin/sh";
        argv[count++] = (char *)"-c";
        argv[count++] = check->words.ptr;
    }
    for (; count < check->word_count; count++) {
        argv[count] = check->words.ptr + at;
        at += strlen(argv[count]) + 1;
    }
    argv[count] = NULL;
}

/* False with a reason when it may not run as that user. */
static bool find_user(const struct own_check *check, struct start *start, char *why, size_t cap)
{
    struct passwd entry;
    struct passwd *found = NULL;
    char space[4096];

    if (getpwnam_r(check->user, &entry, space, sizeof(space), &found) != 0 || found == NULL) {
        (void)snprintf(why, cap, "this node has no user %s", check->user);
        return false;
    }
    start->uid = entry.pw_uid;
    start->gid = entry.pw_gid;
    start->changes_user = geteuid() == 0;
    if (!start->changes_user && entry.pw_uid != geteuid()) {
        (void)snprintf(why, cap, "the agent may not run programs as %s", check->user);
        return false;
    }
    return true;
}

static int open_cgroup(const struct options *options)
{
    char path[PATH_MAX];

    if (options->check_cgroup[0] == '\0') {
        return -1;
    }
    (void)snprintf(path, sizeof(path), "%.3900s/cgroup.procs", options->check_cgroup);
    return open(path, O_WRONLY | O_CLOEXEC);
}

/* False with a reason when no process could be made. */
static bool start_run(struct own_run *run, const struct own_check *check,
                      const struct options *options, char *why, size_t cap)
{
    struct start start = {.timeout_seconds = check->timeout_seconds};
    int fds[2];

    if (!find_user(check, &start, why, cap)) {
        return false;
    }
    CLEANUP(cleanup_fd) int cgroup = open_cgroup(options);
    if (options->check_cgroup[0] != '\0' && cgroup < 0) {
        (void)snprintf(why, cap, "check_cgroup cannot be used: %s", strerrordesc_np(errno));
        return false;
    }
    if (pipe2(fds, O_CLOEXEC) != 0) {
        (void)snprintf(why, cap, "no pipe: %s", strerrordesc_np(errno));
        return false;
    }
    split_words(check, start.argv);
    start.out = fds[1];
    start.cgroup = cgroup;
    run->pid = fork();
    if (run->pid == 0) {
        become(&start);
    }
    (void)close(fds[1]);
    run->out = fds[0];
    if (run->pid < 0) {
        (void)snprintf(why, cap, "no process: %s", strerrordesc_np(errno));
        end_run(run);
        return false;
    }
    (void)setpgid(run->pid, run->pid);
    (void)fcntl(run->out, F_SETFL, O_NONBLOCK);
    run->deadline_us = clock_mono_us() + check->timeout_seconds * 1000000;
    return true;
}

static struct own_run *free_run(struct own_commands *commands)
{
    for (size_t i = 0; i < OWN_COMMANDS_AT_ONCE; i++) {
        if (commands->runs[i].pid == 0) {
            return &commands->runs[i];
        }
    }
    return NULL;
}

static int64_t period_us(const struct own_check *check, const struct options *options)
{
    return options->collect_interval_ms > 0 ? options->collect_interval_ms * 1000
                                            : check->interval_seconds * 1000000;
}

static void start_due(struct own_commands *commands, const struct settings *settings,
                      const struct options *options, struct faults *faults, int64_t now_us)
{
    char why[128];

    for (size_t i = 0; i < commands->count && i < settings->check_count; i++) {
        struct own_command *command = &commands->list[i];
        const struct own_check *check = &settings->checks[i];
        struct own_run *run = now_us >= command->due_us ? free_run(commands) : NULL;

        if (run == NULL || !check->is_command) {
            continue;
        }
        command->due_us = now_us + period_us(check, options);
        if (command->undead != 0) {
            (void)waitpid(command->undead, NULL, WNOHANG);
        }
        if (command->undead != 0 && program_lives(command->undead, command->started)) {
            own_command_result(command, check, STATUS_TIMEOUT,
                               STR("the run before hangs in the kernel"), faults);
            continue;
        }
        command->undead = 0;
        if (start_run(run, check, options, why, sizeof(why))) {
            run->at = i;
        } else {
            own_command_result(command, check, STATUS_NOT_STARTED, str_of(why), faults);
        }
    }
}

/* ---- ending ---- */

/* Beyond the limit it is read and forgotten, so that the program goes on. */
static void read_output(struct own_run *run, size_t most)
{
    char piece[4096];
    ssize_t got;

    while (run->out >= 0) {
        got = read(run->out, piece, sizeof(piece));
        if (got < 0) {
            return; /* nothing more for now */
        }
        if (got == 0) {
            cleanup_fd(&run->out);
            return;
        }
        size_t room = run->text.len < most ? most - run->text.len : 0;
        buf_add(&run->text, piece, (size_t)got < room ? (size_t)got : room);
    }
}

static void look_after(struct own_commands *commands, const struct settings *settings,
                       struct own_run *run, struct faults *faults, int64_t now_us)
{
    struct own_command *command = &commands->list[run->at];
    const struct own_check *check = &settings->checks[run->at];
    int status = 0;

    read_output(run, (size_t)check->output_bytes);
    siginfo_t info = {.si_pid = 0};
    if (waitid(P_PID, (id_t)run->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
        info.si_pid == run->pid) {
        kill_group(run->pid); /* what it left behind, while the number is still its own */
        (void)waitpid(run->pid, &status, 0);
        read_output(run, (size_t)check->output_bytes);
        int said = run->killed           ? STATUS_TIMEOUT
                   : WIFSIGNALED(status) ? STATUS_SIGNAL + WTERMSIG(status)
                                         : WEXITSTATUS(status);
        own_command_result(command, check, said, buf_str(&run->text), faults);
        end_run(run);
        return;
    }
    if (now_us < run->deadline_us) {
        return;
    }
    if (!run->killed) {
        command->started = program_started(run->pid);
        kill_group(run->pid);
        run->killed = true;
        run->deadline_us = now_us + DYING_US;
        return;
    }
    log_warning("%s was killed and does not die", check->id);
    command->undead = run->pid;
    own_command_result(command, check, STATUS_TIMEOUT, buf_str(&run->text), faults);
    end_run(run);
}

void own_commands_tick(struct own_commands *commands, const struct settings *settings,
                       const struct options *options, struct faults *faults, int64_t now_us)
{
    for (size_t i = 0; i < OWN_COMMANDS_AT_ONCE; i++) {
        if (commands->runs[i].pid > 0) {
            look_after(commands, settings, &commands->runs[i], faults, now_us);
        }
    }
    start_due(commands, settings, options, faults, now_us);
}

int64_t own_commands_due(const struct own_commands *commands)
{
    int64_t due = INT64_MAX;
    bool full = true;

    for (size_t i = 0; i < OWN_COMMANDS_AT_ONCE; i++) {
        const struct own_run *run = &commands->runs[i];

        full = full && run->pid > 0;
        if (run->pid > 0 && run->deadline_us < due) {
            due = run->deadline_us;
        }
    }
    for (size_t i = 0; i < commands->count && !full; i++) {
        due = commands->list[i].due_us < due ? commands->list[i].due_us : due;
    }
    return due;
}

int own_commands_fd(const struct own_commands *commands, size_t run)
{
    return commands->runs[run].out;
}
