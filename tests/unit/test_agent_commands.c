/* Promises of the agent's orders: the rules one by one, at most once, the log on disk. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/act/act.h"
#include "agent/act/command.h"
#include "base/file.h"

#define NODE "0b6a1f04-9c2f-4f1e-8a55-000000000001"
#define CLUSTER "0b6a1f04-9c2f-4f1e-8a55-000000000002"
#define ORG "0b6a1f04-9c2f-4f1e-8a55-000000000003"
#define PRESENT "0b6a1f04-9c2f-4f1e-8a55-000000000004"
#define ID "0b6a1f04-9c2f-4f1e-8a55-000000000010"
#define NONCE "AAAAAAAAAAAAAAAAAAAAAA"
#define NOW_S 1800000000

static char path[64];
static struct ed25519 *key;
static struct identity identity;
static struct command_rules rules;

static const char *args = "{}";

static const char *payload_of(const char *id, const char *epoch, const char *action,
                              const char *boot)
{
    static char text[1024];

    (void)snprintf(
        text, sizeof(text),
        "{\"command_id\":\"%s\",\"org_id\":\"" ORG "\",\"cluster_id\":\"" CLUSTER
        "\",\"node_id\":\"" NODE
        "\",\"epoch\":%s,\"action\":\"%s\",\"args\":%s,\"boot_id\":\"%s\",\"nonce\":\"" NONCE
        "\",\"repair_no\":17}",
        id, epoch, action, args, boot);
    return text;
}

static enum verdict judge(const char *payload, struct ed25519 *with, char *reason)
{
    uint8_t signature[ED25519_SIGNATURE_LEN];
    char text[128];
    struct command command;

    ed25519_sign(with, str_of(payload), signature);
    crypto_b64(signature, sizeof(signature), text);
    return command_judge(&rules, str_of(payload), str_of(text), &command, reason, 200);
}

static void start(void)
{
    char error[320];

    (void)snprintf(path, sizeof(path), "/tmp/muster-commands-XXXXXX");
    int fd = mkstemp(path);
    cr_assert_geq(fd, 0);
    (void)close(fd);
    key = ed25519_new();
    ed25519_public(key, identity.command_key);
    (void)snprintf(identity.node_id, sizeof(identity.node_id), NODE);
    (void)snprintf(identity.cluster_id, sizeof(identity.cluster_id), CLUSTER);
    (void)snprintf(identity.org_id, sizeof(identity.org_id), ORG);
    rules = (struct command_rules){.identity = &identity,
                                   .nonce = NONCE,
                                   .boot_id = PRESENT,
                                   .log = command_log_open(path, error, sizeof(error)),
                                   .allowed_actions = "reboot, reset_gpu",
                                   .deny_file = "/nonexistent/deny",
                                   .destructive_per_hour = 1,
                                   .now_s = NOW_S};
    cr_assert_not_null(rules.log, "%s", error);
}

static void end(void)
{
    command_log_close((struct command_log *)rules.log);
    ed25519_free(key);
    (void)unlink(path);
}

TestSuite(commands, .init = start, .fini = end);

static void begin(const char *id, int64_t a, int64_t b, int64_t begun_s)
{
    struct command_entry entry = {.epoch = {a, b}, .begun_s = begun_s};

    (void)snprintf(entry.id, sizeof(entry.id), "%s", id);
    (void)snprintf(entry.action, sizeof(entry.action), "reboot");
    (void)snprintf(entry.boot_id, sizeof(entry.boot_id), PRESENT);
    cr_assert_eq(command_log_begin((struct command_log *)rules.log, &entry), 0);
}

static void reopen(void)
{
    char error[320];

    command_log_close((struct command_log *)rules.log);
    rules.log = command_log_open(path, error, sizeof(error));
}

Test(commands, a_right_order_is_obeyed)
{
    char reason[200];

    cr_assert_eq(judge(payload_of(ID, "[1,1]", "reboot", PRESENT), key, reason), VERDICT_ACT, "%s",
                 reason);
}

Test(commands, rule_1_a_signature_of_another_key_is_refused)
{
    CLEANUP(ed25519_freep) struct ed25519 *other = ed25519_new();
    char reason[200];

    cr_assert_eq(judge(payload_of(ID, "[1,1]", "reboot", PRESENT), other, reason), VERDICT_REFUSED);
    cr_assert_not_null(strstr(reason, "signature"));
}

Test(commands, rule_1_a_changed_byte_is_refused)
{
    const char *payload = payload_of(ID, "[1,1]", "reboot", PRESENT);
    uint8_t signature[ED25519_SIGNATURE_LEN];
    char text[128];
    char reason[200];
    struct command command;

    ed25519_sign(key, str_of(payload), signature);
    crypto_b64(signature, sizeof(signature), text);
    cr_assert_eq(command_judge(&rules, str_of(payload_of(ID, "[1,2]", "reboot", PRESENT)),
                               str_of(text), &command, reason, sizeof(reason)),
                 VERDICT_REFUSED);
    cr_assert_eq(
        command_judge(&rules, str_of(payload), STR("AAAA"), &command, reason, sizeof(reason)),
        VERDICT_REFUSED);
    cr_assert_eq(command_judge(&rules, str_of(payload), STR(""), &command, reason, sizeof(reason)),
                 VERDICT_REFUSED);
}

Test(commands, rule_2_another_node_cluster_or_org_is_refused)
{
    char *members[] = {identity.node_id, identity.cluster_id, identity.org_id};
    char reason[200];

    for (size_t i = 0; i < COUNTOF(members); i++) {
        members[i][35] = 'f';
        cr_assert_eq(judge(payload_of(ID, "[1,1]", "reboot", PRESENT), key, reason),
                     VERDICT_REFUSED);
        cr_assert_not_null(strstr(reason, "another node"));
        members[i][35] = (char)('1' + i);
    }
}

Test(commands, rule_2_an_answer_to_another_report_is_refused)
{
    char reason[200];

    rules.nonce = "BBBBBBBBBBBBBBBBBBBBBB";
    cr_assert_eq(judge(payload_of(ID, "[1,1]", "reboot", PRESENT), key, reason), VERDICT_REFUSED);
    rules.nonce = "";
    cr_assert_eq(judge(payload_of(ID, "[1,1]", "reboot", PRESENT), key, reason), VERDICT_REFUSED);
    cr_assert_not_null(strstr(reason, "last report"));
}

Test(commands, rule_3_an_epoch_must_grow_as_a_pair)
{
    static const struct {
        const char *epoch;
        enum verdict verdict;
    } rows[] = {{"[2,5]", VERDICT_REFUSED},
                {"[2,4]", VERDICT_REFUSED},
                {"[1,99]", VERDICT_REFUSED},
                {"[2,6]", VERDICT_ACT},
                {"[3,0]", VERDICT_ACT}};
    char reason[200];

    begin("0b6a1f04-9c2f-4f1e-8a55-0000000000aa", 2, 5, NOW_S - 7200);
    for (size_t i = 0; i < COUNTOF(rows); i++) {
        cr_assert_eq(judge(payload_of(ID, rows[i].epoch, "reboot", PRESENT), key, reason),
                     rows[i].verdict, "%s", rows[i].epoch);
    }
}

Test(commands, rule_4_an_order_for_another_boot_is_refused)
{
    char reason[200];

    cr_assert_eq(judge(payload_of(ID, "[1,1]", "reboot", NODE), key, reason), VERDICT_REFUSED);
    cr_assert_not_null(strstr(reason, "another boot"));
}

Test(commands, rule_5_an_action_that_is_not_allowed_is_refused)
{
    char reason[200];

    cr_assert_eq(judge(payload_of(ID, "[1,1]", "reprovision", PRESENT), key, reason),
                 VERDICT_REFUSED);
    rules.allowed_actions = "";
    cr_assert_eq(judge(payload_of(ID, "[1,1]", "reboot", PRESENT), key, reason), VERDICT_REFUSED);
    cr_assert_not_null(strstr(reason, "allowed_actions"));
}

Test(commands, rule_5_the_deny_file_refuses_and_so_does_one_that_cannot_be_looked_up)
{
    char reason[200];

    rules.deny_file = "/etc/passwd";
    cr_assert_eq(judge(payload_of(ID, "[1,1]", "reboot", PRESENT), key, reason), VERDICT_REFUSED);
    rules.deny_file = "/etc/passwd/deny";
    cr_assert_eq(judge(payload_of(ID, "[1,1]", "reboot", PRESENT), key, reason), VERDICT_REFUSED);
    cr_assert_not_null(strstr(reason, "deny_file"));
}

Test(commands, rule_5_only_so_many_acts_begin_in_an_hour_whatever_the_clock_did)
{
    char reason[200];

    begin("0b6a1f04-9c2f-4f1e-8a55-0000000000aa", 0, 1, NOW_S - 3601);
    cr_assert_eq(judge(payload_of(ID, "[1,1]", "reboot", PRESENT), key, reason), VERDICT_ACT);
    begin("0b6a1f04-9c2f-4f1e-8a55-0000000000ab", 0, 2, NOW_S - 3599);
    cr_assert_eq(judge(payload_of(ID, "[1,1]", "reboot", PRESENT), key, reason), VERDICT_REFUSED);
    rules.now_s = NOW_S - 86400; /* the clock was set back by a day */
    cr_assert_eq(judge(payload_of(ID, "[1,1]", "reboot", PRESENT), key, reason), VERDICT_REFUSED);
}

