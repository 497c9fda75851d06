/* `musterd serve`: the server from its start-up checks to its graceful stop. */
#include "server/serve.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "db/db.h"
#include "server/agents.h"
#include "server/auth.h"
#include "server/backgrounds.h"
#include "server/config.h"
#include "server/follow.h"
#include "server/handlers/events.h"
#include "server/handlers/overview.h"
#include "server/limits.h"
#include "server/loop.h"
#include "server/secret_store.h"
#include "server/static.h"
#include "server/wait.h"

#define LOOPS_MAX 64
#define ERROR_MAX 512
#define FOLLOW_MS 250
#define PEM_MAX ((size_t)256 * 1024)
/* Descriptors for all that is no client: database, log, files of libraries. */
#define FILES_RESERVED 256
/* For an administrator, migrate and a backup beside the server. */
#define CONNECTIONS_SPARE 5
#define WAIT_STEP_MS 500

struct server {
    struct follow *follow;
    struct files *files;
    struct limits *limits;
    struct loop *loops[LOOPS_MAX];
    size_t loop_count;
    size_t started; /* loops whose thread runs */
    struct buf certificate;
    struct buf key;
};

void serve_setup_database(void)
{
    const char *const conninfo[4] = {
        [DB_APP] = config.database_app,
        [DB_INGEST] = config.database_ingest,
        [DB_LOOP] = config.database_loop,
        [DB_MIGRATE] = config.database_migrate,
    };
    db_setup(conninfo);
}

static void pause_ms(int ms)
{
    const struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    (void)nanosleep(&pause, NULL);
}

bool serve_wait_database(void)
{
    char error[ERROR_MAX] = "";
    int64_t begun_us = clock_mono_us();
    int64_t until_us = begun_us + config.database_wait_seconds * 1000000;
    for (int tries = 0;; tries++) {
        enum err err = db_check_version(error, sizeof(error));
        if (err == ERR_NONE) {
            return true;
        }
        if (err != ERR_UNAVAILABLE || clock_mono_us() >= until_us) {
            log_error("%s", error);
            return false;
        }
        if (tries % 10 == 0) {
            log_info("waiting for the database, for %lld s at most: %s",
                     (long long)((until_us - clock_mono_us()) / 1000000), error);
        }
        pause_ms(WAIT_STEP_MS);
    }
}

/* ------------------------------------------------------------------ start-up checks */

static size_t count_loops(void)
{
    if (config.event_loops > 0) {
        return (size_t)config.event_loops;
    }
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return cores < 1 ? 1 : cores > LOOPS_MAX ? LOOPS_MAX : (size_t)cores;
}

/* A full table of descriptors leaves new clients without any answer: the limit is known before. */
static bool raise_files(size_t loops, unsigned *ret_connections)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        log_error("the limit of open files cannot be read: %s", strerrordesc_np(errno));
        return false;
    }
    rlim_t wanted = (rlim_t)config.connections + FILES_RESERVED;
    if (limit.rlim_cur < wanted) {
        limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
        if (setrlimit(RLIMIT_NOFILE, &limit) != 0) {
            log_error("the limit of open files cannot be raised: %s", strerrordesc_np(errno));
            return false;
        }
    }
    if (limit.rlim_cur < FILES_RESERVED + 16 * loops) {
        log_error(
            "the limit of open files is %llu; at least %zu are needed (LimitNOFILE, ulimit -n)",
            (unsigned long long)limit.rlim_cur, FILES_RESERVED + 16 * loops);
        return false;
    }
    rlim_t clients = limit.rlim_cur - FILES_RESERVED;
    if (clients < (rlim_t)config.connections) {
        log_warning("the limit of open files allows %llu clients, not %lld",
                    (unsigned long long)clients, (long long)config.connections);
    } else {
        clients = (rlim_t)config.connections;
    }
    *ret_connections = (unsigned)(clients / loops);
    return true;
}

static bool check_connections(size_t loops)
{
    const struct db_args none = {0};
    struct db_conn *conn = db_conn_new(DB_LOOP);
    struct db_rows *rows = NULL;
    int64_t needed = 2 * (int64_t)loops + 1 + CONNECTIONS_SPARE;
    for (const struct background *row = backgrounds; row->name != NULL; row++) {
        needed += row->connections;
    }
    bool good = db_exec(conn, SQL_SERVER_LIMITS, NULL, &none, &rows) == ERR_NONE;
    if (!good) {
        log_error("the database's limits cannot be read: %s", db_conn_error(conn));
    } else {
        int64_t offered = db_i64(rows, 0, db_rows_col(rows, "connections"));
        good = offered >= needed;
        if (!good) {
            log_error(
                "this server needs %lld database connections and max_connections leaves %lld; "
                "raise max_connections or lower event_loops",
                (long long)needed, (long long)offered);
        }
    }
    db_rows_free(rows);
    db_conn_free(conn);
    return good;
}

static bool check_database(size_t loops)
{
    char error[ERROR_MAX] = "";
    if (!serve_wait_database()) {
        return false;
    }
    if (db_check_roles(error, sizeof(error)) != ERR_NONE) {
        log_error("%s", error);
        return false;
    }
    if (error[0] != '\0') {
        log_warning("%s", error);
    }
    return check_connections(loops);
}

static bool read_pem(const char *key, const char *path, struct buf *out)
{
    int failed = path[0] == '\0' ? 0 : file_read(path, PEM_MAX, out);
    if (failed != 0) {
        log_error("%s: %s cannot be read: %s", key, path, strerrordesc_np(failed));
    }
    return failed == 0;
}

/* ------------------------------------------------------------------ life */

