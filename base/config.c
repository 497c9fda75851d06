/* Configuration by one table: file, then environment, then options; an unknown key refuses. */
#include "base/config.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"

extern char **environ;

#define ENV_PREFIX "MUSTER_"
/* A configuration file is a few KiB; this refuses a wrong path, not a long one. */
#define FILE_MAX_BYTES ((size_t)256 * 1024)
#define NAME_MAX_BYTES 64

/* What a load gathers before anything is stored: a refusal leaves all values as they were. */
struct loading {
    const struct config_key *keys;
    size_t count;
    char **texts; /* per key: the latest text, owned; NULL = the fallback */
    bool *seen;   /* per key: it stood in the file */
    char *error;
    size_t error_cap;
};

/* Strings live until exit; the list keeps them reachable. Configuration is loaded before threads
 * start. */
static struct kept {
    struct kept *next;
    char text[];
} * kept_strings;

static const char *keep_string(const char *text)
{
    size_t len = strlen(text);
    struct kept *kept = malloc(sizeof(*kept) + len + 1);

    if (kept == NULL) {
        abort();
    }
    memcpy(kept->text, text, len + 1);
    kept->next = kept_strings;
    kept_strings = kept;
    return kept->text;
}

static const struct config_key *find_key(const struct loading *loading, struct str name)
{
    for (size_t i = 0; i < loading->count; i++) {
        if (str_eq_c(name, loading->keys[i].name)) {
            return &loading->keys[i];
        }
    }
    return NULL;
}

__attribute__((format(printf, 2, 3))) static bool refuse(struct loading *loading,
                                                         const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)vsnprintf(loading->error, loading->error_cap, format, args);
    va_end(args);
    return false;
}

static bool parse_bool(struct str text, bool *ret_value)
{
    static const struct {
        const char *name;
        bool value;
    } words[] = {{"true", true}, {"false", false}, {"yes", true}, {"no", false},
                 {"on", true},   {"off", false},   {"1", true},   {"0", false}};

    for (size_t i = 0; i < COUNTOF(words); i++) {
        if (str_eq_c(text, words[i].name)) {
            *ret_value = words[i].value;
            return true;
        }
    }
    return false;
}

/* Checks a text against its key and, when store is set, gives the key its value. A secret's text is
 * never repeated in the error. */
static bool apply(struct loading *loading, const struct config_key *key, const char *text,
                  const char *where, bool store)
{
    struct str value = str_of(text);
    int64_t number = 0;
    bool flag = false;

    switch (key->type) {
    case CONFIG_I64:
        if (!str_parse_i64(value, key->min, key->max, &number)) {
            return refuse(loading, "%s: %s must be a whole number from %lld to %lld, not \"%.40s\"",
                          where, key->name, (long long)key->min, (long long)key->max, text);
        }
        if (store) {
            *(int64_t *)key->value = number;
        }
        return true;
    case CONFIG_BOOL:
        if (!parse_bool(value, &flag)) {
            return refuse(loading, "%s: %s must be true or false, not \"%.40s\"", where, key->name,
                          text);
        }
        if (store) {
            *(bool *)key->value = flag;
        }
        return true;
    case CONFIG_STR:
    case CONFIG_SECRET:
    default:
        if (!str_is_utf8(value)) {
            return refuse(loading, "%s: %s is not valid UTF-8", where, key->name);
        }
        if (key->max > 0 && (value.len < (uint64_t)key->min || value.len > (uint64_t)key->max)) {
            return refuse(loading, "%s: %s must have %lld to %lld bytes, not %zu", where, key->name,
                          (long long)key->min, (long long)key->max, value.len);
        }
        if (store) {
            *(const char **)key->value = keep_string(text);
        }
        return true;
    }
}

/* Checks and remembers a text; a later source replaces it. */
static bool take_text(struct loading *loading, const struct config_key *key, struct str text,
                      const char *where)
{
    size_t index = (size_t)(key - loading->keys);
    char *copy;

    if (memchr(text.ptr == NULL ? "" : text.ptr, '\0', text.len) != NULL) {
        return refuse(loading, "%s: %s holds a NUL byte", where, key->name);
    }
    copy = strndup(text.ptr == NULL ? "" : text.ptr, text.len);
    if (copy == NULL) {
        abort();
    }
    free(loading->texts[index]);
    loading->texts[index] = copy;
    return apply(loading, key, copy, where, false);
}

