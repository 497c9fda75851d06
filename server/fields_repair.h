/* What bodies and queries about repairs decode into. */
#ifndef SERVER_FIELDS_REPAIR_H
#define SERVER_FIELDS_REPAIR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/decode.h"
#include "base/str.h"

struct repair_request_in {
    struct str action;
    struct str reason;
    bool has_action;
    bool has_reason;
};
extern const struct field repair_request_body[];

struct repair_approve_in {
    struct str plan_hash;
    struct str comment;
    bool has_plan_hash;
    bool has_comment;
};
extern const struct field repair_approve_body[];

struct repair_comment_in {
    struct str comment;
    bool has_comment;
};
extern const struct field repair_comment_body[]; /* reject, cancel */

struct repair_settle_in {
    struct str outcome; /* succeeded, failed */
    struct str comment;
    bool has_outcome;
    bool has_comment;
};
extern const struct field repair_settle_body[];

struct incident_close_in {
    struct str reason;
    bool has_reason;
};
extern const struct field incident_close_body[];

struct spare_create_in {
    struct str machine; /* what the provisioner calls it: an id or a name */
    struct str serial;
    struct str note;
    bool has_machine;
    bool has_serial;
    bool has_note;
};
extern const struct field spare_create_body[];

struct repair_query {
    struct str cluster_id; /* not below /clusters/{cluster} */
    struct str node_id;
    struct str_list state;
    int64_t since; /* of created_at, microseconds */
    int64_t until;
    bool open;
    bool has_cluster_id;
    bool has_node_id;
    bool has_state;
    bool has_open;
    bool has_since;
    bool has_until;
};
extern const struct field repair_query[];
extern const struct field cluster_repair_query[];

#endif
