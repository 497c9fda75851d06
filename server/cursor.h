/* Cursors of lists: opaque text that belongs to one list with its filters. */
#ifndef SERVER_CURSOR_H
#define SERVER_CURSOR_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/str.h"

#define CURSOR_KEYS_MAX 512 /* bytes of sort keys: names are at most 253 */

/*
 * `scope` is everything the list depends on besides the place in it (path, filters, sort); it is
 * only hashed. `keys` are the sort keys of the last row, UTF-8. The cursor is base64url of {format
 * version, hash of scope, keys}; it is no secret and no proof: SQL must accept any keys.
 */
struct str cursor_encode(struct arena *arena, struct str scope, struct str keys);
/* False: damaged, of another format version, or of another scope. */
bool cursor_decode(struct arena *arena, struct str scope, struct str cursor,
                   struct str *ret_keys) MUST_CHECK;

#endif
