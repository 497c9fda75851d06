/* Units of systemd that a GPU node needs: those configured, or those of the known ones enabled. */
#include "agent/collect/services.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/collect/source.h"

#define UNITS_MAX 32
#define UNIT_CAP 96

/* Each should run wherever it is enabled. */
static const char *const known[] = {"kubelet",
                                    "containerd",
                                    "slurmd",
                                    "munge",
                                    "chrony",
                                    "chronyd",
                                    "nvidia-persistenced",
                                    "nvidia-fabricmanager",
                                    "nvidia-dcgm",
                                    "nvidia-imex"};

struct unit {
    char id[UNIT_CAP];
    char load[24];
    char active[24];
    char sub[24];
    char file[24];
};

struct units {
    char names[UNITS_MAX][UNIT_CAP];
    unsigned count;
    bool configured;
};

static void add_unit(struct units *units, struct str name)
{
    bool bare = str_find(name, STR("."), 0) < 0;

    /* A name that begins with a dash would be an option. */
    if (name.len == 0 || name.len > 80 || name.ptr[0] == '-' || units->count == UNITS_MAX) {
        return;
    }
    (void)snprintf(units->names[units->count++], UNIT_CAP, "%.*s%s", STR_FMT(name),
                   bare ? ".service" : "");
}

static void choose_units(const struct options *options, struct units *units)
{
    struct str rest = str_of(options->services);
    struct str part;

    units->configured = !str_eq_c(rest, "auto");
    if (!units->configured) {
        for (size_t i = 0; i < COUNTOF(known); i++) {
            add_unit(units, str_of(known[i]));
        }
        return;
    }
    while (str_split(&rest, ',', &part)) {
        add_unit(units, str_trim(part));
    }
}

static void copy_value(char *to, size_t cap, struct str value)
{
    (void)snprintf(to, cap, "%.*s", value.len < cap ? (int)value.len : (int)cap - 1,
                   value.len > 0 ? value.ptr : "");
}

static void read_property(struct unit *unit, struct str line)
{
    struct str key;

    if (!str_split(&line, '=', &key)) {
        return;
    }
    if (str_eq_c(key, "Id")) {
        copy_value(unit->id, sizeof(unit->id), line);
    } else if (str_eq_c(key, "LoadState")) {
        copy_value(unit->load, sizeof(unit->load), line);
    } else if (str_eq_c(key, "ActiveState")) {
        copy_value(unit->active, sizeof(unit->active), line);
    } else if (str_eq_c(key, "SubState")) {
        copy_value(unit->sub, sizeof(unit->sub), line);
    } else if (str_eq_c(key, "UnitFileState")) {
        copy_value(unit->file, sizeof(unit->file), line);
    }
}

/* One unit, in the words that `classify --source systemd` reads. */
static unsigned write_unit(const struct unit *unit, bool configured, struct buf *out)
{
    bool missing = strcmp(unit->load, "not-found") == 0;
    bool enabled = strncmp(unit->file, "enabled", 7) == 0;

    if (unit->id[0] == '\0' || (!configured && (missing || !enabled))) {
        return 0;
    }
    buf_printf(out, "%s %s %s\n", unit->id, missing ? "inactive" : unit->active,
               missing ? "not-found" : unit->sub);
    return 1;
}

unsigned services_read(struct str text, bool configured, struct buf *out)
{
    struct unit unit = {.id = ""};
    struct str line;
    unsigned count = 0;

    while (str_split(&text, '\n', &line)) {
        if (line.len == 0) {
            count += write_unit(&unit, configured, out);
            unit = (struct unit){.id = ""};
        } else {
            read_property(&unit, line);
        }
    }
    return count + write_unit(&unit, configured, out);
}

static bool has_systemd(const struct look *look)
{
    char path[PATH_MAX];

    return access(options_path(look->facts->options, "/run/systemd/system", path, sizeof(path)),
                  F_OK) == 0;
}

static void look_at_services(struct look *look)
{
    CLEANUP(buf_free) struct buf out = {0};
    CLEANUP(buf_free) struct buf lines = {0};
    struct units units = {.count = 0};
    const char *argv[UNITS_MAX + 4] = {"systemctl", "show", "--property",
                                       "Id,LoadState,ActiveState,SubState,UnitFileState"};
    int status = 0;

    if (!has_systemd(look)) {
        look_absent(look, "systemd does not run here");
        return;
    }
    choose_units(look->facts->options, &units);
    if (units.count == 0) {
        look_absent(look, "no service is configured");
        return;
    }
    for (unsigned i = 0; i < units.count && i + 5 < COUNTOF(argv); i++) {
        argv[4 + i] = units.names[i];
    }
    if (!look_program(look, argv, &out, &status)) {
        return;
    }
    if (status != 0) {
        look_unknown(look, "systemd does not answer (systemctl's exit status is %d)", status);
        return;
    }
    if (services_read(buf_str(&out), units.configured, &lines) == 0) {
        look_absent(look, "none of the known services is enabled");
        return;
    }
    classify_systemd(look->classify, buf_str(&lines));
}

const struct source_kind source_services = {.name = "services",
                                            .period_s = 30,
                                            .patience = 1,
                                            .look = look_at_services,
                                            .silent = "systemctl did not answer"};
