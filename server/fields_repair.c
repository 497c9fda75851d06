/* The tables of fields of repairs: the order of rows is the order of a statement's parameters. */
#include "server/fields_repair.h"

#include <stddef.h>

#include "server/repair/fsm.h"

#define STATE_NAME(sym, name, traits) name,
static const char *const states[] = {REPAIR_STATE_TABLE(STATE_NAME) NULL};
#undef STATE_NAME
static const char *const actions[] = {"reset_gpu", "reboot", "power_cycle", "reprovision",
                                      "failover",  "remove", NULL};
static const char *const outcomes[] = {"succeeded", "failed", NULL};

#define REQUIRED FIELD_REQUIRED
#define ROW(type, s, member, flags, min, max, names)                                             \
    {                                                                                            \
#member, type, offsetof(struct s, member), offsetof(struct s, has_##member), flags, min, \
            max, names                                                                           \
    }
#define END                                  \
    {                                        \
        NULL, FIELD_STR, 0, 0, 0, 0, 0, NULL \
    }

/* clang-format off */
const struct field repair_request_body[] = {
    ROW(FIELD_ENUM, repair_request_in, action, REQUIRED, 0, 0, actions),
    ROW(FIELD_STR, repair_request_in, reason, REQUIRED | FIELD_LINES, 1, 1023, NULL),
    END,
};

const struct field repair_approve_body[] = {
    ROW(FIELD_STR, repair_approve_in, plan_hash, REQUIRED, 64, 64, NULL),
    ROW(FIELD_STR, repair_approve_in, comment, FIELD_LINES, 0, 4095, NULL),
    END,
};

const struct field repair_comment_body[] = {
    ROW(FIELD_STR, repair_comment_in, comment, FIELD_LINES, 0, 4095, NULL),
    END,
};

const struct field repair_settle_body[] = {
    ROW(FIELD_ENUM, repair_settle_in, outcome, REQUIRED, 0, 0, outcomes),
    ROW(FIELD_STR, repair_settle_in, comment, REQUIRED | FIELD_LINES, 1, 4095, NULL),
    END,
};

const struct field incident_close_body[] = {
    ROW(FIELD_STR, incident_close_in, reason, REQUIRED | FIELD_LINES, 1, 1023, NULL),
    END,
};

const struct field spare_create_body[] = {
    ROW(FIELD_HOST, spare_create_in, machine, REQUIRED, 0, 0, NULL),
    ROW(FIELD_STR, spare_create_in, serial, 0, 0, 255, NULL),
    ROW(FIELD_STR, spare_create_in, note, 0, 0, 255, NULL),
    END,
};

const struct field repair_query[] = {
    ROW(FIELD_UUID, repair_query, cluster_id, 0, 0, 0, NULL),
    ROW(FIELD_UUID, repair_query, node_id, 0, 0, 0, NULL),
    ROW(FIELD_STR_LIST, repair_query, state, 0, 0, REPAIR_STATE_COUNT, states),
    ROW(FIELD_BOOL, repair_query, open, 0, 0, 0, NULL),
    ROW(FIELD_TIME, repair_query, since, 0, 0, 0, NULL),
    ROW(FIELD_TIME, repair_query, until, 0, 0, 0, NULL),
    END,
};

const struct field cluster_repair_query[] = {
    ROW(FIELD_UUID, repair_query, node_id, 0, 0, 0, NULL),
    ROW(FIELD_STR_LIST, repair_query, state, 0, 0, REPAIR_STATE_COUNT, states),
    ROW(FIELD_BOOL, repair_query, open, 0, 0, 0, NULL),
    ROW(FIELD_TIME, repair_query, since, 0, 0, 0, NULL),
    ROW(FIELD_TIME, repair_query, until, 0, 0, 0, NULL),
    END,
};
/* clang-format on */
