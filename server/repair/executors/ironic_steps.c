/* The steps of each action as a table, and the decision at a step. */
#include "server/repair/executors/ironic_steps.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/encode.h"

#define TRIES_MAX 3

enum seen { SEEN_NOT, SEEN_RUNNING, SEEN_DONE, SEEN_FAILED };

struct step {
    struct ironic_step shown; /* first, so that one is the other */
    bool effect;              /* on a machine; a mark or a claim is none */
    bool again;               /* harmless when sent twice */
    bool optional;            /* the order goes on without it */
    bool (*may)(const struct ironic_order *o, const struct provisioner *p,
                const struct ironic_machine *m, char *text);
    enum seen (*seen)(const struct ironic_order *o, const struct ironic_machine *m, char *text);
    void (*write)(struct enc *enc, const struct ironic_order *o, const struct provisioner *p,
                  struct str user_data);
    const char *method;
    const char *path;
};

#define SAY(...) ((void)snprintf(text, IRONIC_TEXT_MAX, __VA_ARGS__))

static bool is(const char *text, const char *wanted)
{
    return strcmp(text, wanted) == 0;
}

static bool is_one_of(const char *text, const char *const *names)
{
    for (; *names != NULL; names++) {
        if (is(text, *names)) {
            return true;
        }
    }
    return false;
}

/* ------------------------------------------------------------------ what a machine shows */

/* "deploy failed", "clean failed", "error" */
static bool has_failed(const struct ironic_machine *m)
{
    return is(m->provision, "error") || str_ends(str_of(m->provision), STR(" failed"));
}

static bool has_moved(const struct ironic_order *o, const struct ironic_machine *m)
{
    return o->begun || !is(m->updated_at, o->before);
}

static enum seen seen_failure(const struct ironic_machine *m, char *text)
{
    SAY("Ironic says %s%s%s", m->provision, m->last_error[0] == '\0' ? "" : ": ", m->last_error);
    return SEEN_FAILED;
}

/* Also for states that are not known here: they are waited for, and told when time is over. */
static enum seen seen_running(const struct ironic_machine *m, char *text)
{
    SAY("Ironic says %s", m->provision);
    return SEEN_RUNNING;
}

static enum seen seen_settled(const struct ironic_order *o, const struct ironic_machine *m,
                              const char *const *ends, char *text)
{
    bool idle = !m->reserved && (m->target_provision[0] == '\0' || has_failed(m));

    if (!has_moved(o, m)) {
        return m->reserved ? seen_running(m, text) : SEEN_NOT;
    }
    if (idle && is_one_of(m->provision, ends)) {
        return SEEN_DONE;
    }
    return idle && has_failed(m) ? seen_failure(m, text) : seen_running(m, text);
}

static enum seen seen_installed(const struct ironic_order *o, const struct ironic_machine *m,
                                char *text)
{
    static const char *const ends[] = {"active", NULL};

    return seen_settled(o, m, ends, text);
}

static enum seen seen_undeployed(const struct ironic_order *o, const struct ironic_machine *m,
                                 char *text)
{
    static const char *const ends[] = {"available", "manageable", NULL};

    return seen_settled(o, m, ends, text);
}

static enum seen seen_power(const struct ironic_machine *m, const char *wanted, char *text)
{
    if (m->reserved || m->target_power[0] != '\0') {
        SAY("Ironic works on its power");
        return SEEN_RUNNING;
    }
    SAY("its power is %s%s%s", m->power[0] == '\0' ? "not known" : m->power,
        m->last_error[0] == '\0' ? "" : ": ", m->last_error);
    return is(m->power, wanted) ? SEEN_DONE : SEEN_NOT;
}

static enum seen seen_off(const struct ironic_order *o, const struct ironic_machine *m, char *text)
{
    (void)o;
    return seen_power(m, "power off", text);
}

static enum seen seen_on(const struct ironic_order *o, const struct ironic_machine *m, char *text)
{
    (void)o;
    return seen_power(m, "power on", text);
}

static enum seen seen_mark(const struct ironic_order *o, const struct ironic_machine *m, char *text)
{
    (void)text;
    return is(m->marker, o->command) ? SEEN_DONE : SEEN_NOT;
}

static enum seen seen_claim(const struct ironic_order *o, const struct ironic_machine *m,
                            char *text)
{
    (void)text;
    return is(m->instance, o->command) ? SEEN_DONE : SEEN_NOT;
}

