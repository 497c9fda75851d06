/*
 * A node's controller (BMC) and its power. Off and on are idempotent: a power cycle is an off that
 * was seen, a rest and an on, so that a call sent twice by a network or a tool does no more than
 * one. What a controller accepts is not done before its power is read.
 */
#ifndef SERVER_REPAIR_EXECUTORS_MACHINE_H
#define SERVER_REPAIR_EXECUTORS_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "server/repair/executors/targets.h"

#define MACHINE_ERROR_MAX 240

enum machine_power { POWER_UNKNOWN, POWER_OFF, POWER_ON };

enum machine_said {
    MACHINE_ACCEPTED,
    MACHINE_REFUSED, /* surely no effect */
    MACHINE_UNCLEAR, /* it may have had one: read the power */
};

struct machine_driver {
    const char *kind; /* as in the executors file */
    /* Reading is harmless and may be repeated. serial: what the controller says the machine is;
     * empty when it does not. POWER_UNKNOWN with a sentence. */
    enum machine_power (*read)(const struct machine *machine, char serial[64],
                               char error[MACHINE_ERROR_MAX]);
    /* One call. A sentence with what is not MACHINE_ACCEPTED. */
    enum machine_said (*set)(const struct machine *machine, bool on, char error[MACHINE_ERROR_MAX]);
};

const struct machine_driver *machine_driver_of(struct str kind);

enum machine_leave {
    LEAVE_GIVEN,
    LEAVE_REFUSED, /* with a sentence */
    LEAVE_LOST,    /* another server looks after it now */
};

struct machine_times {
    int64_t seen_ms; /* an off or on must show within */
    int64_t poll_ms; /* between two readings */
    int64_t rest_ms; /* off for so long, so that capacitors empty */
    /* Asked right before the first effect, after everything that takes time; NULL = given. */
    enum machine_leave (*leave)(void *arg, char detail[MACHINE_ERROR_MAX]);
    void *arg;
};

enum machine_end {
    MACHINE_CYCLED,  /* it was seen off, then on */
    MACHINE_KEPT,    /* nothing was done to it */
    MACHINE_HELD,    /* likewise: what must be true no longer is */
    MACHINE_LOST,    /* likewise: another server looks after it */
    MACHINE_FAILED,  /* it is off and cannot be powered on */
    MACHINE_UNKNOWN, /* nobody can say */
};

/*
 * Blocks, at most about four times seen_ms. wanted_serial: the host's, as its agent told; another
 * one at the controller ends it before anything is done; empty = not compared. detail: a sentence.
 */
enum machine_end machine_cycle(const struct machine *machine, struct str wanted_serial,
                               const struct machine_times *times, char detail[MACHINE_ERROR_MAX]);
/* After a crash in a cycle: one that was left off is powered on. True when it is on. */
bool machine_heal(const struct machine *machine, const struct machine_times *times,
                  char detail[MACHINE_ERROR_MAX]);

extern const struct machine_driver machine_ipmi;
extern const struct machine_driver machine_redfish;

#endif
