/* Why a token was refused: a closed list of codes that programs may switch on. */
#include "oidc/reason.h"

#include <stddef.h>

#define REASON_ROW(sym, code, help) [sym] = {code, help},
static const struct {
    const char *code;
    const char *help;
} reasons[OIDC_REASON_COUNT] = {[OIDC_OK] = {"ok", "The token is valid."},
                                OIDC_REASON_TABLE(REASON_ROW)};
#undef REASON_ROW

const char *oidc_reason_code(enum oidc_reason reason)
{
    return (size_t)reason < OIDC_REASON_COUNT ? reasons[reason].code : "bad_format";
}

const char *oidc_reason_help(enum oidc_reason reason)
{
    return (size_t)reason < OIDC_REASON_COUNT ? reasons[reason].help : "The token is refused.";
}
