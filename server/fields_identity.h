/* What bodies and queries of the audit log, tokens and members decode into, and the tables that say
 * how. */
#ifndef SERVER_FIELDS_IDENTITY_H
#define SERVER_FIELDS_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/decode.h"

/* As in server/fields.h: has_x says that the field was there. */
struct audit_query {
    struct str actor;
    struct str_list action;
    struct str target;
    int64_t since; /* microseconds */
    int64_t until;
    bool has_actor;
    bool has_action;
    bool has_target;
    bool has_since;
    bool has_until;
};
extern const struct field audit_query[];

#define AUDIT_EXPORT_MAX 1000
struct audit_export_query {
    int64_t after; /* a seq */
    int64_t limit;
    bool has_after;
    bool has_limit;
};
extern const struct field audit_export_query[];

struct service_token_in {
    struct str name;
    struct str role;
    int64_t expires_in_seconds; /* null = it does not expire */
    struct str cluster_id;
    bool has_name;
    bool has_role;
    bool has_expires_in_seconds;
    bool has_cluster_id;
    bool null_expires_in_seconds;
};
extern const struct field service_token_body[];

struct token_rotate_in {
    int64_t overlap_seconds;
    bool has_overlap_seconds;
};
extern const struct field token_rotate_body[];

struct member_in {
    struct str name; /* or person_id, or issuer_id and group */
    struct str role;
    struct str project_id;
    struct str cluster_id;
    struct str person_id;
    struct str issuer_id;
    struct str group;
    bool has_name;
    bool has_role;
    bool has_project_id;
    bool has_cluster_id;
    bool has_person_id;
    bool has_issuer_id;
    bool has_group;
};
extern const struct field member_create_body[];

struct issuer_discover_in {
    struct str issuer;
    struct str ca_certificate;
    struct str discovery_url;
    struct str_list entra_tenants;
    bool has_issuer;
    bool has_ca_certificate;
    bool has_discovery_url;
    bool has_entra_tenants;
};
extern const struct field issuer_discover_body[];

struct issuer_test_token_in {
    struct str token;
    bool has_token;
};
extern const struct field issuer_test_token_body[];

struct revoke_key_in {
    struct str reason;
    bool has_reason;
};
extern const struct field revoke_key_body[];

struct org_suspend_in {
    struct str reason;
    bool has_reason;
};
extern const struct field org_suspend_body[];

struct device_code_in {
    struct str client;
    bool has_client;
};
extern const struct field device_code_body[];

struct device_token_in {
    struct str device_code;
    bool has_device_code;
};
extern const struct field device_token_body[];

struct device_decide_in {
    struct str decision;
    bool has_decision;
};
extern const struct field device_decide_body[];

struct sign_in_options_query {
    struct str org; /* its name */
    bool has_org;
};
extern const struct field sign_in_options_query[];

struct sign_in_start_query {
    struct str return_to;
    bool has_return_to;
};
extern const struct field sign_in_start_query[];

struct audit_download_query {
    struct str ticket;
    bool has_ticket;
};
extern const struct field audit_download_query[];

#endif
