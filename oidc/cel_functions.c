/* The functions of the CEL subset, one row an overload. */
#include <stdio.h>
#include <string.h>

#include "oidc/cel_internal.h"

static const struct cel_type optional_dyn = {CEL_OPTIONAL, &cel_type_dyn};
static const struct cel_type list_dyn = {CEL_LIST, &cel_type_dyn};

static bool give_bool(struct cel_value *ret, bool flag)
{
    *ret = (struct cel_value){.kind = CEL_BOOL, .flag = flag};
    return true;
}

static bool give_int(struct cel_value *ret, int64_t number)
{
    *ret = (struct cel_value){.kind = CEL_INT, .number = number};
    return true;
}

/* Claims have no type before they run, so each function looks again. */
static bool want(struct cel_run *run, const struct cel_value *args, size_t count,
                 enum cel_kind kind)
{
    for (size_t i = 0; i < count; i++) {
        if (args[i].kind != kind) {
            return cel_fail(run, "a function got a value of another type");
        }
    }
    return true;
}

/* ------------------------------------------------------------------ text */
static bool run_contains(struct cel_run *run, const struct cel_value *args, size_t count,
                         struct cel_value *ret)
{
    return want(run, args, count, CEL_STRING) && cel_step(run, args[0].text.len / 64) &&
           give_bool(ret, args[1].text.len == 0 || str_find(args[0].text, args[1].text, 0) >= 0);
}

static bool run_starts(struct cel_run *run, const struct cel_value *args, size_t count,
                       struct cel_value *ret)
{
    return want(run, args, count, CEL_STRING) &&
           give_bool(ret, str_starts(args[0].text, args[1].text));
}

static bool run_ends(struct cel_run *run, const struct cel_value *args, size_t count,
                     struct cel_value *ret)
{
    return want(run, args, count, CEL_STRING) &&
           give_bool(ret, str_ends(args[0].text, args[1].text));
}

/* A copy with each ASCII letter between the two bounds moved to its other case. */
static bool change_case(struct cel_run *run, const struct cel_value *args, char first,
                        struct cel_value *ret)
{
    struct str text = args[0].text;
    char *copy = cel_alloc(run, text.len + 1, 1);
    if (copy == NULL) {
        return false;
    }
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (c >= first && c < first + 26) {
            c = (char)(c ^ 0x20);
        }
        copy[i] = c;
    }
    *ret = cel_text((struct str){copy, text.len});
    return true;
}

static bool run_lower(struct cel_run *run, const struct cel_value *args, size_t count,
                      struct cel_value *ret)
{
    return want(run, args, count, CEL_STRING) && change_case(run, args, 'A', ret);
}

static bool run_upper(struct cel_run *run, const struct cel_value *args, size_t count,
                      struct cel_value *ret)
{
    return want(run, args, count, CEL_STRING) && change_case(run, args, 'a', ret);
}

static bool run_trim(struct cel_run *run, const struct cel_value *args, size_t count,
                     struct cel_value *ret)
{
    if (!want(run, args, count, CEL_STRING)) {
        return false;
    }
    *ret = cel_text(str_trim(args[0].text));
    return true;
}

static bool run_split(struct cel_run *run, const struct cel_value *args, size_t count,
                      struct cel_value *ret)
{
    if (!want(run, args, count, CEL_STRING)) {
        return false;
    }
    struct str text = args[0].text;
    struct str mark = args[1].text;
    size_t parts = 1;
    if (mark.len == 0) {
        return cel_fail(run, "split() wants a separator");
    }
    for (ptrdiff_t at = 0; (at = str_find(text, mark, (size_t)at)) >= 0;
         at += (ptrdiff_t)mark.len) {
        parts++;
    }
    struct cel_value *items = cel_alloc(run, parts, sizeof(*items));
    if (items == NULL) {
        return false;
    }
    size_t begin = 0;
    for (size_t i = 0; i < parts; i++) {
        ptrdiff_t at = str_find(text, mark, begin);
        size_t end = at >= 0 ? (size_t)at : text.len;
        items[i] = cel_text((struct str){text.ptr + begin, end - begin});
        begin = end + mark.len;
    }
    *ret = (struct cel_value){.kind = CEL_LIST, .list = {items, parts}};
    return true;
}

