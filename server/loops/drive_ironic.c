/* Works on orders to provisioners, one look at a time: read the machine, decide, store, send. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "server/config.h"
#include "server/loops/loops.h"
#include "server/outbound.h"
#include "server/repair/executors/ironic_steps.h"
#include "server/wake.h"

#define ARENA_CAP ((size_t)1 << 20)
#define USER_DATA_MAX ((size_t)48 << 10)
/* Of one look: four calls with their deadlines, and room. */
#define LEASE_S(p) (4 * (p)->timeout_s + 30)
#define STEPS_SHORT 6 /* steps that are no installation, at most, with all their tries */
#define SOON_MS 1000

static int64_t period_ms(void)
{
    return config.loop_period_ms;
}

struct task {
    struct uuid org;
    struct uuid command;
};

struct look {
    const struct task *task;
    struct db_conn *db;
    struct arena *arena;
    const struct provisioner *provisioner;
    struct ironic ironic;
    struct ironic_order order;
    const char *own; /* machines; spare NULL = none yet */
    const char *spare;
    int64_t fence;
    bool first;  /* of the first step */
    bool unread; /* the machine could not be read */
};

static const char *text_of(const struct look *look, const struct db_rows *rows, const char *name)
{
    int col = db_rows_col(rows, name);
    struct str text = db_text(rows, 0, col);

    return db_is_null(rows, 0, col) ? NULL : arena_strndup(look->arena, text.ptr, text.len);
}

/* True when the statement ran and its first number is not 0. */
static bool ran(const struct look *look, enum sql_id sql, const struct db_args *args)
{
    struct db_rows *rows = NULL;

    if (db_exec(look->db, sql, &look->task->org, args, &rows) != 0) {
        log_warning("an order to a provisioner: %s", db_conn_error(look->db));
        return false;
    }
    bool some = db_rows_count(rows) > 0 && db_i64(rows, 0, 0) > 0;
    db_rows_free(rows);
    return some;
}

static void begin_args(const struct look *look, struct db_args *args)
{
    *args = (struct db_args){0};
    db_arg_uuid(args, look->arena, &look->task->command);
    db_arg_i64(args, look->arena, look->fence);
}

static bool read_order(struct look *look, const struct db_rows *rows)
{
    struct ironic_order *order = &look->order;

#define COL(name) db_rows_col(rows, name)
    if (!action_parse(db_text(rows, 0, COL("action")), &order->action)) {
        return false;
    }
    char *id = arena_alloc(look->arena, UUID_TEXT_LEN + 1);
    uuid_format(&look->task->command, id);
    order->command = id;
    order->node = text_of(look, rows, "node");
    order->repair_no = db_i64(rows, 0, COL("no"));
    order->step = db_i64(rows, 0, COL("step"));
    order->sent = db_bool(rows, 0, COL("sent"));
    order->begun = db_bool(rows, 0, COL("begun"));
    order->late = db_bool(rows, 0, COL("late"));
    order->rested = db_bool(rows, 0, COL("rested"));
    order->tries = db_i64(rows, 0, COL("tries"));
    order->before = text_of(look, rows, "before");
    look->own = text_of(look, rows, "machine");
    look->spare = text_of(look, rows, "spare");
    look->fence = db_i64(rows, 0, COL("fence"));
    look->first = db_bool(rows, 0, COL("fresh"));
    look->provisioner =
        provisioner_find(db_text(rows, 0, COL("org")), db_text(rows, 0, COL("cluster")));
#undef COL
    return look->provisioner != NULL;
}

/* Twice the longest installation and the others: nothing of an order is open after that. */
static int64_t longest_s(void)
{
    int64_t longest = 0;

    for (size_t i = 0; i < provisioners_count(); i++) {
        const struct provisioner *p = provisioner_at(i);
        int64_t own = p->install_s + STEPS_SHORT * p->power_s + LEASE_S(p);
        longest = own > longest ? own : longest;
    }
    return 2 * longest;
}

