/* The kernel's log: read without blocking, each record once per boot, within a budget. */
#ifndef AGENT_COLLECT_KMSG_H
#define AGENT_COLLECT_KMSG_H

#include "agent/boot.h"
#include "agent/collect/collector.h"
#include "agent/faults.h"
#include "agent/options.h"
#include "agent/rules/engine.h"

/* Injected faults taken at once; more of them are training for nobody. */
#define KMSG_INJECTIONS_MAX 64

struct kmsg {
    struct collector collector;
    const struct options *options;
    struct engine *engine;
    char mark_path[4096];
    char boot_id[UUID_TEXT_LEN + 1];
    int64_t floor;    /* records up to this belong to an older boot, -1 = none */
    int64_t last_seq; /* of the last record read, -1 = none */
    int64_t told_seq; /* up to here everything is in the spool */
    int fd;
    bool is_file;       /* a plain file in place of the device: it is looked at from time to time */
    bool caught_up;     /* all that was there at the start has been read */
    bool gap;           /* the kernel overwrote records; the next one tells how many */
    struct buf partial; /* of a line, when is_file */
    uint64_t lost;      /* overwritten records not told yet */
    unsigned slowed;    /* seconds in which the budget was used up, not told yet */
    int64_t budget_us;  /* when the present second of the budget began */
    size_t budget_lines;
    size_t budget_bytes;
    int64_t boot_wall_us; /* wall clock at boot, for the time of records */
    struct finding injections[KMSG_INJECTIONS_MAX]; /* not told yet */
    size_t injection_count;
    bool access_reg; /* a line said that a register of the adapter may not be read */
};

void kmsg_init(struct kmsg *kmsg, const struct options *options, const struct boot *boot);
void kmsg_stop(struct kmsg *kmsg);
/* Opens when needed and reads what is there, as far as the budget goes. */
void kmsg_read(struct kmsg *kmsg, int64_t now_us);
/* Puts what the engine found into the spool and moves the mark: `all`, or only when something
 * critical waits. Returns true when something was told. */
bool kmsg_tell(struct kmsg *kmsg, struct faults *faults, bool all, int64_t now_us);
/* For poll: -1 = nothing to wait for. */
int kmsg_fd(const struct kmsg *kmsg, int64_t now_us);
/* When it wants to be called without its fd being readable; INT64_MAX = no need. */
int64_t kmsg_due(const struct kmsg *kmsg, int64_t now_us);

#endif
