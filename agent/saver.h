/* One small file that is written anew when its content changes, by a thread: a sync may take
 * seconds. */
#ifndef AGENT_SAVER_H
#define AGENT_SAVER_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/cleanup.h"

struct saver;

/* path must outlive the saver. Without a thread it writes in the caller's. */
struct saver *saver_new(const char *path);
/* Writes what waits, then ends; NULL is fine. */
void saver_free(struct saver *saver);
/* Takes the text's memory; a text that still waits is replaced, because the newest holds
 * everything. */
void saver_put(struct saver *saver, struct buf *text);
/* True when the newest text could not be written: put it again. */
bool saver_failed(struct saver *saver) MUST_CHECK;
/* Waits until the disk has what was put. */
void saver_flush(struct saver *saver);

#endif