static enum seen seen_retired(const struct ironic_order *o, const struct ironic_machine *m,
                              char *text)
{
    (void)o;
    (void)text;
    return m->retired ? SEEN_DONE : SEEN_NOT;
}

static enum seen seen_aside(const struct ironic_order *o, const struct ironic_machine *m,
                            char *text)
{
    (void)o;
    (void)text;
    return m->maintenance ? SEEN_DONE : SEEN_NOT;
}

/* ------------------------------------------------------------------ what must be so before */

static bool may_mark(const struct ironic_order *o, const struct provisioner *p,
                     const struct ironic_machine *m, char *text)
{
    (void)o;
    (void)p;
    if (is(m->provision, "active") || has_failed(m)) {
        return true;
    }
    SAY("Ironic has installed nothing on it (%s); let Ironic adopt it first", m->provision);
    return false;
}

static bool may_go_on(const struct ironic_order *o, const struct provisioner *p,
                      const struct ironic_machine *m, char *text)
{
    (void)p;
    SAY("another order has taken the machine over");
    return is(m->marker, o->command);
}

static bool may_claim(const struct ironic_order *o, const struct provisioner *p,
                      const struct ironic_machine *m, char *text)
{
    if (!is(m->provision, "available") || m->maintenance || m->retired) {
        SAY("it is no spare: Ironic says %s%s%s", m->provision,
            m->maintenance ? ", in maintenance" : "", m->retired ? ", retired" : "");
        return false;
    }
    if (!str_eq_c(p->resource_class, m->resource_class)) {
        SAY("its resource class is %s, this cluster's is %.*s", m->resource_class,
            STR_FMT(p->resource_class));
        return false;
    }
    if (m->instance[0] != '\0' && !is(m->instance, o->command)) {
        SAY("somebody else has claimed it in Ironic");
        return false;
    }
    return true;
}

static bool may_deploy(const struct ironic_order *o, const struct provisioner *p,
                       const struct ironic_machine *m, char *text)
{
    if (!is(m->instance, o->command)) {
        SAY("its claim is not ours any more");
        return false;
    }
    return may_claim(o, p, m, text);
}

/* ------------------------------------------------------------------ bodies */

static void write_pair(struct enc *enc, const char *key, const char *value)
{
    enc_key(enc, key);
    enc_cstr(enc, value);
}

static void write_target(struct enc *enc, const char *target)
{
    enc_obj(enc);
    write_pair(enc, "target", target);
}

#define TARGET(function, word)                                              \
    static void function(struct enc *enc, const struct ironic_order *o,     \
                         const struct provisioner *p, struct str user_data) \
    {                                                                       \
        (void)o;                                                            \
        (void)p;                                                            \
        (void)user_data;                                                    \
        write_target(enc, word);                                            \
        enc_obj_end(enc);                                                   \
    }
TARGET(write_off, "power off")
TARGET(write_on, "power on")
TARGET(write_rebuild, "rebuild")
TARGET(write_undeploy, "deleted")

static void write_op(struct enc *enc, const char *path)
{
    enc_obj(enc);
    write_pair(enc, "op", "add");
    write_pair(enc, "path", path);
    enc_key(enc, "value");
}

static void write_marker(struct enc *enc, const struct ironic_order *o)
{
    write_op(enc, "/extra/muster");
    enc_obj(enc);
    write_pair(enc, "command", o->command);
    enc_key(enc, "repair");
    enc_i64(enc, o->repair_no);
    enc_obj_end(enc);
    enc_obj_end(enc);
}

static void write_mark(struct enc *enc, const struct ironic_order *o, const struct provisioner *p,
                       struct str user_data)
{
    (void)p;
    (void)user_data;
    enc_arr(enc);
    write_marker(enc, o);
    enc_arr_end(enc);
}

static void write_claim(struct enc *enc, const struct ironic_order *o, const struct provisioner *p,
                        struct str user_data)
{
    (void)user_data;
    enc_arr(enc);
    write_op(enc, "/instance_uuid");
    enc_cstr(enc, o->command);
    enc_obj_end(enc);
    write_op(enc, "/instance_info/image_source");
    enc_str(enc, p->image_source);
    enc_obj_end(enc);
    if (p->image_checksum.len > 0) {
        write_op(enc, "/instance_info/image_checksum");
        enc_str(enc, p->image_checksum);
        enc_obj_end(enc);
    }
    write_marker(enc, o);
    enc_arr_end(enc);
}

