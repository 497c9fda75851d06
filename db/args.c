/* Parameters of statements, as text. */
#include "db/db.h"

#include <assert.h>
#include <inttypes.h>

#include "base/crypto.h"

void db_arg(struct db_args *args, const char *value)
{
    assert(args->count < DB_ARGS_MAX);
    args->values[args->count++] = value;
}

void db_arg_str(struct db_args *args, struct arena *arena, struct str value)
{
    db_arg(args, value.ptr == NULL ? NULL : arena_strndup(arena, value.ptr, value.len));
}

void db_arg_uuid(struct db_args *args, struct arena *arena, const struct uuid *value)
{
    if (value == NULL) {
        db_arg(args, NULL);
        return;
    }
    char *text = arena_alloc(arena, UUID_TEXT_LEN + 1);
    uuid_format(value, text);
    db_arg(args, text);
}

void db_arg_i64(struct db_args *args, struct arena *arena, int64_t value)
{
    db_arg(args, arena_printf(arena, "%" PRId64, value));
}

void db_arg_bool(struct db_args *args, bool value)
{
    db_arg(args, value ? "t" : "f");
}

void db_arg_bytes(struct db_args *args, struct arena *arena, const void *data, size_t len)
{
    if (data == NULL) {
        db_arg(args, NULL);
        return;
    }
    assert(len <= SIZE_MAX / 4);
    char *text = arena_alloc(arena, 2 * len + 3);
    text[0] = '\\';
    text[1] = 'x';
    crypto_hex(data, len, text + 2);
    db_arg(args, text);
}

void db_arg_time(struct db_args *args, struct arena *arena, int64_t us)
{
    if (us == INT64_MAX) {
        db_arg(args, "infinity");
        return;
    }
    char *text = arena_alloc(arena, STR_RFC3339_LEN + 1);
    str_format_rfc3339(us, text);
    db_arg(args, text);
}
