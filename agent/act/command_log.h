/*
 * What this node was ordered to do, append-only and synced to disk before anything is done: the
 * ground on which a command is never carried out twice. One line a fact:
 *   begun <command id> <epoch> <n> <action> <boot id> <unix seconds>
 *   ended <command id> done|failed <unix seconds> <detail>
 */
#ifndef AGENT_ACT_COMMAND_LOG_H
#define AGENT_ACT_COMMAND_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/uuid.h"

#define COMMAND_ID_CAP (UUID_TEXT_LEN + 1)
#define ACTION_CAP 32
#define DETAIL_CAP 160

struct command_entry {
    char id[COMMAND_ID_CAP];
    char action[ACTION_CAP];
    char boot_id[UUID_TEXT_LEN + 1];
    int64_t epoch[2];
    int64_t begun_s; /* wall clock */
    bool ended;
    bool failed; /* with ended */
    char detail[DETAIL_CAP];
};

struct command_log;

/* NULL with a sentence when the file cannot be read or written: the agent then refuses all
 * commands. A torn last line is ignored: nothing was done for it. */
struct command_log *command_log_open(const char *path, char *error, size_t error_cap);
void command_log_close(struct command_log *log);

/* 0 or an errno. After 0 the entry is on disk. */
int command_log_begin(struct command_log *log, const struct command_entry *entry) MUST_CHECK;
int command_log_end(struct command_log *log, const char *id, bool failed,
                    const char *detail) MUST_CHECK;

/* NULL = this id was never begun. */
const struct command_entry *command_log_find(const struct command_log *log, const char *id);
/* The newest entry that has not ended, NULL = none. */
const struct command_entry *command_log_unfinished(const struct command_log *log);
/* True when the pair is greater than every pair begun. */
bool command_log_epoch_is_new(const struct command_log *log, const int64_t epoch[2]);
/* Entries begun in the hour before now_s; a begin in the future counts (the clock was set back). */
size_t command_log_last_hour(const struct command_log *log, int64_t now_s);

#endif
