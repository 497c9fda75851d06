/* What a text may not hold because it would not show as itself. */
#ifndef BASE_HIDDEN_H
#define BASE_HIDDEN_H

#include <stdbool.h>

#include "base/str.h"

/* What of a text of people would not show as itself: a control character (C0, DEL, C1) or one that
 * turns the direction of writing, which makes a name look like another. NULL = nothing, else its
 * sentence. `lines` lets \n, \t and \r\n pass. s is UTF-8. */
const char *hidden_find(struct str s, bool lines);

#endif
