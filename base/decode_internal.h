/* What the two halves of decode share: errors with a place, and text into typed fields. */
#ifndef BASE_DECODE_INTERNAL_H
#define BASE_DECODE_INTERNAL_H

#include "base/decode.h"

#define DECODE_FIELDS_MAX 64

struct decoding {
    struct arena *arena;
    const struct field *fields;
    void *out;
    struct decode_errors *errors;
};

/* Where in the request something stands; one of the two is set. */
struct place {
    const char *pointer;
    const char *parameter;
};

/* Both texts must outlive errors (literals or the arena). */
void decode_fail(struct decoding *decoding, struct place place, const char *code,
                 const char *detail);
size_t decode_field_count(const struct field *fields);
/* The place in *out of the field's value. */
void *decode_target(const struct decoding *decoding, const struct field *field);
void decode_mark_present(const struct decoding *decoding, const struct field *field);
/* field->max, or what 0 stands for. */
int64_t decode_max(const struct field *field);
/* Stores text in a field of one of the text types; reports what is wrong with it. */
void decode_text(struct decoding *decoding, const struct field *field, struct str text,
                 struct place place);
/* One item of a FIELD_STR_LIST; false when it was refused and reported. */
bool decode_item(struct decoding *decoding, const struct field *field, struct str text,
                 struct place place, struct str *ret_item);
void decode_i64(struct decoding *decoding, const struct field *field, int64_t value,
                struct place place);
void decode_double(struct decoding *decoding, const struct field *field, double value,
                   struct place place);
void decode_missing(struct decoding *decoding, const struct field *field, struct place place);

#endif
