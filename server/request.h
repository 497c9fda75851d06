/* A request, as handlers see it: arena, caller, decoded input, and the reply to come. */
#ifndef SERVER_REQUEST_H
#define SERVER_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/decode.h"
#include "base/err.h"
#include "base/str.h"
#include "base/uuid.h"
#include "db/db.h"

#define REQUEST_ARENA_CAP (16u << 20) /* above every body and answer cap; two checks of tokens */

/* Permissions: bits; roles -> bits in server/perms.c. PERM_PUBLIC must be written in a route. */
/* X(symbol, name, what one may do with it). platform is for people, agent for nodes: no role has
 * them. */
/* clang-format off */
#define PERM_TABLE(X) \
    X(PERM_SESSION, "session", "Sign in, see who you are, and end your own sessions.") \
    X(PERM_CLUSTER_READ, "cluster.read", "See clusters, nodes, incidents, repairs and events.") \
    X(PERM_CLUSTER_WRITE, "cluster.write", "Add and change projects, clusters, checks and repair policies, and close breakers.") \
    X(PERM_NODE_WRITE, "node.write", "Add, cordon, pause and change nodes and their parts.") \
    X(PERM_INCIDENT_WRITE, "incident.write", "Report, annotate and close incidents.") \
    X(PERM_REPAIR_REQUEST, "repair.request", "Ask for repairs.") \
    X(PERM_REPAIR_DECIDE, "repair.decide", "Approve, reject, cancel and settle repairs, and stop all of them.") \
    X(PERM_TOKEN_WRITE, "token.write", "Make and revoke service tokens, join tokens and the keys of agents.") \
    X(PERM_ORG_WRITE, "org.write", "Change the settings of the organization.") \
    X(PERM_AUDIT_READ, "audit.read", "Read and export the audit log.") \
    X(PERM_MEMBER_WRITE, "member.write", "See who has which role, give roles and take them away.") \
    X(PERM_ISSUER_READ, "issuer.read", "See identity providers and test tokens.") \
    X(PERM_ISSUER_WRITE, "issuer.write", "Set up, change and remove identity providers.") \
    X(PERM_WEBHOOK_WRITE, "webhook.write", "Set up, try and remove webhooks.") \
    X(PERM_SCRIPT_WRITE, "script.write", "Write checks that run on nodes.") \
    X(PERM_PLATFORM, "platform", "Make, list, suspend and resume organizations, and stop all repairs everywhere.") \
    X(PERM_AGENT, "agent", "Report for one node and carry out its orders.")
/* clang-format on */
enum perm_bit {
#define PERM_BIT(sym, name, words) sym##_BIT,
    PERM_TABLE(PERM_BIT)
#undef PERM_BIT
        PERM_COUNT
};
enum perm {
    PERM_PUBLIC = 0,
#define PERM_VALUE(sym, name, words) sym = 1 << sym##_BIT,
    PERM_TABLE(PERM_VALUE)
#undef PERM_VALUE
};

enum caller_kind { CALLER_NONE, CALLER_SESSION, CALLER_SERVICE, CALLER_AGENT, CALLER_TOKEN };

struct caller {
    enum caller_kind kind;
    struct uuid org;
    struct uuid credential_id;
    struct uuid subject_id; /* person, token or node */
    struct str issuer;      /* CALLER_TOKEN: iss and sub of the issuer's token */
    struct str subject;
    struct str name;   /* shown as actor: person's name, token's name */
    unsigned perms;    /* enum perm bits */
    unsigned roles;    /* enum role bits, server/perms.h */
    struct str grants; /* roles in parts of the org, as auth_lookup gives them; may be empty */
    bool platform_admin;
    bool suspended;            /* the org is: only ROUTE_SUSPENDED is open to people and tokens */
    struct str suspend_reason; /* as the platform's administrator gave it */
    struct uuid node_id;       /* agents */
    struct uuid cluster_id;    /* agents */
    int64_t expires_us;
};

/* The person behind it; NULL for tokens of services and nodes. */
const struct uuid *caller_person(const struct caller *caller);

#define REQUEST_PATH_IDS 3

struct route;
struct stream;

