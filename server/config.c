/* The server's settings: the table of keys, where they come from, and what must fit together. */
#include "server/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "server/network.h"

#define DEFAULT_FILE "/etc/muster/musterd.conf"

struct config config;

/* clang-format off */
const struct config_key config_keys[] = {
    {"listen", CONFIG_STR, &config.listen, "127.0.0.1:8080", 1, 255, "Address and port to serve on, like 0.0.0.0:8443 or [::]:8443."},
    {"public_url", CONFIG_STR, &config.public_url, "", 0, 255, "Address of the console as people type it; empty: made from listen."},
    {"tls_certificate", CONFIG_STR, &config.tls_certificate, "", 0, 4095, "File with the certificate chain (PEM); empty: plain http."},
    {"tls_key", CONFIG_STR, &config.tls_key, "", 0, 4095, "File with the certificate's private key (PEM)."},
    {"insecure_http_from", CONFIG_STR, &config.insecure_http_from, "127.0.0.0/8, ::1/128", 0, 4095, "Networks from which plain http is served; others are told to use TLS."},
    {"trusted_proxies", CONFIG_STR, &config.trusted_proxies, "", 0, 4095, "Networks of proxies whose X-Forwarded-For and X-Forwarded-Proto are believed."},
    {"metrics_from", CONFIG_STR, &config.metrics_from, "127.0.0.0/8, ::1/128", 0, 4095, "Networks from which /metrics is served."},
    {"web_dir", CONFIG_STR, &config.web_dir, "/usr/share/muster/web", 0, 4095, "Folder of the console's files, read at start; empty: no console."},
    {"keys_dir", CONFIG_STR, &config.keys_dir, "/var/lib/muster/keys", 1, 4095, "Folder of master.key and of each cluster's command key."},
    {"outbound_allow", CONFIG_STR, &config.outbound_allow, "", 0, 4095, "host:port, ... of our own infrastructure that the server may call besides public addresses."},
    {"database_app", CONFIG_STR, &config.database_app, "dbname=muster user=muster_app", 1, 4095, "Connection of requests (libpq); keep the password in a pgpass file."},
    {"database_ingest", CONFIG_STR, &config.database_ingest, "dbname=muster user=muster_ingest", 1, 4095, "Connection of the writers of reports (libpq)."},
    {"database_loop", CONFIG_STR, &config.database_loop, "dbname=muster user=muster_loop", 1, 4095, "Connection of the background loops (libpq)."},
    {"database_migrate", CONFIG_STR, &config.database_migrate, "dbname=muster user=muster_migrate", 1, 4095, "Connection of musterd migrate and init (libpq)."},
    {"database_wait_seconds", CONFIG_I64, &config.database_wait_seconds, "30", 0, 3600, "How long a start waits for the database, in seconds."},
    {"event_loops", CONFIG_I64, &config.event_loops, "0", 0, 64, "Threads that serve requests; 0: one per core."},
    {"connections", CONFIG_I64, &config.connections, "100000", 16, 1000000, "Clients at once, over all loops; lowered to what the limit of open files allows."},
    {"header_timeout_seconds", CONFIG_I64, &config.header_timeout_seconds, "30", 1, 600, "A request's headers must be there within so many seconds."},
    {"body_timeout_seconds", CONFIG_I64, &config.body_timeout_seconds, "30", 1, 600, "A request's body must be there within so many seconds."},
    {"idle_timeout_seconds", CONFIG_I64, &config.idle_timeout_seconds, "120", 1, 3600, "A connection without a request is closed after so many seconds."},
    {"answer_timeout_seconds", CONFIG_I64, &config.answer_timeout_seconds, "120", 1, 3600, "A client must have taken its answer within so many seconds; streams excepted."},
    {"drain_seconds", CONFIG_I64, &config.drain_seconds, "10", 0, 600, "A stop waits so many seconds for requests to end."},
    {"interval_seconds", CONFIG_I64, &config.interval_seconds, "10", 1, 3600, "Agents report every so many seconds; 3 of them without a report: unknown."},
    {"history_interval_seconds", CONFIG_I64, &config.history_interval_seconds, "300", 1, 3600, "A sample of history is kept every so many seconds."},
    {"event_keep_days", CONFIG_I64, &config.event_keep_days, "90", 0, 3650, "Events are kept for so many days, at least 7; 0: for ever."},
    {"history_keep_days", CONFIG_I64, &config.history_keep_days, "400", 0, 3650, "Readings and states of the past are kept for so many days, at least 31; 0: for ever."},
    {"loop_period_ms", CONFIG_I64, &config.loop_period_ms, "1000", 10, 60000, "Background loops look at everything so often, in milliseconds."},
    {"rollup_interval_ms", CONFIG_I64, &config.rollup_interval_ms, "2000", 10, 60000, "Summaries of changed clusters are made so often, in milliseconds."},
    {"start_grace_seconds", CONFIG_I64, &config.start_grace_seconds, "300", 0, 86400, "After a start silence of nodes changes no state for so many seconds."},
    {"cooldown_seconds", CONFIG_I64, &config.cooldown_seconds, "1800", 0, 604800, "No new proposal for a node so many seconds after a repair ended or was rejected."},
    {"executors_file", CONFIG_STR, &config.executors_file, "", 0, 4095, "JSON file of the schedulers and machines that Muster may drive (docs/executors.md); empty: none."},
    {"scheduler_period_ms", CONFIG_I64, &config.scheduler_period_ms, "5000", 50, 60000, "Schedulers are read so often, in milliseconds."},
    {"settle_seconds", CONFIG_I64, &config.settle_seconds, "90", 0, 3600, "Faults of fabric, files, power and Slurm are given so many seconds to end by themselves before a repair is proposed."},
    {"boot_grace_seconds", CONFIG_I64, &config.boot_grace_seconds, "600", 0, 86400, "So many seconds after a boot or a change of driver, missing GPUs, drivers and services are no fault yet."},
    {"machine_rest_ms", CONFIG_I64, &config.machine_rest_ms, "10000", 0, 600000, "In a power cycle a machine stays off for so long, in milliseconds."},
    {"lease_seconds", CONFIG_I64, &config.lease_seconds, "30", 2, 600, "A server that was not heard of for so many seconds has lost the power cycles it was at: another looks at what it left."},
    {"drain_wait_seconds", CONFIG_I64, &config.drain_wait_seconds, "0", 0, 604800, "Seconds between cordon and act: time to cancel."},
    {"command_within_seconds", CONFIG_I64, &config.command_within_seconds, "120", 1, 86400, "A command that no agent took is withdrawn after so many seconds."},
    {"rate_credential_per_minute", CONFIG_I64, &config.rate_credential_per_minute, "600", 0, 1000000, "Requests a minute of one session or service token; 0: no limit. Agents have none."},
    {"rate_org_per_minute", CONFIG_I64, &config.rate_org_per_minute, "6000", 0, 10000000, "Requests a minute of one organization, agents apart; 0: no limit."},
    {"rate_sign_in_per_minute", CONFIG_I64, &config.rate_sign_in_per_minute, "10", 0, 1000000, "Tries to sign in a minute from one address (IPv6: one /64); 0: no limit."},
    {"rate_join_per_minute", CONFIG_I64, &config.rate_join_per_minute, "6000", 0, 1000000, "Requests a minute of agents that join or renew their access from one address (IPv6: one /64); 0: no limit."},
    {"rate_logout_per_minute", CONFIG_I64, &config.rate_logout_per_minute, "600", 0, 1000000, "Back-channel logouts a minute of one issuer from one address (IPv6: one /64); 0: no limit."},
    {"issuer_refetch_seconds", CONFIG_I64, &config.issuer_refetch_seconds, "30", 1, 3600, "Keys of an issuer are fetched at most once in so many seconds, whatever tokens come."},
    {"audit_head_seconds", CONFIG_I64, &config.audit_head_seconds, "3600", 1, 86400, "The heads of the audit logs are signed into keys_dir/audit so often, in seconds."},
    {"log_level", CONFIG_STR, &config.log_level, "info", 1, 16, "debug, info, warning or error."},
    {"log_json", CONFIG_BOOL, &config.log_json, "true", 0, 0, "One JSON object a line; false: plain text."},
};
/* clang-format on */
const size_t config_keys_count = COUNTOF(config_keys);

