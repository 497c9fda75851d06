/* The tables of fields of webhooks: their order is that of a statement's parameters. */
#include "server/fields_webhooks.h"

#include <stddef.h>

#include "server/webhooks.h"

#define DAY_S 86400

#define KIND_WORD(kind, type, state) kind,
static const char *const kinds[] = {WEBHOOK_KIND_TABLE(KIND_WORD) NULL};
#undef KIND_WORD
static const char *const states[] = {"waiting", "delivered", "failed", NULL};

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
const struct field webhook_create_body[] = {
    ROW(FIELD_STR, webhook_in, name, FIELD_REQUIRED, 1, 255, NULL),
    ROW(FIELD_STR, webhook_in, url, FIELD_REQUIRED, 9, 2048, NULL),
    ROW(FIELD_STR, webhook_in, ca_certificate, FIELD_NULLABLE | FIELD_LINES, 1, 16384, NULL),
    ROW(FIELD_STR_LIST, webhook_in, kinds, FIELD_REQUIRED, 1, WEBHOOK_KIND_COUNT, kinds),
    ROW(FIELD_UUID, webhook_in, cluster_id, FIELD_NULLABLE, 0, 0, NULL),
    ROW(FIELD_BOOL, webhook_in, enabled, 0, 0, 0, NULL),
    END,
};

const struct field webhook_update_body[] = {
    ROW(FIELD_STR, webhook_in, name, 0, 1, 255, NULL),
    ROW(FIELD_STR, webhook_in, url, 0, 9, 2048, NULL),
    ROW(FIELD_STR, webhook_in, ca_certificate, FIELD_NULLABLE | FIELD_LINES, 1, 16384, NULL),
    ROW(FIELD_STR_LIST, webhook_in, kinds, 0, 1, WEBHOOK_KIND_COUNT, kinds),
    ROW(FIELD_UUID, webhook_in, cluster_id, FIELD_NULLABLE, 0, 0, NULL),
    ROW(FIELD_BOOL, webhook_in, enabled, 0, 0, 0, NULL),
    END,
};

const struct field webhook_rotate_body[] = {
    ROW(FIELD_I64, webhook_rotate_in, overlap_seconds, 0, 0, 7 * DAY_S, NULL),
    END,
};

const struct field webhook_delivery_query[] = {
    ROW(FIELD_ENUM, webhook_delivery_query, state, 0, 0, 0, states),
    END,
};

const struct field order_told_query[] = {
    ROW(FIELD_STR, order_told_query, ticket, FIELD_REQUIRED, 1, 1023, NULL),
    END,
};

static const char *const ends[] = {"done", "failed", "progress", NULL};
const struct field order_told_body[] = {
    ROW(FIELD_ENUM, order_told_in, state, FIELD_REQUIRED, 0, 0, ends),
    ROW(FIELD_STR, order_told_in, detail, 0, 0, 1000, NULL),
    END,
};
/* clang-format on */
