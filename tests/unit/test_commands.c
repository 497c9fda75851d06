/* Promises of server/commands.h. */
#include <criterion/criterion.h>

#include "base/buf.h"
#include "server/commands.h"
#include "server/follow.h"

/* The table is tested alone: nobody follows here. */
void follow_subscribe(struct follow *follow, follow_fn *fn, void *ctx)
{
    (void)follow;
    (void)fn;
    (void)ctx;
}

static struct uuid make_id(uint8_t number)
{
    return (struct uuid){{number}};
}

Test(commands, only_nodes_of_the_table_are_asked_about)
{
    struct commands *commands = commands_new(10);
    struct uuid nodes[] = {make_id(7), make_id(2), make_id(5)};
    struct uuid other = make_id(3);
    cr_assert_not(commands_wait_for(commands, &nodes[0]));
    commands_set(commands, nodes, COUNTOF(nodes));
    for (size_t i = 0; i < COUNTOF(nodes); i++) {
        cr_assert(commands_wait_for(commands, &nodes[i]));
    }
    cr_assert_not(commands_wait_for(commands, &other));
    commands_set(commands, NULL, 0);
    cr_assert_not(commands_wait_for(commands, &nodes[0]));
    commands_free(commands);
}

Test(commands, the_payload_names_all_that_the_agent_checks)
{
    CLEANUP(buf_free) struct buf text = {0};
    struct command_order order = {
        .id = make_id(1),
        .org = make_id(2),
        .cluster = make_id(3),
        .node = make_id(4),
        .epoch_generation = 1,
        .epoch_n = 42,
        .action = STR("reboot"),
        .args = STR("{\"gpu\": \"0000:bb:00\"}"),
        .boot_id = STR("0b6a0000-0000-7000-8000-000000000001"),
        .nonce = STR("abc"),
        .repair_no = 17,
    };
    command_payload(&order, &text);
    cr_assert_str_eq(text.ptr,
                     "{\"command_id\":\"01000000-0000-0000-0000-000000000000\","
                     "\"org_id\":\"02000000-0000-0000-0000-000000000000\","
                     "\"cluster_id\":\"03000000-0000-0000-0000-000000000000\","
                     "\"node_id\":\"04000000-0000-0000-0000-000000000000\","
                     "\"epoch\":[1,42],\"action\":\"reboot\",\"args\":{\"gpu\": \"0000:bb:00\"},"
                     "\"boot_id\":\"0b6a0000-0000-7000-8000-000000000001\",\"nonce\":\"abc\","
                     "\"repair_no\":17}");
}

Test(commands, what_a_command_does_not_bind_is_null)
{
    CLEANUP(buf_free) struct buf text = {0};
    struct command_order order = {.action = STR("reset_gpu"), .args = STR("{}"), .nonce = STR("n")};
    command_payload(&order, &text);
    cr_assert_neq(str_find(buf_str(&text), STR("\"boot_id\":null"), 0), -1);
    cr_assert_neq(str_find(buf_str(&text), STR("\"repair_no\":null"), 0), -1);
}
