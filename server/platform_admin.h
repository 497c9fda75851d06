/* `musterd platform-admin`: who may make organizations. */
#ifndef SERVER_PLATFORM_ADMIN_H
#define SERVER_PLATFORM_ADMIN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* Makes a local person a platform administrator, or no longer one; a row in the audit log of each
 * of their organizations says so. Effective with their next request. A sentence in error. */
enum err platform_admin_set(const char *user, bool admin, char *error, size_t error_cap);

#endif
