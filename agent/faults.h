/*
 * From findings to events in the spool, and the list of what is open: incidents that end by a word
 * of the agent are remembered on disk, so that the word is given after a restart or a reboot too.
 */
#ifndef AGENT_FAULTS_H
#define AGENT_FAULTS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/rules/engine.h"
#include "agent/settings.h"
#include "agent/spool.h"

struct faults;

/* path: the file of open faults; read when there. The spool must outlive the faults. */
struct faults *faults_open(const char *path, struct spool *spool, const char *boot_id);
void faults_close(struct faults *faults);
/* Checks that are off there are not told from now on; the settings must outlive the faults. */
void faults_set_settings(struct faults *faults, const struct settings *settings);
/* At the start: ends what kernel lines of older boots opened. Faults of a state stay until their
 * reading is good. */
void faults_begin_boot(struct faults *faults);

/* What a source knows about a finding beside itself. */
struct fault_report {
    const struct finding *finding;
    const struct evidence *lines;
    size_t line_count;
    const char *source; /* "kernel", "nvml", "agent" */
    int64_t at_us;      /* wall clock of the first line, 0 = now */
    int64_t kmsg_seq;   /* of the newest kernel line, 0 = none */
};
/* True when the spool already holds an event of this check, device and code that knows the kernel
 * line with this number: an agent that was killed before it moved its mark reads the line again. */
bool faults_knows(const struct faults *faults, const struct finding *finding, int64_t kmsg_seq);
/*
 * Hands the list of open faults to its saver when it changed; a thread syncs it, so that no report
 * waits for the disk. A power cut may lose the newest change: the fault is then told once more, or
 * its end is, and both fold.
 */
void faults_save(struct faults *faults);
/* The same, and waits until the disk has it. */
void faults_flush(struct faults *faults);
/* Puts an event into the spool; a finding that clears ends what is open instead. */
void faults_tell(struct faults *faults, const struct fault_report *report);
/* A reading: a bad one is told unless such a fault is open already (a graver one is told again); a
 * good one ends what bad readings opened, never what a kernel line opened. */
void faults_state(struct faults *faults, const struct fault_report *report, bool bad);
/* The same for sources whose faults of one check and device differ by their code. */
void faults_reading(struct faults *faults, const struct fault_report *report, bool bad);
/* The severity of the gravest open fault of that check and device; -1 = none is open. */
int faults_gravest(const struct faults *faults, const char *check, const char *device);
/* Calls for each open fault of a reading. */
void faults_each_reading(const struct faults *faults,
                         void (*each)(const char *check, const char *device, const char *code,
                                      void *ctx),
                         void *ctx);
/* Ends all open faults of a check (NULL = every check) and device (NULL = every device). */
void faults_clear(struct faults *faults, const char *check, const char *device, const char *why);
/* True when such a fault is open; NULL = any. */
bool faults_has(const struct faults *faults, const char *check, const char *device);
/* Copies the code under which such a fault is open; without one the buffer stays as it is. */
void faults_copy_code(const struct faults *faults, const char *check, const char *device,
                      char *code, size_t cap);
/* True when a fault of the node itself (not a warning) is open on that device. */
bool faults_has_node_fault(const struct faults *faults, const char *device);

/* The event as it goes into a report, but without its seq: for tests. */
void event_write(const struct fault_report *report, bool clear, struct buf *out);

#endif
