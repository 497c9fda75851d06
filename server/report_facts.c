/* An agent's report: inventory, collectors and results, written again as checked JSON. */
#include <string.h>

#include "base/buf.h"
#include "base/encode.h"
#include "server/report_parts.h"

#define TEXT_MAX 255
#define SERIAL_MAX 127
#define COLLECTOR_NAME_MAX 63
#define REASON_MAX 1023
#define CPUS_MAX 65536
#define MEMORY_MIB_MAX (INT64_C(1) << 40)
#define INDEX_MAX 65535

static bool is_container(enum json_type type)
{
    return type == JSON_OBJ || type == JSON_ARR;
}

static bool is_one_of(const char *const *words, struct str word)
{
    while (*words != NULL && !str_eq_c(word, *words)) {
        words++;
    }
    return *words != NULL;
}

static struct str keep_text(struct report_reader *reader, struct buf *text)
{
    return (struct str){arena_strndup(reader->arena, text->ptr, text->len), text->len};
}

/* ------------------------------------------------------------------------------- devices */

struct device {
    struct str type;
    struct str serial;
    struct str pci;
    struct str model;
    struct str firmware;
    int64_t index;
    int64_t memory_mib;
};

static bool read_device(struct report_reader *reader, struct device *device)
{
    struct str key = {0};
    enum json_type type;
    while ((type = json_next(&reader->json, &key)) != JSON_END) {
        if (type == JSON_ERROR || (is_container(type) && !json_skip(&reader->json))) {
            return false;
        }
        if (str_eq_c(key, "type")) {
            (void)report_text(reader, type, TEXT_MAX, &device->type);
        } else if (str_eq_c(key, "serial")) {
            (void)report_text(reader, type, SERIAL_MAX, &device->serial);
        } else if (str_eq_c(key, "pci")) {
            (void)report_text(reader, type, SERIAL_MAX, &device->pci);
        } else if (str_eq_c(key, "model")) {
            (void)report_text(reader, type, TEXT_MAX, &device->model);
        } else if (str_eq_c(key, "firmware")) {
            (void)report_text(reader, type, TEXT_MAX, &device->firmware);
        } else if (str_eq_c(key, "index")) {
            (void)report_number(reader, type, 0, INDEX_MAX, &device->index);
        } else if (str_eq_c(key, "memory_mib")) {
            (void)report_number(reader, type, 0, INT32_MAX, &device->memory_mib);
        }
    }
    return true;
}

/* What names the part: its serial, else its place. */
static bool settle_device(const struct device *devices, size_t count, struct device *device)
{
    static const char *const types[] = {"gpu", "nic", "disk", NULL};
    if (device->serial.len == 0) {
        device->serial = device->pci;
    }
    if (!is_one_of(types, device->type) || device->serial.len == 0) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (str_eq(devices[i].type, device->type) && str_eq(devices[i].serial, device->serial)) {
            return false;
        }
    }
    return true;
}

static void encode_number(struct enc *enc, const char *key, int64_t value)
{
    enc_key(enc, key);
    if (value < 0) {
        enc_null(enc);
    } else {
        enc_i64(enc, value);
    }
}

static void encode_text(struct enc *enc, const char *key, struct str value)
{
    enc_key(enc, key);
    enc_str(enc, value);
}

static struct str encode_devices(struct report_reader *reader, const struct device *devices,
                                 size_t count)
{
    CLEANUP(buf_free) struct buf text = {0};
    struct enc enc;
    enc_init(&enc, &text);
    enc_arr(&enc);
    for (size_t i = 0; i < count; i++) {
        struct uuid id = uuid_v7();
        enc_obj(&enc);
        enc_key(&enc, "id");
        enc_uuid(&enc, &id);
        encode_text(&enc, "type", devices[i].type);
        encode_text(&enc, "serial", devices[i].serial);
        encode_number(&enc, "index", devices[i].index);
        encode_text(&enc, "pci", devices[i].pci);
        encode_text(&enc, "model", devices[i].model);
        encode_text(&enc, "firmware", devices[i].firmware);
        encode_number(&enc, "memory_mib", devices[i].memory_mib);
        enc_obj_end(&enc);
    }
    enc_arr_end(&enc);
    return keep_text(reader, &text);
}