static bool run_join(struct cel_run *run, const struct cel_value *args, size_t count,
                     struct cel_value *ret)
{
    struct str mark = count > 1 ? args[1].text : (struct str){"", 0};
    size_t total = 0;
    if (!want(run, args, 1, CEL_LIST) || !want(run, args + 1, count - 1, CEL_STRING)) {
        return false;
    }
    for (size_t i = 0; i < args[0].list.count; i++) {
        if (!want(run, &args[0].list.items[i], 1, CEL_STRING)) {
            return false;
        }
        total += args[0].list.items[i].text.len + mark.len;
    }
    char *out = cel_alloc(run, total + 1, 1);
    size_t len = 0;
    if (out == NULL) {
        return false;
    }
    for (size_t i = 0; i < args[0].list.count; i++) {
        struct str part = args[0].list.items[i].text;
        if (i > 0 && mark.len > 0) {
            memcpy(out + len, mark.ptr, mark.len);
            len += mark.len;
        }
        if (part.len > 0) {
            memcpy(out + len, part.ptr, part.len);
            len += part.len;
        }
    }
    *ret = cel_text((struct str){out, len});
    return true;
}

/* ------------------------------------------------------------------ conversions */
static bool run_string(struct cel_run *run, const struct cel_value *args, size_t count,
                       struct cel_value *ret)
{
    char *out = cel_alloc(run, 32, 1);
    (void)count;
    if (out == NULL) {
        return false;
    }
    if (args[0].kind == CEL_STRING) {
        *ret = args[0];
        return true;
    }
    int len = -1;
    if (args[0].kind == CEL_INT) {
        len = snprintf(out, 32, "%lld", (long long)args[0].number);
    } else if (args[0].kind == CEL_DOUBLE) {
        len = snprintf(out, 32, "%.15g", args[0].real);
    } else if (args[0].kind == CEL_BOOL) {
        len = snprintf(out, 32, "%s", args[0].flag ? "true" : "false");
    }
    if (len < 0) {
        return cel_fail(run, "string() wants text, a number or a bool");
    }
    *ret = cel_text((struct str){out, (size_t)len});
    return true;
}

static bool run_int(struct cel_run *run, const struct cel_value *args, size_t count,
                    struct cel_value *ret)
{
    int64_t number = 0;
    (void)count;
    if (args[0].kind == CEL_INT) {
        return give_int(ret, args[0].number);
    }
    if (args[0].kind == CEL_DOUBLE && args[0].real > -9.2e18 && args[0].real < 9.2e18) {
        return give_int(ret, (int64_t)args[0].real);
    }
    if (args[0].kind == CEL_STRING && str_parse_i64(args[0].text, INT64_MIN, INT64_MAX, &number)) {
        return give_int(ret, number);
    }
    return cel_fail(run, "int() got no whole number");
}

static bool run_double(struct cel_run *run, const struct cel_value *args, size_t count,
                       struct cel_value *ret)
{
    (void)count;
    *ret = (struct cel_value){.kind = CEL_DOUBLE};
    if (args[0].kind == CEL_INT) {
        ret->real = (double)args[0].number;
    } else if (args[0].kind == CEL_DOUBLE) {
        ret->real = args[0].real;
    } else if (args[0].kind != CEL_STRING || !str_parse_double(args[0].text, &ret->real)) {
        return cel_fail(run, "double() got no number");
    }
    return true;
}

static bool run_bool(struct cel_run *run, const struct cel_value *args, size_t count,
                     struct cel_value *ret)
{
    (void)count;
    if (args[0].kind == CEL_BOOL) {
        return give_bool(ret, args[0].flag);
    }
    bool yes = args[0].kind == CEL_STRING && str_eq_c(args[0].text, "true");
    bool no = args[0].kind == CEL_STRING && str_eq_c(args[0].text, "false");
    return yes || no ? give_bool(ret, yes) : cel_fail(run, "bool() got neither true nor false");
}

static bool run_dyn(struct cel_run *run, const struct cel_value *args, size_t count,
                    struct cel_value *ret)
{
    (void)run;
    (void)count;
    *ret = args[0];
    return true;
}

