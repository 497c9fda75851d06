/* One value out of a JSON text, by its path. */
#include "agent/json_path.h"

/* The value of one key of an object. */
static bool find_key(struct str json, struct str wanted, struct str *ret_raw)
{
    struct json_reader reader;
    enum json_type type;
    struct str key;

    json_open(&reader, json);
    if (json_next(&reader, NULL) != JSON_OBJ) {
        return false;
    }
    while ((type = json_next(&reader, &key)) != JSON_END) {
        if (type == JSON_ERROR) {
            return false;
        }
        if (str_eq(key, wanted)) {
            return json_get_raw(&reader, ret_raw);
        }
        if (!json_skip(&reader)) {
            return false;
        }
    }
    return false;
}

bool json_path(struct str json, const char *path, struct str *ret_raw)
{
    struct str rest = str_of(path);
    struct str part;

    while (str_split(&rest, '/', &part)) {
        if (!find_key(json, part, &json)) {
            return false;
        }
    }
    *ret_raw = json;
    return true;
}

bool json_path_i64(struct str json, const char *path, int64_t *ret_value)
{
    struct str raw;

    return json_path(json, path, &raw) && str_parse_i64(raw, INT64_MIN, INT64_MAX, ret_value);
}

bool json_path_text(struct str json, const char *path, struct str *ret_text)
{
    struct str raw;

    if (!json_path(json, path, &raw) || raw.len < 2 || raw.ptr[0] != '"') {
        return false;
    }
    *ret_text = (struct str){raw.ptr + 1, raw.len - 2};
    return true;
}
