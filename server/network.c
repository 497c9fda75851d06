/* Lists of networks and the client's address behind trusted proxies. */
#include "server/network.h"

#include <arpa/inet.h>
#include <string.h>

struct network {
    uint8_t bytes[16]; /* IPv4 in its mapped form, ::ffff:a.b.c.d */
    unsigned bits;
};

static bool parse_address(struct str text, uint8_t bytes[16], bool *ret_v4)
{
    char buf[INET6_ADDRSTRLEN];
    struct in_addr v4;
    if (text.len == 0 || text.len >= sizeof(buf)) {
        return false;
    }
    memcpy(buf, text.ptr, text.len);
    buf[text.len] = '\0';
    if (inet_pton(AF_INET, buf, &v4) == 1) {
        memset(bytes, 0, 10);
        memset(bytes + 10, 0xff, 2);
        memcpy(bytes + 12, &v4, 4);
        *ret_v4 = true;
        return true;
    }
    *ret_v4 = false;
    return inet_pton(AF_INET6, buf, bytes) == 1;
}

static bool parse_network(struct str text, struct network *ret_network)
{
    struct str address;
    struct network network = {0};
    bool v4 = false;
    uint64_t bits = 0;
    bool has_bits = memchr(text.ptr, '/', text.len) != NULL;

    if (!str_split(&text, '/', &address) || !parse_address(address, network.bytes, &v4)) {
        return false;
    }
    uint64_t max = v4 ? 32 : 128;
    if (!has_bits) {
        bits = max;
    } else if (!str_parse_u64(text, 0, max, &bits)) {
        return false;
    }
    network.bits = (unsigned)bits + (v4 ? 96 : 0);
    *ret_network = network;
    return true;
}

static bool network_holds(const struct network *network, const uint8_t bytes[16])
{
    unsigned whole = network->bits / 8;
    unsigned rest = network->bits % 8;
    if (memcmp(network->bytes, bytes, whole) != 0) {
        return false;
    }
    return rest == 0 || ((network->bytes[whole] ^ bytes[whole]) >> (8 - rest)) == 0;
}

bool networks_valid(const char *networks)
{
    struct str rest = str_trim(str_of(networks));
    struct str part;
    if (rest.len == 0) {
        return true;
    }
    if (rest.ptr[rest.len - 1] == ',') {
        return false;
    }
    while (str_split(&rest, ',', &part)) {
        struct network network;
        part = str_trim(part);
        if (part.len == 0 || !parse_network(part, &network)) {
            return false;
        }
    }
    return true;
}

bool networks_hold(const char *networks, struct str address)
{
    struct str rest = str_of(networks);
    struct str part;
    uint8_t bytes[16];
    bool v4;
    if (!parse_address(address, bytes, &v4)) {
        return false;
    }
    while (str_split(&rest, ',', &part)) {
        struct network network;
        part = str_trim(part);
        if (part.len > 0 && parse_network(part, &network) && network_holds(&network, bytes)) {
            return true;
        }
    }
    return false;
}

/* Cuts the last item off a comma list; false when it is exhausted. */
static bool take_last(struct str *list, struct str *ret_item)
{
    if (list->len == 0) {
        return false;
    }
    size_t at = list->len;
    while (at > 0 && list->ptr[at - 1] != ',') {
        at--;
    }
    *ret_item = str_trim((struct str){list->ptr + at, list->len - at});
    list->len = at > 0 ? at - 1 : 0;
    return true;
}

struct network_client network_client_of(struct str peer, bool peer_tls, struct str forwarded_for,
                                        struct str forwarded_proto, const char *trusted)
{
    struct network_client client = {.address = peer, .secure = peer_tls};
    if (!networks_hold(trusted, peer)) {
        return client;
    }
    client.secure = peer_tls || str_eq_nocase(str_trim(forwarded_proto), STR("https"));
    struct str item;
    while (take_last(&forwarded_for, &item)) {
        uint8_t bytes[16];
        bool v4;
        if (!parse_address(item, bytes, &v4)) {
            break; /* what a stranger wrote there names nobody */
        }
        client.address = item;
        if (!networks_hold(trusted, item)) {
            break;
        }
    }
    return client;
}
