/* Printing lists as aligned columns. */
#ifndef CLI_TABLE_H
#define CLI_TABLE_H

#include <jansson.h>

struct column {
    const char *title;
    const char *field; /* "a.b" looks into objects */
};

/* columns end with a NULL title. Empty lists say so. */
void table_print(const json_t *items, const struct column *columns, const char *empty);
/* "field  value" lines of one object. */
void table_print_one(const json_t *item, const struct column *columns);

#endif
