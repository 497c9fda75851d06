/* The audit rows of what was refused. */
#ifndef SERVER_REFUSED_H
#define SERVER_REFUSED_H

#include "server/request.h"

/*
 * When rq failed and is a change by a known caller that the audit log should know of (no
 * permission, nothing the caller may see, a decision that came too late): queues a row for it.
 * Nobody waits for it, so that a flood of refusals costs what it costs and reads nothing. Loop's
 * thread, once per request, when its answer is known.
 */
void refused_audit(struct request *rq);

#endif
