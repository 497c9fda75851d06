/* Memory errors that the kernel only counts: /sys/devices/system/edac, told in its own words. */
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "agent/collect/rates.h"
#include "agent/collect/source.h"

#define FOLDER "/sys/devices/system/edac/mc"
#define LOG_FOLDER "/sys/module/edac_core/parameters"
#define MODULES_MAX 256

struct walk {
    struct look *look;
    struct buf lines; /* as the kernel would write them */
    bool corrected;   /* nobody else tells of corrected errors */
    bool uncorrected;
    unsigned count;
};

/* "<key> <ce> <ue>" of the look before. */
static bool recall(struct str memory, const char *key, uint64_t *ret_ce, uint64_t *ret_ue)
{
    struct str line;

    while (str_split(&memory, '\n', &line)) {
        struct str name;
        struct str ce;

        if (str_split(&line, ' ', &name) && str_eq_c(name, key)) {
            return str_split(&line, ' ', &ce) && str_parse_u64(ce, 0, UINT64_MAX, ret_ce) &&
                   str_parse_u64(line, 0, UINT64_MAX, ret_ue);
        }
    }
    return false;
}

static void read_label(const struct look *look, const char *folder, char *label, size_t cap)
{
    CLEANUP(buf_free) struct buf data = {0};
    char path[200];

    (void)snprintf(path, sizeof(path), "%.150s/dimm_label", folder);
    struct str text = look_read(look, path, 256, &data) ? str_trim(buf_str(&data)) : STR("");
    if (text.len == 0) {
        text = STR("unnamed");
    }
    (void)snprintf(label, cap, "%.*s", text.len > 60 ? 60 : (int)text.len, text.ptr);
    for (char *c = label; *c != '\0'; c++) {
        *c = *c <= ' ' ? '_' : *c;
    }
}

static void count_module(struct walk *walk, const char *controller, const char *module)
{
    char folder[160];
    char path[200];
    char key[64];
    char label[64];
    uint64_t ce = 0;
    uint64_t ue = 0;
    uint64_t ce_before = 0;
    uint64_t ue_before = 0;

    (void)snprintf(folder, sizeof(folder), FOLDER "/%.20s/%.20s", controller, module);
    (void)snprintf(key, sizeof(key), "%.20s/%.20s", controller, module);
    (void)snprintf(path, sizeof(path), "%s/dimm_ce_count", folder);
    if (!look_number(walk->look, path, &ce)) {
        return;
    }
    (void)snprintf(path, sizeof(path), "%s/dimm_ue_count", folder);
    if (!look_number(walk->look, path, &ue)) {
        ue = 0;
    }
    walk->count++;
    read_label(walk->look, folder, label, sizeof(label));
    if (recall(walk->look->memory, key, &ce_before, &ue_before)) {
        uint64_t ce_grown = counter_grown(ce_before, ce);
        uint64_t ue_grown = counter_grown(ue_before, ue);

        if (ce_grown > 0 && walk->corrected) {
            buf_printf(&walk->lines, "EDAC MC%s: %llu CE counted on %s\n", controller + 2,
                       (unsigned long long)ce_grown, label);
        }
        if (ue_grown > 0 && walk->uncorrected) {
            buf_printf(&walk->lines, "EDAC MC%s: %llu UE counted on %s\n", controller + 2,
                       (unsigned long long)ue_grown, label);
        }
    }
    buf_printf(&walk->look->next, "%s %llu %llu\n", key, (unsigned long long)ce,
               (unsigned long long)ue);
}

static void walk_controller(struct walk *walk, const char *controller)
{
    char folder[160];
    char path[PATH_MAX];
    struct dirent *entry;

    (void)snprintf(folder, sizeof(folder), FOLDER "/%.20s", controller);
    DIR *dir = opendir(options_path(walk->look->facts->options, folder, path, sizeof(path)));
    while (dir != NULL && walk->count < MODULES_MAX && (entry = readdir(dir)) != NULL) {
        if (strncmp(entry->d_name, "dimm", 4) == 0 || strncmp(entry->d_name, "rank", 4) == 0) {
            count_module(walk, controller, entry->d_name);
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
}

/* The kernel's own lines are enough, unless it was told not to write them. */
static bool is_unsaid(const struct look *look, const char *parameter)
{
    char path[120];
    uint64_t on;

    (void)snprintf(path, sizeof(path), LOG_FOLDER "/%s", parameter);
    return !look->facts->kmsg_ok || (look_number(look, path, &on) && on == 0);
}

static void look_at_memory(struct look *look)
{
    struct walk walk = {.look = look,
                        .corrected = is_unsaid(look, "edac_mc_log_ce"),
                        .uncorrected = is_unsaid(look, "edac_mc_log_ue")};
    char path[PATH_MAX];
    struct dirent *entry;
    DIR *dir = opendir(options_path(look->facts->options, FOLDER, path, sizeof(path)));

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        if (strncmp(entry->d_name, "mc", 2) == 0 && entry->d_name[2] >= '0' &&
            entry->d_name[2] <= '9') {
            walk_controller(&walk, entry->d_name);
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    if (walk.count == 0) {
        look_absent(look, "no memory controller counts errors here");
    } else {
        classify_kmsg(look->classify, buf_str(&walk.lines));
    }
    buf_free(&walk.lines);
}

const struct source_kind source_edac = {.name = "edac",
                                        .period_s = 60,
                                        .patience = 1,
                                        .look = look_at_memory,
                                        .silent = "the memory controllers do not answer"};
