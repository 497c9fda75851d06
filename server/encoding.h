/* Compressed answers: what the client accepts, and br and gzip of a body. */
#ifndef SERVER_ENCODING_H
#define SERVER_ENCODING_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/str.h"

enum encoding { ENCODING_IDENTITY, ENCODING_BR, ENCODING_GZIP };

/* The best of br, gzip and identity that an Accept-Encoding header allows (RFC 9110 12.5.3). */
enum encoding encoding_choose(struct str accept_encoding);
const char *encoding_name(enum encoding encoding); /* for Content-Encoding; NULL for identity */
/* False when it failed or the result is not smaller: send the body as it is. */
bool encoding_compress(enum encoding encoding, struct str body, struct buf *out) MUST_CHECK;

#endif
