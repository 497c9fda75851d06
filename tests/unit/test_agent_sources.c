/* Promises of the sources that are looked at in a child: the table of debounce and clear rules,
 * counters over time, and the parsers of what the node shows. */
#include "agent/collect/source.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/collect/fabric_manager.h"
#include "agent/collect/links.h"
#include "agent/collect/mounts.h"
#include "agent/collect/processes.h"
#include "agent/collect/rates.h"
#include "agent/rules/checks.h"
#include "agent/rules/injection.h"
#include "agent/rules/states.h"
#include "base/file.h"
#include "server/health/catalog.h"

#define SECOND INT64_C(1000000)
#define BOOT "0b6a1f04-9c2f-4f1e-8a55-2d1f7b0c9e11"

static const struct source_kind *find_kind(const char *name)
{
    for (size_t i = 0; i < SOURCES; i++) {
        if (strcmp(source_kinds[i]->name, name) == 0) {
            return source_kinds[i];
        }
    }
    return NULL;
}

static bool is_known_check(const char *check)
{
    size_t len = strlen(check);

    for (size_t i = 0; i < check_row_count; i++) {
        bool family = check[len - 1] == '_' && strncmp(check_rows[i].id, check, len) == 0;

        if (family || strcmp(check_rows[i].id, check) == 0) {
            return check_rows[i].clear_rule[0] != '\0';
        }
    }
    return false;
}

Test(states, each_row_has_a_debounce_a_window_and_a_clear_rule)
{
    for (size_t i = 0; i < state_row_count; i++) {
        const struct state_row *row = &state_rows[i];

        cr_expect_not_null(find_kind(row->source), "row %zu: no source %s", i, row->source);
        cr_expect(is_known_check(row->check), "row %zu: %s has no clear rule", i, row->check);
        cr_expect_geq(row->raise_rounds, 1, "row %zu", i);
        cr_expect_gt(row->window_s, 0, "row %zu", i);
        cr_expect_eq(row->clear_rounds > 0, row->kind == STATE_READING, "row %zu", i);
    }
}

Test(states, each_row_can_be_reached)
{
    for (size_t i = 0; i < state_row_count; i++) {
        const struct state_row *row = &state_rows[i];
        const char *check = row->check;

        if (check[strlen(check) - 1] != '_') {
            cr_expect_eq(state_row_find(row->source, check, row->code == NULL ? "?" : row->code),
                         row, "row %zu is hidden by one before it", i);
        }
    }
}

Test(states, each_source_has_rows_a_period_and_a_sentence)
{
    for (size_t i = 0; i < SOURCES; i++) {
        const struct source_kind *kind = source_kinds[i];
        size_t rows = 0;

        for (size_t k = 0; k < state_row_count; k++) {
            rows += strcmp(state_rows[k].source, kind->name) == 0;
        }
        cr_expect_gt(rows, 0, "%s", kind->name);
        cr_expect_geq(kind->period_s, 10, "%s asks too often", kind->name);
        cr_expect_geq(kind->patience, 1, "%s", kind->name);
        cr_expect_gt(strlen(kind->silent), 10, "%s", kind->name);
    }
}

Test(states, the_source_of_each_check_in_the_catalogue_is_a_collector)
{
    static const char *const others[] = {"kmsg",  "gpu",    "disk",  "fabric",
                                         "agent", "person", "server"};

    for (size_t i = 0; i < catalog_count; i++) {
        const char *source = catalog_checks[i].source;
        bool known = find_kind(source) != NULL;

        for (size_t k = 0; k < COUNTOF(others); k++) {
            known = known || strcmp(others[k], source) == 0;
        }
        cr_expect(known, "%s comes from %s", catalog_checks[i].check_id, source);
    }
}

Test(states, each_link_row_has_a_rule)
{
    for (size_t i = 0; i < link_row_count; i++) {
        const struct link_row *row = &link_rows[i];

        cr_expect_not_null(
            state_row_find("links", row->infiniband ? "ib_link" : "eth_link", row->code), "%s",
            row->code);
        cr_expect(row->window_s > 0 && row->limit > 0, "%s", row->code);
        cr_expect_eq(row->action != ACTION_NONE, row->severity == SEVERITY_CRITICAL, "%s",
                     row->code);
    }
}

/* ---- from a finding to a told fault ---- */

static char folder[64];

struct bench {
    struct options options;
    struct grace grace;
    struct debounce debounce;
    struct spool *spool;
    struct faults *faults;
    struct finding finding;
    bool nvml_ok;
};

