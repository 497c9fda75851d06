/* A growing byte buffer on the heap. */
#include "base/buf.h"

#include <assert.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define SMALLEST_CAP 256

void buf_reserve(struct buf *buf, size_t more)
{
    size_t needed;
    size_t cap;
    char *ptr;

    /* Half the address space: the doubling below cannot overflow. */
    assert(more < SIZE_MAX / 2 && buf->len < SIZE_MAX / 2 - more - 1);
    needed = buf->len + more + 1;
    if (needed <= buf->cap) {
        return;
    }
    cap = buf->cap < SMALLEST_CAP ? SMALLEST_CAP : buf->cap;
    while (cap < needed) {
        cap *= 2;
    }
    ptr = realloc(buf->ptr, cap);
    if (ptr == NULL) {
        abort();
    }
    ptr[buf->len] = '\0';
    buf->ptr = ptr;
    buf->cap = cap;
}

void buf_add(struct buf *buf, const void *data, size_t len)
{
    buf_reserve(buf, len);
    if (len > 0) {
        memcpy(buf->ptr + buf->len, data, len);
        buf->len += len;
    }
    buf->ptr[buf->len] = '\0';
}

void buf_add_c(struct buf *buf, const char *text)
{
    buf_add(buf, text, strlen(text));
}

void buf_add_char(struct buf *buf, char c)
{
    buf_add(buf, &c, 1);
}

void buf_printf(struct buf *buf, const char *format, ...)
{
    va_list args;
    va_list again;
    size_t room;
    int len;

    buf_reserve(buf, 0);
    room = buf->cap - buf->len;
    va_start(args, format);
    va_copy(again, args);
    len = vsnprintf(buf->ptr + buf->len, room, format, args);
    va_end(args);
    assert(len >= 0);
    if ((size_t)len >= room) {
        buf_reserve(buf, (size_t)len);
        (void)vsnprintf(buf->ptr + buf->len, (size_t)len + 1, format, again);
    }
    va_end(again);
    buf->len += (size_t)len;
}

void buf_clear(struct buf *buf)
{
    buf->len = 0;
    if (buf->ptr != NULL) {
        buf->ptr[0] = '\0';
    }
}

void buf_free(struct buf *buf)
{
    free(buf->ptr);
    *buf = (struct buf){0};
}

struct str buf_str(const struct buf *buf)
{
    return (struct str){buf->ptr, buf->len};
}
