/* Work that blocks: small pools of threads, one a kind of destination, so that none waits for
 * another's. */
#ifndef SERVER_OUTBOUND_H
#define SERVER_OUTBOUND_H

#include <stdbool.h>
#include <stddef.h>

#include "db/db.h"
#include "server/request.h"

struct follow;

/* X(symbol, name, threads, role of their connections): with one hung destination a thread is held
 * for its deadline. */
#define OUTBOUND_TABLE(X)                                                                      \
    X(OUTBOUND_ISSUER, "issuer", 4, DB_APP)                                                    \
    X(OUTBOUND_LOGOUT, "logout", 1, DB_APP) /* what issuers tell is not held up by sign-ins */ \
    X(OUTBOUND_MACHINE, "machine", 4, DB_APP)                                                  \
    X(OUTBOUND_SCHEDULER, "scheduler", 4, DB_LOOP)                                             \
    X(OUTBOUND_WEBHOOK, "webhook", 4, DB_APP)                                                  \
    X(OUTBOUND_TRY, "try", 2, DB_APP) /* a person waits for it: not behind deliveries */       \
    X(OUTBOUND_IRONIC, "ironic", 4, DB_APP)
enum outbound_class {
#define OUTBOUND_ENUM(sym, name, threads, role) sym,
    OUTBOUND_TABLE(OUTBOUND_ENUM)
#undef OUTBOUND_ENUM
        OUTBOUND_COUNT
};
#define OUTBOUND_PLUS(sym, name, threads, role) +threads
#define OUTBOUND_THREADS (0 OUTBOUND_TABLE(OUTBOUND_PLUS))
#define OUTBOUND_CONNECTIONS OUTBOUND_THREADS
#define OUTBOUND_QUEUE_MAX 64 /* waiting in a class; more are refused */
#define OUTBOUND_WAIT_S 5     /* a request that waited longer for a thread is answered 503 */

/*
 * Runs on a thread of the pool while the request is suspended. It may use all of the request
 * (arena, fail, reply_json) and the connection, and nothing of the request's loop. What it
 * returns or left in the request is the answer.
 */
typedef enum err outbound_work(struct request *rq, struct db_conn *db);
/* From a handler or a request_then, on the loop's thread, as its last step. ERR_OVERLOADED when the
 * queue is full, ERR_UNAVAILABLE while the server is stopping. */
enum err outbound_run(struct request *rq, enum outbound_class class,
                      outbound_work *work) MUST_CHECK;

/* Work that nobody waits for; from any thread. False when it was not taken: task is not called. It
 * is called with db NULL when the server stops first: it only frees what it has then. */
typedef void outbound_task(void *arg, struct db_conn *db);
bool outbound_post(enum outbound_class class, outbound_task *task, void *arg) MUST_CHECK;

/* For the table of backgrounds. stop ends what waits, and waits for what runs. */
void outbound_start(struct follow *follow);
void outbound_stop(void);

/* For metrics; any thread. */
struct outbound_status {
    const char *name;
    size_t waiting;
    size_t running;
    uint64_t done;
    uint64_t refused;
};
void outbound_read_status(enum outbound_class class, struct outbound_status *ret_status);

#endif