static void open_faults(struct bench *bench)
{
    char path[128];
    char error[320];

    (void)snprintf(path, sizeof(path), "%s/spool", folder);
    bench->spool = spool_open(path, BOOT, 1 << 20, error, sizeof(error));
    cr_assert_not_null(bench->spool, "%s", error);
    (void)snprintf(path, sizeof(path), "%s/open", folder);
    bench->faults = faults_open(path, bench->spool, BOOT);
}

static void close_faults(struct bench *bench)
{
    faults_flush(bench->faults);
    faults_close(bench->faults);
    spool_close(bench->spool);
    debounce_free(&bench->debounce);
}

static struct bench open_bench(const char *source, const char *check, const char *code)
{
    struct bench bench = {
        .options = {.root = "", .boot_grace_seconds = 600, .driver_grace_seconds = 900}};

    (void)snprintf(folder, sizeof(folder), "/tmp/muster-sources-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    bench.finding = (struct finding){
        .check = check, .severity = SEVERITY_WARNING, .clears = CLEARS_EVENT, .count = 1};
    finding_set_code(&bench.finding, "%s", code);
    bench.grace.uptime_s = 100000;
    debounce_init(&bench.debounce, source);
    open_faults(&bench);
    return bench;
}

static void close_bench(struct bench *bench)
{
    char path[128];

    close_faults(bench);
    (void)snprintf(path, sizeof(path), "%s/spool", folder);
    spool_remove(path, BOOT);
    (void)rmdir(path);
    (void)snprintf(path, sizeof(path), "%s/open", folder);
    (void)unlink(path);
    (void)rmdir(folder);
}

/* So many looks, with or without the finding. */
static void look_times(struct bench *bench, unsigned times, bool found)
{
    bench->grace.options = &bench->options;
    for (unsigned i = 0; i < times; i++) {
        struct debounce_round round = {.findings = &bench->finding,
                                       .count = found ? 1 : 0,
                                       .faults = bench->faults,
                                       .grace = &bench->grace,
                                       .nvml_ok = bench->nvml_ok,
                                       .now_us = 5 * SECOND};

        debounce_round(&bench->debounce, &round);
    }
}

static bool is_open(const struct bench *bench)
{
    return faults_has(bench->faults, bench->finding.check, bench->finding.device);
}

Test(debounce, a_finding_is_told_after_the_looks_of_its_row_and_ends_after_those)
{
    struct bench bench = open_bench("slurm", "slurm_node_state", "prolog_error");

    look_times(&bench, 2, true);
    cr_expect_not(is_open(&bench));
    look_times(&bench, 1, true);
    cr_expect(is_open(&bench));
    look_times(&bench, 1, false);
    cr_expect(is_open(&bench), "one good look may be luck");
    look_times(&bench, 1, false);
    cr_expect_not(is_open(&bench));
    close_bench(&bench);
}

Test(debounce, one_good_look_begins_the_count_anew)
{
    struct bench bench = open_bench("slurm", "slurm_node_state", "prolog_error");

    look_times(&bench, 2, true);
    look_times(&bench, 1, false);
    look_times(&bench, 2, true);
    cr_expect_not(is_open(&bench));
    close_bench(&bench);
}

Test(debounce, a_grace_holds_back_and_what_still_lasts_is_told_at_its_end)
{
    struct bench bench = open_bench("expected", "gpu_count", "missing");

    bench.grace.driver_end_us = 6 * SECOND;
    look_times(&bench, 20, true);
    cr_expect_not(is_open(&bench));
    bench.grace.driver_end_us = 4 * SECOND;
    look_times(&bench, 1, true);
    cr_expect(is_open(&bench));
    close_bench(&bench);
}

Test(debounce, what_an_agent_before_told_is_ended_by_the_next)
{
    struct bench bench = open_bench("chrony", "clock", "offset");

    look_times(&bench, 15, true);
    close_faults(&bench);
    open_faults(&bench);
    debounce_init(&bench.debounce, "chrony");
    cr_assert(is_open(&bench));
    look_times(&bench, 2, false);
    cr_expect_not(is_open(&bench));
    close_bench(&bench);
}

Test(debounce, what_nvml_judges_itself_is_left_to_it)
{
    struct bench bench = open_bench("dcgm", "gpu_row_remap", "failure");

    bench.nvml_ok = true;
    look_times(&bench, 5, true);
    cr_expect_not(is_open(&bench));
    bench.nvml_ok = false;
    look_times(&bench, 2, true);
    cr_expect(is_open(&bench));
    bench.nvml_ok = true;
    look_times(&bench, 5, false);
    cr_expect(is_open(&bench), "NVML ends what it sees as good");
    close_bench(&bench);
}

