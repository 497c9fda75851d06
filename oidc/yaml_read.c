/* YAML read into JSON values, so that a configuration may be written either way. */
#include "oidc/yaml_read.h"

#include <string.h>
#include <yaml.h>

#include "oidc/jose.h"

#define DEPTH_MAX 32
#define VALUES_MAX 50000

struct level {
    json_t *container;
    json_t *key; /* of an object: the key whose value comes next; NULL = a key comes */
};

struct reading {
    struct arena *arena;
    struct level levels[DEPTH_MAX];
    size_t depth;
    json_t *root;
    size_t values;
    const char *error;
};

static bool set_error(struct reading *reading, const yaml_event_t *event, const char *what)
{
    if (reading->error == NULL) {
        reading->error =
            arena_printf(reading->arena, "line %zu: %s", event->start_mark.line + 1, what);
    }
    return false;
}

static bool is_one_of(struct str text, const char *const *words)
{
    for (; *words != NULL; words++) {
        if (str_eq_c(text, *words)) {
            return true;
        }
    }
    return false;
}

/* YAML 1.1, as Kubernetes' reader takes it. */
static json_t *read_plain(struct str text)
{
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL", NULL};
    static const char *const yes[] = {"true", "True", "TRUE", "yes", "Yes", "YES",
                                      "on",   "On",   "ON",   "y",   "Y",   NULL};
    static const char *const no[] = {"false", "False", "FALSE", "no", "No", "NO",
                                     "off",   "Off",   "OFF",   "n",  "N",  NULL};
    double number;
    if (is_one_of(text, nulls)) {
        return json_null();
    }
    if (is_one_of(text, yes)) {
        return json_true();
    }
    if (is_one_of(text, no)) {
        return json_false();
    }
    if (str_parse_double(text, &number)) {
        bool whole = number >= -9007199254740992.0 && number <= 9007199254740992.0 &&
                     number == (double)(int64_t)number;
        return whole ? json_integer((int64_t)number) : json_real(number);
    }
    return json_stringn(text.ptr, text.len);
}

/* Puts a finished or just opened value where it belongs; takes it over. */
static bool place(struct reading *reading, const yaml_event_t *event, json_t *value)
{
    struct level *level = reading->depth > 0 ? &reading->levels[reading->depth - 1] : NULL;
    if (value == NULL || ++reading->values > VALUES_MAX) {
        json_decref(value);
        return set_error(reading, event, value == NULL ? "a text is not valid" : "too many values");
    }
    if (level == NULL) {
        reading->root = value;
        return true;
    }
    if (json_is_array(level->container)) {
        return json_array_append_new(level->container, value) == 0;
    }
    if (level->key == NULL) {
        if (!json_is_string(value) ||
            memchr(json_string_value(value), '\0', json_string_length(value)) != NULL) {
            json_decref(value);
            return set_error(reading, event, "a key must be text");
        }
        level->key = value;
        return true;
    }
    const char *key = json_string_value(level->key);
    bool doubled = json_object_get(level->container, key) != NULL;
    bool good = json_object_set_new(level->container, key, value) == 0 && !doubled;
    if (!good) {
        (void)set_error(reading, event,
                        arena_printf(reading->arena, "the key %s stands twice",
                                     jose_quote(reading->arena, jose_text(level->key))));
    }
    json_decref(level->key);
    level->key = NULL;
    return good;
}

static bool open_container(struct reading *reading, const yaml_event_t *event, json_t *container)
{
    if (reading->depth == DEPTH_MAX) {
        json_decref(container);
        return set_error(reading, event, "nested deeper than 32 levels");
    }
    struct level *level = reading->depth > 0 ? &reading->levels[reading->depth - 1] : NULL;
    if (level != NULL && json_is_object(level->container) && level->key == NULL) {
        json_decref(container);
        return set_error(reading, event, "a key must be text");
    }
    if (!place(reading, event, container)) {
        return false;
    }
    reading->levels[reading->depth++] = (struct level){.container = container};
    return true;
}

static bool has_extras(const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        return event->data.scalar.anchor != NULL || event->data.scalar.tag != NULL;
    case YAML_SEQUENCE_START_EVENT:
        return event->data.sequence_start.anchor != NULL || event->data.sequence_start.tag != NULL;
    case YAML_MAPPING_START_EVENT:
        return event->data.mapping_start.anchor != NULL || event->data.mapping_start.tag != NULL;
    case YAML_ALIAS_EVENT:
        return true;
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_STREAM_END_EVENT:
    case YAML_DOCUMENT_START_EVENT:
    case YAML_DOCUMENT_END_EVENT:
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        break;
    }
    return false;
}

static bool take_event(struct reading *reading, const yaml_event_t *event)
{
    if (has_extras(event)) {
        return set_error(reading, event, "anchors, aliases and tags are not read here");
    }
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        return reading->root == NULL || set_error(reading, event, "there is a second document");
    case YAML_SCALAR_EVENT: {
        struct str text = {(const char *)event->data.scalar.value, event->data.scalar.length};
        bool plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
        struct level *level = reading->depth > 0 ? &reading->levels[reading->depth - 1] : NULL;
        bool is_key = level != NULL && json_is_object(level->container) && level->key == NULL;
        return place(reading, event,
                     plain && !is_key ? read_plain(text) : json_stringn(text.ptr, text.len));
    }
    case YAML_SEQUENCE_START_EVENT:
        return open_container(reading, event, json_array());
    case YAML_MAPPING_START_EVENT:
        return open_container(reading, event, json_object());
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        reading->depth--;
        return true;
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_STREAM_END_EVENT:
    case YAML_DOCUMENT_END_EVENT:
    case YAML_ALIAS_EVENT:
        break;
    }
    return true;
}

static void read_events(struct reading *reading, yaml_parser_t *parser)
{
    yaml_event_type_t type = YAML_NO_EVENT;
    while (type != YAML_STREAM_END_EVENT && reading->error == NULL) {
        yaml_event_t event;
        if (yaml_parser_parse(parser, &event) != 1) {
            reading->error =
                arena_printf(reading->arena, "line %zu: %s", parser->problem_mark.line + 1,
                             parser->problem != NULL ? parser->problem : "this is not YAML");
            return;
        }
        type = event.type;
        (void)take_event(reading, &event);
        yaml_event_delete(&event);
    }
}

json_t *yaml_read(struct arena *arena, struct str text, const char **ret_error)
{
    struct reading reading = {.arena = arena};
    yaml_parser_t parser;
    if (yaml_parser_initialize(&parser) != 1) {
        abort();
    }
    yaml_parser_set_input_string(&parser, (const unsigned char *)text.ptr, text.len);
    read_events(&reading, &parser);
    yaml_parser_delete(&parser);
    for (size_t i = 0; i < reading.depth; i++) {
        json_decref(reading.levels[i].key);
    }
    if (reading.error == NULL && reading.root == NULL) {
        reading.error = "the document is empty";
    }
    if (reading.error != NULL) {
        json_decref(reading.root);
        *ret_error = reading.error;
        return NULL;
    }
    return reading.root;
}
