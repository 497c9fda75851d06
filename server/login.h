/* Logins at issuers in the database: what a token gives, when it is refreshed, how it ends. */
#ifndef SERVER_LOGIN_H
#define SERVER_LOGIN_H

#include "server/idp.h"

/* Seconds until tokens that live so long are refreshed: 60 s before their end, or at three quarters
 * of a short life, and not before 5 s. lifetime_s 0 = not said: an hour. */
int64_t login_refresh_in_s(int64_t lifetime_s);
/* The shorter life of the access and the ID token (exp_s 0 = none). */
int64_t login_lifetime_s(int64_t expires_in_s, int64_t exp_s, int64_t now_s);

/* The id of a person of an org who comes by an issuer for the first time: made of (issuer,
 * subject), so that of two first times at once both make the same. */
void login_person_id(const struct uuid *org, struct str iss, struct str subject,
                     struct uuid *ret_id);

/* PostgreSQL's text of an array of any texts; in the arena. */
const char *login_list_text(struct arena *arena, const struct str_list *list);

/* The body of an audit row. In the arena; reason may be NULL. */
struct login_act {
    const char
        *context; /* JSON object of the request behind it, as bind_actor gives it; NULL = none */
    const char *actor;
    const char *action;
    struct str target; /* id; ptr NULL = none */
    struct str target_name;
    const char *reason;
};
const char *login_audit_body(struct arena *arena, const struct login_act *act);

/* Seals a token for a column of a login; NULL ptr stays NULL. They block. */
#define LOGIN_ID_TOKEN "login.id_token"
#define LOGIN_REFRESH_TOKEN "login.refresh_token"
struct login_column {
    struct uuid org;
    struct uuid login;
    const char *name; /* one of the above */
};
enum err login_seal(struct db_conn *db, const struct login_column *column, struct str token,
                    struct arena *arena, struct str *ret_sealed) MUST_CHECK;
enum err login_unseal(struct db_conn *db, const struct login_column *column, struct str sealed,
                      struct arena *arena, struct str *ret_token) MUST_CHECK;

/* Which logins end: one by its id, else those of an issuer with this sid or subject. */
struct login_end {
    struct uuid org;
    const struct uuid *login; /* NULL = by what follows */
    const struct uuid *issuer;
    struct str sid;     /* ptr NULL = all of the subject */
    struct str subject; /* ptr NULL = only by sid */
    const char *audit;  /* body of the row in each org */
};
/* *ret_ended: how many sessions. */
enum err login_end(struct db_conn *db, const struct login_end *end, struct arena *arena,
                   int64_t *ret_ended) MUST_CHECK;

/*
 * Refreshes one login, on a thread of a pool: new tokens, groups mapped anew. An issuer that
 * refuses, another subject or a token that is not valid end its sessions; an issuer that is away
 * does not: it is tried again, until the sessions end by themselves.
 */
void login_refresh(struct db_conn *db, const struct uuid *org, const struct uuid *login);

#endif
