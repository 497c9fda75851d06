/* What checks have to do with each other: families, how far a fault reaches, when it counts, and
 * what of a check can be set. */
#ifndef SERVER_HEALTH_TRAITS_H
#define SERVER_HEALTH_TRAITS_H

#include <stdbool.h>
#include <stddef.h>

#include "server/health/catalog.h"

/* What an incident says about its cause, mild to wide. */
enum catalog_reach {
    CATALOG_CAUSE, /* may be the cause itself */
    CATALOG_ECHO,  /* follows from a cause on the same part */
    CATALOG_NODE,  /* follows from a cause on any part of the node */
};

enum catalog_flag {
    CATALOG_SETTLES = 1 << 0, /* often ends by itself: nothing is proposed before it has settled */
    CATALOG_SHARED = 1 << 1,  /* counts for a common cause though it is no node fault */
    CATALOG_NETWORK = 1 << 2, /* counts for a leaf switch */
    CATALOG_GRACE = 1 << 3,   /* expected while a node boots or its driver is replaced */
    CATALOG_COUNTS = 1 << 4,  /* its incidents count events: a threshold makes sense */
    CATALOG_FIXED = 1 << 5,   /* not a rule: nothing of it can be set */
};

struct catalog_trait {
    const char *check_id; /* of the catalog */
    const char *family;   /* faults of one family on one part have one cause; "*" = follows from any
                             fault of its node; NULL = stands alone */
    enum catalog_reach reach;
    unsigned flags; /* enum catalog_flag */
};

extern const struct catalog_trait catalog_traits[];
extern const size_t catalog_trait_count;

/* Never NULL: a check without a row stands alone. */
const struct catalog_trait *catalog_trait_find(const char *check_id);
/* Its incidents count events, so that a threshold makes sense. */
bool catalog_counts(const struct catalog_check *check);

/* What an agent judges by looks in a row, as agent/rules/states.c has it for most of its codes. */
struct catalog_looks {
    const char *check_id;
    int looks;       /* that must find it before it is told */
    int clear_looks; /* that must not find it before it ends */
    int window_s;    /* what one look sees: the time between two, or that of a rate */
};
extern const struct catalog_looks catalog_looks[];
extern const size_t catalog_looks_count;
/* NULL = not judged so. */
const struct catalog_looks *catalog_looks_find(const char *check_id);

/* The table as statements take it: PostgreSQL array texts, made once, alive for ever. */
struct catalog_arrays {
    const char *checks; /* those with a family, and in the same order */
    const char *families;
    const char *reaches;
    const char *settling; /* check ids by flag */
    const char *shared;
    const char *network;
    const char *grace;
    const char *settable; /* by what an override may set */
    const char *acting;
    const char *counting;
    const char *looking;
};
const struct catalog_arrays *catalog_arrays(void); /* any thread */

#endif
