/*
 * Drives db/ by lines of text, for tests in Python.
 *
 *   exec ROLE SQL ORG ARG...           -> "exec ERR MS ROW..."
 *   unit ROLE SQL:ARG,ARG...  SQL...   -> "unit ERR MS" (one transaction; global statements)
 *   submit ID read|verb SQL ORG KEY ARG... queues a call of the loop
 *   run MS                             -> turns until all calls are done, or MS passed: "done ID
 * ERR MS ROW..." types                              -> "types" and the accessors' values of what
 * the encoders gave migrate | check-version | check-roles (also as the only argument) -> "ERR TEXT"
 *
 * "-" is no org, no key, NULL. ERR is "ok" or a code of base/err.h. Conninfo comes from
 * MUSTER_DATABASE_*.
 */
#include <assert.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "db/db.h"
#include "db/statements.h"

#define WORDS_MAX 32
#define CALLS_MAX 4200

struct words {
    char *at[WORDS_MAX];
    int count;
};

struct job {
    struct db_call call;
    struct arena *arena;
    char id[32];
    char key[64];
};

struct probe {
    struct db_conn *conns[4];
    struct db_loop *loop;
};

static void split_words(char *line, struct words *words)
{
    char *rest = line;
    words->count = 0;
    for (char *word = strsep(&rest, " \n"); word != NULL; word = strsep(&rest, " \n")) {
        if (word[0] != '\0' && words->count < WORDS_MAX) {
            words->at[words->count++] = word;
        }
    }
}

static enum sql_id find_sql(const char *name)
{
    for (int i = 0; i < SQL_COUNT; i++) {
        if (strcmp(statements[i].name, name) == 0) {
            return (enum sql_id)i;
        }
    }
    fprintf(stderr, "no statement %s\n", name);
    exit(2);
}

static enum db_role find_role(const char *name)
{
    static const char *const names[] = {"app", "ingest", "loop", "migrate"};
    for (size_t i = 0; i < COUNTOF(names); i++) {
        if (strcmp(names[i], name) == 0) {
            return (enum db_role)i;
        }
    }
    fprintf(stderr, "no role %s\n", name);
    exit(2);
}

static bool find_org(const char *text, struct uuid *ret_org)
{
    if (strcmp(text, "-") == 0) {
        return false;
    }
    if (!uuid_parse(str_of(text), ret_org)) {
        exit(2);
    }
    return true;
}

static const char *err_name(enum err err)
{
    return err == ERR_NONE ? "ok" : err_info(err)->code;
}

/* Columns are joined by |, rows by a space. */
static void print_rows(const struct db_rows *rows, int cols)
{
    for (int row = 0; row < db_rows_count(rows); row++) {
        for (int col = 0; col < cols; col++) {
            printf("%s%.*s", col == 0 ? " " : "|", STR_FMT(db_text(rows, row, col)));
        }
    }
}

/* The statements of the tests have at most three columns; PostgreSQL's own count is not public in
 * db.h. */
static int count_cols(enum sql_id sql)
{
    const char *name = statements[sql].name;
    bool is_wide = strcmp(name, "probe_org") == 0 || strcmp(name, "probe_projects") == 0;
    bool is_reply = strcmp(name, "probe_conflict") == 0 || strcmp(name, "probe_write") == 0;
    return is_wide ? 3 : is_reply ? 2 : 1;
}

static int64_t since_ms(int64_t start_us)
{
    return (clock_mono_us() - start_us) / 1000;
}

static struct db_conn *conn_of(struct probe *probe, const char *role)
{
    enum db_role number = find_role(role);
    if (probe->conns[number] == NULL) {
        probe->conns[number] = db_conn_new(number);
    }
    return probe->conns[number];
}

