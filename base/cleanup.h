/* Attributes for ownership and results, and small macros used everywhere. */
#ifndef BASE_CLEANUP_H
#define BASE_CLEANUP_H

#include <stdlib.h>

#define CLEANUP(fn) __attribute__((cleanup(fn)))
#define MUST_CHECK __attribute__((warn_unused_result))
#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))
#define COUNTOF(array) (sizeof(array) / sizeof((array)[0]))

/* Hand ownership over: the value, and the variable becomes NULL. */
#define MOVE(ptr)                       \
    __extension__({                     \
        __typeof__(ptr) moved_ = (ptr); \
        (ptr) = NULL;                   \
        moved_;                         \
    })

/* CLEANUP(cleanup_free) char *text = ...; */
static inline void cleanup_free(void *ptr)
{
    free(*(void **)ptr);
}

/* CLEANUP(cleanup_fd) int fd = -1; defined in file.c */
void cleanup_fd(int *fd);

#endif
