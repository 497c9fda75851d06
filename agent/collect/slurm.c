/* What Slurm thinks of this node: `scontrol show node`, as JSON where it can. */
#include "agent/collect/source.h"

#include <stdio.h>
#include <string.h>

/* What is remembered: this scontrol knows no JSON (Slurm before 23.02). */
#define TEXT_ONLY "text"

static void name_node(const struct options *options, char *name, size_t cap)
{
    const char *full = options->slurm_node[0] != '\0' ? options->slurm_node : options->node_name;
    size_t len = options->slurm_node[0] != '\0' ? strlen(full) : strcspn(full, ".");

    (void)snprintf(name, cap, "%.*s", (int)len, full);
}

static void look_at_slurm(struct look *look)
{
    CLEANUP(buf_free) struct buf out = {0};
    char name[NODE_NAME_CAP];
    bool text_only = str_eq_c(look->memory, TEXT_ONLY);
    int status = 0;

    name_node(look->facts->options, name, sizeof(name));
    const char *json[] = {"scontrol", "show", "node", name, "--json", NULL};
    const char *text[] = {"scontrol", "-o", "show", "node", name, NULL};
    if (!text_only) {
        if (!look_program(look, json, &out, &status)) {
            return;
        }
        text_only = status != 0 || !str_starts(str_trim(buf_str(&out)), STR("{"));
    }
    if (text_only && !look_program(look, text, &out, &status)) {
        return;
    }
    if (status != 0) {
        look_unknown(look,
                     "scontrol knows no node %.60s, or does not reach slurmctld (exit status %d)",
                     name, status);
        return;
    }
    if (text_only) {
        buf_add_c(&look->next, TEXT_ONLY);
    }
    classify_slurm(look->classify, buf_str(&out));
}

const struct source_kind source_slurm = {.name = "slurm",
                                         .period_s = 60,
                                         .patience = 1,
                                         .look = look_at_slurm,
                                         .silent = "scontrol did not answer"};