static int64_t longest_lease_s(void)
{
    int64_t longest = 0;

    for (size_t i = 0; i < provisioners_count(); i++) {
        int64_t own = LEASE_S(provisioner_at(i));
        longest = own > longest ? own : longest;
    }
    return longest;
}

/* False: another server has it, or it is not to be worked on now. */
static bool claim(struct look *look)
{
    struct db_args args = {0};
    struct db_rows *rows = NULL;

    db_arg_uuid(&args, look->arena, &look->task->command);
    db_arg_i64(&args, look->arena, longest_lease_s());
    db_arg_i64(&args, look->arena, longest_s());
    db_arg_i64(&args, look->arena, config.machine_rest_ms);
    if (db_exec(look->db, SQL_IRONIC_CLAIM, &look->task->org, &args, &rows) != 0) {
        return false;
    }
    bool mine = db_rows_count(rows) > 0 && read_order(look, rows);
    db_rows_free(rows);
    return mine;
}

/* ------------------------------------------------------------------ what a look leaves behind */

static const char *step_name(const struct look *look)
{
    return ironic_step_at(look->order.action, look->order.step)->name;
}

struct note {
    int64_t step;
    int64_t within_s; /* of this step from now on; -1 = as before */
    bool sent;
    bool begun;
    bool uncounted; /* the last try did not count */
    int64_t look_ms;
    const char *words; /* NULL = none */
    const char *machine;
};

static void note(const struct look *look, const struct note *note)
{
    struct db_args args;

    begin_args(look, &args);
    db_arg_i64(&args, look->arena, note->step);
    if (note->within_s >= 0) {
        db_arg_i64(&args, look->arena, note->within_s);
    } else {
        db_arg(&args, NULL);
    }
    db_arg_bool(&args, note->sent);
    db_arg_bool(&args, note->begun);
    db_arg_bool(&args, note->uncounted);
    db_arg_i64(&args, look->arena, note->look_ms);
    db_arg(&args, note->words == NULL ? "" : note->words);
    db_arg(&args, note->machine);
    /* When it cannot be stored the lease ends, and the next look finds what is so. */
    (void)ran(look, SQL_IRONIC_NOTE, &args);
}

/* state NULL: nobody can say. */
static void end(const struct look *look, const char *state, const char *words)
{
    struct db_args args;

    begin_args(look, &args);
    db_arg(&args, state);
    db_arg(&args, words);
    (void)ran(look, SQL_IRONIC_END, &args);
    wake_org(&look->task->org, WAKE_REPAIR);
}

static int64_t within_s(const struct look *look, const struct ironic_step *step)
{
    return step->long_one ? look->provisioner->install_s : look->provisioner->power_s;
}

/* The first looks come soon: much is done in a second. */
static int64_t look_ms(const struct look *look)
{
    return look->order.begun ? look->provisioner->poll_s * 1000 : SOON_MS;
}

static void go_on(const struct look *look, const char *words)
{
    const struct ironic_step *next = ironic_step_at(look->order.action, look->order.step + 1);

    if (next == NULL) {
        end(look, look->order.action == ACTION_REMOVE ? "done" : "accepted",
            arena_printf(look->arena, "%s All steps are done.", words));
        return;
    }
    note(look, &(struct note){
                   .step = look->order.step + 1, .within_s = within_s(look, next), .words = words});
}

static void wait_on(const struct look *look, const struct ironic_next *next)
{
    note(look, &(struct note){.step = look->order.step,
                              .within_s = -1,
                              .sent = look->order.sent,
                              .begun = look->order.begun || next->begins,
                              .look_ms = look_ms(look),
                              .words = next->begins ? arena_printf(look->arena, "The %s has begun.",
                                                                   step_name(look))
                                                    : NULL});
}

/* ------------------------------------------------------------------ spares */

static bool take_spare(struct look *look)
{
    struct db_args args;
    struct db_rows *rows = NULL;

    begin_args(look, &args);
    if (db_exec(look->db, SQL_IRONIC_TAKE_SPARE, &look->task->org, &args, &rows) != 0) {
        return false;
    }
    if (db_rows_count(rows) > 0) {
        look->spare = text_of(look, rows, "machine");
    }
    db_rows_free(rows);
    return look->spare != NULL;
}

