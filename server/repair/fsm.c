/* The transitions of a repair as data, and the few questions asked of them. */
#include "server/repair/fsm.h"

#include <assert.h>
#include <string.h>

static const struct {
    const char *name;
    unsigned traits;
} states[REPAIR_STATE_COUNT] = {
#define REPAIR_STATE_ROW(sym, name, traits) [sym] = {name, traits},
    REPAIR_STATE_TABLE(REPAIR_STATE_ROW)
#undef REPAIR_STATE_ROW
};

static const char *const events[REPAIR_EVENT_COUNT] = {
#define REPAIR_EVENT_ROW(sym, name) [sym] = name,
    REPAIR_EVENT_TABLE(REPAIR_EVENT_ROW)
#undef REPAIR_EVENT_ROW
};

/* clang-format off */
static const struct {
    enum repair_state from;
    enum repair_event event;
    enum repair_state to;
} rows[] = {
    {REPAIR_PROPOSED,  REPAIR_ON_APPROVE,          REPAIR_APPROVED},
    {REPAIR_PROPOSED,  REPAIR_ON_REJECT,           REPAIR_REJECTED},
    {REPAIR_PROPOSED,  REPAIR_ON_CANCEL,           REPAIR_CANCELLED},
    {REPAIR_PROPOSED,  REPAIR_ON_RESOLVE,          REPAIR_RESOLVED},
    {REPAIR_PROPOSED,  REPAIR_ON_RESTORE,          REPAIR_UNKNOWN},

    {REPAIR_APPROVED,  REPAIR_ON_BEGIN,            REPAIR_CORDONING},
    {REPAIR_APPROVED,  REPAIR_ON_LAPSE,            REPAIR_PROPOSED},
    {REPAIR_APPROVED,  REPAIR_ON_CANCEL,           REPAIR_CANCELLED},
    {REPAIR_APPROVED,  REPAIR_ON_RESOLVE,          REPAIR_RESOLVED},
    {REPAIR_APPROVED,  REPAIR_ON_RESTORE,          REPAIR_UNKNOWN},

    {REPAIR_CORDONING, REPAIR_ON_CORDONED,         REPAIR_DRAINING},
    {REPAIR_CORDONING, REPAIR_ON_CANCEL,           REPAIR_CANCELLED},
    {REPAIR_CORDONING, REPAIR_ON_RESOLVE,          REPAIR_RESOLVED},
    {REPAIR_CORDONING, REPAIR_ON_WITHDRAW,         REPAIR_CANCELLED},
    {REPAIR_CORDONING, REPAIR_ON_RESTORE,          REPAIR_UNKNOWN},

    {REPAIR_DRAINING,  REPAIR_ON_DRAINED,          REPAIR_ACTING},
    {REPAIR_DRAINING,  REPAIR_ON_CANCEL,           REPAIR_CANCELLED},
    {REPAIR_DRAINING,  REPAIR_ON_RESOLVE,          REPAIR_RESOLVED},
    {REPAIR_DRAINING,  REPAIR_ON_WITHDRAW,         REPAIR_CANCELLED},
    {REPAIR_DRAINING,  REPAIR_ON_RESTORE,          REPAIR_UNKNOWN},

    /* occupied, resolve and withdraw only while no order has gone out: run_repairs sees to it */
    {REPAIR_ACTING,    REPAIR_ON_ACTED,            REPAIR_REJOINING},
    {REPAIR_ACTING,    REPAIR_ON_OCCUPIED,         REPAIR_DRAINING},
    {REPAIR_ACTING,    REPAIR_ON_RESOLVE,          REPAIR_RESOLVED},
    {REPAIR_ACTING,    REPAIR_ON_WITHDRAW,         REPAIR_CANCELLED},
    {REPAIR_ACTING,    REPAIR_ON_FAIL,             REPAIR_FAILED},
    {REPAIR_ACTING,    REPAIR_ON_LOST,             REPAIR_UNKNOWN},
    {REPAIR_ACTING,    REPAIR_ON_RESTORE,          REPAIR_UNKNOWN},

    {REPAIR_REJOINING, REPAIR_ON_REJOINED,         REPAIR_VERIFYING},
    {REPAIR_REJOINING, REPAIR_ON_FAIL,             REPAIR_FAILED},
    {REPAIR_REJOINING, REPAIR_ON_LOST,             REPAIR_UNKNOWN},
    {REPAIR_REJOINING, REPAIR_ON_RESTORE,          REPAIR_UNKNOWN},

    {REPAIR_VERIFYING, REPAIR_ON_VERIFIED,         REPAIR_SUCCEEDED},
    {REPAIR_VERIFYING, REPAIR_ON_FAIL,             REPAIR_FAILED},
    {REPAIR_VERIFYING, REPAIR_ON_LOST,             REPAIR_UNKNOWN},
    {REPAIR_VERIFYING, REPAIR_ON_RESTORE,          REPAIR_UNKNOWN},

    {REPAIR_UNKNOWN,   REPAIR_ON_REJOINED,         REPAIR_VERIFYING},
    {REPAIR_UNKNOWN,   REPAIR_ON_FAIL,             REPAIR_FAILED},
    {REPAIR_UNKNOWN,   REPAIR_ON_SETTLE_SUCCEEDED, REPAIR_SUCCEEDED},
    {REPAIR_UNKNOWN,   REPAIR_ON_SETTLE_FAILED,    REPAIR_FAILED},
};
/* clang-format on */

