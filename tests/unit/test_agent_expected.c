/* Promises of the look at what a node should have. */
#include "agent/collect/source.h"

#include <criterion/criterion.h>
#include <stdio.h>

/* A look on a node without any device. version is that of the server's settings. */
static struct look_answer look_at(int64_t own_gpus, const char *version, bool asked)
{
    CLEANUP(buf_free) struct buf answer = {0};
    struct options options = {.root = "/no-such-root",
                              .programs_path = "",
                              .expected_ports = "",
                              .expected_gpus = own_gpus};
    struct readings readings = {0};
    struct settings settings;
    struct source_facts facts = {
        .options = &options, .settings = &settings, .readings = &readings, .gpus_asked = asked};
    struct finding findings[LOOK_FINDINGS_MAX];
    struct look_answer head;
    struct str memory;

    settings_init(&settings);
    (void)snprintf(settings.version, sizeof(settings.version), "%s", version);
    source_look(&source_expected, &facts, STR(""), 1000000, &answer);
    cr_assert(source_read(buf_str(&answer), &head, findings, &memory));
    settings_free(&settings);
    return head;
}

Test(expected, a_gpu_driver_that_was_not_asked_yet_is_no_good_reading)
{
    cr_expect_eq(look_at(8, "", false).state, COLLECTOR_UNKNOWN, "good would end what is open");
    cr_expect_eq(look_at(8, "", true).state, COLLECTOR_OK);
    cr_expect_eq(look_at(8, "", true).count, 1);
    cr_expect_eq(look_at(0, "", true).count, 0);
}

Test(expected, what_was_told_ends_once_it_is_known_that_nothing_is_expected)
{
    cr_expect_eq(look_at(-1, "1f", true).state, COLLECTOR_ABSENT);
    cr_expect(look_at(-1, "1f", true).ends);
    cr_expect_not(look_at(-1, "", true).ends, "the server has not said anything yet");
    cr_expect_not(look_at(8, "1f", true).ends);
}
