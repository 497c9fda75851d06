/*
 * Events on disk until the server has them: three streams of one boot, each in its own order and
 * with numbers without holes. Bounded: the oldest information goes first, critical events last.
 * Layout: <dir>/<boot id>/<stream>-<number>.log (a line a record, with a checksum) and
 * <dir>/<boot id>/marks. A torn tail loses the torn record only.
 */
#ifndef AGENT_SPOOL_H
#define AGENT_SPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/uuid.h"

#define SPOOL_STREAMS 3
#define SPOOL_RECORD_MAX ((size_t)16 * 1024)

struct spool;

/*
 * dir is made when missing. Reads back what is there for this boot. cap_bytes bounds the sum of all
 * records. NULL with a sentence when the folder cannot be used.
 */
struct spool *spool_open(const char *dir, const char *boot_id, uint64_t cap_bytes, char *error,
                         size_t error_cap);
void spool_close(struct spool *spool);

/* Appends one JSON object (no line break, at most SPOOL_RECORD_MAX). What the disk does not take is
 * held in memory, 256 KiB a stream, until it does or the server has it. False when it could not be
 * kept; it then counts as dropped. */
bool spool_add(struct spool *spool, unsigned stream, struct str json);

/* Events of a stream that the server does not have, in order: at most max_records and max_bytes.
 * seq is the event's number. Returns how many were given out. */
typedef void spool_visit(uint64_t seq, struct str json, void *ctx);
size_t spool_peek(struct spool *spool, unsigned stream, size_t max_records, size_t max_bytes,
                  spool_visit *visit, void *ctx);
/* Before sending: so many of each stream are on their way. Their numbers are now fixed, across a
 * restart too, until they are acknowledged. */
void spool_sending(struct spool *spool, const size_t counts[SPOOL_STREAMS]);
/* The server has them. */
void spool_acknowledge(struct spool *spool, const size_t counts[SPOOL_STREAMS]);
size_t spool_waiting(const struct spool *spool, unsigned stream);
/* How many of the first waiting events were given out before and not acknowledged. */
size_t spool_in_flight(const struct spool *spool, unsigned stream);
/* Events dropped since the last call of spool_dropped_told; survives a restart. */
uint64_t spool_dropped(const struct spool *spool);
void spool_dropped_told(struct spool *spool, uint64_t count);
/* A copy of the descriptor that critical events are written to, -1 = none is open. */
int spool_sync_fd(const struct spool *spool);

/* Another boot's folder with events in it: true with its boot id. */
bool spool_find_old(const char *dir, const char *boot_id, char ret_boot[UUID_TEXT_LEN + 1]);
/* Removes all of a boot's files; the spool of that boot must be closed. */
void spool_remove(const char *dir, const char *boot_id);

#endif