Test(commands, R1_an_order_that_was_begun_is_known_after_a_restart)
{
    char reason[200];

    begin(ID, 1, 1, NOW_S - 7200);
    reopen();
    cr_assert_eq(judge(payload_of(ID, "[1,1]", "reboot", PRESENT), key, reason), VERDICT_KNOWN);
    cr_assert_eq(judge(payload_of(ID, "[9,9]", "reboot", PRESENT), key, reason), VERDICT_KNOWN);
}

Test(commands, R1_without_its_log_a_node_refuses_everything)
{
    const struct command_log *log = rules.log;
    char reason[200];

    rules.log = NULL;
    cr_assert_eq(judge(payload_of(ID, "[1,1]", "reboot", PRESENT), key, reason), VERDICT_REFUSED);
    cr_assert_not_null(strstr(reason, "command log"));
    rules.log = log;
}

Test(commands, a_torn_last_line_was_never_acted_on)
{
    begin(ID, 1, 1, NOW_S);
    CLEANUP(cleanup_fd) int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    cr_assert_eq(file_write_all(fd, STR("begun 0b6a1f04-9c2f-4f1e-8a55-0000000000ab 1 2 reb")), 0);
    reopen();
    cr_assert_not_null(rules.log);
    cr_assert_not_null(command_log_find(rules.log, ID));
    cr_assert_null(command_log_find(rules.log, "0b6a1f04-9c2f-4f1e-8a55-0000000000ab"));
    begin("0b6a1f04-9c2f-4f1e-8a55-0000000000ac", 1, 3, NOW_S);
    reopen();
    cr_assert_not_null(command_log_find(rules.log, "0b6a1f04-9c2f-4f1e-8a55-0000000000ac"));
}