bool repair_step(enum repair_state from, enum repair_event event, enum repair_state *ret_to)
{
    for (size_t i = 0; i < COUNTOF(rows); i++) {
        if (rows[i].from == from && rows[i].event == event) {
            *ret_to = rows[i].to;
            return true;
        }
    }
    return false;
}

const char *repair_state_name(enum repair_state state)
{
    assert(state < REPAIR_STATE_COUNT);
    return states[state].name;
}

bool repair_state_parse(struct str name, enum repair_state *ret_state)
{
    for (size_t i = 0; i < REPAIR_STATE_COUNT; i++) {
        if (str_eq_c(name, states[i].name)) {
            *ret_state = (enum repair_state)i;
            return true;
        }
    }
    return false;
}

unsigned repair_state_traits(enum repair_state state)
{
    assert(state < REPAIR_STATE_COUNT);
    return states[state].traits;
}

const char *repair_event_name(enum repair_event event)
{
    assert(event < REPAIR_EVENT_COUNT);
    return events[event];
}

static void list_add(struct repair_list *list, enum repair_state state)
{
    size_t used = strlen(list->text);
    const char *name = states[state].name;
    size_t len = strlen(name);
    size_t comma = used > 1;

    assert(used + comma + len + 2 <= sizeof list->text);
    if (comma) {
        list->text[used++] = ',';
    }
    memcpy(list->text + used, name, len);
    list->text[used + len] = '\0';
}

static void list_close(struct repair_list *list)
{
    size_t used = strlen(list->text);

    list->text[used] = '}';
    list->text[used + 1] = '\0';
}

struct repair_list repair_event_from(enum repair_event event)
{
    struct repair_list list = {"{"};

    for (size_t i = 0; i < COUNTOF(rows); i++) {
        if (rows[i].event == event) {
            list_add(&list, rows[i].from);
        }
    }
    list_close(&list);
    return list;
}

enum repair_state repair_event_to(enum repair_event event)
{
    for (size_t i = 0; i < COUNTOF(rows); i++) {
        if (rows[i].event == event) {
            return rows[i].to;
        }
    }
    assert(!"every event has a row");
    return REPAIR_UNKNOWN;
}

struct repair_list repair_states_with(unsigned traits)
{
    struct repair_list list = {"{"};

    for (size_t i = 0; i < REPAIR_STATE_COUNT; i++) {
        if ((states[i].traits & traits) != 0) {
            list_add(&list, (enum repair_state)i);
        }
    }
    list_close(&list);
    return list;
}
