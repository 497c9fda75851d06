/* The log: one JSON object a line on standard error, or plain text on a terminal. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>

#include "base/cleanup.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARNING, LOG_ERROR };

/* Before any thread starts; program is not copied. json = false writes "12:00:00 info    text",
 * time in UTC. Without it: plain text from info on. */
void log_setup(const char *program, enum log_level lowest, bool json);
bool log_level_parse(const char *name, enum log_level *ret_level) MUST_CHECK;
/* Thread safe, one write(2) a line, cut at 4 KiB; control characters, invalid UTF-8 and characters
 * that reorder text on a terminal are escaped. Keeps errno. */
void log_write(enum log_level level, const char *format, ...) PRINTF_LIKE(2, 3);
/* Values for the following lines of this thread; NULL clears. Not copied. */
void log_context(const char *request_id, const char *org_id);

#define log_debug(...) log_write(LOG_DEBUG, __VA_ARGS__)
#define log_info(...) log_write(LOG_INFO, __VA_ARGS__)
#define log_warning(...) log_write(LOG_WARNING, __VA_ARGS__)
#define log_error(...) log_write(LOG_ERROR, __VA_ARGS__)

#endif
