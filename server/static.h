/* The console's files, read into memory at start and served from there. */
#ifndef SERVER_STATIC_H
#define SERVER_STATIC_H

#include <stdbool.h>
#include <stddef.h>

struct files;
struct loop;

/* All regular files under dir, with their .br and .gz variants; NULL with a sentence when the
 * folder cannot be read. dir "" gives an empty set. Shared by all loops, constant afterwards. */
struct files *files_load(const char *dir, char *error, size_t error_cap);
void files_free(struct files *files); /* NULL is fine; after all loops were detached */

/* Ready responses of a loop. Before loop_start; detach after loop_join. */
void static_attach(struct loop *loop, const struct files *files, bool tls);
void static_detach(struct loop *loop);

#endif
