/* Which nodes have commands to fetch: a sorted array, read anew when the follower says so. */
#include "server/commands.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/encode.h"
#include "base/log.h"
#include "db/db.h"
#include "server/follow.h"

#define PERIOD_S 10
#define RETRY_S 1

struct commands {
    int64_t interval_seconds;
    struct db_conn *conn;
    pthread_t thread;
    bool started;
    atomic_size_t count; /* of nodes: read without the lock, since nearly always 0 */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool moved;
    bool stopping;
    struct uuid *nodes; /* sorted */
    struct buf fresh;   /* struct uuid of each org to set the interval of */
    struct buf known;   /* sorted struct uuid: orgs that had their turn; follower's thread */
};

static int compare_ids(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct uuid));
}

struct commands *commands_new(int64_t interval_seconds)
{
    struct commands *commands = calloc(1, sizeof *commands);
    if (commands == NULL) {
        abort();
    }
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&commands->changed, &attr);
    pthread_condattr_destroy(&attr);
    pthread_mutex_init(&commands->lock, NULL);
    commands->interval_seconds = interval_seconds;
    commands->conn = db_conn_new(DB_LOOP);
    commands->moved = true;
    return commands;
}

void commands_free(struct commands *commands)
{
    if (commands == NULL) {
        return;
    }
    db_conn_free(commands->conn);
    pthread_cond_destroy(&commands->changed);
    pthread_mutex_destroy(&commands->lock);
    buf_free(&commands->fresh);
    buf_free(&commands->known);
    free(commands->nodes);
    free(commands);
}

void commands_set(struct commands *commands, struct uuid *nodes, size_t count)
{
    struct uuid *copy = count == 0 ? NULL : calloc(count, sizeof *copy);
    if (count > 0) {
        if (copy == NULL) {
            abort();
        }
        memcpy(copy, nodes, count * sizeof *copy);
        qsort(copy, count, sizeof *copy, compare_ids);
    }
    pthread_mutex_lock(&commands->lock);
    struct uuid *old = commands->nodes;
    commands->nodes = copy;
    atomic_store(&commands->count, count);
    pthread_mutex_unlock(&commands->lock);
    free(old);
}

bool commands_wait_for(struct commands *commands, const struct uuid *node)
{
    if (atomic_load_explicit(&commands->count, memory_order_relaxed) == 0) {
        return false;
    }
    pthread_mutex_lock(&commands->lock);
    bool found =
        commands->nodes != NULL && bsearch(node, commands->nodes, atomic_load(&commands->count),
                                           sizeof *node, compare_ids) != NULL;
    pthread_mutex_unlock(&commands->lock);
    return found;
}

/* ------------------------------------------------------------------------------- the follower */

/* True once for each org. */
static bool is_first_sight(struct commands *commands, const struct uuid *org)
{
    struct uuid *known = (struct uuid *)(void *)commands->known.ptr;
    size_t count = commands->known.len / sizeof *known;
    if (count > 0 && bsearch(org, known, count, sizeof *known, compare_ids) != NULL) {
        return false;
    }
    buf_add(&commands->known, org, sizeof *org);
    qsort(commands->known.ptr, count + 1, sizeof *known, compare_ids);
    return true;
}

static void on_change(void *ctx, const struct follow_change *changes, size_t count, bool auth_moved)
{
    struct commands *commands = ctx;
    (void)auth_moved;
    pthread_mutex_lock(&commands->lock);
    for (size_t i = 0; i < count; i++) {
        commands->moved = commands->moved || changes[i].commands;
        if (changes[i].commands && is_first_sight(commands, &changes[i].head.org)) {
            buf_add(&commands->fresh, &changes[i].head.org, sizeof(struct uuid));
        }
    }
    if (commands->moved) {
        pthread_cond_signal(&commands->changed);
    }
    pthread_mutex_unlock(&commands->lock);
}

void commands_follow(struct commands *commands, struct follow *follow)
{
    follow_subscribe(follow, on_change, commands);
}

/* ------------------------------------------------------------------------------- the thread */

static bool read_waiting(struct commands *commands)
{
    const struct db_args none = {0};
    struct db_rows *rows = NULL;
    if (db_exec(commands->conn, SQL_AGENT_COMMANDS_WAITING, NULL, &none, &rows) != ERR_NONE) {
        return false;
    }
    size_t count = (size_t)db_rows_count(rows);
    struct uuid *nodes = calloc(count + 1, sizeof *nodes);
    if (nodes == NULL) {
        abort();
    }
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        kept += db_uuid(rows, (int)i, 0, &nodes[kept]) ? 1 : 0;
    }
    commands_set(commands, nodes, kept);
    free(nodes);
    db_rows_free(rows);
    return true;
}

