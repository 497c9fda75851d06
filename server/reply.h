/* A statement's reply row becomes the answer of a request. */
#ifndef SERVER_REPLY_H
#define SERVER_REPLY_H

#include "server/request.h"

/* Takes status, version, next, body and the rest of db_reply from row 0; copies what it keeps. */
enum err reply_apply(struct request *rq, const struct db_rows *rows) MUST_CHECK;
/* The statement did not run: what the caller is told. */
void reply_database_failed(struct request *rq, enum err err);

#endif