static void write_deploy(struct enc *enc, const struct ironic_order *o, const struct provisioner *p,
                         struct str user_data)
{
    (void)p;
    write_target(enc, "active");
    enc_key(enc, "configdrive");
    enc_obj(enc);
    enc_key(enc, "meta_data");
    enc_obj(enc);
    write_pair(enc, "uuid", o->command);
    write_pair(enc, "hostname", o->node);
    enc_obj_end(enc);
    if (user_data.len > 0) {
        enc_key(enc, "user_data");
        enc_str(enc, user_data);
    }
    enc_obj_end(enc);
    enc_obj_end(enc);
}

static const char *reason_of(const struct ironic_order *o, char text[64])
{
    (void)snprintf(text, 64, "muster repair %" PRId64 ": %s", o->repair_no,
                   action_info(o->action)->name);
    return text;
}

static void write_retire(struct enc *enc, const struct ironic_order *o, const struct provisioner *p,
                         struct str user_data)
{
    char text[64];

    (void)p;
    (void)user_data;
    enc_arr(enc);
    write_op(enc, "/retired");
    enc_bool(enc, true);
    enc_obj_end(enc);
    write_op(enc, "/retired_reason");
    enc_cstr(enc, reason_of(o, text));
    enc_obj_end(enc);
    write_marker(enc, o);
    enc_arr_end(enc);
}

static void write_aside(struct enc *enc, const struct ironic_order *o, const struct provisioner *p,
                        struct str user_data)
{
    char text[64];

    (void)p;
    (void)user_data;
    enc_obj(enc);
    write_pair(enc, "reason", reason_of(o, text));
    enc_obj_end(enc);
}

/* ------------------------------------------------------------------ the table */

#define POWER "PUT", "/states/power"
#define PROVISION "PUT", "/states/provision"
#define PATCH "PATCH", ""
#define KEEP "PUT", "/maintenance"

/* clang-format off */
/* In a power cycle the off is optional because an own off is always followed by an on. */
static const struct step power_cycle[] = {
    {{"power off", IRONIC_OWN, false}, true, true, true, NULL, seen_off, write_off, POWER},
    {{"power on", IRONIC_OWN, false}, true, true, false, NULL, seen_on, write_on, POWER},
};
static const struct step reprovision[] = {
    {{"mark", IRONIC_OWN, false}, false, true, false, may_mark, seen_mark, write_mark, PATCH},
    {{"rebuild", IRONIC_OWN, true}, true, false, false, may_go_on, seen_installed, write_rebuild, PROVISION},
};
/* The broken machine is touched only after the spare is installed. */
static const struct step failover[] = {
    {{"claim of the spare", IRONIC_SPARE, false}, false, true, false, may_claim, seen_claim, write_claim, PATCH},
    {{"installation of the spare", IRONIC_SPARE, true}, true, false, false, may_deploy, seen_installed, write_deploy, PROVISION},
    {{"power off of the former machine", IRONIC_OWN, false}, true, true, true, NULL, seen_off, write_off, POWER},
    {{"retirement of the former machine", IRONIC_OWN, false}, true, true, true, NULL, seen_retired, write_retire, PATCH},
    {{"maintenance of the former machine", IRONIC_OWN, false}, true, true, true, NULL, seen_aside, write_aside, KEEP},
};
/* Retired first: an available machine cannot be. In maintenance last: it holds up the others. */
static const struct step removal[] = {
    {{"retirement", IRONIC_OWN, false}, true, true, false, may_mark, seen_retired, write_retire, PATCH},
    {{"undeployment", IRONIC_OWN, true}, true, false, false, may_go_on, seen_undeployed, write_undeploy, PROVISION},
    {{"maintenance", IRONIC_OWN, false}, true, true, false, NULL, seen_aside, write_aside, KEEP},
};
/* clang-format on */

static const struct {
    const struct step *steps;
    size_t count;
} actions[ACTION_COUNT] = {
    [ACTION_POWER_CYCLE] = {power_cycle, COUNTOF(power_cycle)},
    [ACTION_REPROVISION] = {reprovision, COUNTOF(reprovision)},
    [ACTION_FAILOVER] = {failover, COUNTOF(failover)},
    [ACTION_REMOVE] = {removal, COUNTOF(removal)},
};

static bool is_step(enum repair_action action, int64_t step)
{
    return step >= 0 && (size_t)step < actions[action].count;
}

static const struct step *step_of(enum repair_action action, int64_t step)
{
    assert(is_step(action, step));
    return &actions[action].steps[step];
}

const struct ironic_step *ironic_step_at(enum repair_action action, int64_t step)
{
    return is_step(action, step) ? &step_of(action, step)->shown : NULL;
}

