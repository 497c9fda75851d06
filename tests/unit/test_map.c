/* Promises of base/map.h. */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/map.h"

static int freed;

static void count_free(void *value)
{
    (void)value;
    freed++;
}

static struct str number_key(char text[24], int number)
{
    return (struct str){text, (size_t)snprintf(text, 24, "key-%d", number)};
}

Test(map, a_key_finds_what_was_put_and_nothing_else)
{
    struct map *map = map_new(NULL);
    int a;
    int b;

    map_put(map, STR("a"), &a);
    map_put(map, STR("a\0b"), &b);
    cr_assert_eq(map_get(map, STR("a")), &a);
    cr_assert_eq(map_get(map, STR("a\0b")), &b);
    cr_assert_null(map_get(map, STR("a\0")));
    cr_assert_null(map_get(map, STR("")));
    map_free(map);
}

Test(map, it_agrees_with_a_plain_array_under_many_changes)
{
    enum { KEYS = 700 };
    struct map *map = map_new(NULL);
    int values[KEYS];
    bool there[KEYS] = {false};
    unsigned state = 12345;
    size_t count = 0;
    char text[24];

    for (int step = 0; step < 60000; step++) {
        int key;

        state = state * 1103515245 + 12345;
        key = (int)(state >> 16) % KEYS;
        if ((state >> 8) % 3 == 0) {
            cr_assert_eq(map_remove(map, number_key(text, key)), there[key], "step %d", step);
            count -= there[key] ? 1 : 0;
            there[key] = false;
        } else {
            map_put(map, number_key(text, key), &values[key]);
            count += there[key] ? 0 : 1;
            there[key] = true;
        }
        key = (key + 1) % KEYS;
        cr_assert_eq(map_get(map, number_key(text, key)), there[key] ? &values[key] : NULL);
        cr_assert_eq(map_count(map), count);
    }
    map_free(map);
}

Test(map, a_replaced_removed_or_left_value_is_freed_once)
{
    struct map *map = map_new(count_free);
    int a;
    int b;

    map_put(map, STR("x"), &a);
    map_put(map, STR("x"), &a);
    cr_assert_eq(freed, 0, "the same value again is not freed");
    map_put(map, STR("x"), &b);
    cr_assert_eq(freed, 1);
    cr_assert(map_remove(map, STR("x")));
    cr_assert_eq(freed, 2);
    map_put(map, STR("y"), &a);
    map_free(map);
    cr_assert_eq(freed, 3);
}

static bool keep_even(struct str key, void *value, void *ctx)
{
    int *visits = ctx;

    (void)key;
    (*visits)++;
    return *(int *)value % 2 == 0;
}

Test(map, each_visits_all_once_and_removes_what_is_refused)
{
    struct map *map = map_new(NULL);
    int values[100];
    int visits = 0;
    char text[24];

    for (int i = 0; i < 100; i++) {
        values[i] = i;
        map_put(map, number_key(text, i), &values[i]);
    }
    map_each(map, keep_even, &visits);
    cr_assert_eq(visits, 100);
    cr_assert_eq(map_count(map), 50);
    for (int i = 0; i < 100; i++) {
        cr_assert_eq(map_get(map, number_key(text, i)), i % 2 == 0 ? &values[i] : NULL);
    }
    map_free(map);
}

Test(map, a_key_over_64_bytes_is_never_found)
{
    struct map *map = map_new(NULL);
    char key[65];

    memset(key, 'k', sizeof(key));
    map_put(map, (struct str){key, 64}, key);
    cr_assert_eq(map_get(map, (struct str){key, 64}), key);
    cr_assert_null(map_get(map, (struct str){key, 65}));
    cr_assert_not(map_remove(map, (struct str){key, 65}));
    map_free(map);
}

Test(map, putting_a_key_over_64_bytes_stops_the_program, .signal = SIGABRT)
{
    char key[65] = {0};

    map_put(map_new(NULL), (struct str){key, 65}, key);
}

/* Vectors of the reference implementation: key 00..0f, data 00, 01, ... */
Test(map, the_hash_is_siphash_2_4)
{
    static const struct {
        size_t len;
        uint64_t hash;
    } vectors[] = {
        {0, UINT64_C(0x726fdb47dd0e0e31)},  {1, UINT64_C(0x74f839c593dc67fd)},
        {7, UINT64_C(0xab0200f58b01d137)},  {8, UINT64_C(0x93f5f5799a932462)},
        {15, UINT64_C(0xa129ca6149be45e5)},
    };
    uint64_t key[2];
    uint8_t bytes[16];

    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (uint8_t)i;
    }
    memcpy(key, bytes, sizeof(key));
    for (size_t i = 0; i < COUNTOF(vectors); i++) {
        struct str data = {(const char *)bytes, vectors[i].len};

        cr_assert_eq(map_siphash(key, data), vectors[i].hash, "length %zu", vectors[i].len);
    }
}
