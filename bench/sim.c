/* muster-sim: many simulated agents on the real protocol, with faults; demo, load generator and
 * soak test. */
#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/config.h"
#include "base/file.h"
#include "base/log.h"
#include "bench/exchange.h"
#include "bench/orders.h"
#include "bench/story.h"

#define SECOND_US 1000000LL
#define ENROL_AT_ONCE 64
#define NODES_MAX 200000
#define CONNECTIONS_DEFAULT 512
#define JOIN_PATIENCE_US (30 * SECOND_US)

static const char *server_url;
static const char *join_token;
static const char *state_dir;
static const char *ca_file;
static const char *name_prefix;
static const char *faults_text;
static const char *break_text;
static int64_t nodes;
static const char *interval_text;
static int64_t duration_s;
static int64_t connections;
static bool json;
static bool demo;

static const struct config_key keys[] = {
    {"server", CONFIG_STR, &server_url, "", 0, 0, "The server's address: http(s)://host:port."},
    {"token", CONFIG_SECRET, &join_token, "", 0, 0, "A join token with as many uses as nodes."},
    {"nodes", CONFIG_I64, &nodes, "100", 1, NODES_MAX, "Number of simulated nodes."},
    {"interval", CONFIG_STR, &interval_text, "10", 0, 0, "Seconds between a node's reports."},
    {"duration", CONFIG_I64, &duration_s, "60", 0, 604800, "Seconds to run; 0 = until stopped."},
    {"faults", CONFIG_STR, &faults_text, "", 0, 0,
     "Fault rate as a multiple of real rates; 0 = none (the default; 400 with --demo)."},
    {"break", CONFIG_STR, &break_text, "", 0, 0,
     "Faults once all have joined: KIND[@NODE[-NODE]][+SECONDS], several by commas."},
    {"connections", CONFIG_I64, &connections, "0", 0, 18000,
     "Connections to use; 0 = one a node, at most 512."},
    {"prefix", CONFIG_STR, &name_prefix, "gpu", 0, 0, "First part of the nodes' names."},
    {"state", CONFIG_STR, &state_dir, "", 0, 0,
     "Folder that keeps the fleet's key, so that a second start is the same fleet."},
    {"ca_file", CONFIG_STR, &ca_file, "", 0, 0, "Certificates to trust for https."},
    {"demo", CONFIG_BOOL, &demo, "false", 0, 0, "Nodes break often and recover by themselves."},
    {"json", CONFIG_BOOL, &json, "false", 0, 0, "Print the summary as one JSON object."},
};

static volatile sig_atomic_t stopping;

static void stop(int number)
{
    (void)number;
    stopping = 1;
}

/* The fleet's seed from --state, made at the first start. */
static bool load_seed(struct fleet *fleet)
{
    if (state_dir[0] == '\0') {
        crypto_random(fleet->seed, sizeof(fleet->seed));
        return true;
    }
    char path[4096];
    char text[65];
    CLEANUP(buf_free) struct buf data = {0};
    (void)snprintf(path, sizeof(path), "%s/fleet.key", state_dir);
    if (file_read(path, 256, &data) == 0 &&
        crypto_unhex(str_trim(buf_str(&data)), fleet->seed, sizeof(fleet->seed))) {
        return true;
    }
    crypto_random(fleet->seed, sizeof(fleet->seed));
    crypto_hex(fleet->seed, sizeof(fleet->seed), text);
    return file_make_dirs(state_dir, 0700) == 0 &&
           file_write_durable(path, str_of(text), 0600) == 0;
}

/* The report sequence grows over restarts too: it starts from the clock. */
static void start_sequences(struct fleet *fleet)
{
    for (size_t i = 0; i < fleet->count; i++) {
        fleet->nodes[i].seq = clock_wall_us() / 1000;
    }
}