static bool take_line(struct loading *loading, const char *file, size_t number, struct str line)
{
    const struct config_key *key;
    struct str name;
    char where[320];

    (void)snprintf(where, sizeof(where), "%.280s:%zu", file, number);
    line = str_trim(line);
    if (line.len == 0 || line.ptr[0] == '#') {
        return true;
    }
    if (memchr(line.ptr, '=', line.len) == NULL || !str_split(&line, '=', &name)) {
        return refuse(loading, "%s: a line must be \"key = value\" or begin with #", where);
    }
    name = str_trim(name);
    key = find_key(loading, name);
    if (key == NULL) {
        return refuse(loading, "%s: there is no key \"%.*s\"", where,
                      (int)(name.len > NAME_MAX_BYTES ? NAME_MAX_BYTES : name.len), name.ptr);
    }
    if (loading->seen[key - loading->keys]) {
        return refuse(loading, "%s: %s was already set in this file", where, key->name);
    }
    loading->seen[key - loading->keys] = true;
    return take_text(loading, key, str_trim(line), where);
}

static bool load_file(struct loading *loading, const struct config_source *source)
{
    CLEANUP(buf_free) struct buf data = {0};
    struct str rest;
    struct str line;
    int error;

    if (source->file == NULL) {
        return true;
    }
    error = file_read(source->file, FILE_MAX_BYTES, &data);
    if (error == ENOENT && !source->must_exist) {
        return true;
    }
    if (error != 0) {
        return refuse(loading, "%.280s: cannot be read: %s", source->file, strerrordesc_np(error));
    }
    rest = buf_str(&data);
    for (size_t number = 1; str_split(&rest, '\n', &line); number++) {
        if (!take_line(loading, source->file, number, line)) {
            return false;
        }
    }
    return true;
}

static bool is_foreign(const struct config_source *source, struct str name)
{
    for (size_t i = 0; source->foreign != NULL && source->foreign[i] != NULL; i++) {
        if (str_eq_c(name, source->foreign[i])) {
            return true;
        }
    }
    return false;
}

/* Writes the key's spelling of an environment or option name; false when it cannot be one. */
static bool make_key_name(struct str from, bool upper, char name[NAME_MAX_BYTES + 1])
{
    if (from.len == 0 || from.len > NAME_MAX_BYTES) {
        return false;
    }
    for (size_t i = 0; i < from.len; i++) {
        char c = from.ptr[i];

        if (upper && c >= 'a' && c <= 'z') {
            return false;
        }
        if (upper && c >= 'A' && c <= 'Z') {
            c = (char)(c + ('a' - 'A'));
        }
        if (!upper && c == '-') {
            c = '_';
        }
        name[i] = c;
    }
    name[from.len] = '\0';
    return true;
}

static bool load_environment(struct loading *loading, const struct config_source *source)
{
    for (char **at = environ; at != NULL && *at != NULL; at++) {
        struct str value = str_of(*at);
        struct str variable = {0};
        const struct config_key *key = NULL;
        char name[NAME_MAX_BYTES + 1];
        char where[NAME_MAX_BYTES + sizeof(ENV_PREFIX) + 24];

        if (!str_starts(value, STR(ENV_PREFIX)) || !str_split(&value, '=', &variable) ||
            is_foreign(source, variable)) {
            continue;
        }
        if (make_key_name((struct str){variable.ptr + sizeof(ENV_PREFIX) - 1,
                                       variable.len - (sizeof(ENV_PREFIX) - 1)},
                          true, name)) {
            key = find_key(loading, str_of(name));
        }
        if (key == NULL) {
            return refuse(loading, "environment: there is no key for the variable %.*s",
                          (int)(variable.len > 100 ? 100 : variable.len), variable.ptr);
        }
        (void)snprintf(where, sizeof(where), "environment variable %.*s", (int)variable.len,
                       variable.ptr);
        if (!take_text(loading, key, value, where)) {
            return false;
        }
    }
    return true;
}

