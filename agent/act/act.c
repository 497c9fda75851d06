/* Carrying out what was judged right: one act at a time, each told to the command log first. */
#include "agent/act/act.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/encode.h"
#include "base/log.h"

/* The report that says "accepted" gets this long to be answered before the act begins anyway. */
#define BEGIN_WITHIN_US (5 * INT64_C(1000000))
#define PROGRAM_TIMEOUT_US (300 * INT64_C(1000000))
#define WORDS_MAX 32
#define LOOK_US 200000

enum phase {
    PHASE_IDLE,
    PHASE_ACCEPTED,  /* logged; waits for the server to know */
    PHASE_RUNNING,   /* the program runs */
    PHASE_REBOOTING, /* it returned; the boot must end */
};

struct act {
    const struct options *options;
    const struct identity *identity;
    struct command_log *log;
    char boot_id[UUID_TEXT_LEN + 1];
    struct command command; /* of the act under way */
    enum phase phase;
    int64_t deadline_us;
    pid_t pid;
    char gpus[COMMAND_GPUS_CAP];
    struct command_result results[RESULTS_MAX];
    size_t result_count;
};

/* ---- results ---- */

static void add_result(struct act *act, const char *id, const char *state, const char *detail)
{
    struct command_result *slot = NULL;

    for (size_t i = 0; i < act->result_count; i++) {
        if (strcmp(act->results[i].id, id) == 0) {
            slot = &act->results[i];
        }
    }
    if (slot == NULL) {
        if (act->result_count == RESULTS_MAX) {
            memmove(&act->results[0], &act->results[1],
                    (RESULTS_MAX - 1) * sizeof(struct command_result));
            act->result_count--;
        }
        slot = &act->results[act->result_count++];
    }
    *slot = (struct command_result){.state = state};
    (void)snprintf(slot->id, sizeof(slot->id), "%s", id);
    (void)snprintf(slot->detail, sizeof(slot->detail), "%s", detail);
}

size_t act_results_write(struct act *act, struct buf *out)
{
    struct enc enc;

    enc_init(&enc, out);
    enc_arr(&enc);
    for (size_t i = 0; i < act->result_count; i++) {
        struct command_result *result = &act->results[i];

        enc_obj(&enc);
        enc_key(&enc, "command_id");
        enc_cstr(&enc, result->id);
        enc_key(&enc, "state");
        enc_cstr(&enc, result->state);
        enc_key(&enc, "detail");
        enc_cstr(&enc, result->detail);
        enc_obj_end(&enc);
        result->in_report = true;
    }
    enc_arr_end(&enc);
    return act->result_count;
}

bool act_has_news(const struct act *act)
{
    for (size_t i = 0; i < act->result_count; i++) {
        if (!act->results[i].repeated) {
            return true;
        }
    }
    return false;
}

static void end(struct act *act, bool failed, const char *detail)
{
    int error = command_log_end(act->log, act->command.id, failed, detail);

    if (error != 0) {
        log_error("the command log cannot be written: %s", strerrordesc_np(error));
    }
    add_result(act, act->command.id, failed ? "failed" : "done", detail);
    log_info("command %s (%s): %s%s%s", act->command.id, act->command.action,
             failed ? "failed" : "done", detail[0] != '\0' ? ": " : "", detail);
    act->phase = PHASE_IDLE;
}

/* ---- start ---- */

static void resume(struct act *act)
{
    const struct command_entry *entry;
    char detail[DETAIL_CAP];

    while ((entry = command_log_unfinished(act->log)) != NULL) {
        (void)snprintf(act->command.id, sizeof(act->command.id), "%s", entry->id);
        (void)snprintf(act->command.action, sizeof(act->command.action), "%s", entry->action);
        bool reboot = strcmp(entry->action, "reboot") == 0;
        int64_t age_s = clock_wall_us() / 1000000 - entry->begun_s;

        if (reboot && strcmp(entry->boot_id, act->boot_id) != 0) {
            (void)snprintf(detail, sizeof(detail), "booted anew as %s", act->boot_id);
            end(act, false, detail);
        } else if (reboot && age_s >= 0 && age_s < act->options->reboot_deadline_seconds) {
            /* It may still be on its way; a second one is never started. */
            act->phase = PHASE_REBOOTING;
            act->deadline_us =
                clock_mono_us() + (act->options->reboot_deadline_seconds - age_s) * 1000000;
            add_result(act, entry->id, "accepted", "begun before the agent was restarted");
            return;
        } else {
            end(act, true, "the agent was restarted while it ran; what became of it is not known");
        }
        if (command_log_find(act->log, act->command.id)->ended == false) {
            return; /* the log cannot be written: the line above says so */
        }
    }
}

