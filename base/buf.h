/* A growing byte buffer on the heap. */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stddef.h>

#include "base/str.h"

struct buf {
    char *ptr; /* NUL-terminated after each call when not NULL */
    size_t len;
    size_t cap;
};

void buf_add(struct buf *buf, const void *data, size_t len);
void buf_add_c(struct buf *buf, const char *text);
void buf_add_char(struct buf *buf, char c);
void buf_printf(struct buf *buf, const char *format, ...) PRINTF_LIKE(2, 3);
void buf_reserve(struct buf *buf, size_t more); /* room for `more` bytes after len */
void buf_clear(struct buf *buf);                /* len = 0, memory kept */
void buf_free(struct buf *buf);                 /* for CLEANUP too; usable again afterwards */
struct str buf_str(const struct buf *buf);

#endif
