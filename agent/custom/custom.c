/* The settings of this agent: taken from answers, kept on disk, and the checks that they bring. */
#include "agent/custom/custom.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/saver.h"
#include "base/crypto.h"
#include "base/file.h"
#include "base/log.h"

void custom_init(struct custom *custom, const struct options *options)
{
    settings_init(&custom->settings);
    custom->refused[0] = '\0';
    own_metrics_reset(&custom->metrics);
    own_commands_init(&custom->commands);
    collector_init(&custom->collector, "custom");
    (void)snprintf(custom->path, sizeof(custom->path), "%.3072s/settings", options->state_dir);
    custom->saver = saver_new(custom->path);
}

void custom_stop(struct custom *custom)
{
    own_commands_stop(&custom->commands);
    settings_free(&custom->settings);
    saver_free(custom->saver);
    custom->saver = NULL;
}

/* ---- ends of what is not looked at any more ---- */

#define GONE_MAX 64

struct gone {
    const struct settings *settings;
    char ids[GONE_MAX][SETTINGS_NAME_CAP];
    size_t count;
};

static void note_gone(const char *check, const char *device, const char *code, void *ctx)
{
    struct gone *gone = ctx;

    (void)device;
    (void)code;
    if (strncmp(check, "custom:", 7) != 0 || settings_find(gone->settings, check) != NULL ||
        gone->count == GONE_MAX) {
        return;
    }
    (void)snprintf(gone->ids[gone->count++], SETTINGS_NAME_CAP, "%s", check);
}

static void end_gone(const struct settings *settings, struct faults *faults)
{
    struct gone gone = {.settings = settings};

    faults_each_reading(faults, note_gone, &gone);
    for (size_t i = 0; i < gone.count; i++) {
        faults_clear(faults, gone.ids[i], NULL, "the check is not there any more");
    }
    for (size_t i = 0; i < settings->off_count; i++) {
        faults_clear(faults, settings->off[i], NULL, "the check is off");
    }
}

/* ---- taking ---- */

static void say_what_runs(struct custom *custom, const struct options *options, int64_t now_us)
{
    bool commands = false;

    for (size_t i = 0; i < custom->settings.check_count; i++) {
        commands = commands || custom->settings.checks[i].is_command;
    }
    if (custom->settings.check_count == 0) {
        collector_absent(&custom->collector, now_us, "there are no checks of your own");
    } else if (commands && !options->command_checks) {
        collector_unknown(&custom->collector, now_us,
                          "this node runs no command checks (command_checks in agent.conf is off)");
    } else {
        collector_ok(&custom->collector, now_us);
    }
}

static void tell_problem(const char *problem, struct faults *faults)
{
    struct finding finding = {.check = "agent.settings",
                              .severity = SEVERITY_INFO,
                              .clears = CLEARS_QUIET,
                              .quiet_seconds = 3600,
                              .count = 1};
    struct fault_report report = {.finding = &finding, .source = "agent"};

    finding_set_summary(&finding, "Settings that cannot be used were left as they were: %.120s",
                        problem);
    log_warning("settings that cannot be used: %s", problem);
    faults_tell(faults, &report);
}

/* False when it is no document at all. */
static bool apply(struct custom *custom, struct str document, const struct options *options,
                  struct faults *faults, int64_t now_us)
{
    struct settings *next = calloc(1, sizeof(*next));

    assert(next != NULL);
    if (!settings_read(document, &custom->settings, next)) {
        free(next);
        return false;
    }
    /* Before the former list goes: what runs belongs to it. */
    own_commands_set(&custom->commands, next, options->command_checks, now_us);
    own_metrics_reset(&custom->metrics);
    settings_free(&custom->settings);
    custom->settings = *next;
    free(next);
    custom->refused[0] = '\0';
    end_gone(&custom->settings, faults);
    say_what_runs(custom, options, now_us);
    if (custom->settings.problem[0] != '\0') {
        tell_problem(custom->settings.problem, faults);
    }
    return true;
}

void custom_load(struct custom *custom, const struct options *options, struct faults *faults,
                 int64_t now_us)
{
    CLEANUP(buf_free) struct buf data = {0};

    say_what_runs(custom, options, now_us);
    if (file_read(custom->path, SETTINGS_MAX, &data) == 0 &&
        !apply(custom, buf_str(&data), options, faults, now_us)) {
        log_warning("%s cannot be read; the server will send it again", custom->path);
    }
}

static bool is_signed(const struct settings_offer *offer)
{
    CLEANUP(buf_free) struct buf text = {0};
    uint8_t bytes[ED25519_SIGNATURE_LEN];
    size_t len;

    buf_printf(&text, "muster-settings\n%s\n%s\n", offer->identity->node_id, offer->nonce);
    buf_add(&text, offer->document.ptr, offer->document.len);
    return offer->nonce[0] != '\0' && crypto_unb64(offer->signature, bytes, sizeof(bytes), &len) &&
           len == sizeof(bytes) &&
           ed25519_verify(offer->identity->command_key, buf_str(&text), bytes);
}

bool custom_take(struct custom *custom, const struct settings_offer *offer,
                 const struct options *options, struct faults *faults, int64_t now_us)
{
    char version[SETTINGS_VERSION_CAP];
    struct buf copy = {0};

    settings_version(offer->document, version);
    if (!is_signed(offer)) {
        log_warning("settings were not taken: the signature is not the cluster's");
        return false;
    }
    if (!apply(custom, offer->document, options, faults, now_us)) {
        (void)snprintf(custom->refused, sizeof(custom->refused), "%s", version);
        tell_problem("the document cannot be read", faults);
        return false;
    }
    log_info("settings %s hold from now on", version);
    buf_add(&copy, offer->document.ptr, offer->document.len);
    saver_put(custom->saver, &copy);
    return true;
}
