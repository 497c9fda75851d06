/* Settings of an agent: strict reading, clamping, and checks of an organization's own over them. */
#include "agent/settings.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/custom/command.h"
#include "agent/custom/metric.h"

#define METRIC                                                                                    \
    "\"version\":1,\"kind\":\"metric\",\"severity\":\"warning\",\"action\":\"none\","             \
    "\"metric\":\"gpu_temp_c\",\"comparison\":\"above\",\"threshold\":85,\"clear_threshold\":80," \
    "\"for_seconds\":60"
#define COMMAND                                                                           \
    "\"version\":1,\"kind\":\"command\",\"severity\":\"critical\",\"action\":\"reboot\"," \
    "\"user\":\"nobody\",\"interval_seconds\":60,\"timeout_seconds\":10,"                 \
    "\"output_bytes\":512,\"raise_after\":2,\"clear_after\":2"

static struct settings settings;

static void take(const char *text, const struct settings *kept)
{
    cr_assert(settings_read(str_of(text), kept, &settings), "%s", text);
}

Test(agent_settings, everything_of_a_document_is_read)
{
    take("{\"off\":[\"oom\"],\"looks\":[{\"check_id\":\"clock\",\"raise\":5,\"clear\":3}],"
         "\"expected\":{\"gpus\":8,\"ports\":\"eth0,mlx5_0/1\",\"port_gbps\":400},"
         "\"checks\":[{\"name\":\"hot\"," METRIC "},{\"name\":\"fan\",\"argv\":[\"/bin/test\","
         "\"-e\",\"/data \\\"x\\\"\"]," COMMAND "}]}",
         NULL);
    cr_expect_str_empty(settings.problem);
    cr_expect(settings_is_off(&settings, "oom") && !settings_is_off(&settings, "clock"));
    cr_expect_eq(settings.expected_gpus, 8);
    cr_expect_eq(settings.expected_port_gbps, 400);
    cr_expect_str_eq(settings.expected_ports, "eth0,mlx5_0/1");
    cr_assert_eq(settings.check_count, 2);
    const struct own_check *fan = settings_find(&settings, "custom:fan");
    cr_assert_not_null(fan);
    cr_expect(fan->is_command && fan->word_count == 3 && fan->action == ACTION_REBOOT);
    cr_expect_str_eq(fan->words.ptr + strlen("/bin/test") + 1 + strlen("-e") + 1, "/data \"x\"");
    settings_free(&settings);
}

Test(agent_settings, a_version_is_the_beginning_of_the_documents_hash)
{
    take("{}", NULL);
    cr_expect_str_eq(settings.version, "44136fa355b3678a1146ad16f7e8649e");
}

Test(agent_settings, what_is_no_document_is_refused)
{
    static const char *const bad[] = {"", "[]", "{", "{\"off\":}", "{} x", "null"};
    for (size_t i = 0; i < COUNTOF(bad); i++) {
        cr_expect_not(settings_read(str_of(bad[i]), NULL, &settings), "%s", bad[i]);
    }
}

Test(agent_settings, a_part_that_cannot_be_used_stays_as_it_was)
{
    static const char *const bad[] = {"{\"off\":[7]}",
                                      "{\"looks\":[{\"check_id\":\"clock\",\"raise\":0}]}",
                                      "{\"expected\":{\"gpus\":65}}", "{\"checks\":{}}"};
    static struct settings kept;
    cr_assert(
        settings_read(STR("{\"off\":[\"oom\"],\"looks\":[{\"check_id\":\"clock\",\"raise\":5}],"
                          "\"expected\":{\"gpus\":8},\"checks\":[{\"name\":\"hot\"," METRIC "}]}"),
                      NULL, &kept));
    for (size_t i = 0; i < COUNTOF(bad); i++) {
        take(bad[i], &kept);
        cr_expect_str_not_empty(settings.problem, "%s", bad[i]);
        cr_expect_eq(settings.off_count, i == 0 ? 1 : 0, "%s", bad[i]);
        cr_expect_eq(settings.looks_count, i == 1 ? 1 : 0, "%s", bad[i]);
        cr_expect_eq(settings.expected_gpus, i == 2 ? 8 : -1, "%s", bad[i]);
        cr_expect_eq(settings.check_count, i == 3 ? 1 : 0, "%s", bad[i]);
        settings_free(&settings);
    }
    settings_free(&kept);
}

Test(agent_settings, a_bad_check_leaves_the_others_and_its_former_version)
{
    static struct settings kept;
    cr_assert(settings_read(
        STR("{\"checks\":[{\"name\":\"fan\",\"script\":\"exit 1\"," COMMAND "}]}"), NULL, &kept));
    take("{\"checks\":[{\"name\":\"fan\",\"argv\":[\"relative\"]," COMMAND
         "},{\"name\":\"hot\"," METRIC "},{\"name\":\"Bad\"," METRIC "},{\"name\":\"hot\"," METRIC
         "}]}",
         &kept);
    cr_expect_eq(settings.check_count, 2);
    const struct own_check *fan = settings_find(&settings, "custom:fan");
    cr_assert_not_null(fan);
    cr_expect_str_eq(fan->words.ptr, "exit 1");
    cr_expect_not_null(strstr(settings.problem, "custom:fan"));
    cr_expect_not_null(strstr(settings.problem, "twice"));
    settings_free(&settings);
    settings_free(&kept);
}