struct act *act_open(const struct options *options, const struct identity *identity,
                     const char *boot_id)
{
    struct act *act = calloc(1, sizeof(*act));
    char path[PATH_MAX];
    char error[320];

    assert(act != NULL);
    act->options = options;
    act->identity = identity;
    (void)snprintf(act->boot_id, sizeof(act->boot_id), "%s", boot_id);
    (void)snprintf(path, sizeof(path), "%.3072s/commands.log", options->state_dir);
    act->log = command_log_open(path, error, sizeof(error));
    if (act->log == NULL) {
        log_error("%s; every command will be refused", error);
    } else {
        resume(act);
    }
    return act;
}

void act_close(struct act *act)
{
    if (act == NULL) {
        return;
    }
    command_log_close(act->log);
    free(act);
}

/* ---- orders ---- */

static void begin(struct act *act, int64_t now_us)
{
    struct command_entry entry = {.epoch = {act->command.epoch[0], act->command.epoch[1]},
                                  .begun_s = clock_wall_us() / 1000000};

    (void)snprintf(entry.id, sizeof(entry.id), "%s", act->command.id);
    (void)snprintf(entry.action, sizeof(entry.action), "%s", act->command.action);
    (void)snprintf(entry.boot_id, sizeof(entry.boot_id), "%s", act->boot_id);
    int error = command_log_begin(act->log, &entry);
    if (error != 0) {
        char detail[DETAIL_CAP];

        (void)snprintf(detail, sizeof(detail), "the command log cannot be written: %s",
                       strerrordesc_np(error));
        add_result(act, act->command.id, "refused", detail);
        return;
    }
    log_info("command %s accepted: %s (repair %lld)", act->command.id, act->command.action,
             (long long)act->command.repair_no);
    add_result(act, act->command.id, "accepted", "");
    act->phase = PHASE_ACCEPTED;
    act->deadline_us = now_us + BEGIN_WITHIN_US;
}

/* The server hands an order out again until it has its result. */
static void repeat_known(struct act *act, const char *id)
{
    const struct command_entry *entry = command_log_find(act->log, id);

    for (size_t i = 0; i < act->result_count; i++) {
        if (strcmp(act->results[i].id, id) == 0) {
            return; /* on its way already */
        }
    }

    if (entry->ended) {
        add_result(act, id, entry->failed ? "failed" : "done", entry->detail);
    } else {
        add_result(act, id, "accepted", "");
    }
    act->results[act->result_count - 1].repeated = true;
}

void act_order(struct act *act, struct str payload, struct str signature, const char *nonce,
               int64_t now_us)
{
    struct command command;
    char reason[DETAIL_CAP] = "";
    struct command_rules rules = {
        .identity = act->identity,
        .nonce = nonce,
        .boot_id = act->boot_id,
        .log = act->log,
        .allowed_actions = act->options->allowed_actions,
        .deny_file = act->options->deny_file,
        .destructive_per_hour = act->options->destructive_per_hour,
        .now_s = clock_wall_us() / 1000000,
    };

    switch (command_judge(&rules, payload, signature, &command, reason, sizeof(reason))) {
    case VERDICT_ACT:
        if (act->phase != PHASE_IDLE) {
            add_result(act, command.id, "refused", "another command is being carried out");
            return;
        }
        act->command = command;
        begin(act, now_us);
        return;
    case VERDICT_KNOWN:
        repeat_known(act, command.id);
        return;
    case VERDICT_REFUSED:
        log_warning("command %s refused: %s", command.id, reason);
        add_result(act, command.id, "refused", reason);
        return;
    case VERDICT_IGNORED:
    default:
        log_warning("an order was ignored: %s", reason);
        return;
    }
}

/* ---- the act ---- */

bool act_split(const char *program, const char *gpus, struct buf *buf, char **argv, size_t cap)
{
    struct str rest = str_of(program);
    size_t starts[WORDS_MAX];
    size_t count = 0;
    struct str word;

    while (str_split(&rest, ' ', &word)) {
        if (word.len == 0) {
            continue;
        }
        if (count + 1 >= cap || count == WORDS_MAX) {
            return false;
        }
        starts[count++] = buf->len;
        ptrdiff_t at = str_find(word, STR("{gpus}"), 0);
        if (at < 0) {
            buf_add(buf, word.ptr, word.len);
        } else {
            if (gpus[0] == '\0') {
                return false;
            }
            buf_add(buf, word.ptr, (size_t)at);
            buf_add_c(buf, gpus);
            buf_add(buf, word.ptr + at + 6, word.len - (size_t)at - 6);
        }
        buf_add_char(buf, '\0');
    }
    for (size_t i = 0; i < count; i++) {
        argv[i] = buf->ptr + starts[i];
    }
    argv[count] = NULL;
    return count > 0;
}

