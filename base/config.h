/* Configuration by one table: file, then environment, then options; an unknown key refuses. */
#ifndef BASE_CONFIG_H
#define BASE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum config_type {
    CONFIG_STR,    /* const char * */
    CONFIG_I64,    /* int64_t with min and max */
    CONFIG_BOOL,   /* bool: true false yes no on off 1 0 */
    CONFIG_SECRET, /* const char *, masked when shown */
};

struct config_key {
    const char *name; /* lower_snake; MUSTER_NAME in the environment, --name or --na-me as option */
    enum config_type type;
    void *value;
    const char *fallback; /* text as in the file; NULL = NULL, 0 or false */
    int64_t min;          /* of the value; of a text's bytes when max > 0 */
    int64_t max;
    const char *help; /* one sentence with unit */
};

/*
 * Reads `file` (`key = value`, # comments; may be absent unless must_exist), then the environment
 * (every MUSTER_* variable must be known, except the names in `foreign`, NULL-terminated), then
 * options "--key value" and "--key=value"; a bool option may stand alone and then means true. In
 * the file a value is the trimmed rest of its line, # included, and a key may stand once. On a
 * refusal returns false with a sentence that names the key and where it stood, and all values are
 * as they were. Strings live until exit. argv after a bare "--" is left alone; other words that do
 * not begin with "--" are refused.
 */
struct config_source {
    const char *file;
    bool must_exist;
    int argc;
    char **argv; /* options only: without program and subcommand */
    const char *const *foreign;
};
bool config_load(const struct config_key *keys, size_t count, const struct config_source *source,
                 char *error, size_t error_cap) MUST_CHECK;
/* "key = value" lines, secrets as ******, with the help as comment. */
void config_show(const struct config_key *keys, size_t count, struct buf *out);

#endif
