/* One value out of a JSON text, by its path. */
#ifndef AGENT_JSON_PATH_H
#define AGENT_JSON_PATH_H

#include "base/json.h"
#include "base/str.h"

/* path: object keys joined by '/'. False when the text is not JSON or has no such value. *ret_raw
 * is the value's text, points into json. */
bool json_path(struct str json, const char *path, struct str *ret_raw) MUST_CHECK;
bool json_path_i64(struct str json, const char *path, int64_t *ret_value) MUST_CHECK;
/* The text between the quotes, without unescaping. */
bool json_path_text(struct str json, const char *path, struct str *ret_text) MUST_CHECK;

#endif
