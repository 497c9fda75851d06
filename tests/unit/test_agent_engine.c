/* Promises of the rules engine in a stream: what is told when, and what belongs together. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "agent/rules/engine.h"

#define SECOND INT64_C(1000000)

static struct engine *engine;
static struct finding told[64];
static size_t told_lines[64];
static size_t told_count;

static void take(const struct incident *incident, void *ctx)
{
    (void)ctx;
    told_lines[told_count] = incident->line_count;
    told[told_count++] = incident->finding;
}

static void feed(const char *text, int64_t now_us)
{
    struct record record = {.text = str_of(text), .uptime_us = -1, .repeat = 1};

    engine_feed(engine, &record, now_us);
}

static size_t take_all(int64_t now_us)
{
    told_count = 0;
    engine_take(engine, now_us, false, take, NULL);
    return told_count;
}

static void start(void)
{
    engine = engine_new(false);
}

static void end(void)
{
    engine_free(engine);
}

TestSuite(engine, .init = start, .fini = end);

Test(engine, a_critical_line_is_urgent_and_its_repeat_is_not)
{
    feed("NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.", 1 * SECOND);
    cr_assert(engine_has_urgent(engine, 1 * SECOND));
    cr_assert_eq(take_all(1 * SECOND), 1);
    feed("NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.", 2 * SECOND);
    cr_assert_not(engine_has_urgent(engine, 2 * SECOND));
}

Test(engine, repeats_after_a_take_are_counted_anew)
{
    for (int i = 0; i < 3; i++) {
        feed("NVRM: Xid (PCI:0000:3b:00): 119, pid=1, name=x, Timeout", i * SECOND);
    }
    cr_assert_eq(take_all(3 * SECOND), 1);
    cr_assert_eq(told[0].count, 3);
    cr_assert_eq(take_all(4 * SECOND), 0);
    feed("NVRM: Xid (PCI:0000:3b:00): 119, pid=9, name=y, Timeout", 5 * SECOND);
    cr_assert_eq(take_all(6 * SECOND), 1);
    cr_assert_eq(told[0].count, 1);
}

Test(engine, a_port_that_lost_its_gpu_waits_for_the_gpus_own_word)
{
    feed("pcieport 0000:00:02.0: AER: Uncorrected (Fatal) error received: id=0010", 1 * SECOND);
    cr_assert_not(engine_has_urgent(engine, 1 * SECOND));
    cr_assert_eq(take_all(1 * SECOND), 0);
    feed("NVRM: Xid (PCI:0000:02:00): 79, GPU has fallen off the bus.", 1 * SECOND + 100000);
    cr_assert_eq(take_all(1 * SECOND + 100000), 1);
    cr_assert_str_eq(told[0].check, "gpu_lost");
    cr_assert_eq(told_lines[0], 2);
}

Test(engine, a_port_that_lost_something_else_is_told_after_the_wait)
{
    feed("pcieport 0000:00:02.0: AER: Uncorrected (Fatal) error received: id=0010", 1 * SECOND);
    cr_assert_eq(engine_next_due(engine), 1 * SECOND + 400000);
    cr_assert(engine_has_urgent(engine, 1 * SECOND + 400000));
    cr_assert_eq(take_all(1 * SECOND + 400000), 1);
    cr_assert_str_eq(told[0].check, "pcie_aer");
}

Test(engine, the_drivers_recovery_action_makes_an_open_warning_urgent)
{
    feed("NVRM: Xid (PCI:0000:3b:00): 94, pid=1, name=x, Contained: CE User Channel", 1 * SECOND);
    cr_assert_not(engine_has_urgent(engine, 1 * SECOND));
    cr_assert_eq(take_all(1 * SECOND), 1);
    feed("NVRM: Xid (PCI:0000:3b:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU "
         "Reset Required)",
         2 * SECOND);
    cr_assert(engine_has_urgent(engine, 2 * SECOND));
    cr_assert_eq(take_all(2 * SECOND), 1);
    cr_assert_str_eq(told[0].check, "gpu_ecc");
    cr_assert_str_eq(told[0].code, "94");
    cr_assert_eq(told[0].action, ACTION_RESET_GPU);
    cr_assert_eq(told[0].severity, SEVERITY_CRITICAL);
}

Test(engine, a_recovery_action_back_to_none_is_a_clearing_fact)
{
    feed("NVRM: Xid (PCI:0000:3b:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU "
         "Reset Required)",
         1 * SECOND);
    cr_assert_eq(take_all(1 * SECOND), 1);
    feed("NVRM: Xid (PCI:0000:3b:00): 154, GPU recovery action changed from 0x1 (GPU Reset "
         "Required) to 0x0 (None)",
         2 * SECOND);
    cr_assert_eq(take_all(2 * SECOND), 1);
    cr_assert(told[0].clear);
    cr_assert_eq(told[0].severity, SEVERITY_INFO);
}

Test(engine, after_three_quiet_minutes_a_new_line_is_a_new_burst)
{
    feed("NVRM: Xid (PCI:0000:3b:00): 48, DBE", 1 * SECOND);
    cr_assert_eq(take_all(1 * SECOND), 1);
    feed("NVRM: Xid (PCI:0000:3b:00): 48, DBE", 200 * SECOND);
    cr_assert(engine_has_urgent(engine, 200 * SECOND));
}

Test(engine, history_says_nothing_in_a_stream)
{
    struct record record = {.text = STR("NVRM: Xid (PCI:0000:3b:00): 79, x"),
                            .uptime_us = -1,
                            .repeat = 1,
                            .stale = true};

    engine_feed(engine, &record, 1 * SECOND);
    cr_assert_eq(take_all(1 * SECOND), 0);
}

Test(engine, the_first_fatal_fault_is_the_root_of_what_follows)
{
    feed("NVRM: Xid (PCI:0000:3b:00): 62, pid=1, name=x, PMU halt", 1 * SECOND);
    for (int i = 0; i < 40; i++) {
        feed("NVRM: Xid (PCI:0000:3b:00): 45, pid=1, name=x, Ch 00000010", 1 * SECOND);
    }
    cr_assert_eq(take_all(1 * SECOND), 1);
    cr_assert_str_eq(told[0].code, "62");
    cr_assert_eq(told[0].count, 1);
}

Test(engine, a_gpu_reports_its_firmware_loss_once_whatever_the_order)
{
    feed("NVRM: RmFetchGspRmImages: No firmware image found", 1 * SECOND);
    feed("NVRM: GPU 0000:07:00.0: RmInitAdapter failed! (0x61:0x56:1770)", 1 * SECOND);
    feed("NVRM: GPU 0000:07:00.0: rm_init_adapter failed, device minor number 0", 1 * SECOND);
    cr_assert_eq(take_all(1 * SECOND), 1);
    cr_assert_str_eq(told[0].device, "0000:07:00");
    cr_assert_eq(told[0].action, ACTION_REPROVISION);
}

Test(engine, thousands_of_distinct_faults_stay_bounded_and_it_asks_to_be_emptied)
{
    char text[128];
    bool asked = false;

    for (int i = 0; i < 5000; i++) {
        (void)snprintf(text, sizeof(text), "NVRM: Xid (PCI:%04x:%02x:00): 79, x", i / 256, i % 256);
        feed(text, 1 * SECOND);
        asked = asked || engine_is_full(engine);
    }
    cr_assert(asked);
}

Test(engine, a_line_longer_than_any_buffer_is_cut_not_copied)
{
    static char text[100000];

    memset(text, 'x', sizeof(text) - 1);
    memcpy(text, "NVRM: Xid (PCI:0000:3b:00): 79, ", 32);
    feed(text, 1 * SECOND);
    cr_assert_eq(take_all(1 * SECOND), 1);
}

Test(engine, nfs_that_recovers_before_it_was_told_is_no_incident)
{
    feed("nfs: server files.example.net not responding, still trying", 1 * SECOND);
    feed("nfs: server files.example.net OK", 2 * SECOND);
    cr_assert_eq(take_all(3 * SECOND), 1);
    cr_assert(told[0].clear);
    cr_assert_str_eq(told[0].fold_code, "not_responding");
}

static const struct finding *last_told(int64_t now_us)
{
    cr_assert_eq(take_all(now_us), 1);
    return &told[0];
}

Test(engine, a_cpu_that_is_stuck_again_and_again_becomes_a_fault_of_the_node)
{
    const char *line = "watchdog: BUG: soft lockup - CPU#18 stuck for 26s! [python3:2254956]";

    for (int i = 0; i < 2; i++) {
        feed(line, i * 26 * SECOND);
        const struct finding *finding = last_told((i * 26 + 5) * SECOND);
        cr_expect_eq(finding->severity, SEVERITY_WARNING, "time %d", i + 1);
        cr_expect_not(finding->node_fault);
    }
    feed(line, 52 * SECOND);
    const struct finding *third = last_told(57 * SECOND);
    cr_expect_eq(third->severity, SEVERITY_CRITICAL);
    cr_expect(third->node_fault && third->action == ACTION_REBOOT);
    cr_expect_eq(third->clears, CLEARS_NEW_BOOT);
}

Test(engine, many_cpus_that_are_stuck_once_are_a_warning)
{
    char line[96];

    for (int cpu = 0; cpu < 8; cpu++) {
        (void)snprintf(line, sizeof(line),
                       "watchdog: BUG: soft lockup - CPU#%d stuck for 22s! [x:%d]", cpu, 100 + cpu);
        feed(line, cpu * SECOND);
    }
    const struct finding *finding = last_told(20 * SECOND);
    cr_expect_eq(finding->severity, SEVERITY_WARNING);
    cr_expect_not(finding->node_fault);
}

Test(engine, a_cpu_that_is_stuck_now_and_then_is_a_warning)
{
    for (int i = 0; i < 5; i++) {
        feed("watchdog: BUG: soft lockup - CPU#18 stuck for 26s! [x:1]", i * 1000 * SECOND);
        const struct finding *finding = last_told((i * 1000 + 5) * SECOND);
        cr_expect_eq(finding->severity, SEVERITY_WARNING, "time %d", i + 1);
    }
}
