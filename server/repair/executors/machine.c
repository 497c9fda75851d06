/* A power cycle as two calls that may be repeated, and the table of drivers. */
#include "server/repair/executors/machine.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

#define ON_TRIES 3

static const struct machine_driver *const drivers[] = {&machine_ipmi, &machine_redfish};

const struct machine_driver *machine_driver_of(struct str kind)
{
    for (size_t i = 0; i < COUNTOF(drivers); i++) {
        if (str_eq_c(kind, drivers[i]->kind)) {
            return drivers[i];
        }
    }
    return NULL;
}

static enum machine_power read_power(const struct machine *machine, char error[MACHINE_ERROR_MAX])
{
    char serial[64];

    return machine->driver->read(machine, serial, error);
}

/* Reads until the power is as wanted, or the time is over. */
static bool is_seen(const struct machine *machine, enum machine_power wanted,
                    const struct machine_times *times, char error[MACHINE_ERROR_MAX])
{
    int64_t until_us = clock_mono_us() + times->seen_ms * 1000;

    for (;;) {
        if (read_power(machine, error) == wanted) {
            return true;
        }
        if (clock_mono_us() >= until_us) {
            return false;
        }
        (void)poll(NULL, 0, (int)times->poll_ms);
    }
}

/* An own off is always followed by an on: it is asked for until it shows. */
static bool power_on(const struct machine *machine, const struct machine_times *times,
                     char error[MACHINE_ERROR_MAX])
{
    for (int i = 0; i < ON_TRIES; i++) {
        (void)machine->driver->set(machine, true, error);
        if (is_seen(machine, POWER_ON, times, error)) {
            return true;
        }
    }
    return false;
}

static bool is_another(const char *serial, struct str wanted)
{
    return serial[0] != '\0' && wanted.len > 0 && !str_eq_nocase(str_of(serial), wanted);
}

static void say(char detail[MACHINE_ERROR_MAX], const char *what, const char *error)
{
    (void)snprintf(detail, MACHINE_ERROR_MAX, "%s%s%.160s", what, error[0] == '\0' ? "." : ": ",
                   error);
}

enum machine_end machine_cycle(const struct machine *machine, struct str wanted_serial,
                               const struct machine_times *times, char detail[MACHINE_ERROR_MAX])
{
    char error[MACHINE_ERROR_MAX] = "";
    char serial[64] = "";
    enum machine_power power = machine->driver->read(machine, serial, error);

    if (power == POWER_UNKNOWN) {
        say(detail, "The power cannot be read", error);
        return MACHINE_KEPT;
    }
    if (is_another(serial, wanted_serial)) {
        say(detail, "The controller is another machine's, with the serial number", serial);
        return MACHINE_KEPT;
    }
    enum machine_leave leave =
        times->leave == NULL ? LEAVE_GIVEN : times->leave(times->arg, detail);
    if (leave != LEAVE_GIVEN) {
        return leave == LEAVE_LOST ? MACHINE_LOST : MACHINE_HELD;
    }
    if (power == POWER_ON) {
        enum machine_said said = machine->driver->set(machine, false, error);
        if (said == MACHINE_REFUSED) {
            say(detail, "The controller refused to power it off", error);
            return MACHINE_KEPT;
        }
        if (!is_seen(machine, POWER_OFF, times, error)) {
            /* Late is not never: nothing is left off by an off that comes after this. */
            bool on = power_on(machine, times, error);
            say(detail,
                on ? "It was told to power off and was not seen off"
                   : "It was told to power off and its power cannot be read",
                error);
            return MACHINE_UNKNOWN;
        }
        (void)poll(NULL, 0, (int)times->rest_ms);
    }
    if (!power_on(machine, times, error)) {
        say(detail, "It is off and does not power on", error);
        return MACHINE_FAILED;
    }
    say(detail, "It was seen off, then on", "");
    return MACHINE_CYCLED;
}

bool machine_heal(const struct machine *machine, const struct machine_times *times,
                  char detail[MACHINE_ERROR_MAX])
{
    char error[MACHINE_ERROR_MAX] = "";
    enum machine_power power = read_power(machine, error);
    bool on = power == POWER_ON || (power == POWER_OFF && power_on(machine, times, error));

    say(detail,
        on ? "The server stopped in between; the machine is on now"
           : "The server stopped in between; the machine is not known to be on",
        on ? "" : error);
    return on;
}
