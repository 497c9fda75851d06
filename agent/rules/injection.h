/* A fault that an operator acts out: the words of an injected kernel line. */
#ifndef AGENT_RULES_INJECTION_H
#define AGENT_RULES_INJECTION_H

#include <stdbool.h>

#include "agent/rules/finding.h"

/* Every injected line begins so, so that nobody takes it for the hardware's. */
#define INJECTION_MARK "muster-inject: "

/*
 * "check=clock code=offset device=... severity=warning action=none clear=yes", without the mark, in
 * any order; only check must be there. A check that asks for an action is a critical fault of the
 * node unless the severity says otherwise. False for other words, unknown checks and bad values.
 */
bool injection_parse(struct str text, struct finding *ret_finding) MUST_CHECK;

#endif
