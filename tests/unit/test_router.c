/* The router finds the row for a method and a path, and tells a wrong method from a wrong path. */
#include <criterion/criterion.h>

#include "server/request.h"

const struct route routes[] = {
    {.method = "GET", .path = "/healthz"},
    {.method = "GET", .path = "/api/v1/nodes/{node}"},
    {.method = "PATCH", .path = "/api/v1/nodes/{node}"},
    {.method = "POST", .path = "/api/v1/nodes/{node}/cordon"},
    {.method = "GET", .path = "/api/v1/events/stream"},
    {.method = "GET", .path = "/api/v1/events/{event}"},
    {.method = "GET", .path = "/problems/{slug}"},
    {.method = "GET", .path = "/a/{x}/b/{y}/c/{z}"},
};
const size_t routes_count = sizeof(routes) / sizeof(routes[0]);

#define ID "0198f3c2-0000-7000-8000-00000000000a"
#define OTHER "0198f3c2-0000-7000-8000-00000000000b"

static const struct route *find(const char *method, const char *path,
                                struct uuid ids[REQUEST_PATH_IDS], unsigned *allow)
{
    *allow = 99;
    return route_find(str_of(method), str_of(path), ids, allow);
}

Test(router, finds_the_row_of_each_path)
{
    static const struct {
        const char *method;
        const char *path;
        int row; /* -1 = none */
        unsigned allow;
    } cases[] = {
        {"GET", "/healthz", 0, 0},
        {"HEAD", "/healthz", 0, 0},
        {"GET", "/api/v1/nodes/" ID, 1, 0},
        {"PATCH", "/api/v1/nodes/" ID, 2, 0},
        {"POST", "/api/v1/nodes/" ID "/cordon", 3, 0},
        {"GET", "/api/v1/events/stream", 4, 0},
        {"GET", "/problems/not-found", 6, 0},
        {"DELETE", "/api/v1/nodes/" ID, -1, METHOD_GET | METHOD_PATCH},
        {"OPTIONS", "/healthz", -1, METHOD_GET},
        {"GET", "/api/v1/nodes/" ID "/cordon", -1, METHOD_POST},
        {"GET", "/healthz/", -1, 0},
        {"GET", "/healthzz", -1, 0},
        {"GET", "/health", -1, 0},
        {"GET", "", -1, 0},
        {"GET", "/api/v1/nodes/", -1, 0},
        {"GET", "/api/v1/nodes/gpu-17", -1, 0},
        {"GET", "/api/v1/nodes/" ID "/", -1, 0},
        {"GET", "/problems/", -1, 0},
        {"GET", "/problems/Not", -1, 0},
        {"GET", "/problems/a/b", -1, 0},
        {"GET", "/problems/..", -1, 0},
    };
    for (size_t i = 0; i < COUNTOF(cases); i++) {
        struct uuid ids[REQUEST_PATH_IDS];
        unsigned allow;
        const struct route *row = find(cases[i].method, cases[i].path, ids, &allow);
        const struct route *wanted = cases[i].row < 0 ? NULL : &routes[cases[i].row];
        cr_assert_eq(row, wanted, "case %zu", i);
        cr_assert_eq(allow, cases[i].allow, "case %zu: allow %u", i, allow);
    }
}

Test(router, gives_the_ids_of_the_path_in_order)
{
    struct uuid ids[REQUEST_PATH_IDS];
    char text[UUID_TEXT_LEN + 1];
    unsigned allow;
    cr_assert_not_null(find("GET", "/a/" ID "/b/" OTHER "/c/" ID, ids, &allow));
    uuid_format(&ids[0], text);
    cr_assert_str_eq(text, ID);
    uuid_format(&ids[1], text);
    cr_assert_str_eq(text, OTHER);
    uuid_format(&ids[2], text);
    cr_assert_str_eq(text, ID);
}