Test(debounce, a_look_without_an_answer_ends_nothing)
{
    struct bench bench = open_bench("slurm", "slurm_node_state", "prolog_error");

    look_times(&bench, 3, true);
    for (int i = 0; i < 5; i++) {
        struct debounce_round silence = {
            .faults = bench.faults, .grace = &bench.grace, .silence = true, .now_us = 5 * SECOND};

        debounce_round(&bench.debounce, &silence);
    }
    cr_expect(is_open(&bench));
    close_bench(&bench);
}

Test(grace, it_ends_at_its_deadline)
{
    struct options options = {.boot_grace_seconds = 600};
    struct grace grace = {.options = &options, .uptime_s = 599, .driver_end_us = 10};

    cr_expect(grace_holds(&grace, GRACE_BOOT, 0));
    cr_expect(grace_holds(&grace, GRACE_DRIVER, 0));
    cr_expect_not(grace_holds(&grace, GRACE_NONE, 0));
    grace.uptime_s = 600;
    cr_expect_not(grace_holds(&grace, GRACE_BOOT, 0));
    cr_expect(grace_holds(&grace, GRACE_DRIVER, 9));
    cr_expect_not(grace_holds(&grace, GRACE_DRIVER, 10));
}

static void write_file(const char *name, const char *text)
{
    char path[160];
    FILE *file;

    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    file = fopen(path, "we");
    cr_assert_not_null(file, "%s", path);
    (void)fputs(text, file);
    (void)fclose(file);
}

/* A folder in a new place, and its end with the files that tests put there. */
static void make_tree(const char *inner)
{
    char path[160];

    (void)snprintf(folder, sizeof(folder), "/tmp/muster-tree-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/%s", folder, inner);
    cr_assert_eq(file_make_dirs(path, 0700), 0);
}

static void remove_tree(const char *inner)
{
    static const char *const files[] = {"version", "stat", "status"};
    char path[160];

    (void)snprintf(path, sizeof(path), "%s/%s", folder, inner);
    for (size_t i = 0; i < COUNTOF(files); i++) {
        char file[192];

        (void)snprintf(file, sizeof(file), "%s/%s", path, files[i]);
        (void)unlink(file);
    }
    while (strlen(path) >= strlen(folder)) {
        (void)rmdir(path);
        *strrchr(path, '/') = '\0';
    }
}

Test(grace, an_unloaded_driver_is_being_exchanged_until_the_deadline)
{
    char path[160];
    struct options options = {.driver_grace_seconds = 900, .driver_grace_file = ""};
    struct grace grace;

    make_tree("sys/module/nvidia");
    (void)snprintf(path, sizeof(path), "%s/sys/module/nvidia/version", folder);
    options.root = folder;
    write_file("sys/module/nvidia/version", "570.124.06\n");
    grace_init(&grace, &options);
    grace_look(&grace, SECOND);
    cr_expect_not(grace_holds(&grace, GRACE_DRIVER, SECOND), "a driver that is loaded");
    (void)unlink(path);
    grace_look(&grace, 2 * SECOND);
    cr_expect(grace_holds(&grace, GRACE_DRIVER, 2 * SECOND));
    grace_look(&grace, 800 * SECOND);
    cr_expect(grace_holds(&grace, GRACE_DRIVER, 800 * SECOND));
    grace_look(&grace, 903 * SECOND);
    cr_expect_not(grace_holds(&grace, GRACE_DRIVER, 903 * SECOND), "one that never came back");
    write_file("sys/module/nvidia/version", "575.1\n");
    grace_look(&grace, 904 * SECOND);
    cr_expect(grace_holds(&grace, GRACE_DRIVER, 904 * SECOND), "another version");
    remove_tree("sys/module/nvidia");
}

/* ---- counters ---- */

Test(rates, a_counter_that_grows_is_counted)
{
    cr_expect_eq(counter_grown(5, 12), 7);
    cr_expect_eq(counter_grown(5, 5), 0);
}

Test(rates, a_counter_that_wrapped_at_32_bits_went_on)
{
    cr_expect_eq(counter_grown(UINT32_MAX - 9, 20), 30);
}

Test(rates, a_counter_that_was_reset_has_counted_up_from_nothing)
{
    cr_expect_eq(counter_grown(60000, 100), 100);
    cr_expect_eq(counter_grown(UINT64_MAX, 3), 3);
}

