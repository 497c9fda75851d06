/* A small bounded pattern matcher for log lines: linear in practice, never exponential. */
#ifndef AGENT_RULES_MATCH_H
#define AGENT_RULES_MATCH_H

#include "base/str.h"

#define MATCH_CAPTURES_MAX 4

struct match {
    struct str captures[MATCH_CAPTURES_MAX];
    size_t count;
};

/*
 * The pattern is anchored at both ends. Signs:
 *   *   any run of characters, also none
 *   %d  decimal digits          %x  hexadecimal digits, with or without 0x
 *   %p  a PCI address           %w  a name: letters, digits, _ . / @ -
 *   %s  up to the next white space
 *   %%  a percent sign
 * Each of d x p w s is captured, in order; at most MATCH_CAPTURES_MAX. Only the last * is tried
 * again, so the work is at most text length times pattern length. Letters match in either case when
 * the pattern begins with "(?i)".
 */
bool match_text(const char *pattern, struct str text, struct match *ret_match) MUST_CHECK;

#endif
