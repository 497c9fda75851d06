/* Figures and reports over repairs: a span in, one statement, its text out. */
#include "server/handlers/repair_report.h"

#include "server/repair/fsm.h"
#include "server/reply.h"
#include "server/span.h"

static enum err query(struct request *rq, enum sql_id sql, request_then *then)
{
    struct db_args args = {0};
    struct span span;
    enum err err = span_read(rq, rq->params, &span);

    if (err != ERR_NONE) {
        return err;
    }
    db_arg_uuid(&args, rq->arena, &rq->path_ids[0]);
    span_bind(rq, &span, &args);
    db_arg(&args, repair_state_name(REPAIR_SUCCEEDED));
    db_arg(&args, repair_state_name(REPAIR_FAILED));
    return request_query(rq, sql, false, &args, then);
}

enum err repair_statistics(struct request *rq)
{
    return query(rq, SQL_REPAIR_STATISTICS, NULL);
}

static enum err on_report(struct request *rq, const struct db_rows *rows)
{
    enum err err = reply_apply(rq, rows);

    if (err == ERR_NONE && rq->err == ERR_NONE) {
        rq->content_type = "text/markdown; charset=utf-8";
    }
    return err;
}

enum err incident_report(struct request *rq)
{
    return query(rq, SQL_INCIDENT_REPORT, on_report);
}
