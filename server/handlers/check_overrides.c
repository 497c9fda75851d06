/* Handlers of overrides: their statements judge the body by the catalog's own lists. */
#include "server/handlers/check_overrides.h"

#include "server/bind.h"
#include "server/health/traits.h"

static enum err run(struct request *rq, enum sql_id sql, bool writes)
{
    const struct catalog_arrays *arrays = catalog_arrays();
    struct db_args args = {0};

    bind_route_args(rq, NULL, &args);
    db_arg(&args, arrays->settable);
    db_arg(&args, arrays->acting);
    db_arg(&args, arrays->counting);
    db_arg(&args, arrays->looking);
    return request_query(rq, sql, writes, &args, NULL);
}

enum err check_override_create(struct request *rq)
{
    return run(rq, SQL_CHECK_OVERRIDE_CREATE, true);
}

enum err check_override_update(struct request *rq)
{
    return run(rq, SQL_CHECK_OVERRIDE_UPDATE, true);
}

enum err check_override_try(struct request *rq)
{
    return run(rq, SQL_CHECK_OVERRIDE_TRY, false);
}