Test(rates, what_is_older_than_the_window_is_forgotten)
{
    struct rate rate;

    rate_begin(&rate, 100, 600, 1000 * SECOND);
    cr_expect_eq(rate_add(&rate, 105, 600, 1060 * SECOND), 5);
    cr_expect_eq(rate_add(&rate, 107, 600, 1300 * SECOND), 7);
    cr_expect_eq(rate_add(&rate, 107, 600, 1700 * SECOND), 2);
    cr_expect_eq(rate_add(&rate, 107, 600, 9000 * SECOND), 0);
}

Test(rates, a_rate_survives_its_text)
{
    CLEANUP(buf_free) struct buf text = {0};
    struct rate rate;
    struct rate again;

    rate_begin(&rate, 100, 600, 1000 * SECOND);
    (void)rate_add(&rate, 250, 600, 1060 * SECOND);
    rate_write(&rate, &text);
    cr_assert(rate_read(buf_str(&text), &again));
    cr_expect_eq(rate_add(&again, 250, 600, 1061 * SECOND), 150);
    cr_expect_not(rate_read(STR("1 2 3"), &again));
    cr_expect_not(rate_read(STR("1 2 3 4 5 6 7 8 9"), &again));
    cr_expect_not(rate_read(STR("x 2 3 4 5 6 7 8"), &again));
}

/* ---- parsers ---- */

Test(processes, a_name_may_hold_brackets_and_blanks)
{
    struct process process;

    cr_assert(process_parse(STR("12 (a) b (c) D 1 1 1 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 987 0"),
                            &process));
    cr_expect_str_eq(process.name, "a)_b_(c");
    cr_expect_eq(process.state, 'D');
    cr_expect_eq(process.started, 987);
}

Test(processes, what_is_no_process_is_refused)
{
    struct process process;

    cr_expect_not(process_parse(STR(""), &process));
    cr_expect_not(process_parse(STR("12 (sh"), &process));
    cr_expect_not(process_parse(STR("12 )sh( S"), &process));
    cr_expect_not(process_parse(STR("12 (sh) S 1 1"), &process));
}

static void write_process(unsigned switches)
{
    CLEANUP(buf_free) struct buf text = {0};

    write_file("proc/4713/stat",
               "4713 (dd) D 1 1 1 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 47130 0 0\n");
    buf_printf(&text, "Name:\tdd\nvoluntary_ctxt_switches:\t%u\n", switches);
    write_file("proc/4713/status", text.ptr);
}

/* So many looks at one process; its switches grow by step. Returns the findings of the last. */
static uint32_t look_at_process(unsigned looks, unsigned step)
{
    CLEANUP(buf_free) struct buf memory = {0};
    struct options options = {.root = folder};
    struct source_facts facts = {.options = &options};
    struct finding findings[LOOK_FINDINGS_MAX];
    struct look_answer head = {.count = 0};

    for (unsigned i = 0; i < looks; i++) {
        CLEANUP(buf_free) struct buf answer = {0};
        struct str left;

        write_process(i * step);
        source_look(&source_processes, &facts, buf_str(&memory), SECOND, &answer);
        cr_assert(source_read(buf_str(&answer), &head, findings, &left));
        buf_clear(&memory);
        buf_add(&memory, left.ptr, left.len);
    }
    return head.count;
}

Test(processes, one_that_waits_in_the_kernel_and_runs_in_between_does_not_hang)
{
    make_tree("proc/4713");
    cr_expect_eq(look_at_process(4, 0), 0, "not yet");
    cr_expect_eq(look_at_process(9, 1), 0, "it runs");
    cr_expect_eq(look_at_process(5, 0), 1);
    remove_tree("proc/4713");
}

Test(mounts, a_line_is_read_with_its_kind_and_state)
{
    struct mount_line mount;

    cr_assert(mount_parse(STR("10.0.0.5:/home /my\\040home nfs4 rw,hard 0 0"), &mount));
    cr_expect_str_eq(mount.path, "/my home");
    cr_expect_eq(mount.kind, MOUNT_REMOTE);
    cr_expect_not(mount.readonly);
    cr_assert(mount_parse(STR("/dev/sda1 / ext4 ro,emergency_ro 0 0"), &mount));
    cr_expect_eq(mount.kind, MOUNT_LOCAL);
    cr_expect(mount.readonly && mount.broken);
    cr_assert(mount_parse(STR("overlay / overlay ro 0 0"), &mount));
    cr_expect_eq(mount.kind, MOUNT_OTHER);
    cr_expect_not(mount_parse(STR("/dev/sda1 /"), &mount));
    cr_expect_not(mount_parse(STR("/dev/sda1 relative ext4 ro 0 0"), &mount));
}

