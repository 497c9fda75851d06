/* Faults on request: every check has one or a reason, and orders are read as they are written. */
#include <criterion/criterion.h>
#include <string.h>

#include "bench/orders.h"
#include "server/health/catalog.h"

static bool has_kind(const char *check_id)
{
    for (size_t i = 0; i < fault_kinds_count; i++) {
        if (strcmp(fault_kinds[i].check_id, check_id) == 0) {
            return true;
        }
    }
    return false;
}

static bool has_reason(const char *check_id)
{
    for (size_t i = 0; i < fault_reasons_count; i++) {
        if (strcmp(fault_reasons[i].check_id, check_id) == 0) {
            return strlen(fault_reasons[i].why) > 20;
        }
    }
    return false;
}

Test(sim_orders, every_check_has_a_fault_kind_or_a_reason_why_not)
{
    for (size_t i = 0; i < catalog_count; i++) {
        const char *id = catalog_checks[i].check_id;
        cr_expect(has_kind(id) != has_reason(id), "%s has %s", id,
                  has_kind(id) ? "a kind and a reason" : "neither a kind nor a reason");
    }
}

Test(sim_orders, every_kind_fails_a_check_of_the_catalogue)
{
    for (size_t i = 0; i < fault_kinds_count; i++) {
        const struct fault_kind *kind = &fault_kinds[i];
        cr_expect(catalog_find(str_of(kind->check_id)) != NULL, "%s fails %s", kind->id,
                  kind->check_id);
        cr_expect(kind->lines[0] != NULL && kind->summary[0] != '\0', "%s says nothing", kind->id);
        for (size_t j = 0; j < i; j++) {
            cr_expect(strcmp(kind->id, fault_kinds[j].id) != 0, "%s stands twice", kind->id);
        }
    }
}

Test(sim_orders, an_order_names_a_kind_its_nodes_and_a_delay)
{
    struct order order;

    cr_assert(order_parse(STR("gpu_lost@3-5+20"), &order));
    cr_expect(order.verb == ORDER_BREAK && strcmp(order.kind->check_id, "gpu_lost") == 0);
    cr_expect(order.first == 3 && order.last == 5 && order.after_s == 20);
    cr_assert(order_parse(STR("silence@7"), &order));
    cr_expect(order.verb == ORDER_SILENCE && order.first == 7 && order.last == 7);
    cr_assert(order_parse(STR("mend"), &order));
    cr_expect(order.verb == ORDER_MEND && order.first == 0 && order.after_s == 0);
}

Test(sim_orders, what_is_no_order_is_named)
{
    static const char *const wrong[] = {"",           "gpu_lots",    "gpu_lost@0", "gpu_lost@5-3",
                                        "gpu_lost@x", "gpu_lost+-1", "@3",         "mend@1-"};
    struct orders orders = {0};
    struct order order;
    struct str bad;

    for (size_t i = 0; i < COUNTOF(wrong); i++) {
        cr_expect(!order_parse(str_of(wrong[i]), &order) || strcmp(wrong[i], "mend@1-") == 0,
                  "%s is taken", wrong[i]);
    }
    cr_assert(!orders_take(&orders, STR("gpu_lost@1, eth_down@2\nfire@3"), 0, &bad));
    cr_expect(str_eq_c(bad, "fire@3"));
    cr_expect(orders.count == 2);
}

Test(sim_orders, an_order_breaks_silences_and_mends_nodes_when_it_is_due)
{
    struct fleet *fleet = fleet_new(6, "gpu");
    struct orders orders = {0};
    struct str bad;

    for (size_t i = 0; i < fleet->count; i++) {
        fleet->nodes[i].state = SIM_LIVE;
    }
    cr_assert(orders_take(&orders, STR("eth_down@2-3 silence@5 gpu_lost+60"), 1000000, &bad));
    orders_turn(&orders, fleet, 2000000);
    cr_expect(fleet->nodes[0].fault == NULL);
    cr_expect(fleet->nodes[1].fault != NULL && fleet->nodes[2].fault != NULL);
    cr_expect(fleet->nodes[1].event_count == 1);
    cr_expect(fleet->nodes[4].state == SIM_SILENT);
    cr_expect(orders.count == 1);
    orders_turn(&orders, fleet, 62000000);
    cr_expect(fleet->nodes[0].fault != NULL);
    cr_assert(orders_take(&orders, STR("mend@2-5"), 62000000, &bad));
    orders_turn(&orders, fleet, 64000000);
    cr_expect(fleet->nodes[1].fault == NULL);
    cr_expect(fleet->nodes[1].event_count == 2 && fleet->nodes[1].events[1].clear);
    cr_expect(fleet->nodes[4].wake_us == 64000000);
    fleet_free(fleet);
}
