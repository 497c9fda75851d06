/* What runs beside the event loops: one table. */
#ifndef SERVER_BACKGROUNDS_H
#define SERVER_BACKGROUNDS_H

#include <stddef.h>

struct follow;

struct background {
    const char *name;
    /* After config_read, db_setup and follow_new, before the event loops start. */
    void (*start)(struct follow *follow);
    /* After the event loops have drained; must answer every request it still holds, and wait for
     * its threads. */
    void (*stop)(void);
    int connections; /* to the database, at most */
};

extern const struct background backgrounds[]; /* ends with a row whose name is NULL */

#endif