Test(fabric_manager, a_line_begins_with_its_time)
{
    int64_t first;
    int64_t second;

    cr_assert(fabric_manager_time(STR("[Sep 02 2024 11:00:55] [ERROR] x"), &first));
    cr_assert(fabric_manager_time(STR("[Sep 02 2024 11:01:55] [ERROR] x"), &second));
    cr_expect_eq(second - first, 60);
    cr_expect_not(fabric_manager_time(STR("[Sep 02] x"), &first));
    cr_expect_not(fabric_manager_time(STR("detected NVSwitch fatal error 20034 on"), &first));
}

Test(injection, the_words_make_a_finding)
{
    struct finding finding;

    cr_assert(
        injection_parse(STR("check=gpu_lost code=79 device=0000:1b:00 action=reboot"), &finding));
    cr_expect_str_eq(finding.check, "gpu_lost");
    cr_expect_str_eq(finding.device, "0000:1b:00");
    cr_expect(finding.node_fault && finding.severity == SEVERITY_CRITICAL);
    cr_assert(injection_parse(STR("check=clock clear=yes"), &finding));
    cr_expect(finding.clear);
}

Test(injection, other_words_are_refused)
{
    struct finding finding;

    cr_expect_not(injection_parse(STR("NVRM: Xid (PCI:0000:1b:00): 79, check=clock"), &finding));
    cr_expect_not(injection_parse(STR("check=weather"), &finding));
    cr_expect_not(injection_parse(STR("check=clock colour=red"), &finding));
    cr_expect_not(injection_parse(STR("check=clock severity=loud"), &finding));
    cr_expect_not(injection_parse(STR("check=clock clear=no"), &finding));
    cr_expect_not(injection_parse(STR("check=clock ="), &finding));
}

/* ---- answers of a child ---- */

static void find_nothing(struct look *look)
{
    (void)look;
}

static void find_much(struct look *look)
{
    for (int i = 0; i < 600; i++) {
        char device[16];

        (void)snprintf(device, sizeof(device), "d%d", i);
        (void)look_add(look, "disk_io", device, i == 599 ? SEVERITY_CRITICAL : SEVERITY_WARNING);
    }
    buf_add_c(&look->next, "left");
}

static void read_look(void (*look)(struct look *look), struct look_answer *head,
                      struct finding *findings, struct buf *answer, struct str *memory)
{
    struct source_kind kind = {.name = "test", .period_s = 60, .patience = 1, .look = look};
    struct options options = {.root = ""};
    struct source_facts facts = {.options = &options};

    source_look(&kind, &facts, STR(""), SECOND, answer);
    cr_assert(source_read(buf_str(answer), head, findings, memory));
}

Test(look, one_that_finds_nothing_is_ok)
{
    CLEANUP(buf_free) struct buf answer = {0};
    struct finding findings[LOOK_FINDINGS_MAX];
    struct look_answer head;
    struct str memory;

    read_look(find_nothing, &head, findings, &answer, &memory);
    cr_expect_eq(head.state, COLLECTOR_OK);
    cr_expect_eq(head.count, 0);
    cr_expect_eq(memory.len, 0);
}

Test(look, of_too_many_findings_the_gravest_are_carried)
{
    CLEANUP(buf_free) struct buf answer = {0};
    struct finding findings[LOOK_FINDINGS_MAX];
    struct look_answer head;
    struct str memory;

    read_look(find_much, &head, findings, &answer, &memory);
    cr_expect_eq(head.count, LOOK_FINDINGS_MAX);
    cr_expect_eq(findings[0].severity, SEVERITY_CRITICAL);
    cr_expect_str_eq(findings[0].check, "disk_io");
    cr_expect(str_eq_c(memory, "left"));
}

Test(look, an_answer_that_was_cut_is_refused)
{
    CLEANUP(buf_free) struct buf answer = {0};
    struct finding findings[LOOK_FINDINGS_MAX];
    struct look_answer head;
    struct str memory;

    read_look(find_much, &head, findings, &answer, &memory);
    cr_expect_not(source_read((struct str){answer.ptr, 10}, &head, findings, &memory));
    cr_expect_not(
        source_read((struct str){answer.ptr, sizeof(head) + 100}, &head, findings, &memory));
}
