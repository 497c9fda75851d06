/* Lists of networks, and who the client is behind proxies. */
#include <criterion/criterion.h>

#include "server/network.h"

Test(network, lists_are_checked)
{
    static const char *const good[] = {
        "", "  ", "127.0.0.1", "10.0.0.0/8, fd00::/8", "::1/128", "0.0.0.0/0,::/0"};
    static const char *const bad[] = {"10.0.0.0/33",
                                      "10.0.0",
                                      "host",
                                      "10.0.0.0/",
                                      ",",
                                      "10.0.0.0/8,",
                                      "10.0.0.0/8 10.1.0.0/16",
                                      "::/129",
                                      "10.0.0.0/-1",
                                      "/8"};
    for (size_t i = 0; i < COUNTOF(good); i++) {
        cr_assert(networks_valid(good[i]), "good %zu", i);
    }
    for (size_t i = 0; i < COUNTOF(bad); i++) {
        cr_assert_not(networks_valid(bad[i]), "bad %zu", i);
    }
}

Test(network, holds_addresses_of_the_list)
{
    static const struct {
        const char *networks;
        const char *address;
        bool held;
    } cases[] = {
        {"127.0.0.0/8, ::1/128", "127.3.2.1", true},
        {"127.0.0.0/8, ::1/128", "::1", true},
        {"127.0.0.0/8, ::1/128", "::2", false},
        {"127.0.0.0/8", "128.0.0.1", false},
        {"10.20.0.0/15", "10.21.255.255", true},
        {"10.20.0.0/15", "10.22.0.0", false},
        {"192.0.2.7", "192.0.2.7", true},
        {"192.0.2.7", "192.0.2.8", false},
        {"10.0.0.0/8", "::ffff:10.1.2.3", true},
        {"fd00::/8", "fdab::1", true},
        {"0.0.0.0/0", "203.0.113.1", true},
        {"0.0.0.0/0", "2001:db8::1", false},
        {"", "127.0.0.1", false},
        {"127.0.0.0/8", "", false},
        {"127.0.0.0/8", "localhost", false},
        {"127.0.0.0/8", "127.0.0.1x", false},
    };
    for (size_t i = 0; i < COUNTOF(cases); i++) {
        cr_assert_eq(networks_hold(cases[i].networks, str_of(cases[i].address)), cases[i].held,
                     "case %zu", i);
    }
}

Test(network, the_client_is_the_last_address_that_no_proxy_of_ours_wrote)
{
    static const struct {
        const char *peer;
        const char *forwarded;
        const char *proto;
        const char *address;
        bool secure;
    } cases[] = {
        {"203.0.113.1", "10.9.9.9", "https", "203.0.113.1", false}, /* a stranger's headers */
        {"10.0.0.1", "198.51.100.7", "https", "198.51.100.7", true},
        {"10.0.0.1", "1.1.1.1, 198.51.100.7, 10.0.0.2", "https", "198.51.100.7", true},
        {"10.0.0.1", "198.51.100.7", "http", "198.51.100.7", false},
        {"10.0.0.1", "198.51.100.7", "", "198.51.100.7", false},
        {"10.0.0.1", "", "https", "10.0.0.1", true},
        {"10.0.0.1", "198.51.100.7, nonsense", "http", "10.0.0.1", false},
        {"10.0.0.1", "10.0.0.3, 10.0.0.2", "http", "10.0.0.3", false},
        {"10.0.0.1", ",,", "http", "10.0.0.1", false},
    };
    for (size_t i = 0; i < COUNTOF(cases); i++) {
        struct network_client client =
            network_client_of(str_of(cases[i].peer), false, str_of(cases[i].forwarded),
                              str_of(cases[i].proto), "10.0.0.0/8");
        cr_assert(str_eq_c(client.address, cases[i].address), "case %zu", i);
        cr_assert_eq(client.secure, cases[i].secure, "case %zu", i);
    }
}
