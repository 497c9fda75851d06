/* What runs beside the event loops: one table, started in this order and stopped in the other. */
#include "server/backgrounds.h"

#include "server/agents.h"
#include "server/issuers.h"
#include "server/loops/loops.h"
#include "server/outbound.h"

const struct background backgrounds[] = {
    {"agents", agents_start, agents_stop, AGENTS_CONNECTIONS},
    {"outbound", outbound_start, outbound_stop, OUTBOUND_CONNECTIONS},
    {"issuers", issuers_start, issuers_stop, ISSUERS_CONNECTIONS},
    {"loops", loops_start, loops_stop, LOOPS_COUNT},
    {NULL, NULL, NULL, 0},
};
