/* A hash table from short byte keys to pointers. */
#include "base/map.h"

#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/crypto.h"

#define KEY_LEN_MAX 64
#define SMALLEST_SLOTS 16

struct entry {
    void *value;
    uint64_t hash;
    uint8_t key_len;
    char key[KEY_LEN_MAX];
};

/* Entries lie side by side; `slots` (a power of two, at most half full) finds them by linear
 * probing. */
struct map {
    struct entry *entries;
    size_t count;
    uint32_t *slots; /* index into entries + 1; 0 = free */
    size_t slot_count;
    void (*free_value)(void *value);
};

static uint64_t hash_key[2];

static void make_hash_key(void)
{
    crypto_random(hash_key, sizeof(hash_key));
}

static uint64_t rotate(uint64_t value, int bits)
{
    return value << bits | value >> (64 - bits);
}

static void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[0] = rotate(v[0], 32);
    v[2] += v[3];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[2] = rotate(v[2], 32);
}

static void sip_word(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    sip_round(v);
    sip_round(v);
    v[0] ^= word;
}

/* SipHash-2-4 (Aumasson, Bernstein 2012): keys come from outside, so that an unkeyed hash could be
 * driven into one chain. */
uint64_t map_siphash(const uint64_t key[2], struct str data)
{
    uint64_t v[4] = {key[0] ^ UINT64_C(0x736f6d6570736575), key[1] ^ UINT64_C(0x646f72616e646f6d),
                     key[0] ^ UINT64_C(0x6c7967656e657261), key[1] ^ UINT64_C(0x7465646279746573)};
    uint64_t last = (uint64_t)data.len << 56;
    size_t whole = data.len / 8 * 8;

    for (size_t i = 0; i < whole; i += 8) {
        uint64_t word;

        memcpy(&word, data.ptr + i, sizeof(word));
        sip_word(v, word);
    }
    for (size_t i = whole; i < data.len; i++) {
        last |= (uint64_t)(uint8_t)data.ptr[i] << (8 * (i - whole));
    }
    sip_word(v, last);
    v[2] ^= 0xff;
    for (int i = 0; i < 4; i++) {
        sip_round(v);
    }
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static void *checked(void *ptr)
{
    if (ptr == NULL) {
        abort();
    }
    return ptr;
}

static void make_tables(struct map *map, size_t slot_count)
{
    free(map->slots);
    map->slots = checked(calloc(slot_count, sizeof(*map->slots)));
    map->slot_count = slot_count;
    map->entries = checked(reallocarray(map->entries, slot_count / 2, sizeof(*map->entries)));
}

struct map *map_new(void (*free_value)(void *value))
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct map *map = checked(calloc(1, sizeof(*map)));

    (void)pthread_once(&once, make_hash_key);
    map->free_value = free_value;
    make_tables(map, SMALLEST_SLOTS);
    return map;
}

static void drop_value(const struct map *map, void *value)
{
    if (map->free_value != NULL && value != NULL) {
        map->free_value(value);
    }
}

void map_free(struct map *map)
{
    if (map == NULL) {
        return;
    }
    for (size_t i = 0; i < map->count; i++) {
        drop_value(map, map->entries[i].value);
    }
    free(map->entries);
    free(map->slots);
    free(map);
}

static bool holds(const struct entry *entry, uint64_t hash, struct str key)
{
    return entry->hash == hash && str_eq((struct str){entry->key, entry->key_len}, key);
}

/* The slot that holds the key, or the free slot where it would go. */
static size_t find_slot(const struct map *map, uint64_t hash, struct str key)
{
    size_t slot = hash & (map->slot_count - 1);

    while (map->slots[slot] != 0 && !holds(&map->entries[map->slots[slot] - 1], hash, key)) {
        slot = (slot + 1) & (map->slot_count - 1);
    }
    return slot;
}

void *map_get(const struct map *map, struct str key)
{
    size_t slot;

    if (key.len > KEY_LEN_MAX) {
        return NULL;
    }
    slot = find_slot(map, map_siphash(hash_key, key), key);
    return map->slots[slot] == 0 ? NULL : map->entries[map->slots[slot] - 1].value;
}

static void grow(struct map *map)
{
    assert(map->slot_count <= UINT32_MAX / 2);
    make_tables(map, map->slot_count * 2);
    for (size_t i = 0; i < map->count; i++) {
        size_t slot = map->entries[i].hash & (map->slot_count - 1);

        while (map->slots[slot] != 0) {
            slot = (slot + 1) & (map->slot_count - 1);
        }
        map->slots[slot] = (uint32_t)i + 1;
    }
}

void map_put(struct map *map, struct str key, void *value)
{
    uint64_t hash = map_siphash(hash_key, key);
    struct entry *entry;
    size_t slot;

    assert(key.len <= KEY_LEN_MAX);
    slot = find_slot(map, hash, key);
    if (map->slots[slot] != 0) {
        entry = &map->entries[map->slots[slot] - 1];
        if (entry->value != value) {
            drop_value(map, entry->value);
        }
        entry->value = value;
        return;
    }
    if (map->count == map->slot_count / 2) {
        grow(map);
        slot = find_slot(map, hash, key);
    }
    entry = &map->entries[map->count++];
    *entry = (struct entry){.value = value, .hash = hash, .key_len = (uint8_t)key.len};
    if (key.len > 0) {
        memcpy(entry->key, key.ptr, key.len);
    }
    map->slots[slot] = (uint32_t)map->count;
}

/* Frees a slot and moves later entries of the same run back, so that no marks of the dead stay. */
static void empty_slot(struct map *map, size_t hole)
{
    size_t mask = map->slot_count - 1;

    for (size_t slot = (hole + 1) & mask; map->slots[slot] != 0; slot = (slot + 1) & mask) {
        size_t home = map->entries[map->slots[slot] - 1].hash & mask;

        /* It may move only when its home does not lie between the hole and itself. */
        if (((slot - home) & mask) >= ((slot - hole) & mask)) {
            map->slots[hole] = map->slots[slot];
            hole = slot;
        }
    }
    map->slots[hole] = 0;
}

static void remove_at(struct map *map, size_t slot)
{
    size_t index = map->slots[slot] - 1;
    size_t last = map->count - 1;

    drop_value(map, map->entries[index].value);
    empty_slot(map, slot);
    if (index != last) {
        struct entry *moved = &map->entries[last];
        size_t moved_slot = find_slot(map, moved->hash, (struct str){moved->key, moved->key_len});

        map->slots[moved_slot] = (uint32_t)index + 1;
        map->entries[index] = *moved;
    }
    map->count--;
}

bool map_remove(struct map *map, struct str key)
{
    size_t slot;

    if (key.len > KEY_LEN_MAX) {
        return false;
    }
    slot = find_slot(map, map_siphash(hash_key, key), key);
    if (map->slots[slot] == 0) {
        return false;
    }
    remove_at(map, slot);
    return true;
}

size_t map_count(const struct map *map)
{
    return map->count;
}

void map_each(struct map *map, bool (*visit)(struct str key, void *value, void *ctx), void *ctx)
{
    size_t i = 0;

    while (i < map->count) {
        struct str key = {map->entries[i].key, map->entries[i].key_len};

        if (visit(key, map->entries[i].value, ctx)) {
            i++;
        } else {
            /* The last entry takes its place, so i stays. */
            remove_at(map, find_slot(map, map->entries[i].hash, key));
        }
    }
}
