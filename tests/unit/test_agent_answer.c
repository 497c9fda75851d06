/* Promises of the agent's reading of answers, boot ids, /proc files and NVML's answers. */
#include <criterion/criterion.h>
#include <string.h>

#include "agent/answer.h"
#include "agent/boot.h"
#include "agent/collect/cpu.h"
#include "agent/collect/disk.h"
#include "agent/collect/memory.h"
#include "agent/collect/network.h"
#include "agent/collect/nvml_child.h"
#include "agent/json_path.h"

Test(answer, members_are_read_and_unknown_ones_passed_over)
{
    struct answer answer;

    cr_assert(answer_read(
        STR("{\"interval_seconds\": 10.4, \"accepted\": 1, \"future\": {\"a\": [1, {}]},"
            "\"rejected\": [{\"stream\": 1, \"seq\": 13, \"reason\": \"too long\", \"x\": 1}],"
            "\"reconnect\": true, \"commands\": [{\"payload\": \"{\\\"a\\\":1}\","
            "\"signature\": \"c2ln\", \"new\": null}]}"),
        &answer));
    cr_assert_float_eq(answer.interval_seconds, 10.4, 1e-9);
    cr_assert(answer.reconnect);
    cr_assert_eq(answer.rejected_count, 1);
    cr_assert_eq(answer.rejected[0].seq, 13);
    cr_assert_eq(answer.command_count, 1);
    cr_assert(str_eq_c(buf_str(&answer.commands[0].payload), "{\"a\":1}"));
    cr_assert(str_eq_c(answer.commands[0].signature, "c2ln"));
    answer_free(&answer);
}

Test(answer, more_commands_than_there_is_room_for_are_left_out)
{
    CLEANUP(buf_free) struct buf text = {0};
    struct answer answer;

    buf_add_c(&text, "{\"commands\":[");
    for (int i = 0; i < 100; i++) {
        buf_add_c(&text, i == 0 ? "{\"payload\":\"x\"}" : ",{\"payload\":\"x\"}");
    }
    buf_add_c(&text, "]}");
    cr_assert(answer_read(buf_str(&text), &answer));
    cr_assert_eq(answer.command_count, ANSWER_COMMANDS_MAX);
    answer_free(&answer);
}

Test(answer, what_is_no_answer_is_refused)
{
    static const char *const texts[] = {
        "", "[]", "{", "{\"interval_seconds\": }", "{\"commands\": [1]}", "{} x"};
    struct answer answer;

    for (size_t i = 0; i < COUNTOF(texts); i++) {
        cr_assert_not(answer_read(str_of(texts[i]), &answer), "%s", texts[i]);
        answer_free(&answer);
    }
}

Test(boot, the_file_has_a_uuid_and_perhaps_a_place_in_the_kernels_log)
{
    struct boot boot;

    cr_assert(boot_parse(STR("0B6A1F04-9c2f-4f1e-8a55-2d1f7b0c9e11\n"), &boot));
    cr_assert_str_eq(boot.id, "0b6a1f04-9c2f-4f1e-8a55-2d1f7b0c9e11");
    cr_assert_eq(boot.kmsg_floor, -1);
    cr_assert(boot_parse(STR("0b6a1f04-9c2f-4f1e-8a55-2d1f7b0c9e11\nkmsg_seq 345\n"), &boot));
    cr_assert_eq(boot.kmsg_floor, 345);
    cr_assert_not(boot_parse(STR("0b6a1f04-9c2f-4f1e-8a55-2d1f7b0c9e11\nkmsg_seq x\n"), &boot));
    cr_assert_not(boot_parse(STR("hello\n"), &boot));
    cr_assert_not(boot_parse(STR(""), &boot));
}

Test(readings, cpu_time_counts_iowait_as_idle)
{
    uint64_t busy;
    uint64_t total;

    cr_assert(cpu_parse(STR("cpu  10 20 30 400 50 6 7 8 9 9\ncpu0 1 1 1 1\n"), &busy, &total));
    cr_assert_eq(total, 531);
    cr_assert_eq(busy, 81);
    cr_assert_not(cpu_parse(STR("cpu0 1 2 3 4\n"), &busy, &total));
    cr_assert_not(cpu_parse(STR("cpu  1 2 3\n"), &busy, &total));
    cr_assert_not(cpu_parse(STR("cpu  1 2 -3 4\n"), &busy, &total));
}

Test(readings, memory_needs_both_of_its_lines)
{
    int64_t total;
    int64_t available;

    cr_assert(memory_parse(STR("MemTotal:  1000 kB\nMemFree: 1 kB\nMemAvailable:  400 kB\n"),
                           &total, &available));
    cr_assert_eq(available, 400);
    cr_assert_not(memory_parse(STR("MemTotal:  1000 kB\n"), &total, &available));
    cr_assert_not(
        memory_parse(STR("MemTotal:  10 kB\nMemAvailable:  400 kB\n"), &total, &available));
}

Test(readings, only_local_file_systems_count_and_each_device_once)
{
    struct disk_mount mounts[8];

    cr_assert_eq(
        disk_parse_mounts(
            STR("/dev/sda1 / ext4 rw 0 0\nproc /proc proc rw 0 0\n/dev/sda1 /bind ext4 rw 0 0\n"
                "nas:/x /home nfs4 rw 0 0\n/dev/sdb1 /mnt/a\\040b xfs rw 0 0\nbroken\n"),
            mounts, 8),
        2);
    cr_assert_str_eq(mounts[1].path, "/mnt/a b");
}

Test(readings, a_counter_that_went_back_gives_no_rate)
{
    cr_assert_float_eq(network_rate(0, 125000000, 1000000), 1000.0, 1e-6);
    cr_assert_lt(network_rate(10, 5, 1000000), 0);
    cr_assert_lt(network_rate(0, 5, 0), 0);
}

Test(nvml, an_answer_of_the_wrong_size_is_refused)
{
    struct nvml_answer answer = {.count = 0};
    struct nvml_answer read;
    struct str data = {(const char *)&answer, sizeof(answer)};

    cr_assert_not(nvml_answer_read(data, &read));
    data.len = offsetof(struct nvml_answer, gpus);
    cr_assert(nvml_answer_read(data, &read));
    answer.count = 3;
    cr_assert_not(nvml_answer_read(data, &read));
    data.len += 3 * sizeof(struct nvml_gpu);
    cr_assert(nvml_answer_read(data, &read));
    answer.count = GPUS_MAX + 1;
    cr_assert_not(nvml_answer_read(data, &read));
    cr_assert_not(nvml_answer_read(STR(""), &read));
}

Test(json_path, one_value_is_found_by_its_path)
{
    struct str json = STR("{\"a\": {\"b c\": 7, \"d\": \"x\"}, \"e\": [1]}");
    struct str text;
    int64_t value;

    cr_assert(json_path_i64(json, "a/b c", &value) && value == 7);
    cr_assert(json_path_text(json, "a/d", &text) && str_eq_c(text, "x"));
    cr_assert_not(json_path_text(json, "a/b c", &text));
    cr_assert_not(json_path_i64(json, "a/nothing", &value));
    cr_assert_not(json_path_i64(json, "e/0", &value));
    cr_assert_not(json_path_i64(STR("{"), "a", &value));
}
