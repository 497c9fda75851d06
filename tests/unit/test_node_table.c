/* Promises of server/node_table.h. */
#include <criterion/criterion.h>
#include <string.h>

#include "server/node_table.h"

static struct uuid make_id(uint32_t number)
{
    struct uuid id = {{1}};
    memcpy(id.bytes + 12, &number, sizeof number);
    return id;
}

Test(node_table, only_a_change_is_news)
{
    struct node_table *table = node_table_new();
    struct uuid node = make_id(1);
    struct uuid boot = make_id(2);
    struct uuid other_boot = make_id(3);
    cr_assert(node_table_note(table, &node, &boot, false));
    cr_assert_not(node_table_note(table, &node, &boot, false));
    cr_assert(node_table_note(table, &node, &boot, true));
    cr_assert_not(node_table_note(table, &node, &boot, true));
    cr_assert(node_table_note(table, &node, &other_boot, true));
    cr_assert_eq(node_table_count(table), 1);
    node_table_free(table);
}

Test(node_table, nodes_stay_known_while_it_grows)
{
    struct node_table *table = node_table_new();
    struct uuid boot = make_id(0);
    for (uint32_t i = 1; i <= 20000; i++) {
        struct uuid node = make_id(i);
        cr_assert(node_table_note(table, &node, &boot, true));
    }
    for (uint32_t i = 1; i <= 20000; i++) {
        struct uuid node = make_id(i);
        cr_assert_not(node_table_note(table, &node, &boot, true));
    }
    cr_assert_eq(node_table_count(table), 20000);
    node_table_free(table);
}

Test(node_table, a_full_table_starts_anew)
{
    struct node_table *table = node_table_new();
    struct uuid boot = make_id(0);
    for (uint32_t i = 1; i <= NODE_TABLE_MAX + 1; i++) {
        struct uuid node = make_id(i);
        (void)node_table_note(table, &node, &boot, true);
    }
    cr_assert_eq(node_table_count(table), 1);
    node_table_free(table);
}
