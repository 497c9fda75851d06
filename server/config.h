/* The server's settings: one table in config.c, read before any thread starts, constant afterwards.
 */
#ifndef SERVER_CONFIG_H
#define SERVER_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/config.h"
#include "base/uuid.h"

struct config {
    const char *listen;
    const char *public_url; /* without a slash at the end; "" = from listen */
    const char *tls_certificate;
    const char *tls_key;
    const char *insecure_http_from;
    const char *trusted_proxies;
    const char *metrics_from;
    const char *web_dir;
    const char *keys_dir;
    const char *outbound_allow;
    const char *executors_file;
    const char *database_app;
    const char *database_ingest;
    const char *database_loop;
    const char *database_migrate;
    int64_t event_loops;
    int64_t connections;
    int64_t header_timeout_seconds;
    int64_t body_timeout_seconds;
    int64_t idle_timeout_seconds;
    int64_t answer_timeout_seconds;
    int64_t drain_seconds;
    int64_t database_wait_seconds;
    int64_t interval_seconds;
    int64_t history_interval_seconds;
    int64_t event_keep_days;     /* 0 = for ever (90) */
    int64_t history_keep_days;   /* 0 = for ever (400) */
    int64_t loop_period_ms;      /* background loops look at everything so often (1000) */
    int64_t rollup_interval_ms;  /* (2000) */
    int64_t start_grace_seconds; /* after a start silence changes no state (300) */
    int64_t cooldown_seconds;    /* after a repair's end, and after a rejection (1800) */
    int64_t scheduler_period_ms; /* (5000) */
    int64_t settle_seconds;      /* what often ends by itself is proposed after so long (90) */
    int64_t boot_grace_seconds;  /* after a boot or a new driver some checks are no fault (600) */
    int64_t machine_rest_ms;     /* (10000) */
    int64_t lease_seconds; /* a server that says nothing for so long has lost its orders (30) */
    int64_t drain_wait_seconds;         /* between cordon and act: time to cancel (0) */
    int64_t command_within_seconds;     /* a command that is not taken within is withdrawn (120) */
    int64_t rate_credential_per_minute; /* requests; 0 = no limit (600) */
    int64_t rate_org_per_minute;        /* (6000) */
    int64_t rate_sign_in_per_minute;    /* by address (10) */
    int64_t rate_join_per_minute;       /* by address (6000) */
    int64_t rate_logout_per_minute;     /* by issuer and address (600) */
    int64_t issuer_refetch_seconds;     /* keys of an issuer are fetched once within (30) */
    int64_t audit_head_seconds;         /* the heads of the audit logs are signed so often (3600) */
    const char *log_level;
    bool log_json;
    struct uuid instance; /* this process, made anew at each start: leases name it */
};

extern struct config config;
extern const struct config_key config_keys[];
extern const size_t config_keys_count;

/* Loads the table from file, environment and options, then checks what one key alone cannot say.
 * False with a sentence in error. argv without program and subcommand. */
bool config_read(int argc, char **argv, char *error, size_t error_cap) MUST_CHECK;

/* How people reach this server, without a slash at the end; 512 bytes are enough. */
void config_address(char *ret_address, size_t cap);

#endif
