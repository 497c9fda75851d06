/* Handlers of what an org sets about checks; the catalog says what each check has. */
#ifndef SERVER_HANDLERS_CHECK_OVERRIDES_H
#define SERVER_HANDLERS_CHECK_OVERRIDES_H

#include "server/request.h"

enum err check_override_create(struct request *rq);
enum err check_override_update(struct request *rq);
enum err check_override_try(struct request *rq);

#endif