Test(commands, a_log_with_a_foreign_line_is_not_trusted)
{
    CLEANUP(cleanup_fd) int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);

    cr_assert_eq(file_write_all(fd, STR("hello\n")), 0);
    reopen();
    cr_assert_null(rules.log);
}

Test(commands, an_end_is_remembered_with_its_detail)
{
    struct command_log *log = (struct command_log *)rules.log;

    begin(ID, 1, 1, NOW_S);
    cr_assert_not_null(command_log_unfinished(log));
    cr_assert_eq(command_log_end(log, ID, true, "status 3\nand more"), 0);
    cr_assert_null(command_log_unfinished(log));
    reopen();
    const struct command_entry *entry = command_log_find(rules.log, ID);
    cr_assert(entry->ended && entry->failed);
    cr_assert_str_eq(entry->detail, "status 3 and more");
}

Test(commands, what_is_no_order_is_ignored)
{
    static const char *const texts[] = {
        "", "{}", "[]", "{\"command_id\":\"" ID "\"}", "{\"command_id\":\"" ID "\"",
    };
    char reason[200];

    for (size_t i = 0; i < COUNTOF(texts); i++) {
        cr_assert_eq(judge(texts[i], key, reason), VERDICT_IGNORED, "%s", texts[i]);
    }
    cr_assert_eq(judge(payload_of(ID, "[1]", "reboot", PRESENT), key, reason), VERDICT_IGNORED);
    cr_assert_eq(judge(payload_of(ID, "[1,2,3]", "reboot", PRESENT), key, reason), VERDICT_IGNORED);
    cr_assert_eq(judge(payload_of(ID, "[-1,2]", "reboot", PRESENT), key, reason), VERDICT_IGNORED);
    cr_assert_eq(judge(payload_of(ID, "[1,2]", "re boot", PRESENT), key, reason), VERDICT_IGNORED);
}

Test(commands, a_program_is_split_at_blanks_and_gets_its_device)
{
    CLEANUP(buf_free) struct buf words = {0};
    char *argv[8];

    cr_assert(
        act_split("nvidia-smi --gpu-reset  -i {gpus}", "0000:bb:00", &words, argv, COUNTOF(argv)));
    cr_assert_str_eq(argv[0], "nvidia-smi");
    cr_assert_str_eq(argv[3], "0000:bb:00");
    cr_assert_null(argv[4]);
    buf_clear(&words);
    cr_assert_not(act_split("reset {gpus}", "", &words, argv, COUNTOF(argv)));
    cr_assert_not(act_split("   ", "", &words, argv, COUNTOF(argv)));
    cr_assert_not(act_split("a b c d e f g h i", "", &words, argv, COUNTOF(argv)));
}

Test(commands, an_order_for_a_simulated_node_is_refused)
{
    char reason[200];

    args = "{\"simulated\": true}";
    cr_assert_eq(judge(payload_of(ID, "[1,1]", "reboot", PRESENT), key, reason), VERDICT_REFUSED);
    cr_assert_str_eq(reason, "the command is for a simulated node");
}

Test(commands, a_reset_names_its_gpus_by_pci_address_only)
{
    static const struct {
        const char *args;
        enum verdict verdict;
    } cases[] = {
        {"{\"gpus\": [\"0000:bb:00\"]}", VERDICT_ACT},
        {"{\"gpus\": [\"0000:bb:00\", \"0000:1b:00.0\"]}", VERDICT_ACT},
        {"{\"gpus\": []}", VERDICT_REFUSED},
        {"{}", VERDICT_REFUSED},
        {"{\"gpus\": \"0000:bb:00\"}", VERDICT_IGNORED},
        {"{\"gpus\": [\"; reboot\"]}", VERDICT_IGNORED},
        {"{\"gpus\": [7]}", VERDICT_IGNORED},
    };
    char reason[200];

    for (size_t i = 0; i < COUNTOF(cases); i++) {
        args = cases[i].args;
        cr_assert_eq(judge(payload_of(ID, "[1,1]", "reset_gpu", PRESENT), key, reason),
                     cases[i].verdict, "case %zu", i);
    }
}
