/* Reports of agents (docs/agent-protocol.md). */
#ifndef SERVER_HANDLERS_REPORT_H
#define SERVER_HANDLERS_REPORT_H

#include "server/request.h"

/* Agents may send so much at once; the decoder bounds what is in it. */
#define AGENT_REPORT_MAX (1u << 20)

enum err agent_report(struct request *rq);

#endif