struct request {
    struct arena *arena;
    const struct route *route;
    void *loop; /* struct loop of server/loop.h */
    struct caller caller;
    char id[UUID_TEXT_LEN + 1]; /* X-Request-Id */
    struct str method;
    struct str path; /* raw, without query */
    struct str query;
    struct str address; /* client's, by trusted_proxies */
    bool bearer;        /* the credential came in the Authorization header */
    struct str cookies; /* raw headers, ptr NULL = absent; for signing in only */
    struct str user_agent;
    struct str hook_id; /* Standard Webhooks' headers, raw; for call-backs only */
    struct str hook_at;
    struct str hook_signature;
    bool secure;            /* TLS here, or a trusted proxy says https: decides the cookie's name */
    const char *scope;      /* clusters and projects that the caller may do this to; NULL = all */
    uint8_t token_hash[32]; /* SHA-256 of the credential, when caller.kind is not CALLER_NONE */
    struct str body;
    struct uuid path_ids[REQUEST_PATH_IDS];
    const void *in;       /* decoded body (route->body), in the arena */
    const void *params;   /* decoded query (route->query) */
    int64_t page_limit;   /* ARG_PAGE with a handler: 1 to 200 */
    struct str page_keys; /* ARG_PAGE with a handler: what `next` was; ptr NULL = first page */
    struct decode_errors errors;
    struct str if_match;        /* strong version digits; ptr NULL = absent */
    struct str if_none_match;   /* raw header */
    struct str idempotency_key; /* ptr NULL = absent */
    uint8_t fingerprint[32];    /* SHA-256 of method, path and body */
    int wait_seconds;           /* Prefer: wait=n */
    bool dry_run;

    /* the answer; set by fail() or by the reply_* calls, sent by respond.c */
    enum err err;
    const char *detail;        /* sentence for the caller */
    const char *reason;        /* why an issuer's token was refused, a code; NULL = none */
    struct str conflict_state; /* 409: the present state */
    int status;
    int64_t version;          /* ETag; -1 = none */
    struct str weak_etag;     /* lists */
    struct str next;          /* cursor payload */
    struct str answer;        /* body */
    const char *attachment;   /* the name of a file to save; NULL = shown */
    const char *content_type; /* NULL = application/json */
    struct str location;
    struct str set_cookie; /* several: separated by line feeds */
    int retry_after_s;     /* -1 = none */
    bool replayed;
    bool suspended; /* waits for the database or a writer */
};

/* The caller's sentence; returns err so that `return fail(...)` reads well. */
enum err fail(struct request *rq, enum err err, const char *format, ...) PRINTF_LIKE(3, 4);
/* For the log only; the caller sees the kind's title. */
enum err fail_log(struct request *rq, enum err err, const char *format, ...) PRINTF_LIKE(3, 4);

/*
 * Handlers. A route with `sql` and no handler runs its statement with: $1 org, path ids in order,
 * then what route->args names. A handler either finishes (sets status and answer, returns 0), fails
 * (returns fail()), or starts a call with request_query and returns 0: the request is suspended and
 * `then` is called with the rows on the same thread. When `then` is NULL the reply row is the
 * answer.
 */
typedef enum err request_handler(struct request *rq);
typedef enum err request_then(struct request *rq, const struct db_rows *rows);
enum err request_query(struct request *rq, enum sql_id sql, bool verb, const struct db_args *args,
                       request_then *then) MUST_CHECK;
/* The same with another org than the caller's (sign-in, enrolment, creating an org); NULL = global.
 */
enum err request_query_as(struct request *rq, const struct uuid *org, enum sql_id sql, bool verb,
                          const struct db_args *args, request_then *then) MUST_CHECK;

void reply_json(struct request *rq, int status, struct str body); /* body in the arena or static */

/*
 * For handlers that wait for something else than the database (a writer, a job); loop's thread
 * only. request_suspend, hand the request over, return 0; later, on the loop's thread (loop_post),
 * set the answer by reply_json or fail and call request_resume. Every suspended request must be
 * resumed: the client's departure is not seen before that.
 */
void request_suspend(struct request *rq);
void request_resume(struct request *rq);
/* True once the server is stopping: answer now, do not wait. */
bool request_stopping(const struct request *rq);

/* ------------------------------------------------------------------ the table of routes (routes.c)
 */
