/* What strangers write into a request's line and headers: a line each of the input. */
#include "tests/fuzz/fuzz.h"

#include <string.h>

#include "server/cursor.h"
#include "server/encoding.h"
#include "server/exchange.h"
#include "server/network.h"

const struct route routes[] = {
    {.method = "GET", .path = "/healthz"},
    {.method = "GET", .path = "/api/v1/nodes/{node}"},
    {.method = "POST", .path = "/api/v1/nodes/{node}/cordon"},
    {.method = "GET", .path = "/problems/{slug}"},
};
const size_t routes_count = sizeof(routes) / sizeof(routes[0]);

/* An address that passes begins with a slash and holds nothing that could be read in two ways. */
static void check_uri(struct str uri)
{
    const char *detail = NULL;
    struct uuid ids[REQUEST_PATH_IDS];
    unsigned allow = 0;
    if (refuse_uri(uri, &detail) != ERR_NONE) {
        FUZZ_CHECK(detail != NULL);
        return;
    }
    FUZZ_CHECK(uri.ptr[0] == '/' && memchr(uri.ptr, '\0', uri.len) == NULL);
    for (size_t i = 0; i < uri.len; i++) {
        unsigned char c = (unsigned char)uri.ptr[i];
        FUZZ_CHECK(c > 0x20 && c < 0x7f && c != '#' && c != '\\');
    }
    const struct route *route = route_find(STR("GET"), uri, ids, &allow);
    FUZZ_CHECK(route == NULL || allow == 0);
}

static void check_header(struct str line, struct str headers[HEADER_COUNT])
{
    const char *detail = NULL;
    struct str name;
    if (str_split(&line, ':', &name) &&
        refuse_header(name, str_trim(line), headers, &detail) != ERR_NONE) {
        FUZZ_CHECK(detail != NULL);
    }
}

/* A cursor that is taken is the one that its keys give. */
static void check_cursor(struct arena *arena, struct str text)
{
    struct str keys;
    struct str back;
    if (cursor_decode(arena, STR("/api/v1/nodes"), text, &keys)) {
        FUZZ_CHECK(str_eq(cursor_encode(arena, STR("/api/v1/nodes"), keys), text));
    }
    if (str_is_utf8(text) && text.len <= CURSOR_KEYS_MAX) {
        FUZZ_CHECK(cursor_decode(arena, text, cursor_encode(arena, text, text), &back));
        FUZZ_CHECK(str_eq(back, text));
    }
}

/* The client is one of the addresses that were named, and proxies are the only ones believed. */
static void check_network(struct str forwarded)
{
    struct network_client client =
        network_client_of(STR("10.0.0.1"), false, forwarded, STR("http"), "10.0.0.0/8");
    FUZZ_CHECK(client.address.len > 0 && client.address.len < 46 && !client.secure);
    client = network_client_of(STR("192.0.2.1"), false, forwarded, forwarded, "10.0.0.0/8");
    FUZZ_CHECK(str_eq(client.address, STR("192.0.2.1")) && !client.secure);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str rest = {(const char *)data, size};
    struct str headers[HEADER_COUNT] = {{0}};
    struct str line;
    const char *detail = NULL;
    struct arena *arena = arena_new((size_t)64 << 20);
    while (str_split(&rest, '\n', &line)) {
        check_uri(line);
        check_header(line, headers);
        check_cursor(arena, line);
        check_network(line);
        (void)encoding_choose(line);
    }
    if (refuse_framing(headers, &detail) == ERR_NONE) {
        FUZZ_CHECK(headers[HEADER_CONTENT_LENGTH].ptr == NULL ||
                   headers[HEADER_TRANSFER_ENCODING].ptr == NULL);
    }
    arena_free(arena);
    return 0;
}
