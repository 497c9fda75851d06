/* Values of the CEL subset: made from JSON, compared, counted against the budget. */
#include <math.h>
#include <string.h>

#include "oidc/cel_internal.h"
#include "oidc/jose.h"

#define JSON_DEPTH 64

struct cel_value cel_text(struct str text)
{
    return (struct cel_value){.kind = CEL_STRING, .text = text};
}

struct cel_value cel_bool(bool flag)
{
    return (struct cel_value){.kind = CEL_BOOL, .flag = flag};
}

bool cel_fail(struct cel_run *run, const char *error)
{
    run->error = error;
    return false;
}

bool cel_step(struct cel_run *run, size_t steps)
{
    if (steps >= run->steps_left) {
        run->steps_left = 0;
        return cel_fail(run, "the expression takes too many steps");
    }
    run->steps_left -= steps;
    return true;
}

void *cel_alloc(struct cel_run *run, size_t count, size_t size)
{
    /* Counts come from texts of at most a few MiB, sizes are of our structs: no overflow. */
    size_t bytes = (count * size + 15) / 16 * 16;
    if (bytes > run->bytes_left) {
        run->bytes_left = 0;
        (void)cel_fail(run, "the expression takes too much memory");
        return NULL;
    }
    run->bytes_left -= bytes;
    return arena_alloc(run->arena, bytes > 0 ? bytes : 16);
}

void cel_run_init(struct cel_run *run, struct arena *arena)
{
    *run =
        (struct cel_run){.arena = arena, .steps_left = CEL_STEPS_MAX, .bytes_left = CEL_BYTES_MAX};
}

/* ------------------------------------------------------------------ values */
static bool copy_list(struct cel_run *run, const json_t *json, struct cel_value *ret)
{
    size_t count = json_array_size(json);
    struct cel_value *items = cel_alloc(run, count, sizeof(*items));
    for (size_t i = 0; items != NULL && i < count; i++) {
        if (!cel_from_json(run, json_array_get(json, i), &items[i])) {
            return false;
        }
    }
    *ret = (struct cel_value){.kind = CEL_LIST, .list = {items, count}};
    return items != NULL;
}

static bool copy_map(struct cel_run *run, const json_t *json, struct cel_value *ret)
{
    size_t count = json_object_size(json);
    struct cel_value *items = cel_alloc(run, 2 * count, sizeof(*items));
    size_t i = 0;
    const char *key;
    json_t *value;
    if (items == NULL) {
        return false;
    }
    json_object_foreach ((json_t *)json, key, value) {
        items[i] = cel_text(str_of(key));
        if (!cel_from_json(run, value, &items[i + 1])) {
            return false;
        }
        i += 2;
    }
    *ret = (struct cel_value){.kind = CEL_MAP, .list = {items, count}};
    return true;
}

bool cel_from_json(struct cel_run *run, const json_t *json, struct cel_value *ret)
{
    *ret = (struct cel_value){.kind = CEL_NULL};
    if (json_is_array(json) || json_is_object(json)) {
        if (run->depth == JSON_DEPTH) {
            return cel_fail(run, "the claims are nested too deep for an expression");
        }
        run->depth++;
        bool good = json_is_array(json) ? copy_list(run, json, ret) : copy_map(run, json, ret);
        run->depth--;
        return good;
    }
    if (json_is_string(json)) {
        *ret = cel_text(jose_text(json));
    } else if (json_is_boolean(json)) {
        *ret = cel_bool(json_is_true(json));
    } else if (json_is_number(json)) {
        double real = json_number_value(json);
        /* Beyond 2^53 a double is no longer exact. */
        bool whole = floor(real) == real && fabs(real) <= 9007199254740992.0;
        *ret = whole ? (struct cel_value){.kind = CEL_INT, .number = (int64_t)real}
                     : (struct cel_value){.kind = CEL_DOUBLE, .real = real};
    }
    return true;
}

bool cel_is_number(const struct cel_value *value)
{
    return value->kind == CEL_INT || value->kind == CEL_DOUBLE;
}

double cel_real(const struct cel_value *value)
{
    return value->kind == CEL_INT ? (double)value->number : value->real;
}

const struct cel_value *cel_map_find(const struct cel_value *map, struct str key)
{
    for (size_t i = 0; i < map->list.count; i++) {
        const struct cel_value *item = &map->list.items[2 * i];
        if (item->kind == CEL_STRING && str_eq(item->text, key)) {
            return item + 1;
        }
    }
    return NULL;
}

static bool lists_equal(struct cel_run *run, const struct cel_value *a, const struct cel_value *b)
{
    for (size_t i = 0; i < a->list.count; i++) {
        const struct cel_value *other = &b->list.items[i];
        if (a->kind == CEL_MAP) {
            other = cel_map_find(b, a->list.items[2 * i].text);
        }
        size_t at = a->kind == CEL_MAP ? 2 * i + 1 : i;
        if (other == NULL || !cel_step(run, a->kind == CEL_MAP ? b->list.count / 4 : 0) ||
            !cel_equal(run, &a->list.items[at], other)) {
            return false;
        }
    }
    return true;
}

/* Recursion is bounded: values come from JSON of a token or from an expression's own nodes. */
bool cel_equal(struct cel_run *run, const struct cel_value *a, const struct cel_value *b)
{
    if (!cel_step(run, 1)) {
        return false;
    }
    if (cel_is_number(a) && cel_is_number(b)) {
        return a->kind == CEL_INT && b->kind == CEL_INT ? a->number == b->number
                                                        : cel_real(a) == cel_real(b);
    }
    if (a->kind != b->kind) {
        return false;
    }
    switch (a->kind) {
    case CEL_BOOL:
        return a->flag == b->flag;
    case CEL_STRING:
        return cel_step(run, a->text.len / 64) && str_eq(a->text, b->text);
    case CEL_LIST:
    case CEL_MAP:
        return a->list.count == b->list.count && lists_equal(run, a, b);
    case CEL_OPTIONAL:
        return a->some == NULL || b->some == NULL ? a->some == b->some
                                                  : cel_equal(run, a->some, b->some);
    case CEL_NULL:
        return true;
    case CEL_DYN:
    case CEL_ANY:
    case CEL_INT:
    case CEL_DOUBLE:
    case CEL_USER:
        break;
    }
    return false;
}
