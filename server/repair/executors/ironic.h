/*
 * OpenStack Ironic, which installs and powers the machines of a cluster: its calls and what its
 * answers mean. Reading is harmless and may be repeated; every other call is sent once, on a
 * connection of its own, so that no library repeats it.
 */
#ifndef SERVER_REPAIR_EXECUTORS_IRONIC_H
#define SERVER_REPAIR_EXECUTORS_IRONIC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "server/repair/executors/targets.h"

#define IRONIC_TEXT_MAX 240
#define IRONIC_VERSION_NEEDED 61 /* 1.61 knows `retired` */
#define IRONIC_VERSION_USED 82   /* at most, also where more is offered */

enum ironic_said {
    IRONIC_ACCEPTED, /* it will be done, or is: read the machine */
    IRONIC_REFUSED,  /* surely no effect, and asking again is no use */
    IRONIC_BUSY,     /* surely no effect; ask again later */
    IRONIC_UNKNOWN,  /* it may have had one: read the machine, never send it again */
};

/* What the answer to an effect means: by its status, and for 409 and 503 by Ironic's own words.
 * body: the raw answer. never_sent: no byte left. What is in no row is IRONIC_UNKNOWN. Pure. */
enum ironic_said ironic_said_of(long status, struct str body, bool never_sent);
/* Ironic's own words in an error body of any of its four shapes, else the body's first bytes. */
void ironic_words_of(struct str body, char text[IRONIC_TEXT_MAX]);

/* A machine as Ironic remembers it. Texts are empty where it tells nothing. */
struct ironic_machine {
    char id[40];
    char provision[32];
    char target_provision[32];
    char power[20];
    char target_power[20];
    bool reserved; /* something is being done to it */
    bool maintenance;
    bool faulty; /* the maintenance is Ironic's own: its controller does not answer */
    bool retired;
    bool guarded;      /* `protected` */
    char instance[40]; /* who has claimed it */
    char marker[40];   /* our order that it was last marked with */
    char resource_class[84];
    char updated_at[40];  /* of the provision state */
    char last_error[160]; /* may be of an earlier operation */
};

enum ironic_found {
    IRONIC_FOUND,
    IRONIC_ABSENT, /* there is no such machine for us: asking again is no use */
    IRONIC_UNREAD, /* ask again later */
};

struct ironic {
    const struct provisioner *provisioner;
    int64_t minor;            /* of the API's version */
    char authorization[4400]; /* a header line; empty = none */
};

/* Reads the credential and asks for the version. A sentence with what is not IRONIC_FOUND. The
 * caller wipes what it returned (it holds the credential). */
enum ironic_found ironic_open(const struct provisioner *provisioner, struct ironic *ret_ironic,
                              char error[IRONIC_TEXT_MAX]) MUST_CHECK;
/* machine: a UUID or a name. A sentence with what is not IRONIC_FOUND. */
enum ironic_found ironic_read(const struct ironic *ironic, const char *machine,
                              struct ironic_machine *ret_machine, char error[IRONIC_TEXT_MAX]);
/* One effect. path follows /v1/nodes/{machine}. detail: what was said, with the status. */
enum ironic_said ironic_send(const struct ironic *ironic, const char *machine, const char *method,
                             const char *path, const char *body, char detail[IRONIC_TEXT_MAX]);

#endif
