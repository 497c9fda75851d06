/* The table of failure kinds. */
#include "base/err.h"

#define ERR_ROW(sym, status, code, title) [sym] = {status, code, title},
static const struct err_info table[ERR_COUNT] = {ERR_TABLE(ERR_ROW)};
#undef ERR_ROW

const struct err_info *err_info(enum err err)
{
    if ((unsigned)err == ERR_NONE || (unsigned)err >= ERR_COUNT) {
        return &table[ERR_INTERNAL];
    }
    return &table[err];
}