/* Takes the option at argv[*at]; *at then stands on its last word. */
static bool take_option(struct loading *loading, const struct config_source *source, int *at)
{
    struct str rest = str_of(source->argv[*at]);
    bool has_value = memchr(rest.ptr, '=', rest.len) != NULL;
    const struct config_key *key = NULL;
    struct str option = {0};
    char name[NAME_MAX_BYTES + 1];
    char where[NAME_MAX_BYTES + 32];

    if (!str_starts(rest, STR("--"))) {
        return refuse(loading, "options: \"%.60s\" is not an option; options begin with --",
                      source->argv[*at]);
    }
    rest = (struct str){rest.ptr + 2, rest.len - 2};
    if (str_split(&rest, '=', &option) && make_key_name(option, false, name)) {
        key = find_key(loading, str_of(name));
    }
    if (key == NULL) {
        return refuse(loading, "options: there is no option --%.*s",
                      (int)(option.len > NAME_MAX_BYTES ? NAME_MAX_BYTES : option.len),
                      option.ptr == NULL ? "" : option.ptr);
    }
    (void)snprintf(where, sizeof(where), "option --%s", name);
    if (!has_value) {
        bool is_last = *at + 1 >= source->argc;

        if (key->type == CONFIG_BOOL &&
            (is_last || str_starts(str_of(source->argv[*at + 1]), STR("--")))) {
            return take_text(loading, key, STR("true"), where);
        }
        if (is_last) {
            return refuse(loading, "%s: a value is missing", where);
        }
        rest = str_of(source->argv[++*at]);
    }
    return take_text(loading, key, rest, where);
}

static bool load_options(struct loading *loading, const struct config_source *source)
{
    for (int i = 0; i < source->argc; i++) {
        if (strcmp(source->argv[i], "--") == 0) {
            return true;
        }
        if (!take_option(loading, source, &i)) {
            return false;
        }
    }
    return true;
}

static void store_empty(const struct config_key *key)
{
    switch (key->type) {
    case CONFIG_I64:
        *(int64_t *)key->value = 0;
        break;
    case CONFIG_BOOL:
        *(bool *)key->value = false;
        break;
    case CONFIG_STR:
    case CONFIG_SECRET:
    default:
        *(const char **)key->value = NULL;
        break;
    }
}

static bool store_all(struct loading *loading)
{
    for (size_t i = 0; i < loading->count; i++) {
        const struct config_key *key = &loading->keys[i];
        const char *text = loading->texts[i] != NULL ? loading->texts[i] : key->fallback;

        if (text == NULL) {
            store_empty(key);
        } else if (!apply(loading, key, text, "built-in value", true)) {
            return false;
        }
    }
    return true;
}

bool config_load(const struct config_key *keys, size_t count, const struct config_source *source,
                 char *error, size_t error_cap)
{
    struct loading loading = {.keys = keys, .count = count, .error = error, .error_cap = error_cap};
    bool loaded;

    assert(error_cap > 0);
    error[0] = '\0';
    loading.texts = calloc(count + 1, sizeof(*loading.texts));
    loading.seen = calloc(count + 1, sizeof(*loading.seen));
    if (loading.texts == NULL || loading.seen == NULL) {
        abort();
    }
    loaded = load_file(&loading, source) && load_environment(&loading, source) &&
             load_options(&loading, source) && store_all(&loading);
    for (size_t i = 0; i < count; i++) {
        free(loading.texts[i]);
    }
    free(loading.texts);
    free(loading.seen);
    return loaded;
}

static void show_value(const struct config_key *key, struct buf *out)
{
    const char *text;

    switch (key->type) {
    case CONFIG_I64:
        buf_printf(out, "%lld", (long long)*(const int64_t *)key->value);
        break;
    case CONFIG_BOOL:
        buf_add_c(out, *(const bool *)key->value ? "true" : "false");
        break;
    case CONFIG_STR:
    case CONFIG_SECRET:
    default:
        text = *(const char *const *)key->value;
        if (text != NULL && text[0] != '\0') {
            buf_add_c(out, key->type == CONFIG_SECRET ? "******" : text);
        }
        break;
    }
}

void config_show(const struct config_key *keys, size_t count, struct buf *out)
{
    for (size_t i = 0; i < count; i++) {
        if (keys[i].help != NULL) {
            buf_printf(out, "# %s\n", keys[i].help);
        }
        buf_printf(out, "%s = ", keys[i].name);
        show_value(&keys[i], out);
        buf_add_char(out, '\n');
    }
}
