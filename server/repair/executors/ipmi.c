/* IPMI over LAN by ipmitool. */
#include <stdio.h>
#include <string.h>

#include "base/child.h"
#include "server/repair/executors/machine.h"

#define OUTPUT_MAX 4096

/* An effect is sent once: ipmitool's own retries reset a slow controller four times (-N 10 -R 1).
 */
static void run(const struct machine *machine, const char *verb, struct child_result *result)
{
    static const char *const env[] = {
        "LC_ALL=C", "HOME=/", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        NULL};
    char port[8];
    char suite[8];
    const char *argv[] = {"ipmitool",
                          "-I",
                          "lanplus",
                          "-C",
                          suite,
                          "-N",
                          "10",
                          "-R",
                          "1",
                          "-H",
                          machine->host.ptr,
                          "-p",
                          port,
                          "-U",
                          machine->user.ptr,
                          "-f",
                          machine->password_file.ptr,
                          "chassis",
                          "power",
                          verb,
                          NULL};
    const struct child_options options = {.argv = argv,
                                          .env = env,
                                          .timeout_ms = (int)machine->timeout_s * 1000,
                                          .max_bytes = OUTPUT_MAX};

    (void)snprintf(port, sizeof port, "%d", (int)machine->port);
    (void)snprintf(suite, sizeof suite, "%d", (int)machine->cipher_suite);
    child_run(&options, result);
}

static void say(const struct child_result *result, char error[MACHINE_ERROR_MAX])
{
    (void)snprintf(error, MACHINE_ERROR_MAX, "ipmitool: %.200s",
                   result->error[0] != '\0'         ? result->error
                   : result->end == CHILD_TIMED_OUT ? "no answer in time"
                                                    : "it failed without a word");
}

static enum machine_power ipmi_read(const struct machine *machine, char serial[64],
                                    char error[MACHINE_ERROR_MAX])
{
    CLEANUP(child_result_free) struct child_result result = {0};
    enum machine_power power = POWER_UNKNOWN;

    serial[0] = '\0';
    run(machine, "status", &result);
    struct str text = str_trim(buf_str(&result.out));
    if (child_ok(&result)) {
        power = str_eq_c(text, "Chassis Power is on")    ? POWER_ON
                : str_eq_c(text, "Chassis Power is off") ? POWER_OFF
                                                         : POWER_UNKNOWN;
    }
    if (power == POWER_UNKNOWN) {
        say(&result, error);
    }
    return power;
}

/* Wrong password, wrong user and a dead controller are one message, and before any order. */
static enum machine_said ipmi_set(const struct machine *machine, bool on,
                                  char error[MACHINE_ERROR_MAX])
{
    CLEANUP(child_result_free) struct child_result result = {0};

    run(machine, on ? "on" : "off", &result);
    if (child_ok(&result)) {
        return MACHINE_ACCEPTED;
    }
    say(&result, error);
    return result.end == CHILD_NOT_STARTED ||
                   strstr(result.error, "Unable to establish IPMI v2 / RMCP+ session") != NULL
               ? MACHINE_REFUSED
               : MACHINE_UNCLEAR;
}

const struct machine_driver machine_ipmi = {.kind = "ipmi", .read = ipmi_read, .set = ipmi_set};
