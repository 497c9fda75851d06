/* Whether the clock is right: `chronyc -c tracking`. */
#include "agent/collect/source.h"

static void look_at_chrony(struct look *look)
{
    static const char *const argv[] = {"chronyc", "-c", "-n", "tracking", NULL};
    CLEANUP(buf_free) struct buf out = {0};
    int status = 0;

    if (!look_program(look, argv, &out, &status)) {
        return;
    }
    if (status != 0) {
        look_unknown(look, "chronyd does not answer (chronyc's exit status is %d)", status);
        return;
    }
    classify_chronyc(look->classify, buf_str(&out));
}

const struct source_kind source_chrony = {.name = "chrony",
                                          .period_s = 60,
                                          .patience = 1,
                                          .look = look_at_chrony,
                                          .silent = "chronyc did not answer"};