static int compare_u32(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static double percentile_ms(const struct exchange *exchange, double ratio)
{
    if (exchange->latency_count == 0) {
        return 0;
    }
    size_t at = (size_t)(ratio * (double)(exchange->latency_count - 1));
    return exchange->latencies_us[at] / 1000.0;
}

static void print_summary(struct exchange *exchange)
{
    qsort(exchange->latencies_us, exchange->latency_count, sizeof(uint32_t), compare_u32);
    printf(json ? "{\"nodes\":%zu,\"sent\":%lld,\"acked\":%lld,\"errors\":%lld,\"p50_ms\":%.2f,"
                  "\"p99_ms\":%.2f,\"max_ms\":%.2f}\n"
                : "%zu nodes, %lld sent, %lld acknowledged, %lld errors; p50 %.2f ms, p99 %.2f ms, "
                  "max %.2f ms\n",
           exchange->live, (long long)exchange->sent, (long long)exchange->acked,
           (long long)exchange->errors, percentile_ms(exchange, 0.5), percentile_ms(exchange, 0.99),
           percentile_ms(exchange, 1.0));
}

static void turn_node(struct exchange *exchange, struct sim_node *node, int64_t now)
{
    if (node->in_flight) {
        return;
    }
    switch (node->state) {
    case SIM_NEW:
        if (now >= node->wake_us && exchange->enrolling < ENROL_AT_ONCE) {
            exchange_enroll(exchange, node);
        }
        break;
    case SIM_BOOTING:
        if (now >= node->wake_us) {
            fleet_boot(exchange->fleet, node, now);
        }
        break;
    case SIM_SILENT:
        if (now >= node->wake_us) {
            node->state = SIM_LIVE;
            node->next_us = now;
        }
        break;
    case SIM_LIVE:
        if (now >= node->next_us && now < exchange->end_us) {
            exchange_report(exchange, node, now);
        }
        break;
    case SIM_ENROLLING:
    case SIM_REFUSED:
        break;
    }
}

static bool all_settled(const struct exchange *exchange)
{
    return exchange->live + exchange->refused >= exchange->fleet->count;
}

/* A bounded run gives up when no node could join for a while. */
static bool is_stuck(const struct exchange *exchange, size_t *joined, int64_t *progress_us,
                     int64_t now)
{
    if (exchange->live + exchange->refused > *joined) {
        *joined = exchange->live + exchange->refused;
        *progress_us = now;
    }
    return duration_s > 0 && now - *progress_us > JOIN_PATIENCE_US;
}

static struct orders orders;
static struct story story;

/* Once all have joined: what was asked for by --break, from outside, and by the demo's story. */
static void turn_orders(struct exchange *exchange, bool first, int64_t now)
{
    struct str bad;
    if (first && !orders_take(&orders, str_of(break_text), now, &bad)) {
        log_warning("there is no order %.*s", (int)bad.len, bad.ptr);
    }
    if (demo) {
        story_turn(&story, &orders, exchange->fleet, now);
    }
    orders_turn(&orders, exchange->fleet, now);
}

/* Enrols all, then reports for the duration; what is in flight at the end is waited for. */
static void run_fleet(struct exchange *exchange)
{
    bool counting = false;
    size_t joined = 0;
    int64_t progress_us = clock_mono_us();
    exchange->end_us = INT64_MAX;
    exchange->counted_us = INT64_MAX;
    while (!stopping) {
        int64_t now = clock_mono_us();
        bool first = !counting && all_settled(exchange);
        if (first) {
            counting = true;
            exchange->counted_us = now;
            log_info("%zu nodes joined, %zu were refused (last status %d)", exchange->live,
                     exchange->refused, exchange->last_status);
            if (duration_s > 0) {
                exchange->end_us = now + duration_s * SECOND_US;
            }
        }
        if (exchange->refused == exchange->fleet->count || now > exchange->end_us) {
            break;
        }
        if (!counting && is_stuck(exchange, &joined, &progress_us, now)) {
            log_error("no node could join for %lld s: %zu of %zu are there (last status %d)",
                      (long long)(JOIN_PATIENCE_US / SECOND_US), exchange->live,
                      exchange->fleet->count, exchange->last_status);
            break;
        }
        fleet_faults(exchange->fleet, now);
        if (counting) {
            turn_orders(exchange, first, now);
        }
        for (size_t i = 0; i < exchange->fleet->count; i++) {
            turn_node(exchange, &exchange->fleet->nodes[i], now);
        }
        wire_turn(exchange->wire, 1);
    }
    int64_t deadline = clock_mono_us() + 10 * SECOND_US;
    while (wire_in_flight(exchange->wire) > 0 && clock_mono_us() < deadline && !stopping) {
        wire_turn(exchange->wire, 10);
    }
}

static bool set_options(int argc, char **argv, double *ret_interval_s, double *ret_faults)
{
    char error[256];
    struct config_source source = {.argc = argc - 1, .argv = argv + 1};
    if (!config_load(keys, COUNTOF(keys), &source, error, sizeof(error))) {
        (void)fprintf(stderr, "muster-sim: %s\n", error);
        return false;
    }
    if (server_url[0] == '\0' || join_token[0] == '\0') {
        (void)fprintf(stderr, "muster-sim: --server and --token are needed\n");
        return false;
    }
    *ret_faults = demo ? 400 : 0;
    if (!str_parse_double(str_of(interval_text), ret_interval_s) || *ret_interval_s < 0.01 ||
        *ret_interval_s > 3600 ||
        (faults_text[0] != '\0' && !str_parse_double(str_of(faults_text), ret_faults))) {
        (void)fprintf(stderr, "muster-sim: --interval takes 0.01 to 3600, --faults a number\n");
        return false;
    }
    return true;
}

static void show_help(void)
{
    CLEANUP(buf_free) struct buf text = {0};
    config_show(keys, COUNTOF(keys), &text);
    (void)printf(
        "muster-sim --server URL --token JOIN --nodes N --interval S --duration S [--faults RATE] "
        "[--break KIND@NODE,...] [--json]\n"
        "muster-sim list            the kinds of fault\n"
        "muster-sim break --state DIR KIND[@NODE[-NODE]][+SECONDS]...   asks one that runs\n\n%s",
        text.ptr);
}

static int list_kinds(void)
{
    CLEANUP(buf_free) struct buf text = {0};
    orders_list(&text);
    (void)fputs(text.ptr, stdout);
    return 0;
}

/* break --state DIR ORDER...: leaves the orders for the simulator that runs with that state. */
static int leave_orders(int argc, char **argv)
{
    CLEANUP(buf_free) struct buf text = {0};
    struct orders tried = {0};
    struct str bad;
    if (argc < 5 || strcmp(argv[2], "--state") != 0) {
        (void)fprintf(stderr, "muster-sim: break --state DIR KIND[@NODE[-NODE]][+SECONDS]...\n");
        return 2;
    }
    for (int i = 4; i < argc; i++) {
        buf_printf(&text, "%s\n", argv[i]);
    }
    if (!orders_take(&tried, buf_str(&text), 0, &bad)) {
        (void)fprintf(stderr, "muster-sim: there is no kind or node %.*s; muster-sim list\n",
                      (int)bad.len, bad.ptr);
        return 2;
    }
    int error = orders_leave(argv[3], buf_str(&text));
    if (error != 0) {
        (void)fprintf(stderr, "muster-sim: %s: %s\n", argv[3], strerrordesc_np(error));
        return 2;
    }
    return 0;
}

int main(int argc, char **argv)
{
    double interval_s;
    double faults;
    char error[256];
    log_setup("muster-sim", LOG_INFO, false);
    if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0)) {
        show_help();
        return 0;
    }
    if (argc == 2 && strcmp(argv[1], "list") == 0) {
        return list_kinds();
    }
    if (argc > 1 && strcmp(argv[1], "break") == 0) {
        return leave_orders(argc, argv);
    }
    if (!set_options(argc, argv, &interval_s, &faults)) {
        return 2;
    }
    struct str bad;
    if (!orders_take(&orders, str_of(break_text), 0, &bad)) {
        (void)fprintf(stderr,
                      "muster-sim: --break: there is no kind or node %.*s; muster-sim list\n",
                      (int)bad.len, bad.ptr);
        return 2;
    }
    orders.count = 0; /* they wait until all have joined */
    orders.state_dir = state_dir;
    (void)signal(SIGINT, stop);
    (void)signal(SIGTERM, stop);
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
    int links = (int)(connections > 0               ? connections
                      : nodes < CONNECTIONS_DEFAULT ? nodes
                                                    : CONNECTIONS_DEFAULT);
    struct exchange exchange = {.join_token = join_token,
                                .interval_us = (int64_t)(interval_s * SECOND_US)};
    exchange.fleet = fleet_new((size_t)nodes, name_prefix);
    exchange.fleet->fault_rate = faults;
    exchange.fleet->demo = demo;
    exchange.latencies_us = calloc(EXCHANGE_LATENCIES_MAX, sizeof(uint32_t));
    assert(exchange.latencies_us != NULL);
    start_sequences(exchange.fleet);
    exchange.wire =
        wire_new(server_url, ca_file[0] == '\0' ? NULL : ca_file, links, error, sizeof(error));
    if (exchange.wire == NULL || !load_seed(exchange.fleet)) {
        (void)fprintf(stderr, "muster-sim: %s\n",
                      exchange.wire == NULL ? error : "--state cannot be written");
        return 2;
    }
    run_fleet(&exchange);
    print_summary(&exchange);
    bool refused = exchange.live < exchange.fleet->count;
    wire_free(exchange.wire);
    for (size_t i = 0; i < exchange.fleet->count; i++) {
        free(exchange.fleet->nodes[i].request.ctx);
    }
    fleet_free(exchange.fleet);
    free(exchange.latencies_us);
    return refused ? 1 : 0;
}
