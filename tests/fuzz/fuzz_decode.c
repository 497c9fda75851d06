/* Bodies and query strings into a struct with every type of field: no crash, and what is taken
 * obeys its table. */
#include "tests/fuzz/fuzz.h"

#include <jansson.h>
#include <string.h>

#include "base/decode.h"

struct sample {
    struct str name;
    int64_t limit;
    double ratio;
    bool armed;
    struct str id;
    int64_t since_us;
    struct str state;
    struct str label;
    struct str host;
    struct str_list tags;
    struct str settings;
    bool has_settings;
};

static const char *const states[] = {"a", "b", NULL};

#define AT(member) offsetof(struct sample, member)

/* clang-format off */
static const struct field body_fields[] = {
    {"n", FIELD_STR, AT(name), 0, FIELD_REQUIRED, 1, 8, NULL},
    {"i", FIELD_I64, AT(limit), 0, 0, -5, 200, NULL},
    {"d", FIELD_DOUBLE, AT(ratio), 0, 0, 0, 1, NULL},
    {"b", FIELD_BOOL, AT(armed), 0, FIELD_NULLABLE, 0, 0, NULL},
    {"u", FIELD_UUID, AT(id), 0, 0, 0, 0, NULL},
    {"t", FIELD_TIME, AT(since_us), 0, 0, 0, 0, NULL},
    {"e", FIELD_ENUM, AT(state), 0, 0, 0, 0, states},
    {"l", FIELD_NAME, AT(label), 0, 0, 0, 0, NULL},
    {"h", FIELD_HOST, AT(host), 0, 0, 0, 0, NULL},
    {"a", FIELD_STR_LIST, AT(tags), 0, 0, 1, 3, NULL},
    {"j", FIELD_JSON, AT(settings), AT(has_settings), FIELD_NULLABLE, 0, 64, NULL},
    {0},
};

static const struct field query_fields[] = {
    {"n", FIELD_STR, AT(name), 0, 0, 1, 8, NULL},
    {"i", FIELD_I64, AT(limit), 0, 0, -5, 200, NULL},
    {"d", FIELD_DOUBLE, AT(ratio), 0, 0, 0, 0, NULL},
    {"b", FIELD_BOOL, AT(armed), 0, 0, 0, 0, NULL},
    {"t", FIELD_TIME, AT(since_us), 0, 0, 0, 0, NULL},
    {"a", FIELD_STR_LIST, AT(tags), 0, 0, 0, 2, states},
    {0},
};
/* clang-format on */

static void check_text(struct str text, size_t max)
{
    FUZZ_CHECK(text.len <= max);
    FUZZ_CHECK(text.ptr == NULL || text.ptr[text.len] == '\0');
    FUZZ_CHECK(str_is_utf8(text));
}

static void check_sample(const struct sample *sample)
{
    check_text(sample->name, 8);
    FUZZ_CHECK(sample->limit >= -5 && sample->limit <= 200);
    FUZZ_CHECK(sample->id.len == 0 || sample->id.len == 36);
    FUZZ_CHECK(sample->label.len == 0 || str_is_dns_label(sample->label));
    FUZZ_CHECK(sample->host.len == 0 || str_is_host_name(sample->host));
    FUZZ_CHECK(sample->tags.count <= 3);
    for (size_t i = 0; i < sample->tags.count; i++) {
        check_text(sample->tags.items[i], 255);
    }
    check_text(sample->settings, 64);
    if (sample->settings.len > 0) {
        /* What is handed on must be JSON again. */
        json_t *again = json_loadb(sample->settings.ptr, sample->settings.len,
                                   JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL);

        FUZZ_CHECK(again != NULL);
        json_decref(again);
    }
}

static void check_errors(enum err err, const struct decode_errors *errors)
{
    FUZZ_CHECK(errors->count <= DECODE_ERRORS_MAX);
    FUZZ_CHECK(errors->dropped == 0 || errors->count == DECODE_ERRORS_MAX);
    FUZZ_CHECK((err == ERR_INVALID_FIELDS || err == ERR_BAD_REQUEST) == (errors->count > 0));
    for (size_t i = 0; i < errors->count; i++) {
        const struct field_error *item = &errors->items[i];

        FUZZ_CHECK((item->pointer != NULL) != (item->parameter != NULL));
        FUZZ_CHECK(item->pointer == NULL || item->pointer[0] == '#');
        FUZZ_CHECK(item->code != NULL && item->detail != NULL);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *arena = arena_new((size_t)64 * 1024 * 1024);
    struct str text = {(const char *)data, size};
    struct decode_errors errors;
    const char *detail = NULL;
    struct sample body = {0};
    struct sample query = {0};
    enum err err = decode_body(arena, text, body_fields, &body, &errors, &detail);

    check_errors(err, &errors);
    FUZZ_CHECK((err == ERR_BAD_JSON) == (detail != NULL));
    if (err == ERR_NONE) {
        check_sample(&body);
        FUZZ_CHECK(body.name.len > 0);
    }
    err = decode_query(arena, text, query_fields, &query, &errors);
    check_errors(err, &errors);
    if (err == ERR_NONE) {
        check_sample(&query);
    }
    arena_free(arena);
    return 0;
}
