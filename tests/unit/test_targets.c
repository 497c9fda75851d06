/* The executors file: what it takes, and what it refuses with the place and the field. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "server/repair/executors/scheduler.h"
#include "server/repair/executors/targets.h"

static char error[512];

static bool read_text(const char *text)
{
    char path[] = "/tmp/muster-targets-XXXXXX";
    int fd = mkstemp(path);

    cr_assert_geq(fd, 0);
    cr_assert_eq(file_write_all(fd, str_of(text)), 0);
    close(fd);
    error[0] = '\0';
    bool ok = targets_read(path, error, sizeof error);
    unlink(path);
    return ok;
}

Test(targets, none_is_configured_without_a_file)
{
    cr_assert(targets_read("", error, sizeof error));
    cr_assert_eq(targets_count(), 0);
}

Test(targets, a_cluster_is_found_by_the_names_of_its_org_and_itself)
{
    cr_assert(read_text("{\"schedulers\":[{\"org\":\"main\",\"cluster\":\"gpu\",\"kind\":\"slurm\","
                        "\"config\":\"/etc/s.conf\"}]}"),
              "%s", error);
    const struct scheduler_target *target = target_find(STR("main"), STR("gpu"));

    cr_assert_not_null(target);
    cr_assert_eq(target->scheduler, &scheduler_slurm);
    cr_assert_eq(target->timeout_s, 10);
    cr_assert_null(target_find(STR("other"), STR("gpu")));
}

Test(targets, a_mistake_is_named_with_its_place)
{
    static const struct {
        const char *text;
        const char *word;
    } bad[] = {
        {"", "executors_file"},
        {"[]", "executors_file"},
        {"{\"scheduler\":[]}", "scheduler"},
        {"{\"schedulers\":{}}", "list"},
        {"{\"schedulers\":[3]}", "schedulers[0]"},
        {"{\"schedulers\":[{\"org\":\"main\",\"cluster\":\"a\"}]}", "kind"},
        {"{\"schedulers\":[{\"org\":\"main\",\"cluster\":\"a\",\"kind\":\"pbs\"}]}", "kind"},
        {"{\"schedulers\":[{\"org\":\"main\",\"cluster\":\"a\",\"kind\":\"slurm\",\"port\":1}]}",
         "port"},
        {"{\"schedulers\":[{\"org\":\"main\",\"cluster\":\"a\",\"kind\":\"slurm\",\"server\":"
         "\"https://x\"}]}",
         "config"},
        {"{\"schedulers\":[{\"org\":\"main\",\"cluster\":\"a\",\"kind\":\"slurm\"},"
         "{\"org\":\"main\",\"cluster\":\"a\",\"kind\":\"slurm\"}]}",
         "schedulers[1]"},
        {"{\"schedulers\":[{\"org\":\"main\",\"cluster\":\"a\",\"kind\":\"slurm\",\"timeout_"
         "seconds\":0}]}",
         "timeout"},
        {"{\"machines\":[{\"org\":\"main\",\"cluster\":\"a\",\"node\":\"n\",\"kind\":\"ipmi\","
         "\"user\":\"u\"}]}",
         "password_file"},
        {"{\"machines\":[{\"org\":\"main\",\"cluster\":\"a\",\"node\":\"n\",\"kind\":\"ipmi\","
         "\"user\":\"u\",\"password_file\":\"/p\"}]}",
         "host"},
        {"{\"machines\":[{\"org\":\"main\",\"cluster\":\"a\",\"node\":\"n\",\"kind\":\"redfish\","
         "\"user\":\"u\",\"password_file\":\"/p\",\"url\":\"http://bmc\"}]}",
         "https"},
    };

    for (size_t i = 0; i < COUNTOF(bad); i++) {
        cr_assert_not(read_text(bad[i].text), "%s", bad[i].text);
        cr_assert(strstr(error, bad[i].word) != NULL, "%s: %s", bad[i].text, error);
    }
    cr_assert_not(targets_read("/nonexistent", error, sizeof error));
    cr_assert(strstr(error, "/nonexistent") != NULL);
}

#define HOOK(more) \
    "{\"webhooks\":[{\"org\":\"main\",\"cluster\":\"gpu\",\"secret_file\":\"/s\"," more "}]}"

Test(targets, a_webhook_carries_out_the_actions_that_it_names)
{
    cr_assert(read_text(HOOK("\"actions\":[\"reboot\",\"reprovision\"],\"url\":\"https://a/b\"")),
              "%s", error);
    cr_assert_eq(hook_actions(STR("main"), STR("gpu")),
                 1u << ACTION_REBOOT | 1u << ACTION_REPROVISION);
    cr_assert_eq(hook_actions(STR("main"), STR("other")), 0);
    cr_assert_str_eq(hook_names(), "{main/gpu/reboot,main/gpu/reprovision}");
}

Test(targets, a_webhook_that_cannot_be_is_refused_with_the_reason)
{
    cr_assert_not(read_text(HOOK("\"actions\":[\"remove\"],\"url\":\"https://a/b\"")));
    cr_assert_not(read_text(HOOK("\"actions\":[\"reboot\"],\"url\":\"http://a/b\"")));
    cr_assert(strstr(error, "https://") != NULL, "%s", error);
    cr_assert_not(read_text(
        HOOK("\"actions\":[\"reboot\"],\"url\":\"https://a/b\",\"status_url\":\"https://a/c\"")));
    cr_assert(strstr(error, "{id}") != NULL, "%s", error);
}
