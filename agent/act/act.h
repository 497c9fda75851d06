/* Carrying out what was judged right: one act at a time, each told to the command log first. */
#ifndef AGENT_ACT_ACT_H
#define AGENT_ACT_ACT_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/act/command.h"
#include "agent/options.h"
#include "base/buf.h"

struct act;

/* Results wait here until a report with them was answered. */
struct command_result {
    char id[COMMAND_ID_CAP];
    const char *state; /* accepted, done, refused, failed */
    char detail[DETAIL_CAP];
    bool in_report;
    bool repeated; /* told before: it goes along with the next report and hurries nobody */
};

#define RESULTS_MAX 16

/* Opens the command log in state_dir and settles what an older run left begun: a reboot that came
 * is done. */
struct act *act_open(const struct options *options, const struct identity *identity,
                     const char *boot_id);
void act_close(struct act *act);

/* An order from an answer to the report with this nonce. */
void act_order(struct act *act, struct str payload, struct str signature, const char *nonce,
               int64_t now_us);
/* Writes the results as a JSON array and marks them as being in the report; how many there were. */
size_t act_results_write(struct act *act, struct buf *out);
/* The report with the marked results was answered (or not): answered ones are forgotten, and an
 * accepted act begins. */
void act_results_told(struct act *act, bool answered, int64_t now_us);
bool act_has_news(const struct act *act); /* a result that should leave at once */

enum act_news {
    ACT_NOTHING,
    ACT_ENDED,     /* a result waits */
    ACT_GPU_RESET, /* GPUs were reset; act_gpus names them */
    ACT_REBOOTING, /* the program for a reboot returned */
};
/* Looks after the child and deadlines. */
enum act_news act_tick(struct act *act, int64_t now_us);
/* PCI addresses of the last ACT_GPU_RESET, joined by commas. */
const char *act_gpus(const struct act *act);
/* When act_tick wants to be called at the latest; INT64_MAX = no need. */
int64_t act_due(const struct act *act);

/* Splits a program line at blanks and puts the GPUs in; NULL-terminated, at most cap entries with
 * the NULL. False when there are more words, or none, or {gpus} has no value. The texts live in
 * buf. For tests. */
bool act_split(const char *program, const char *gpus, struct buf *buf, char **argv,
               size_t cap) MUST_CHECK;

#endif