static bool run_size(struct cel_run *run, const struct cel_value *args, size_t count,
                     struct cel_value *ret)
{
    int64_t size = 0;
    (void)count;
    if (args[0].kind == CEL_LIST || args[0].kind == CEL_MAP) {
        return give_int(ret, (int64_t)args[0].list.count);
    }
    if (args[0].kind != CEL_STRING) {
        return cel_fail(run, "size() got a value without a size");
    }
    for (size_t i = 0; i < args[0].text.len; i++) { /* code points */
        size += ((uint8_t)args[0].text.ptr[i] & 0xc0) != 0x80;
    }
    return cel_step(run, args[0].text.len / 64) && give_int(ret, size);
}

/* ------------------------------------------------------------------ optional values */
static bool run_or_value(struct cel_run *run, const struct cel_value *args, size_t count,
                         struct cel_value *ret)
{
    if (!want(run, args, count - 1, CEL_OPTIONAL)) {
        return false;
    }
    *ret = args[0].some != NULL ? *args[0].some : args[1];
    return true;
}

static bool run_or(struct cel_run *run, const struct cel_value *args, size_t count,
                   struct cel_value *ret)
{
    if (!want(run, args, count, CEL_OPTIONAL)) {
        return false;
    }
    *ret = args[0].some != NULL ? args[0] : args[1];
    return true;
}

static bool run_has_value(struct cel_run *run, const struct cel_value *args, size_t count,
                          struct cel_value *ret)
{
    return want(run, args, count, CEL_OPTIONAL) && give_bool(ret, args[0].some != NULL);
}

static bool run_value(struct cel_run *run, const struct cel_value *args, size_t count,
                      struct cel_value *ret)
{
    if (!want(run, args, count, CEL_OPTIONAL)) {
        return false;
    }
    if (args[0].some == NULL) {
        run->missing = true;
        run->missing_key = STR("value()");
        return cel_fail(run, "value() of an optional that has none");
    }
    *ret = *args[0].some;
    return true;
}

/* Rows without a function are known to the API server and not run here. */
const struct cel_function cel_functions[] = {
    {"contains", "ss", &cel_type_bool, run_contains},
    {"startsWith", "ss", &cel_type_bool, run_starts},
    {"endsWith", "ss", &cel_type_bool, run_ends},
    {"matches", "ss", &cel_type_bool, NULL},
    {"matches", "-ss", &cel_type_bool, NULL},
    {"find", "ss", &cel_type_string, NULL},
    {"findAll", "ss", &cel_type_strings, NULL},
    {"lowerAscii", "s", &cel_type_string, run_lower},
    {"upperAscii", "s", &cel_type_string, run_upper},
    {"trim", "s", &cel_type_string, run_trim},
    {"split", "ss", &cel_type_strings, run_split},
    {"split", "ssi", &cel_type_strings, NULL},
    {"replace", "sss", &cel_type_string, NULL},
    {"substring", "si", &cel_type_string, NULL},
    {"substring", "sii", &cel_type_string, NULL},
    {"charAt", "si", &cel_type_string, NULL},
    {"indexOf", "ss", &cel_type_int, NULL},
    {"lastIndexOf", "ss", &cel_type_int, NULL},
    {"reverse", "s", &cel_type_string, NULL},
    {"join", "l", &cel_type_string, run_join},
    {"join", "ls", &cel_type_string, run_join},
    {"indexOf", "l*", &cel_type_int, NULL},
    {"lastIndexOf", "l*", &cel_type_int, NULL},
    {"isSorted", "l", &cel_type_bool, NULL},
    {"sum", "l", &cel_type_dyn, NULL},
    {"min", "l", &cel_type_dyn, NULL},
    {"max", "l", &cel_type_dyn, NULL},
    {"size", "z", &cel_type_int, run_size},
    {"size", "-z", &cel_type_int, run_size},
    {"string", "-*", &cel_type_string, run_string},
    {"int", "-*", &cel_type_int, run_int},
    {"double", "-*", &cel_type_double, run_double},
    {"bool", "-*", &cel_type_bool, run_bool},
    {"dyn", "-*", &cel_type_dyn, run_dyn},
    {"type", "-*", &cel_type_dyn, NULL},
    {"timestamp", "-*", &cel_type_dyn, NULL},
    {"duration", "-*", &cel_type_dyn, NULL},
    {"orValue", "o*", NULL, run_or_value},
    {"or", "oo", &optional_dyn, run_or},
    {"hasValue", "o", &cel_type_bool, run_has_value},
    {"value", "o", NULL, run_value},
    {"flatten", "l", &list_dyn, NULL},
};
const size_t cel_functions_count = COUNTOF(cel_functions);
