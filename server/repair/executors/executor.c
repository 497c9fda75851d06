/* The table of executors. */
#include "server/repair/executors/executor.h"

static const struct executor *const executors[] = {
    &executor_agent,
};

const struct executor *executor_for(enum repair_action action)
{
    for (size_t i = 0; i < COUNTOF(executors); i++) {
        if ((executors[i]->actions & (1u << action)) != 0) {
            return executors[i];
        }
    }
    return NULL;
}

unsigned executor_actions(void)
{
    unsigned mask = 0;

    for (size_t i = 0; i < COUNTOF(executors); i++) {
        mask |= executors[i]->actions;
    }
    return mask;
}