/* Takes "--config FILE" or "--config=FILE" out of argv; false when the value is missing. */
static bool take_config_option(int *argc, char **argv, const char **ret_file, char *error,
                               size_t error_cap)
{
    int kept = 0;
    for (int i = 0; i < *argc; i++) {
        if (strncmp(argv[i], "--config=", 9) == 0) {
            *ret_file = argv[i] + 9;
        } else if (strcmp(argv[i], "--config") == 0) {
            if (i + 1 >= *argc) {
                (void)snprintf(error, error_cap, "option --config: a file is missing");
                return false;
            }
            *ret_file = argv[++i];
        } else {
            argv[kept++] = argv[i];
        }
    }
    *argc = kept;
    return true;
}

static bool check_networks(const char *key, const char *networks, char *error, size_t error_cap)
{
    if (!networks_valid(networks)) {
        (void)snprintf(error, error_cap,
                       "%s must be networks like 10.0.0.0/8, fd00::/8, not \"%.80s\"", key,
                       networks);
        return false;
    }
    return true;
}

/* What one key alone cannot say. */
static bool check_together(char *error, size_t error_cap)
{
    enum log_level level;
    if (!log_level_parse(config.log_level, &level)) {
        (void)snprintf(error, error_cap,
                       "log_level must be debug, info, warning or error, not \"%.16s\"",
                       config.log_level);
        return false;
    }
    if ((config.event_keep_days > 0 && config.event_keep_days < 7) ||
        (config.history_keep_days > 0 && config.history_keep_days < 31)) {
        (void)snprintf(error, error_cap,
                       "event_keep_days must be 0 or at least 7, history_keep_days 0 or at least "
                       "31");
        return false;
    }
    if ((config.tls_certificate[0] == '\0') != (config.tls_key[0] == '\0')) {
        (void)snprintf(error, error_cap, "tls_certificate and tls_key must be set together");
        return false;
    }
    size_t url_len = strlen(config.public_url);
    if (url_len > 0 && (config.public_url[url_len - 1] == '/' ||
                        (strncmp(config.public_url, "http://", 7) != 0 &&
                         strncmp(config.public_url, "https://", 8) != 0))) {
        (void)snprintf(error, error_cap,
                       "public_url must begin with https:// or http:// and not end with /");
        return false;
    }
    return check_networks("insecure_http_from", config.insecure_http_from, error, error_cap) &&
           check_networks("trusted_proxies", config.trusted_proxies, error, error_cap) &&
           check_networks("metrics_from", config.metrics_from, error, error_cap);
}

bool config_read(int argc, char **argv, char *error, size_t error_cap)
{
    static const char *const foreign[] = {"MUSTER_WYCHEPROOF", NULL};
    const char *file = NULL;

    if (!take_config_option(&argc, argv, &file, error, error_cap)) {
        return false;
    }
    const struct config_source source = {
        .file = file != NULL ? file : DEFAULT_FILE,
        .must_exist = file != NULL,
        .argc = argc,
        .argv = argv,
        .foreign = foreign,
    };
    config.instance = uuid_v7();
    return config_load(config_keys, config_keys_count, &source, error, error_cap) &&
           check_together(error, error_cap);
}

void config_address(char *ret_address, size_t cap)
{
    bool tls = config.tls_certificate[0] != '\0';
    if (config.public_url[0] != '\0') {
        (void)snprintf(ret_address, cap, "%s", config.public_url);
    } else {
        (void)snprintf(ret_address, cap, "%s://%s", tls ? "https" : "http", config.listen);
    }
}