Test(agent_settings, looks_are_clamped_to_twenty_times_those_of_the_row)
{
    const struct state_row *clock = state_row_find("chrony", "clock", "");
    const struct state_row *disk = state_row_find("smart", "disk_ata", "");
    cr_assert(clock != NULL && disk != NULL);
    take("{\"looks\":[{\"check_id\":\"clock\",\"raise\":200},{\"check_id\":\"disk_ata\",\"raise\":"
         "200,"
         "\"clear\":7}]}",
         NULL);
    cr_expect_eq(settings_raise(&settings, clock), 200);
    cr_expect_eq(settings_clear(&settings, clock), clock->clear_rounds);
    cr_expect_eq(settings_raise(&settings, disk), 20);
    cr_expect_eq(settings_clear(&settings, disk), 7);
    cr_expect_eq(settings_raise(NULL, clock), clock->raise_rounds);
}

/* ---- checks over readings and runs ---- */

struct house {
    char folder[64];
    char open[96];
    struct spool *spool;
    struct faults *faults;
};

static void build(struct house *house)
{
    char error[256];

    (void)snprintf(house->folder, sizeof(house->folder), "/tmp/muster-settings-XXXXXX");
    cr_assert_not_null(mkdtemp(house->folder));
    (void)snprintf(house->open, sizeof(house->open), "%s/open", house->folder);
    house->spool = spool_open(house->folder, "0b6a0000-0000-4000-8000-000000000001", 1 << 20, error,
                              sizeof(error));
    cr_assert_not_null(house->spool, "%s", error);
    house->faults = faults_open(house->open, house->spool, "0b6a0000-0000-4000-8000-000000000001");
}

static void clean(struct house *house)
{
    char command[128];

    faults_close(house->faults);
    spool_close(house->spool);
    settings_free(&settings);
    (void)snprintf(command, sizeof(command), "%s/open", house->folder);
    (void)unlink(command);
}

static void at(struct house *house, struct own_metrics *metrics, int64_t temp_c, int64_t second)
{
    static struct readings readings;

    readings.gpu_count = 1;
    readings.gpus[0] = (struct gpu_reading){.known = true, .temp_c = temp_c};
    (void)snprintf(readings.gpus[0].pci.text, sizeof(readings.gpus[0].pci.text), "0000:1b:00");
    own_metrics_judge(metrics, &settings, &readings, house->faults, second * 1000000);
}

Test(agent_settings, a_metric_is_told_after_its_time_and_ends_at_its_own_threshold)
{
    static struct own_metrics metrics;
    struct house house;

    build(&house);
    take("{\"checks\":[{\"name\":\"hot\"," METRIC "}]}", NULL);
    at(&house, &metrics, 90, 100);
    at(&house, &metrics, 90, 159);
    cr_expect_not(faults_has(house.faults, "custom:hot", "0000:1b:00"), "59 seconds");
    at(&house, &metrics, 70, 160);
    at(&house, &metrics, 90, 170);
    at(&house, &metrics, READING_NONE, 200);
    at(&house, &metrics, 90, 229);
    cr_expect_not(faults_has(house.faults, "custom:hot", NULL), "it was good in between");
    at(&house, &metrics, 90, 230);
    cr_expect(faults_has(house.faults, "custom:hot", "0000:1b:00"));
    at(&house, &metrics, 82, 240);
    cr_expect(faults_has(house.faults, "custom:hot", "0000:1b:00"), "between the thresholds");
    at(&house, &metrics, READING_NONE, 245);
    cr_expect(faults_has(house.faults, "custom:hot", "0000:1b:00"), "missing is not good");
    at(&house, &metrics, 80, 250);
    cr_expect_not(faults_has(house.faults, "custom:hot", NULL));
    clean(&house);
}

Test(agent_settings, a_command_is_told_after_its_runs_and_an_odd_status_is_about_the_check)
{
    struct own_command command = {.bad = 0};
    struct house house;
    char code[64] = "";

    build(&house);
    take("{\"checks\":[{\"name\":\"fan\",\"script\":\"exit 2\"," COMMAND "}]}", NULL);
    const struct own_check *fan = &settings.checks[0];
    own_command_result(&command, fan, 2, STR("it stands"), house.faults);
    cr_expect_not(faults_has(house.faults, fan->id, NULL), "one run");
    own_command_result(&command, fan, 2, STR("it stands"), house.faults);
    cr_expect_eq(faults_gravest(house.faults, fan->id, ""), SEVERITY_CRITICAL);
    cr_expect(faults_has_node_fault(house.faults, ""));
    own_command_result(&command, fan, 77, STR(""), house.faults);
    own_command_result(&command, fan, 77, STR(""), house.faults);
    cr_expect(faults_has_node_fault(house.faults, ""), "what cannot be told ends nothing");
    own_command_result(&command, fan, 0, STR(""), house.faults);
    cr_expect(faults_has(house.faults, fan->id, NULL), "one good run");
    own_command_result(&command, fan, 0, STR(""), house.faults);
    cr_expect_not(faults_has(house.faults, fan->id, NULL));
    own_command_result(&command, fan, 77, STR(""), house.faults);
    own_command_result(&command, fan, 77, STR(""), house.faults);
    faults_copy_code(house.faults, fan->id, "", code, sizeof(code));
    cr_expect_str_eq(code, "unknown");
    cr_expect_not(faults_has_node_fault(house.faults, ""));
    clean(&house);
}

Test(agent_settings, a_check_that_is_off_is_not_told)
{
    struct finding finding = {
        .check = "oom", .severity = SEVERITY_WARNING, .clears = CLEARS_EVENT, .count = 1};
    struct fault_report report = {.finding = &finding, .source = "kernel"};
    struct house house;

    build(&house);
    take("{\"off\":[\"oom\"]}", NULL);
    faults_set_settings(house.faults, &settings);
    faults_tell(house.faults, &report);
    cr_expect_eq(spool_waiting(house.spool, 1), 0);
    finding.check = "nfs";
    faults_tell(house.faults, &report);
    cr_expect_eq(spool_waiting(house.spool, 1), 1);
    clean(&house);
}
