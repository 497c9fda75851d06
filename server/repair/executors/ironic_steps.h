/*
 * What an order to Ironic is made of, and what to do next: pure, from the order as it is stored and
 * the machine as Ironic tells it. Each effect is a step; it is sent once, and what became of it is
 * read. Only steps that can be repeated without harm are sent again.
 */
#ifndef SERVER_REPAIR_EXECUTORS_IRONIC_STEPS_H
#define SERVER_REPAIR_EXECUTORS_IRONIC_STEPS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "server/repair/action.h"
#include "server/repair/executors/ironic.h"

#define IRONIC_STEPS_MAX 6

/* An order as it is stored, at one of its steps. */
struct ironic_order {
    enum repair_action action;
    int64_t repair_no;
    const char *command; /* UUID; claims a spare */
    const char *node;    /* name, as the host name of what is installed */
    int64_t step;        /* from 0 */
    bool sent;           /* this step's effect may have gone out */
    bool begun;          /* and was seen to begin */
    bool late;           /* past this step's deadline */
    int64_t tries;       /* of this step */
    const char *before;  /* when the provision state last changed, before it was sent */
    bool rested;         /* this step began long enough ago for a machine to lose its charge */
};

enum ironic_whose { IRONIC_OWN, IRONIC_SPARE };

struct ironic_step {
    const char *name;        /* as it is logged: "power off" */
    enum ironic_whose whose; /* machine */
    bool long_one;           /* an installation: its deadline is the provisioner's */
};

/* NULL past the last step. */
const struct ironic_step *ironic_step_at(enum repair_action action, int64_t step);

enum ironic_todo {
    IRONIC_SEND,        /* the call below, after that was stored */
    IRONIC_WAIT,        /* look again later */
    IRONIC_NEXT,        /* this step is done */
    IRONIC_SKIP,        /* it failed and the order goes on; the text says what */
    IRONIC_END_REFUSED, /* nothing was done */
    IRONIC_END_FAILED,
    IRONIC_END_UNKNOWN,
};

struct ironic_next {
    enum ironic_todo todo;
    bool begins; /* it was seen to begin: remember it */
    char text[IRONIC_TEXT_MAX];
};

/* machine NULL = it could not be read; then `error` says why and `absent` that it never can. */
void ironic_decide(const struct ironic_order *order, const struct provisioner *provisioner,
                   const struct ironic_machine *machine, bool absent, const char *error,
                   struct ironic_next *ret_next);
/* No machine was touched by this order yet: whether it may begin is asked right before. */
bool ironic_is_first_effect(const struct ironic_order *order);
/* What to do after the call was answered so. Only IRONIC_WAIT, an end, or IRONIC_SKIP. */
void ironic_decide_said(const struct ironic_order *order, enum ironic_said said, const char *detail,
                        struct ironic_next *ret_next);

struct ironic_call {
    const char *method;
    const char *path;
    const char *body; /* JSON; in the arena */
};
/* user_data: what the installed system gets as its configuration; empty = none. */
void ironic_call_of(struct arena *arena, const struct ironic_order *order,
                    const struct provisioner *provisioner, struct str user_data,
                    struct ironic_call *ret_call);

#endif
