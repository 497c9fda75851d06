/* Errors and flaps of network links: how fast the kernel's counters grow. */
#include "agent/collect/links.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/collect/rates.h"
#include "agent/collect/source.h"

#define LINKS_MAX 64
#define IB_FOLDER "/sys/class/infiniband"
#define NET_FOLDER "/sys/class/net"

/* Limits of NVSentinel and of gpud; a link that went down thrice in ten minutes serves no job. The
 * graver row of a code stands first. */
/* clang-format off */
const struct link_row link_rows[] = {
    /* InfiniBand, file, window, limit, code, severity, action */
    {true, "counters/link_downed", 600, 3, "flap", SEVERITY_CRITICAL, ACTION_FAILOVER, "went down"},
    {true, "counters/link_downed", 3600, 3, "flap", SEVERITY_WARNING, ACTION_NONE, "went down"},
    {true, "counters/symbol_error", 600, 6000, "symbol", SEVERITY_CRITICAL, ACTION_FAILOVER, "symbol errors"},
    {true, "counters/symbol_error", 3600, 121, "symbol", SEVERITY_WARNING, ACTION_NONE, "symbol errors"},
    {true, "counters/link_error_recovery", 60, 6, "recovery", SEVERITY_WARNING, ACTION_NONE, "link recoveries"},
    {true, "counters/local_link_integrity_errors", 3600, 1, "integrity", SEVERITY_WARNING, ACTION_NONE, "integrity errors"},
    {true, "counters/excessive_buffer_overrun_errors", 3600, 1, "overrun", SEVERITY_WARNING, ACTION_NONE, "buffer overruns"},
    {false, "carrier_down_count", 3600, 3, "flap", SEVERITY_WARNING, ACTION_NONE, "lost its carrier"},
    {false, "statistics/rx_crc_errors", 3600, 121, "crc", SEVERITY_WARNING, ACTION_NONE, "frames with a wrong checksum"},
};
/* clang-format on */
const size_t link_row_count = sizeof(link_rows) / sizeof(link_rows[0]);

/* One port on its way through the rows. */
struct link {
    struct look *look;
    char folder[400];
    char name[48];
    bool infiniband;
    const char *told[4]; /* codes that a graver row has told */
    unsigned told_count;
};

/* "<name> <row> <rate>" of the look before. */
static bool find_rate(struct str memory, const char *name, size_t row, struct rate *ret_rate)
{
    char start[80];
    struct str line;
    int len = snprintf(start, sizeof(start), "%s %zu ", name, row);

    while (str_split(&memory, '\n', &line)) {
        if (str_starts(line, (struct str){start, (size_t)len})) {
            line.ptr += len;
            line.len -= (size_t)len;
            return rate_read(line, ret_rate);
        }
    }
    return false;
}

static bool is_told(const struct link *link, const char *code)
{
    for (unsigned i = 0; i < link->told_count; i++) {
        if (strcmp(link->told[i], code) == 0) {
            return true;
        }
    }
    return false;
}

static void tell_link(struct link *link, const struct link_row *row, uint64_t grown)
{
    struct finding *finding;

    if (grown < row->limit || is_told(link, row->code)) {
        return;
    }
    finding =
        look_add(link->look, row->infiniband ? "ib_link" : "eth_link", link->name, row->severity);
    if (row->action != ACTION_NONE) {
        classify_set_fault(finding, row->action);
    }
    finding_set_code(finding, "%s", row->code);
    finding_set_summary(finding, "port %s: %s %llu times in %u minutes", link->name, row->title,
                        (unsigned long long)grown, row->window_s / 60);
    if (link->told_count < COUNTOF(link->told)) {
        link->told[link->told_count++] = row->code;
    }
}