static void run_exec(struct probe *probe, const struct words *words)
{
    struct db_conn *conn = conn_of(probe, words->at[1]);
    enum sql_id sql = find_sql(words->at[2]);
    struct uuid org;
    bool has_org = find_org(words->at[3], &org);
    struct db_args args = {.count = 0};
    struct db_rows *rows = NULL;
    int64_t start_us = clock_mono_us();
    for (int i = 4; i < words->count; i++) {
        db_arg(&args, strcmp(words->at[i], "-") == 0 ? NULL : words->at[i]);
    }
    enum err err = db_exec(conn, sql, has_org ? &org : NULL, &args, &rows);
    printf("exec %s %" PRId64, err_name(err), since_ms(start_us));
    if (err == ERR_NONE) {
        print_rows(rows, count_cols(sql));
        db_rows_free(rows);
    } else {
        printf(" %s", db_conn_error(conn));
    }
    printf("\n");
}

static void run_unit(struct probe *probe, const struct words *words)
{
    struct db_conn *conn = conn_of(probe, words->at[1]);
    struct db_unit units[WORDS_MAX] = {0};
    struct db_args args[WORDS_MAX] = {0};
    size_t count = 0;
    for (int i = 2; i < words->count; i++, count++) {
        char *rest = words->at[i];
        units[count].sql = find_sql(strsep(&rest, ":"));
        units[count].args = &args[count];
        for (char *arg = strsep(&rest, ","); arg != NULL; arg = strsep(&rest, ",")) {
            db_arg(&args[count], arg);
        }
    }
    int64_t start_us = clock_mono_us();
    enum err err = db_exec_all(conn, units, count);
    printf("unit %s %" PRId64 "\n", err_name(err), since_ms(start_us));
    for (size_t i = 0; i < count; i++) {
        db_rows_free(units[i].rows);
    }
}

static void end_job(struct db_call *call, enum err err, const struct db_rows *rows)
{
    struct job *job = call->ctx;
    printf("done %s %s %" PRId64, job->id, err_name(err), since_ms(call->queued_us));
    if (err == ERR_NONE) {
        print_rows(rows, count_cols(call->sql));
    } else {
        printf(" %s", call->error);
    }
    printf("\n");
    arena_free(job->arena);
    free(job);
}

static void submit(struct probe *probe, const struct words *words)
{
    struct job *job = calloc(1, sizeof(*job));
    assert(job != NULL && words->count >= 6);
    job->arena = arena_new(1 << 16);
    (void)snprintf(job->id, sizeof(job->id), "%s", words->at[1]);
    (void)snprintf(job->key, sizeof(job->key), "%s", words->at[5]);
    job->call = (struct db_call){
        .sql = find_sql(words->at[3]),
        .verb = strcmp(words->at[2], "verb") == 0,
        .retry_key = strcmp(job->key, "-") == 0 ? NULL : job->key,
        .done = end_job,
        .ctx = job,
    };
    job->call.has_org = find_org(words->at[4], &job->call.org);
    for (int i = 6; i < words->count; i++) {
        db_arg_str(&job->call.args, job->arena, str_of(words->at[i]));
    }
    if (probe->loop == NULL) {
        probe->loop = db_loop_new();
    }
    db_submit(probe->loop, &job->call);
}

static void run_loop(struct probe *probe, const struct words *words)
{
    int64_t ms = 0;
    if (!str_parse_i64(str_of(words->at[1]), 0, 60000, &ms)) {
        exit(2);
    }
    int64_t end_us = clock_mono_us() + ms * 1000;
    if (probe->loop == NULL) {
        probe->loop = db_loop_new();
    }
    while (db_loop_waiting(probe->loop) > 0 && clock_mono_us() < end_us) {
        struct db_poll polls[2];
        struct pollfd fds[2];
        db_loop_polls(probe->loop, polls);
        for (size_t i = 0; i < COUNTOF(fds); i++) {
            fds[i] = (struct pollfd){.fd = polls[i].fd, .events = polls[i].events};
        }
        (void)poll(fds, COUNTOF(fds), db_loop_timeout_ms(probe->loop));
        db_loop_turn(probe->loop);
    }
    printf("run %zu %s\n", db_loop_waiting(probe->loop),
           db_loop_ready(probe->loop) ? "ready" : "not-ready");
}