static bool read_devices(struct report_reader *reader)
{
    struct device *devices = arena_alloc(reader->arena, REPORT_DEVICES_MAX * sizeof *devices);
    size_t count = 0;
    enum json_type type;
    while ((type = json_next(&reader->json, NULL)) != JSON_END) {
        struct device device = {.index = -1, .memory_mib = -1};
        if (type != JSON_OBJ) {
            if (type == JSON_ERROR || (type == JSON_ARR && !json_skip(&reader->json))) {
                return false;
            }
            continue;
        }
        if (!read_device(reader, &device)) {
            return false;
        }
        if (count < REPORT_DEVICES_MAX && settle_device(devices, count, &device)) {
            devices[count++] = device;
        }
    }
    reader->report->devices = encode_devices(reader, devices, count);
    return true;
}

/* ------------------------------------------------------------------------------- inventory */

static const struct {
    const char *name;
    size_t offset; /* of a struct str in struct report_inventory */
} inventory_texts[] = {
    {"agent_version", offsetof(struct report_inventory, agent_version)},
    {"kernel", offsetof(struct report_inventory, kernel)},
    {"os_image", offsetof(struct report_inventory, os_image)},
    {"driver_version", offsetof(struct report_inventory, driver_version)},
    {"gpu_type", offsetof(struct report_inventory, gpu_type)},
    {"host_serial", offsetof(struct report_inventory, host_serial)},
    {"address", offsetof(struct report_inventory, address)},
    {"rack", offsetof(struct report_inventory, rack)},
    {"leaf", offsetof(struct report_inventory, leaf)},
    {"partition", offsetof(struct report_inventory, partition)},
};

static void read_inventory_scalar(struct report_reader *reader, enum json_type type, struct str key)
{
    struct report_inventory *inventory = &reader->report->inventory;
    struct str text;
    for (size_t i = 0; i < COUNTOF(inventory_texts); i++) {
        if (str_eq_c(key, inventory_texts[i].name)) {
            char *base = (char *)inventory;
            (void)report_text(reader, type, TEXT_MAX,
                              (struct str *)(void *)(base + inventory_texts[i].offset));
            return;
        }
    }
    if (str_eq_c(key, "cpus")) {
        (void)report_number(reader, type, 1, CPUS_MAX, &inventory->cpus);
    } else if (str_eq_c(key, "memory_mib")) {
        (void)report_number(reader, type, 1, MEMORY_MIB_MAX, &inventory->memory_mib);
    } else if (str_eq_c(key, "booted_at") && report_text(reader, type, 64, &text) &&
               !str_parse_rfc3339(text, &inventory->booted_at_us)) {
        inventory->booted_at_us = 0;
    }
}

bool report_read_inventory(struct report_reader *reader, enum json_type type)
{
    if (type != JSON_OBJ) {
        return type == JSON_NUL ||
               report_fail(reader, ERR_INVALID_FIELDS, "inventory must be an object.");
    }
    struct str key = {0};
    reader->report->has_inventory = true;
    reader->report->inventory = (struct report_inventory){.cpus = -1, .memory_mib = -1};
    while ((type = json_next(&reader->json, &key)) != JSON_END) {
        if (type == JSON_ARR && str_eq_c(key, "devices") && reader->report->devices.ptr == NULL) {
            if (!read_devices(reader)) {
                return false;
            }
        } else if (type == JSON_ERROR || (is_container(type) && !json_skip(&reader->json))) {
            return false;
        } else if (!is_container(type)) {
            read_inventory_scalar(reader, type, key);
        }
    }
    return true;
}

/* ------------------------------------------------------------------------------- lists */

/* A collector or a command's result: what it is, how it is, and a sentence. */
struct entry {
    struct str name;
    struct str state;
    struct str detail;
};