/* why NULL: it is free again. */
static void give_spare_back(const struct look *look, const char *why)
{
    struct db_args args = {0};

    db_arg_uuid(&args, look->arena, &look->task->command);
    db_arg(&args, why);
    (void)ran(look, SQL_IRONIC_GIVE_SPARE_BACK, &args);
}

/* A spare that cannot be claimed is left to a person, and the next one is tried. */
static bool tries_another(const struct look *look, const struct ironic_next *next)
{
    if (look->order.action != ACTION_FAILOVER || look->order.step > 1) {
        return false;
    }
    give_spare_back(look, look->unread ? NULL : next->text);
    if (look->order.step > 0 || look->unread || next->todo != IRONIC_END_REFUSED) {
        return false;
    }
    note(look, &(struct note){.within_s = look->provisioner->power_s,
                              .words = arena_printf(look->arena, "The spare %s is left out: %s.",
                                                    look->spare, next->text)});
    return true;
}

/* ------------------------------------------------------------------ one look */

static void apply(const struct look *look, const struct ironic_next *next)
{
    const char *name = step_name(look);

    switch (next->todo) {
    case IRONIC_NEXT:
        go_on(look, arena_printf(look->arena, "The %s is done.", name));
        return;
    case IRONIC_SKIP:
        go_on(look, arena_printf(look->arena, "The %s is not proved: %s.", name, next->text));
        return;
    case IRONIC_END_REFUSED:
        if (!tries_another(look, next)) {
            end(look, "refused",
                arena_printf(look->arena, "The %s was not possible: %s.", name, next->text));
        }
        return;
    case IRONIC_END_FAILED:
        (void)tries_another(look, next);
        end(look, "failed", arena_printf(look->arena, "The %s failed: %s.", name, next->text));
        return;
    case IRONIC_END_UNKNOWN:
        end(look, NULL,
            arena_printf(look->arena, "Nobody can say how the %s ended: %s.", name, next->text));
        return;
    case IRONIC_SEND:
    case IRONIC_WAIT:
        break;
    }
    wait_on(look, next);
}

static bool intend(struct look *look, const struct ironic_machine *machine)
{
    struct db_args args;

    begin_args(look, &args);
    db_arg(&args, machine->updated_at);
    db_arg_bool(&args, ironic_is_first_effect(&look->order));
    if (!ran(look, SQL_IRONIC_INTEND, &args)) {
        return false;
    }
    look->order.sent = true;
    look->order.tries++;
    return true;
}

static void read_user_data(const struct look *look, struct buf *ret_text)
{
    const struct provisioner *p = look->provisioner;

    if (p->user_data_file.len > 0) {
        int failed = file_read(p->user_data_file.ptr, USER_DATA_MAX, ret_text);
        if (failed != 0) {
            log_warning("the user data of a spare cannot be read: %s", strerrordesc_np(failed));
        }
    }
}

/* The effect: after it is stored that it may go out, and once. */
static void send_step(struct look *look, const char *machine, const struct ironic_machine *seen)
{
    CLEANUP(buf_free) struct buf user_data = {0};
    const struct ironic_step *step = ironic_step_at(look->order.action, look->order.step);
    struct ironic_call call;
    struct ironic_next next;
    char detail[IRONIC_TEXT_MAX] = "";

    read_user_data(look, &user_data);
    ironic_call_of(look->arena, &look->order, look->provisioner, buf_str(&user_data), &call);
    if (!intend(look, seen)) {
        wait_on(look, &(struct ironic_next){.todo = IRONIC_WAIT});
        return;
    }
    enum ironic_said said =
        ironic_send(&look->ironic, machine, call.method, call.path, call.body, detail);
    ironic_decide_said(&look->order, said, detail, &next);
    if (next.todo != IRONIC_WAIT) {
        apply(look, &next);
        return;
    }
    static const char *const answers[] = {
        [IRONIC_REFUSED] = "",
        [IRONIC_ACCEPTED] = "accepted",
        [IRONIC_BUSY] = "",
        [IRONIC_UNKNOWN] =
            "not answered clearly; it is not sent again, and its traces are looked for",
    };
    bool busy = said == IRONIC_BUSY;
    const char *words = arena_printf(look->arena, "The %s was %s%s%s.", step_name(look),
                                     answers[said], detail[0] == '\0' ? "" : ": ", detail);
    note(look, &(struct note){.step = look->order.step,
                              .within_s = busy ? -1 : within_s(look, step),
                              .sent = !busy,
                              .uncounted = busy,
                              .look_ms = busy ? SOON_MS : SOON_MS / 4,
                              .words = busy ? NULL : words});
}