static bool make_loop(struct server *server, unsigned connections)
{
    char error[ERROR_MAX] = "";
    const struct loop_options options = {
        .index = (int)server->loop_count,
        .follow = server->follow,
        .listen = config.listen,
        .port = server->loop_count > 0 ? loop_port(server->loops[0]) : 0,
        .certificate = server->certificate.ptr,
        .key = server->key.ptr,
        .connections = connections,
    };
    struct loop *loop = loop_new(&options, error, sizeof(error));
    if (loop == NULL) {
        log_error("%s", error);
        return false;
    }
    server->loops[server->loop_count++] = loop;
    loop_slot_set(loop, LOOP_SLOT_AUTH, auth_cache_new());
    loop_slot_set(loop, LOOP_SLOT_LIMITS, server->limits);
    static_attach(loop, server->files, server->certificate.ptr != NULL);
    wait_attach(loop);
    events_attach(loop);
    overview_attach(loop);
    return true;
}

static bool build(struct server *server)
{
    char error[ERROR_MAX] = "";
    unsigned connections = 0;
    size_t loops = count_loops();
    if (!read_pem("tls_certificate", config.tls_certificate, &server->certificate) ||
        !read_pem("tls_key", config.tls_key, &server->key) || !raise_files(loops, &connections) ||
        !check_database(loops)) {
        return false;
    }
    if (!agents_open(error, sizeof(error)) || !secret_store_open(error, sizeof(error))) {
        log_error("%s", error);
        return false;
    }
    secret_store_check();
    server->files = files_load(config.web_dir, error, sizeof(error));
    if (server->files == NULL) {
        log_error("%s", error);
        return false;
    }
    const int64_t per_minute[LIMIT_COUNT] = {
        [LIMIT_CREDENTIAL] = config.rate_credential_per_minute,
        [LIMIT_ORG] = config.rate_org_per_minute,
        [LIMIT_SIGN_IN] = config.rate_sign_in_per_minute,
        [LIMIT_JOIN] = config.rate_join_per_minute,
        [LIMIT_LOGOUT] = config.rate_logout_per_minute,
        /* one provider may serve many issuers */
        [LIMIT_LOGOUT_ADDRESS] = 10 * config.rate_logout_per_minute,
    };
    server->limits = limits_new(per_minute);
    server->follow = follow_new(FOLLOW_MS);
    while (server->loop_count < loops) {
        if (!make_loop(server, connections)) {
            return false;
        }
    }
    for (size_t i = 0; i < loops; i++) {
        loop_peers_set(server->loops[i], server->loops, loops);
    }
    return true;
}

static void destroy(struct server *server)
{
    for (size_t i = 0; i < server->loop_count; i++) {
        struct loop *loop = server->loops[i];
        overview_detach(loop);
        events_detach(loop);
        wait_detach(loop);
        static_detach(loop);
        auth_cache_free(loop_slot(loop, LOOP_SLOT_AUTH));
        loop_free(loop);
    }
    files_free(server->files);
    limits_free(server->limits);
    follow_free(server->follow);
    buf_free(&server->certificate);
    buf_free(&server->key);
}

static bool start_threads(struct server *server)
{
    for (const struct background *row = backgrounds; row->name != NULL; row++) {
        row->start(server->follow);
    }
    bool good = follow_start(server->follow);
    while (good && server->started < server->loop_count) {
        good = loop_start(server->loops[server->started]);
        server->started += good ? 1 : 0;
    }
    if (!good) {
        log_error("a thread could not be started");
    }
    return good;
}

static void stop_threads(struct server *server)
{
    size_t rows = 0;
    for (size_t i = 0; i < server->started; i++) {
        loop_stop(server->loops[i], (int)config.drain_seconds * 1000);
    }
    for (size_t i = 0; i < server->started; i++) {
        loop_wait_drained(server->loops[i]);
    }
    while (backgrounds[rows].name != NULL) {
        rows++;
    }
    while (rows > 0) {
        backgrounds[--rows].stop();
    }
    follow_stop(server->follow);
    for (size_t i = 0; i < server->started; i++) {
        loop_join(server->loops[i]);
    }
}

/* The signals that stop the server are taken by this thread alone. */
static void block_signals(sigset_t *ret_signals)
{
    (void)signal(SIGPIPE, SIG_IGN);
    (void)sigemptyset(ret_signals);
    (void)sigaddset(ret_signals, SIGTERM);
    (void)sigaddset(ret_signals, SIGINT);
    (void)pthread_sigmask(SIG_BLOCK, ret_signals, NULL);
}

static const char *shown_url(const struct server *server)
{
    static char url[300];
    const char *scheme = server->certificate.ptr != NULL ? "https" : "http";
    const char *colon = strrchr(config.listen, ':');
    int host_len = colon == NULL ? 0 : (int)(colon - config.listen);
    (void)snprintf(url, sizeof(url), "%s://%.*s:%d", scheme, host_len, config.listen,
                   loop_port(server->loops[0]));
    return config.public_url[0] != '\0' ? config.public_url : url;
}

int serve_run(void)
{
    struct server server = {0};
    sigset_t signals;
    int received = 0;
    block_signals(&signals);
    serve_setup_database();
    if (!build(&server)) {
        destroy(&server);
        return 1;
    }
    bool good = start_threads(&server);
    if (good) {
        log_info("serving at %s with %zu event loops", shown_url(&server), server.loop_count);
        (void)sigwait(&signals, &received);
        log_info("stopping: signal %s", received == SIGINT ? "SIGINT" : "SIGTERM");
    }
    stop_threads(&server);
    destroy(&server);
    log_info("stopped");
    return good ? 0 : 1;
}
