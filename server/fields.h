/* What bodies and queries of the people's API decode into, and the tables that say how. */
#ifndef SERVER_FIELDS_H
#define SERVER_FIELDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/decode.h"
#include "base/str.h"

/*
 * Each member x has has_x: the field was there (PATCH: absent leaves, null clears). A str's ptr is
 * NULL, a number is 0 when it was absent or null; null_x: it was null.
 */

struct session_create_in {
    struct str token;
    bool has_token;
};
extern const struct field session_create_body[];

struct session_switch_in {
    struct str org_id;
    bool has_org_id;
};
extern const struct field session_switch_body[];

struct org_in {
    struct str name;
    struct str title;
    bool has_name;
    bool has_title;
};
extern const struct field org_create_body[];
struct org_update_in {
    struct str title;
    bool has_title;
};
extern const struct field org_update_body[];

struct project_in {
    struct str name;
    struct str title;
    bool has_name;
    bool has_title;
};
extern const struct field project_create_body[];
extern const struct field project_update_body[];

struct cluster_in {
    struct str project_id;
    struct str name;
    struct str scheduler;
    struct str region;
    struct str gpu_type;
    int64_t gpus_per_node;
    struct str driver_version;
    struct str network;
    struct str os_image;
    double billing_rate;
    struct str billing_currency;
    int64_t healthy_delay_seconds;
    int64_t begin_within_seconds;
    int64_t rejoin_within_seconds;
    bool has_project_id;
    bool has_name;
    bool has_scheduler;
    bool has_region;
    bool has_gpu_type;
    bool has_gpus_per_node;
    bool has_driver_version;
    bool has_network;
    bool has_os_image;
    bool has_billing_rate;
    bool has_billing_currency;
    bool has_healthy_delay_seconds;
    bool has_begin_within_seconds;
    bool has_rejoin_within_seconds;
    bool null_gpus_per_node;
    bool null_billing_rate;
};
extern const struct field cluster_create_body[];
extern const struct field cluster_update_body[];

struct node_create_in {
    struct str name;
    struct str rack;
    struct str leaf;
    struct str partition;
    int64_t gpus_expected;
    bool has_name;
    bool has_rack;
    bool has_leaf;
    bool has_partition;
    bool has_gpus_expected;
    bool null_gpus_expected;
};
extern const struct field node_create_body[];

struct node_update_in {
    struct str rack;
    struct str leaf;
    struct str partition;
    int64_t gpus_expected;
    int64_t paused_until;
    struct str pdu;
    struct str file_server;
    struct str role;
    bool schedulable;
    bool auto_repair;
    bool has_rack;
    bool has_leaf;
    bool has_partition;
    bool has_gpus_expected;
    bool has_schedulable;
    bool has_auto_repair;
    bool has_paused_until;
    bool has_pdu;
    bool has_file_server;
    bool has_role;
    bool null_gpus_expected;
    bool null_paused_until;
};
extern const struct field node_update_body[];

struct node_cordon_in {
    struct str comment;
    bool has_comment;
};
extern const struct field node_cordon_body[];

struct device_create_in {
    struct str type;
    struct str serial;
    struct str pci;
    struct str model;
    bool has_type;
    bool has_serial;
    bool has_pci;
    bool has_model;
};
extern const struct field device_create_body[];

struct note_in {
    struct str note;
    bool has_note;
};
extern const struct field device_update_body[];
extern const struct field incident_update_body[];

struct event_create_in {
    struct str summary;
    struct str node_id;
    bool has_summary;
    bool has_node_id;
};
extern const struct field event_create_body[];

struct incident_create_in {
    struct str summary;
    struct str severity;
    struct str device;
    bool node_fault;
    bool has_summary;
    bool has_severity;
    bool has_node_fault;
    bool has_device;
};
extern const struct field incident_create_body[];

struct join_token_in {
    int64_t uses;
    int64_t expires_in_seconds;
    struct str host_name;
    struct str cidr;
    struct str rejoin;
    int64_t expires_in_days;
    bool has_uses;
    bool has_expires_in_seconds;
    bool has_host_name;
    bool has_cidr;
    bool has_rejoin;
    bool has_expires_in_days;
};
extern const struct field join_token_body[];

/* ------------------------------------------------------------------ queries, without limit and
 * cursor */
struct cluster_query {
    struct str project_id;
    bool has_project_id;
};
extern const struct field cluster_query[];

struct node_query {
    struct str_list state;
    struct str q; /* prefix of the name */
    struct str rack;
    struct str pdu;
    struct str file_server;
    struct str sort; /* name, -name, state */
    bool warning;
    bool has_state;
    bool has_q;
    bool has_warning;
    bool has_rack;
    bool has_pdu;
    bool has_file_server;
    bool has_sort;
};
extern const struct field node_query[];
extern const struct field node_filters[]; /* node_query without sort */

struct grid_query {
    bool ids;
    bool has_ids;
};
extern const struct field grid_query[];

struct event_query {
    struct str cluster_id; /* not below /clusters/{cluster} */
    struct str node_id;
    struct str_list type;
    struct str_list severity;
    int64_t since; /* microseconds */
    int64_t until;
    int64_t after; /* a seq: ascending from there */
    bool has_cluster_id;
    bool has_node_id;
    bool has_type;
    bool has_severity;
    bool has_since;
    bool has_until;
    bool has_after;
};
extern const struct field event_query[];
extern const struct field cluster_event_query[];

struct incident_query {
    struct str cluster_id;
    struct str node_id;
    struct str state; /* open, closed */
    struct str_list check_id;
    int64_t since;
    int64_t until;
    bool has_cluster_id;
    bool has_node_id;
    bool has_state;
    bool has_check_id;
    bool roots;
    bool has_since;
    bool has_until;
    bool has_roots;
};
extern const struct field incident_query[];

/* A span of time and how finely it is cut. */
struct span_query {
    int64_t since;
    int64_t until;
    int64_t step_seconds;
    int64_t buckets;
    bool has_since;
    bool has_until;
    bool has_step_seconds;
    bool has_buckets;
};
extern const struct field history_query[];     /* since, until, step_seconds */
extern const struct field buckets_query[];     /* since, until, buckets */
extern const struct field transitions_query[]; /* since, until */

struct as_of_query {
    int64_t at;
    bool has_at;
};
extern const struct field as_of_query[];

#endif