static void run_types(struct probe *probe)
{
    struct arena *arena = arena_new(1 << 16);
    struct db_args args = {.count = 0};
    struct uuid id = uuid_v7();
    struct uuid back;
    struct db_rows *rows = NULL;
    uint8_t bytes[8];
    int64_t now_us = clock_wall_us();
    db_arg_str(&args, arena, STR("it's \\ \"x\""));
    db_arg_uuid(&args, arena, &id);
    db_arg_i64(&args, arena, INT64_MIN);
    db_arg_bool(&args, true);
    db_arg_bytes(&args, arena, "\0\1\xff", 3);
    db_arg_time(&args, arena, now_us);
    db_arg(&args, "0.1");
    enum err err = db_exec(conn_of(probe, "app"), SQL_PROBE_TYPES, NULL, &args, &rows);
    assert(err == ERR_NONE);
    assert(str_eq_c(db_text(rows, 0, db_rows_col(rows, "a_text")), "it's \\ \"x\""));
    assert(db_uuid(rows, 0, 1, &back) && uuid_eq(&id, &back));
    assert(db_i64(rows, 0, 2) == INT64_MIN && db_bool(rows, 0, 3));
    assert(db_bytes(rows, 0, 4, bytes, sizeof(bytes)) == 3 && memcmp(bytes, "\0\1\xff", 3) == 0);
    assert(db_bytes(rows, 0, 4, bytes, 2) == 0);
    assert(db_time_us(rows, 0, 5) == now_us);
    assert(db_double(rows, 0, 6) > 0.0999 && db_double(rows, 0, 6) < 0.1001);
    db_rows_free(rows);
    arena_reset(arena);
    args.count = 0;
    for (int i = 0; i < 7; i++) {
        db_arg(&args, i == 5 ? "infinity" : NULL);
    }
    err = db_exec(conn_of(probe, "app"), SQL_PROBE_TYPES, NULL, &args, &rows);
    assert(err == ERR_NONE);
    assert(db_is_null(rows, 0, 0) && db_text(rows, 0, 0).len == 0 && db_i64(rows, 0, 2) == 0);
    assert(!db_uuid(rows, 0, 1, &back) && !db_bool(rows, 0, 3));
    assert(db_time_us(rows, 0, 5) == INT64_MAX);
    db_rows_free(rows);
    arena_free(arena);
    printf("types ok\n");
}

static bool run_command(const char *name)
{
    char error[512] = "";
    int applied = 0;
    enum err err;
    if (strcmp(name, "migrate") == 0) {
        err = db_migrate(&applied, error, sizeof(error));
    } else if (strcmp(name, "check-version") == 0) {
        err = db_check_version(error, sizeof(error));
    } else {
        assert(strcmp(name, "check-roles") == 0);
        err = db_check_roles(error, sizeof(error));
    }
    printf("%s %d %s\n", err_name(err), applied, error);
    return err == ERR_NONE;
}

static void run_line(struct probe *probe, const struct words *words)
{
    const char *what = words->at[0];
    if (strcmp(what, "exec") == 0) {
        run_exec(probe, words);
    } else if (strcmp(what, "unit") == 0) {
        run_unit(probe, words);
    } else if (strcmp(what, "submit") == 0) {
        submit(probe, words);
    } else if (strcmp(what, "run") == 0) {
        run_loop(probe, words);
    } else if (strcmp(what, "types") == 0) {
        run_types(probe);
    } else {
        (void)run_command(what);
    }
}

int main(int argc, char **argv)
{
    const char *const conninfo[4] = {
        getenv("MUSTER_DATABASE_APP"), getenv("MUSTER_DATABASE_INGEST"),
        getenv("MUSTER_DATABASE_LOOP"), getenv("MUSTER_DATABASE_MIGRATE")};
    struct probe probe = {.loop = NULL};
    char line[4096];
    db_setup(conninfo);
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc == 2) {
        return run_command(argv[1]) ? 0 : 1;
    }
    while (fgets(line, sizeof(line), stdin) != NULL) {
        struct words words;
        split_words(line, &words);
        if (words.count > 0) {
            run_line(&probe, &words);
        }
    }
    db_loop_free(probe.loop);
    for (size_t i = 0; i < COUNTOF(probe.conns); i++) {
        db_conn_free(probe.conns[i]);
    }
    return 0;
}