static const char *machine_of(struct look *look, const struct ironic_step *step)
{
    if (step->whose == IRONIC_OWN) {
        return look->own;
    }
    return look->spare != NULL || take_spare(look) ? look->spare : NULL;
}

/* The id is kept from the first reading on: a name can be moved to other hardware. */
static void learn(const struct look *look, const struct ironic_step *step,
                  const struct ironic_machine *seen)
{
    note(look,
         &(struct note){.step = look->order.step,
                        .within_s = within_s(look, step),
                        .machine = step->whose == IRONIC_OWN && seen != NULL ? seen->id : NULL});
}

static void look_at(struct look *look)
{
    const struct ironic_step *step = ironic_step_at(look->order.action, look->order.step);
    struct ironic_machine seen;
    struct ironic_next next;
    char error[IRONIC_TEXT_MAX] = "";
    const char *machine = machine_of(look, step);

    if (machine == NULL) {
        end(look, "refused", "No spare is left in this cluster's pool.");
        return;
    }
    enum ironic_found found = ironic_open(look->provisioner, &look->ironic, error);
    if (found == IRONIC_FOUND) {
        found = ironic_read(&look->ironic, machine, &seen, error);
    }
    look->unread = found == IRONIC_UNREAD;
    if (look->first) {
        /* The step's time begins with the first look, whatever it found. */
        learn(look, step, found == IRONIC_FOUND ? &seen : NULL);
        if (found != IRONIC_ABSENT) {
            return;
        }
    }
    ironic_decide(&look->order, look->provisioner, found == IRONIC_FOUND ? &seen : NULL,
                  found == IRONIC_ABSENT, error, &next);
    if (next.begins) {
        look->order.begun = true;
    }
    if (next.todo == IRONIC_SEND) {
        send_step(look, machine, &seen);
    } else {
        apply(look, &next);
    }
}

static void work(void *arg, struct db_conn *db)
{
    struct task *task = arg;

    if (db != NULL) {
        CLEANUP(arena_freep) struct arena *arena = arena_new(ARENA_CAP);
        struct look look = {.task = task, .db = db, .arena = arena};
        if (claim(&look)) {
            look_at(&look);
            explicit_bzero(&look.ironic, sizeof look.ironic);
        }
    }
    free(task);
}

static enum err run(struct runner *runner, const struct uuid *org)
{
    struct db_rows *rows = NULL;
    struct db_args args = {0};

    if (provisioners_count() == 0) {
        return 0;
    }
    db_arg(&args, provisioner_names());
    enum err err = runner_query(runner, SQL_IRONIC_ORDERS, org, &args, &rows);
    if (err != 0) {
        return err;
    }
    for (int i = 0; i < db_rows_count(rows); i++) {
        struct task *task = calloc(1, sizeof *task);
        if (task == NULL) {
            abort();
        }
        task->org = *org;
        if (!db_uuid(rows, i, 0, &task->command) || !outbound_post(OUTBOUND_IRONIC, work, task)) {
            free(task); /* the next look finds it again */
        }
    }
    db_rows_free(rows);
    return 0;
}

const struct runner_spec drive_ironic_loop = {
    .name = "ironic",
    .topics = WAKE_REPAIR,
    .period_ms = period_ms,
    .run = run,
};