/* ------------------------------------------------------------------ the decision */

static bool had_effect(const struct ironic_order *order)
{
    for (int64_t i = 0; i < order->step; i++) {
        if (step_of(order->action, i)->effect) {
            return true;
        }
    }
    /* An earlier try of this one may have had it. */
    return order->tries > 1 && step_of(order->action, order->step)->effect;
}

bool ironic_is_first_effect(const struct ironic_order *order)
{
    return !had_effect(order);
}

/* This step comes to nothing, and surely did nothing. */
static enum ironic_todo give_up(const struct ironic_order *order, const struct step *step)
{
    if (!had_effect(order)) {
        return IRONIC_END_REFUSED;
    }
    return step->optional ? IRONIC_SKIP : IRONIC_END_FAILED;
}

static enum ironic_todo lose(const struct step *step)
{
    return step->optional ? IRONIC_SKIP : IRONIC_END_UNKNOWN;
}

static enum ironic_todo decide_unread(const struct ironic_order *order, const struct step *step,
                                      bool absent)
{
    if (order->sent) {
        return order->late ? lose(step) : IRONIC_WAIT;
    }
    if (absent) {
        return give_up(order, step);
    }
    if (!order->late) {
        return IRONIC_WAIT;
    }
    return had_effect(order) ? lose(step) : IRONIC_END_REFUSED;
}

static enum ironic_todo decide_sent(const struct ironic_order *order, const struct step *step,
                                    const struct ironic_machine *machine, char *text)
{
    switch (step->seen(order, machine, text)) {
    case SEEN_DONE:
        return IRONIC_NEXT;
    case SEEN_FAILED:
        return step->optional ? IRONIC_SKIP : IRONIC_END_FAILED;
    case SEEN_RUNNING:
        return order->late ? lose(step) : IRONIC_WAIT;
    case SEEN_NOT:
        break;
    }
    if (!step->again) {
        if (order->late) {
            SAY("it was sent, and nothing shows that it began");
        }
        return order->late ? lose(step) : IRONIC_WAIT;
    }
    if (machine->reserved) {
        return order->late ? lose(step) : IRONIC_WAIT;
    }
    if (order->tries < TRIES_MAX) {
        return IRONIC_SEND;
    }
    return step->optional ? IRONIC_SKIP : IRONIC_END_FAILED;
}

void ironic_decide(const struct ironic_order *order, const struct provisioner *provisioner,
                   const struct ironic_machine *machine, bool absent, const char *error,
                   struct ironic_next *ret_next)
{
    const struct step *step = step_of(order->action, order->step);
    struct ironic_next *next = ret_next;
    char *text = next->text;

    *next = (struct ironic_next){.todo = IRONIC_WAIT};
    if (machine == NULL) {
        SAY("%s", error);
        next->todo = decide_unread(order, step, absent);
        return;
    }
    if (order->sent) {
        next->todo = decide_sent(order, step, machine, text);
        next->begins = step->shown.long_one && !order->begun && has_moved(order, machine);
        return;
    }
    if (step->may != NULL && !machine->reserved && !step->may(order, provisioner, machine, text)) {
        next->todo = give_up(order, step);
        return;
    }
    if (order->late) {
        SAY("Ironic or the machine was busy until it was too late to begin");
        next->todo = give_up(order, step);
        return;
    }
    text[0] = '\0';
    bool rests = step->write == write_on && !order->rested;
    next->todo = machine->reserved || rests ? IRONIC_WAIT : IRONIC_SEND;
}

void ironic_decide_said(const struct ironic_order *order, enum ironic_said said, const char *detail,
                        struct ironic_next *ret_next)
{
    const struct step *step = step_of(order->action, order->step);

    *ret_next = (struct ironic_next){.todo = IRONIC_WAIT};
    (void)snprintf(ret_next->text, IRONIC_TEXT_MAX, "%s", detail);
    if (said == IRONIC_REFUSED) {
        ret_next->todo = give_up(order, step);
    }
}

void ironic_call_of(struct arena *arena, const struct ironic_order *order,
                    const struct provisioner *provisioner, struct str user_data,
                    struct ironic_call *ret_call)
{
    const struct step *step = step_of(order->action, order->step);
    CLEANUP(buf_free) struct buf text = {0};
    struct enc enc;

    enc_init(&enc, &text);
    step->write(&enc, order, provisioner, user_data);
    *ret_call = (struct ironic_call){.method = step->method,
                                     .path = step->path,
                                     .body = arena_strndup(arena, text.ptr, text.len)};
}