/* Only async-signal-safe calls: other threads may hold locks at the fork. */
static void exec_child(char **argv)
{
    sigset_t none;
    int null = open("/dev/null", O_RDWR);

    if (null >= 0) {
        (void)dup2(null, STDIN_FILENO);
        (void)dup2(null, STDOUT_FILENO);
    }
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)signal(SIGPIPE, SIG_DFL);
    (void)close_range(3, ~0U, 0);
    (void)execvp(argv[0], argv);
    _exit(127);
}

static void run(struct act *act, int64_t now_us)
{
    CLEANUP(buf_free) struct buf words = {0};
    char *argv[WORDS_MAX + 1];
    bool reboot = strcmp(act->command.action, "reboot") == 0;
    const char *program = reboot ? act->options->reboot_program : act->options->reset_gpu_program;

    if (!reboot && strcmp(act->command.action, "reset_gpu") != 0) {
        end(act, true, "this agent has no way to carry out the action");
        return;
    }
    if (!act_split(program, act->command.gpus, &words, argv, COUNTOF(argv))) {
        end(act, true, "the program for the action is not usable, or no GPU is named");
        return;
    }
    act->pid = fork();
    if (act->pid == 0) {
        exec_child(argv);
    }
    if (act->pid < 0) {
        end(act, true, "no process could be started");
        return;
    }
    act->phase = PHASE_RUNNING;
    act->deadline_us = now_us + PROGRAM_TIMEOUT_US;
}

static enum act_news finish(struct act *act, int status, int64_t now_us)
{
    char detail[DETAIL_CAP] = "";

    act->pid = 0;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        (void)snprintf(detail, sizeof(detail), "the program ended with %s %d",
                       WIFEXITED(status) ? "status" : "signal",
                       WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
        end(act, true, detail);
        return ACT_ENDED;
    }
    if (strcmp(act->command.action, "reboot") == 0) {
        act->phase = PHASE_REBOOTING;
        act->deadline_us = now_us + act->options->reboot_deadline_seconds * 1000000;
        return ACT_REBOOTING;
    }
    (void)snprintf(act->gpus, sizeof(act->gpus), "%s", act->command.gpus);
    end(act, false, detail);
    return ACT_GPU_RESET;
}

static enum act_news tick_running(struct act *act, int64_t now_us)
{
    int status;
    pid_t done = waitpid(act->pid, &status, WNOHANG);

    if (done == act->pid) {
        return finish(act, status, now_us);
    }
    if (now_us < act->deadline_us) {
        return ACT_NOTHING;
    }
    (void)kill(act->pid, SIGKILL);
    end(act, true, "the program did not end in time");
    return ACT_ENDED;
}

enum act_news act_tick(struct act *act, int64_t now_us)
{
    switch (act->phase) {
    case PHASE_RUNNING:
        return tick_running(act, now_us);
    case PHASE_ACCEPTED:
        if (now_us >= act->deadline_us) {
            run(act, now_us);
        }
        return ACT_NOTHING;
    case PHASE_REBOOTING:
        if (now_us < act->deadline_us) {
            return ACT_NOTHING;
        }
        end(act, true, "the node did not reboot in time");
        return ACT_ENDED;
    case PHASE_IDLE:
    default:
        return ACT_NOTHING;
    }
}

void act_results_told(struct act *act, bool answered, int64_t now_us)
{
    size_t kept = 0;
    bool accepted_told = false;

    for (size_t i = 0; i < act->result_count; i++) {
        struct command_result *result = &act->results[i];

        if (answered && result->in_report) {
            accepted_told = accepted_told || (strcmp(result->state, "accepted") == 0 &&
                                              strcmp(result->id, act->command.id) == 0);
            continue;
        }
        result->in_report = false;
        act->results[kept++] = *result;
    }
    act->result_count = kept;
    if (accepted_told && act->phase == PHASE_ACCEPTED) {
        run(act, now_us);
    }
}

const char *act_gpus(const struct act *act)
{
    return act->gpus;
}

int64_t act_due(const struct act *act)
{
    switch (act->phase) {
    case PHASE_RUNNING:
        return clock_mono_us() + LOOK_US;
    case PHASE_ACCEPTED:
    case PHASE_REBOOTING:
        return act->deadline_us;
    case PHASE_IDLE:
    default:
        return INT64_MAX;
    }
}