struct list_kind {
    const char *name; /* members in the report and for the statement */
    const char *detail;
    size_t name_max;
    size_t max;
    const char *const *states;
    bool is_uuid;
};

static bool read_entry(struct report_reader *reader, const struct list_kind *kind,
                       struct entry *entry)
{
    struct str key = {0};
    enum json_type type;
    while ((type = json_next(&reader->json, &key)) != JSON_END) {
        if (type == JSON_ERROR || (is_container(type) && !json_skip(&reader->json))) {
            return false;
        }
        if (str_eq_c(key, kind->name)) {
            (void)report_text(reader, type, kind->name_max + 1, &entry->name);
        } else if (str_eq_c(key, "state")) {
            (void)report_text(reader, type, TEXT_MAX, &entry->state);
        } else if (str_eq_c(key, kind->detail)) {
            (void)report_text(reader, type, REASON_MAX, &entry->detail);
        }
    }
    return true;
}

/* The last entry of a name counts: a statement may touch a row once. */
static void keep_entry(const struct list_kind *kind, struct entry *entries, size_t *count,
                       const struct entry *entry)
{
    struct uuid id;
    bool named = entry->name.len > 0 && entry->name.len <= kind->name_max &&
                 (!kind->is_uuid || uuid_parse(entry->name, &id));
    if (!named || !is_one_of(kind->states, entry->state)) {
        return;
    }
    for (size_t i = 0; i < *count; i++) {
        if (str_eq_nocase(entries[i].name, entry->name)) {
            entries[i] = *entry;
            return;
        }
    }
    if (*count < kind->max) {
        entries[(*count)++] = *entry;
    }
}

static struct str encode_entries(struct report_reader *reader, const struct list_kind *kind,
                                 const struct entry *entries, size_t count)
{
    CLEANUP(buf_free) struct buf text = {0};
    struct enc enc;
    enc_init(&enc, &text);
    enc_arr(&enc);
    for (size_t i = 0; i < count; i++) {
        enc_obj(&enc);
        encode_text(&enc, kind->name, entries[i].name);
        encode_text(&enc, "state", entries[i].state);
        encode_text(&enc, kind->detail, entries[i].detail);
        enc_obj_end(&enc);
    }
    enc_arr_end(&enc);
    return keep_text(reader, &text);
}

static bool read_list(struct report_reader *reader, enum json_type type,
                      const struct list_kind *kind, struct str *ret_json)
{
    if (type != JSON_ARR) {
        return type == JSON_NUL ||
               report_fail(reader, ERR_INVALID_FIELDS, "collectors and results must be arrays.");
    }
    struct entry *entries = arena_alloc(reader->arena, kind->max * sizeof *entries);
    size_t count = 0;
    while ((type = json_next(&reader->json, NULL)) != JSON_END) {
        struct entry entry = {0};
        if (type == JSON_OBJ) {
            if (!read_entry(reader, kind, &entry)) {
                return false;
            }
            keep_entry(kind, entries, &count, &entry);
        } else if (type == JSON_ERROR || (type == JSON_ARR && !json_skip(&reader->json))) {
            return false;
        }
    }
    if (count > 0) {
        *ret_json = encode_entries(reader, kind, entries, count);
    }
    return true;
}

bool report_read_collectors(struct report_reader *reader, enum json_type type)
{
    static const char *const states[] = {"ok", "absent", "unknown", NULL};
    static const struct list_kind kind = {
        .name = "name",
        .detail = "reason",
        .name_max = COLLECTOR_NAME_MAX,
        .max = REPORT_COLLECTORS_MAX,
        .states = states,
    };
    return read_list(reader, type, &kind, &reader->report->collectors);
}

bool report_read_results(struct report_reader *reader, enum json_type type)
{
    static const char *const states[] = {"accepted", "done", "refused", "failed", NULL};
    static const struct list_kind kind = {
        .name = "command_id",
        .detail = "detail",
        .name_max = UUID_TEXT_LEN,
        .max = REPORT_RESULTS_MAX,
        .states = states,
        .is_uuid = true,
    };
    return read_list(reader, type, &kind, &reader->report->results);
}