static bool take_fresh(struct commands *commands, struct uuid *ret_org)
{
    pthread_mutex_lock(&commands->lock);
    bool taken = commands->fresh.len > 0;
    if (taken) {
        commands->fresh.len -= sizeof *ret_org;
        memcpy(ret_org, commands->fresh.ptr + commands->fresh.len, sizeof *ret_org);
    }
    pthread_mutex_unlock(&commands->lock);
    return taken;
}

static bool set_intervals(struct commands *commands)
{
    char seconds[24];
    struct db_args args = {0};
    struct uuid org;
    (void)snprintf(seconds, sizeof seconds, "%lld", (long long)commands->interval_seconds);
    db_arg(&args, seconds);
    while (take_fresh(commands, &org)) {
        if (db_exec(commands->conn, SQL_AGENT_INTERVAL_SET, &org, &args, NULL) != ERR_NONE) {
            pthread_mutex_lock(&commands->lock);
            buf_add(&commands->fresh, &org, sizeof org);
            pthread_mutex_unlock(&commands->lock);
            return false;
        }
    }
    return true;
}

/* False when the thread is to end. */
static bool wait_for_change(struct commands *commands, int seconds)
{
    struct timespec deadline;
    clock_gettime(CLOCK_MONOTONIC, &deadline);
    deadline.tv_sec += seconds;
    pthread_mutex_lock(&commands->lock);
    int late = 0;
    while (!commands->moved && !commands->stopping && late == 0) {
        late = pthread_cond_timedwait(&commands->changed, &commands->lock, &deadline);
    }
    commands->moved = false;
    bool goes_on = !commands->stopping;
    pthread_mutex_unlock(&commands->lock);
    return goes_on;
}

static void *run_commands(void *arg)
{
    struct commands *commands = arg;
    int wait_s = PERIOD_S;
    while (wait_for_change(commands, wait_s)) {
        bool good = read_waiting(commands) && set_intervals(commands);
        if (!good) {
            log_warning("waiting commands cannot be read: %s", db_conn_error(commands->conn));
        }
        wait_s = good ? PERIOD_S : RETRY_S;
    }
    return NULL;
}

bool commands_start(struct commands *commands)
{
    commands->started = pthread_create(&commands->thread, NULL, run_commands, commands) == 0;
    if (commands->started) {
        (void)pthread_setname_np(commands->thread, "commands");
    }
    return commands->started;
}

void commands_stop(struct commands *commands)
{
    if (!commands->started) {
        return;
    }
    pthread_mutex_lock(&commands->lock);
    commands->stopping = true;
    pthread_cond_signal(&commands->changed);
    pthread_mutex_unlock(&commands->lock);
    (void)pthread_join(commands->thread, NULL);
    commands->started = false;
}

/* ------------------------------------------------------------------------------- one command */

void command_payload(const struct command_order *order, struct buf *out)
{
    struct enc enc;
    enc_init(&enc, out);
    enc_obj(&enc);
    enc_key(&enc, "command_id");
    enc_uuid(&enc, &order->id);
    enc_key(&enc, "org_id");
    enc_uuid(&enc, &order->org);
    enc_key(&enc, "cluster_id");
    enc_uuid(&enc, &order->cluster);
    enc_key(&enc, "node_id");
    enc_uuid(&enc, &order->node);
    enc_key(&enc, "epoch");
    enc_arr(&enc);
    enc_i64(&enc, order->epoch_generation);
    enc_i64(&enc, order->epoch_n);
    enc_arr_end(&enc);
    enc_key(&enc, "action");
    enc_str(&enc, order->action);
    enc_key(&enc, "args");
    enc_raw(&enc, order->args);
    enc_key(&enc, "boot_id");
    if (order->boot_id.len > 0) {
        enc_str(&enc, order->boot_id);
    } else {
        enc_null(&enc);
    }
    enc_key(&enc, "nonce");
    enc_str(&enc, order->nonce);
    enc_key(&enc, "repair_no");
    if (order->repair_no > 0) {
        enc_i64(&enc, order->repair_no);
    } else {
        enc_null(&enc);
    }
    enc_obj_end(&enc);
}
