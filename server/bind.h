/* The arguments of a route's statement out of its request, as enum route_arg orders them. */
#ifndef SERVER_BIND_H
#define SERVER_BIND_H

#include "db/db.h"
#include "server/request.h"

struct bind_page {
    int64_t limit;
    struct str keys; /* ptr NULL = first page */
};

/* Path ids first, then what route->args names. The org is given to the statement beside them. */
void bind_route_args(struct request *rq, const struct bind_page *page, struct db_args *args);
/* For handlers that build their own: actor's name and context JSON (what ARG_ACTOR adds). */
void bind_actor(struct request *rq, struct db_args *args);
/* For a session: the address, and what the browser says it is (printable ASCII, 255 at most). */
void bind_browser(struct request *rq, struct db_args *args);
/* Idempotency key or NULL, then the fingerprint or NULL (what ARG_KEY adds). */
void bind_key(struct request *rq, struct db_args *args);
/* A text[]. */
void bind_list(struct db_args *args, struct arena *arena, const struct str_list *list);
/* Each field of a decoded struct, in table order (what ARG_BODY and ARG_QUERY add). */
void bind_fields(struct request *rq, const struct field *fields, const void *in,
                 struct db_args *args);

#endif
