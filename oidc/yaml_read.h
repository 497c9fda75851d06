/* YAML read into JSON values, so that a configuration may be written either way. */
#ifndef OIDC_YAML_READ_H
#define OIDC_YAML_READ_H

#include <jansson.h>

#include "base/arena.h"
#include "base/str.h"

/*
 * One document, at most 32 levels and 50,000 values. Scalars without quotes are read as YAML 1.1
 * does (null, booleans with yes and on, numbers). Anchors, aliases, tags, a second document and
 * doubled keys are refused. NULL with a sentence in the arena; owned by the caller.
 */
json_t *yaml_read(struct arena *arena, struct str text, const char **ret_error) MUST_CHECK;

#endif
