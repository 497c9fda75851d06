/* What bodies and queries of webhooks decode into, and the tables that say how. */
#ifndef SERVER_FIELDS_WEBHOOKS_H
#define SERVER_FIELDS_WEBHOOKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/decode.h"

/* As in server/fields.h: has_x says that the field was there. */
struct webhook_in {
    struct str name;
    struct str url;
    struct str ca_certificate; /* null = the system's authorities */
    struct str_list kinds;
    struct str cluster_id; /* null = all clusters */
    bool enabled;
    bool has_name;
    bool has_url;
    bool has_ca_certificate;
    bool has_kinds;
    bool has_cluster_id;
    bool has_enabled;
};
extern const struct field webhook_create_body[];
extern const struct field webhook_update_body[];

struct webhook_rotate_in {
    int64_t overlap_seconds;
    bool has_overlap_seconds;
};
extern const struct field webhook_rotate_body[];

struct webhook_delivery_query {
    struct str state;
    bool has_state;
};
extern const struct field webhook_delivery_query[];

struct order_told_query {
    struct str ticket;
    bool has_ticket;
};
extern const struct field order_told_query[];
struct order_told_in {
    struct str state;
    struct str detail;
    bool has_state;
    bool has_detail;
};
extern const struct field order_told_body[];

#endif
