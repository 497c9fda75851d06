/* `musterd migrate --after-restore`: what is true of a database that came back from a backup. */
#include "server/restore.h"

#include <stdio.h>
#include <unistd.h>

#include "base/log.h"
#include "db/db.h"
#include "server/repair/fsm.h"

enum err restore_run(char *error, size_t error_cap)
{
    const struct repair_list from = repair_event_from(REPAIR_ON_RESTORE);
    char actor[64];
    struct db_args none = {0};
    struct db_args repairs = {0};
    struct db_args audit = {0};
    struct db_unit units[] = {
        {.sql = SQL_RESTORE_GENERATION, .args = &none},
        {.sql = SQL_RESTORE_COMMANDS, .args = &none},
        {.sql = SQL_RESTORE_REPAIRS, .args = &repairs},
        {.sql = SQL_RESTORE_AUDIT, .args = &audit},
    };
    (void)snprintf(actor, sizeof(actor), "musterd migrate (uid %u)", (unsigned)getuid());
    db_arg(&repairs, from.text);
    db_arg(&repairs, repair_state_name(repair_event_to(REPAIR_ON_RESTORE)));
    db_arg(&audit, actor);
    struct db_conn *conn = db_conn_new(DB_MIGRATE);
    enum err err = db_exec_all(conn, units, COUNTOF(units));
    if (err != ERR_NONE) {
        (void)snprintf(error, error_cap, "the restored database could not be made ready: %s",
                       db_conn_error(conn));
    } else {
        log_info("restore generation %lld; %lld commands are withdrawn, %lld repairs are unknown",
                 (long long)db_i64(units[0].rows, 0, 0), (long long)db_i64(units[1].rows, 0, 0),
                 (long long)db_i64(units[2].rows, 0, 0));
    }
    for (size_t i = 0; i < COUNTOF(units); i++) {
        db_rows_free(units[i].rows);
    }
    db_conn_free(conn);
    return err;
}
