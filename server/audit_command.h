/* `musterd audit`: checks the audit logs, and prints their signed heads. */
#ifndef SERVER_AUDIT_COMMAND_H
#define SERVER_AUDIT_COMMAND_H

#include <stdbool.h>

/*
 * Checks each org's log, or that of `org` (a name; NULL = all): every row against its text and the
 * row before it, the last one against the head, and all against the signed heads in keys_dir/audit
 * and in `heads` (a file that `audit head` wrote; NULL = none). Prints a line an org, which names
 * the first bad row. True when all are whole. After config_read and db_setup.
 */
bool audit_verify(const char *org, const char *heads);
/* Prints the present heads, signed, one JSON object a line. False with the reason in the log. */
bool audit_print_heads(const char *org);

#endif
