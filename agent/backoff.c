/* How long an agent waits after a report that failed. */
#include "agent/backoff.h"

#define RETRY_AFTER_MAX_S 3600

int64_t backoff_us(unsigned failures, double share, double interval_s, long retry_after_s)
{
    double cap_s = (double)(INT64_C(1) << (failures < 6 ? failures : 6));
    double wait_s;

    if (cap_s < interval_s) {
        cap_s = interval_s;
    }
    if (cap_s > BACKOFF_MAX_S) {
        cap_s = BACKOFF_MAX_S;
    }
    wait_s = share * cap_s;
    if (retry_after_s > 0) {
        wait_s += (double)(retry_after_s < RETRY_AFTER_MAX_S ? retry_after_s : RETRY_AFTER_MAX_S);
    }
    return (int64_t)(wait_s * 1e6);
}
