/* Handlers of lists whose statement depends on what leads the index: events and incidents. */
#include "server/handlers/lists.h"

#include "server/bind.h"
#include "server/fields.h"

static enum err list_events(struct request *rq, bool in_cluster, struct db_args *args)
{
    const struct event_query *query = rq->params;
    enum sql_id sql = SQL_EVENT_LIST_ORG;
    if (query->has_after) {
        sql = SQL_EVENT_LIST_AFTER;
    } else if (query->has_node_id) {
        sql = SQL_EVENT_LIST_NODE;
    } else if (in_cluster || query->has_cluster_id) {
        sql = SQL_EVENT_LIST_CLUSTER;
    }
    db_arg_i64(args, rq->arena, rq->page_limit);
    db_arg_str(args, rq->arena, rq->page_keys);
    return request_query(rq, sql, false, args, NULL);
}

enum err event_list(struct request *rq)
{
    struct db_args args = {0};
    bind_fields(rq, event_query, rq->params, &args);
    return list_events(rq, false, &args);
}

enum err cluster_event_list(struct request *rq)
{
    struct db_args args = {0};
    db_arg_uuid(&args, rq->arena, &rq->path_ids[0]);
    bind_fields(rq, cluster_event_query, rq->params, &args);
    return list_events(rq, true, &args);
}

enum err incident_list(struct request *rq)
{
    const struct incident_query *query = rq->params;
    struct db_args args = {0};
    enum sql_id sql = SQL_INCIDENT_LIST_ORG;
    if (query->has_node_id) {
        sql = SQL_INCIDENT_LIST_NODE;
    } else if (query->has_cluster_id) {
        sql = SQL_INCIDENT_LIST_CLUSTER;
    }
    bind_fields(rq, incident_query, query, &args);
    db_arg_i64(&args, rq->arena, rq->page_limit);
    db_arg_str(&args, rq->arena, rq->page_keys);
    return request_query(rq, sql, false, &args, NULL);
}