/*
 * What follows $1 org and the path ids in a route's statement, in the order of the bits. Text
 * forms: numbers in decimal, booleans true/false, instants RFC 3339, lists as PostgreSQL arrays
 * ({a,b}), absent or null = NULL.
 */
enum route_arg {
    ARG_IF_MATCH = 1 << 0, /* text of the version or NULL */
    ARG_KEY = 1 << 1,      /* idempotency key or NULL, then fingerprint (bytea) */
    ARG_ACTOR = 1 << 2,    /* actor name, then request context JSON for the audit row (credential,
                              address, request_id) */
    ARG_BODY = 1 << 3, /* each body field in table order: text, numbers as text, NULL when absent */
    ARG_QUERY = 1 << 4, /* each query field in table order */
    ARG_PAGE = 1 << 5,  /* limit (int), then cursor payload (text or NULL) */
    ARG_ID = 1 << 6,    /* a fresh UUIDv7 for what is created */
    ARG_BODY_PRESENT =
        1 << 7 /* after the body fields: comma list of the fields that were present (PATCH) */
};

struct route {
    const char *method;
    const char *path;      /* "/api/v1/nodes/{node}"; {x} is a UUID unless noted in routes.c */
    const char *operation; /* operationId in api/openapi.yaml */
    unsigned perm;         /* one enum perm value */
    int success;           /* 200, 201, 202 or 204 */
    int sql;               /* enum sql_id, -1 = none */
    unsigned args;         /* enum route_arg */
    const struct field *body;
    size_t body_size;          /* sizeof of the struct the body decodes into */
    const struct field *query; /* without limit and cursor, which ARG_PAGE adds */
    size_t query_size;
    request_handler *handler;
    unsigned flags;  /* enum route_flag */
    size_t body_cap; /* 0 = 64 KiB */
};

enum route_flag {
    ROUTE_IF_MATCH = 1 << 0,      /* required: 428 without */
    ROUTE_KEY = 1 << 1,           /* Idempotency-Key required: 400 without */
    ROUTE_VERB = 1 << 2,          /* runs on the verb connection */
    ROUTE_LIST = 1 << 3,          /* weak ETag, Link */
    ROUTE_RAW_BODY = 1 << 4,      /* the handler reads rq->body itself (agents' reports) */
    ROUTE_NO_STORE_BODY = 1 << 5, /* the answer carries a secret: never stored for replay */
    ROUTE_LENIENT = 1 << 6,       /* /agent/v1: unknown fields are ignored */
    ROUTE_WEAK = 1 << 7,       /* `version` is a weak ETag, as for lists, but there are no pages */
    ROUTE_COMPRESS = 1 << 8,   /* br or gzip when accepted and the body is over 4 KiB */
    ROUTE_DECISION = 1 << 9,   /* a person decides: also what fails is audited */
    ROUTE_SIGN_IN = 1 << 11,   /* limited by address: whoever asks is nobody yet */
    ROUTE_JOIN = 1 << 12,      /* the same for agents, with a limit of their own */
    ROUTE_RAW_QUERY = 1 << 13, /* the handler reads rq->query itself (issuers add to it) */
    ROUTE_LOGOUT = 1 << 15,    /* limited by address and the issuer of the path */
    ROUTE_SUSPENDED = 1 << 14, /* open also to callers of a suspended org */
    ROUTE_ORG = 1 << 10        /* about the org as a whole: a role in a part of it does not help */
};

/* HEAD is served by GET rows. */
enum method_bit {
    METHOD_GET = 1 << 0,
    METHOD_POST = 1 << 1,
    METHOD_PUT = 1 << 2,
    METHOD_PATCH = 1 << 3,
    METHOD_DELETE = 1 << 4
};

extern const struct route routes[];
extern const size_t routes_count;
/*
 * The row for a method and path; fills ids. {slug} matches one segment of [a-z0-9-], every other
 * {x} a UUID (another text names nothing: NULL). When only the method is wrong: NULL, and
 * *ret_allow has the enum method_bit bits of the methods that exist; else *ret_allow is 0.
 */
const struct route *route_find(struct str method, struct str path,
                               struct uuid ids[REQUEST_PATH_IDS], unsigned *ret_allow);

#endif