static void judge_link(struct link *link)
{
    struct look *look = link->look;

    for (size_t i = 0; i < link_row_count; i++) {
        const struct link_row *row = &link_rows[i];
        char path[512];
        struct rate rate;
        uint64_t value;

        if (row->infiniband != link->infiniband) {
            continue;
        }
        (void)snprintf(path, sizeof(path), "%s/%s", link->folder, row->file);
        bool known = find_rate(look->memory, link->name, i, &rate);
        bool seen = look_number(look, path, &value);
        if (seen && known) {
            tell_link(link, row, rate_add(&rate, value, row->window_s, look->at_us));
        } else if (seen) {
            rate_begin(&rate, value, row->window_s, look->at_us);
        } else if (!known) {
            continue;
        }
        /* One that cannot be read now goes on from where it was. */
        buf_printf(&look->next, "%s %zu ", link->name, i);
        rate_write(&rate, &look->next);
        buf_add_char(&look->next, '\n');
    }
}

static bool exists(const struct look *look, const char *folder, const char *name)
{
    char path[PATH_MAX];
    char full[PATH_MAX];

    (void)snprintf(path, sizeof(path), "%.1000s/%s", folder, name);
    return access(options_path(look->facts->options, path, full, sizeof(full)), F_OK) == 0;
}

static bool is_infiniband(const struct look *look, const char *folder)
{
    CLEANUP(buf_free) struct buf data = {0};
    char path[512];

    (void)snprintf(path, sizeof(path), "%.400s/link_layer", folder);
    return !look_read(look, path, 64, &data) || str_eq_c(str_trim(buf_str(&data)), "InfiniBand");
}

/* Ports of one adapter; virtual functions have no counters of their own. */
static void walk_adapter(struct look *look, const char *device, unsigned *count)
{
    char folder[200];
    char full[PATH_MAX];
    struct dirent *entry;

    (void)snprintf(folder, sizeof(folder), IB_FOLDER "/%.40s", device);
    if (exists(look, folder, "device/physfn")) {
        return;
    }
    (void)snprintf(folder, sizeof(folder), IB_FOLDER "/%.40s/ports", device);
    DIR *dir = opendir(options_path(look->facts->options, folder, full, sizeof(full)));
    while (dir != NULL && *count < LINKS_MAX && (entry = readdir(dir)) != NULL) {
        struct link link = {.look = look, .infiniband = true};

        if (entry->d_name[0] == '.') {
            continue;
        }
        (void)snprintf(link.folder, sizeof(link.folder), "%s/%.10s", folder, entry->d_name);
        (void)snprintf(link.name, sizeof(link.name), "%.30s/%.10s", device, entry->d_name);
        if (is_infiniband(look, link.folder)) {
            judge_link(&link);
            (*count)++;
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
}

static void walk_interface(struct look *look, const char *name, unsigned *count)
{
    struct link link = {.look = look};

    (void)snprintf(link.folder, sizeof(link.folder), NET_FOLDER "/%.40s", name);
    (void)snprintf(link.name, sizeof(link.name), "%.40s", name);
    if (exists(look, link.folder, "device") && !exists(look, link.folder, "device/physfn")) {
        judge_link(&link);
        (*count)++;
    }
}

static unsigned walk(struct look *look, const char *folder,
                     void (*visit)(struct look *look, const char *name, unsigned *count))
{
    char full[PATH_MAX];
    struct dirent *entry;
    unsigned count = 0;
    DIR *dir = opendir(options_path(look->facts->options, folder, full, sizeof(full)));

    while (dir != NULL && count < LINKS_MAX && (entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] != '.') {
            visit(look, entry->d_name, &count);
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return count;
}

static void look_at_links(struct look *look)
{
    unsigned count = walk(look, NET_FOLDER, walk_interface);

    /* Reading an adapter's counters made its driver complain: they are left alone. */
    if (!look->facts->ib_quiet) {
        count += walk(look, IB_FOLDER, walk_adapter);
    }
    if (count == 0) {
        look_absent(look, "no network port with hardware behind it");
    }
}

const struct source_kind source_links = {.name = "links",
                                         .period_s = 30,
                                         .patience = 1,
                                         .look = look_at_links,
                                         .silent = "a network adapter does not answer"};
