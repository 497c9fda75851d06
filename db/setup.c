/* The conninfo of each role, and the settings that every connection of ours has. */
#include "db/setup.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static const char *conninfos[4];

/* Time-outs so that a dead peer is noticed in about 5 s: 5000 ms for sent data, keepalives for
 * idle. */
static const struct {
    const char *keyword;
    const char *value;
} defaults[] = {
    {"connect_timeout", "2"},    {"tcp_user_timeout", "5000"},    {"keepalives", "1"},
    {"keepalives_idle", "5"},    {"keepalives_interval", "2"},    {"keepalives_count", "2"},
    {"client_encoding", "UTF8"}, {"application_name", "musterd"},
};

/* What db_rows understands; and a statement whose client is gone ends within a second. */
#define SESSION_OPTIONS                                                             \
    "-c TimeZone=UTC -c DateStyle=ISO -c bytea_output=hex -c extra_float_digits=1 " \
    "-c client_connection_check_interval=1000"

/* The login role of migrations works as the owner. */
#define OWNER_OPTIONS " -c role=muster_owner -c search_path=muster"

#define KEYWORDS_MAX 64

void db_setup(const char *const conninfo[4])
{
    for (size_t i = 0; i < 4; i++) {
        conninfos[i] = conninfo[i];
    }
}

struct keywords {
    const char *names[KEYWORDS_MAX + 1];
    const char *values[KEYWORDS_MAX + 1];
    size_t count;
};

static void add_keyword(struct keywords *keywords, const char *name, const char *value)
{
    if (keywords->count < KEYWORDS_MAX) {
        keywords->names[keywords->count] = name;
        keywords->values[keywords->count] = value;
        keywords->count++;
    }
}

PGconn *setup_connect_start(enum db_role role)
{
    struct keywords keywords = {.count = 0};
    const char *ours = role == DB_MIGRATE ? SESSION_OPTIONS OWNER_OPTIONS : SESSION_OPTIONS;
    char options[1024];
    const char *conninfo = conninfos[role] == NULL ? "" : conninfos[role];
    for (size_t i = 0; i < COUNTOF(defaults); i++) {
        add_keyword(&keywords, defaults[i].keyword, defaults[i].value);
    }
    (void)snprintf(options, sizeof(options), "%s", ours);
    /* A later keyword wins; a text that does not parse is left to libpq, which says why. */
    PQconninfoOption *given = PQconninfoParse(conninfo, NULL);
    for (PQconninfoOption *option = given; option != NULL && option->keyword != NULL; option++) {
        if (option->val != NULL && strcmp(option->keyword, "options") == 0) {
            (void)snprintf(options, sizeof(options), "%s %s", ours, option->val);
        } else if (option->val != NULL) {
            add_keyword(&keywords, option->keyword, option->val);
        }
    }
    if (given == NULL) {
        add_keyword(&keywords, "dbname", conninfo);
    }
    add_keyword(&keywords, "options", options);
    PGconn *pg = PQconnectStartParams(keywords.names, keywords.values, given == NULL);
    PQconninfoFree(given);
    return pg;
}
