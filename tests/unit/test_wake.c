/* Promises of server/wake.h. */
#include <criterion/criterion.h>
#include <pthread.h>

#include "base/clock.h"
#include "server/wake.h"

static struct uuid org(uint8_t n)
{
    struct uuid id = {{0}};

    id.bytes[15] = n;
    return id;
}

Test(wake, an_org_that_is_woken_twice_is_taken_once)
{
    struct wake *wake = wake_subscribe(WAKE_HEALTH);
    struct wake_orgs orgs;
    struct uuid one = org(1);
    struct uuid two = org(2);

    wake_org(&one, WAKE_HEALTH);
    wake_org(&two, WAKE_HEALTH | WAKE_REPAIR);
    wake_org(&one, WAKE_HEALTH);
    cr_assert(wake_wait(wake, 0, &orgs));
    cr_assert_eq(orgs.count, 2);
    cr_assert_not(orgs.all);
    cr_assert_not(wake_wait(wake, 0, &orgs), "it was taken");
    wake_unsubscribe(wake);
}

Test(wake, topics_that_nobody_asked_for_wake_nobody)
{
    struct wake *wake = wake_subscribe(WAKE_HEALTH);
    struct wake_orgs orgs;
    struct uuid one = org(1);

    wake_org(&one, WAKE_REPAIR);
    wake_all(WAKE_NODE);
    cr_assert_not(wake_wait(wake, 0, &orgs));
    wake_unsubscribe(wake);
}

Test(wake, more_orgs_than_can_be_remembered_become_all)
{
    struct wake *wake = wake_subscribe(WAKE_ANY);
    struct wake_orgs orgs;

    for (uint8_t n = 0; n <= WAKE_ORGS_MAX; n++) {
        struct uuid id = org(n);
        wake_org(&id, WAKE_NODE);
    }
    cr_assert(wake_wait(wake, 0, &orgs));
    cr_assert(orgs.all);
    wake_unsubscribe(wake);
}

static void *poke_it(void *wake)
{
    wake_poke(wake);
    return NULL;
}

Test(wake, a_poke_ends_a_wait_and_a_pause_without_an_org)
{
    struct wake *wake = wake_subscribe(WAKE_ANY);
    struct wake_orgs orgs;
    pthread_t thread;
    int64_t begin_us = clock_mono_us();

    pthread_create(&thread, NULL, poke_it, wake);
    cr_assert_not(wake_wait(wake, 60000, &orgs));
    pthread_join(thread, NULL);
    pthread_create(&thread, NULL, poke_it, wake);
    wake_pause(wake, 60000);
    pthread_join(thread, NULL);
    cr_assert_lt(clock_mono_us() - begin_us, 30000000);
    wake_unsubscribe(wake);
}

Test(wake, what_comes_during_a_pause_is_kept)
{
    struct wake *wake = wake_subscribe(WAKE_ANY);
    struct wake_orgs orgs;
    struct uuid one = org(1);

    wake_org(&one, WAKE_STATE);
    wake_pause(wake, 1);
    cr_assert(wake_wait(wake, 0, &orgs));
    cr_assert_eq(orgs.count, 1);
    wake_unsubscribe(wake);
}
