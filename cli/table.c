/* Printing lists as aligned columns. */
#include "cli/table.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"

#define COLUMNS_MAX 12

static const json_t *find_field(const json_t *item, const char *field)
{
    struct str rest = str_of(field);
    struct str part;
    while (item != NULL && str_split(&rest, '.', &part)) {
        item = json_object_getn(item, part.ptr, part.len);
    }
    return item;
}

/* One cell as text; control characters become spaces, so that a name cannot move the cursor. */
static void cell_text(const json_t *item, const char *field, struct buf *out)
{
    const json_t *value = find_field(item, field);
    buf_clear(out);
    if (json_is_string(value)) {
        buf_add_c(out, json_string_value(value));
    } else if (json_is_integer(value)) {
        buf_printf(out, "%lld", (long long)json_integer_value(value));
    } else if (json_is_real(value)) {
        buf_printf(out, "%.3g", json_real_value(value));
    } else if (json_is_boolean(value)) {
        buf_add_c(out, json_is_true(value) ? "yes" : "no");
    } else {
        buf_add_c(out, "none");
    }
    for (size_t i = 0; i < out->len; i++) {
        unsigned char c = (unsigned char)out->ptr[i];
        if (c < 0x20 || c == 0x7f) {
            out->ptr[i] = ' ';
        }
    }
}

void table_print(const json_t *items, const struct column *columns, const char *empty)
{
    size_t widths[COLUMNS_MAX] = {0};
    size_t count = 0;
    CLEANUP(buf_free) struct buf cell = {0};
    if (json_array_size(items) == 0) {
        (void)printf("%s\n", empty);
        return;
    }
    for (; columns[count].title != NULL && count < COLUMNS_MAX; count++) {
        widths[count] = strlen(columns[count].title);
        for (size_t row = 0; row < json_array_size(items); row++) {
            cell_text(json_array_get(items, row), columns[count].field, &cell);
            widths[count] = cell.len > widths[count] ? cell.len : widths[count];
        }
    }
    for (size_t i = 0; i < count; i++) {
        (void)printf("%-*s%s", (int)widths[i], columns[i].title, i + 1 < count ? "  " : "\n");
    }
    for (size_t row = 0; row < json_array_size(items); row++) {
        for (size_t i = 0; i < count; i++) {
            cell_text(json_array_get(items, row), columns[i].field, &cell);
            bool last = i + 1 == count;
            (void)printf("%-*s%s", last ? 0 : (int)widths[i], cell.ptr, last ? "\n" : "  ");
        }
    }
}

void table_print_one(const json_t *item, const struct column *columns)
{
    size_t width = 0;
    CLEANUP(buf_free) struct buf cell = {0};
    for (size_t i = 0; columns[i].title != NULL; i++) {
        width = strlen(columns[i].title) > width ? strlen(columns[i].title) : width;
    }
    for (size_t i = 0; columns[i].title != NULL; i++) {
        cell_text(item, columns[i].field, &cell);
        (void)printf("%-*s  %s\n", (int)width, columns[i].title, cell.ptr);
    }
}
