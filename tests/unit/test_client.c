/* Deadlines of connections: absolute, and in order. */
#include <criterion/criterion.h>

#include "server/client.h"

static struct clients make_clients(void)
{
    return (struct clients){
        .timeout_us = {[CLIENT_HEADER] = 30, [CLIENT_IDLE] = 100, [CLIENT_BODY] = 40}};
}

Test(client, is_late_at_its_deadline_and_not_before)
{
    struct clients clients = make_clients();
    struct client client = {0};
    clients_add(&clients, &client, 1000);
    cr_assert_null(clients_late(&clients, 1029));
    cr_assert_eq(clients_late(&clients, 1030), &client);
}

Test(client, has_no_deadline_while_the_server_works)
{
    struct clients clients = make_clients();
    struct client client = {0};
    clients_add(&clients, &client, 1000);
    clients_move(&clients, &client, CLIENT_BUSY, 1001);
    cr_assert_null(clients_late(&clients, INT64_MAX / 2));
    cr_assert_eq(clients_timeout_ms(&clients, 1001), -1);
}

Test(client, that_moves_on_gets_the_deadline_of_its_new_phase)
{
    struct clients clients = make_clients();
    struct client client = {0};
    clients_add(&clients, &client, 1000);
    clients_move(&clients, &client, CLIENT_BODY, 1029);
    cr_assert_null(clients_late(&clients, 1068));
    cr_assert_eq(clients_late(&clients, 1069), &client);
}

Test(client, lists_survive_removal_in_any_order)
{
    static const int orders[][3] = {{0, 1, 2}, {2, 1, 0}, {1, 0, 2}, {1, 2, 0}, {0, 2, 1}};
    for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
        struct clients clients = make_clients();
        struct client items[3] = {{0}};
        for (int n = 0; n < 3; n++) {
            clients_add(&clients, &items[n], 1000 + n);
        }
        cr_assert_eq(clients_late(&clients, 5000), &items[0]);
        for (int n = 0; n < 3; n++) {
            clients_remove(&clients, &items[orders[i][n]]);
        }
        cr_assert_eq(clients.count, (size_t)0, "order %zu", i);
        cr_assert_null(clients_late(&clients, 5000), "order %zu", i);
        cr_assert_null(clients.tails[CLIENT_HEADER], "order %zu", i);
    }
}

Test(client, the_wait_is_until_the_first_deadline_of_all_phases)
{
    struct clients clients = {.timeout_us = {[CLIENT_HEADER] = 30000, [CLIENT_IDLE] = 90000}};
    struct client early = {0};
    struct client late = {0};
    cr_assert_eq(clients_timeout_ms(&clients, 0), -1);
    clients_add(&clients, &late, 0);
    clients_move(&clients, &late, CLIENT_IDLE, 0);
    cr_assert_eq(clients_timeout_ms(&clients, 0), 91);
    clients_add(&clients, &early, 0);
    cr_assert_eq(clients_timeout_ms(&clients, 0), 31);
    cr_assert_eq(clients_timeout_ms(&clients, 40000), 1);
}
