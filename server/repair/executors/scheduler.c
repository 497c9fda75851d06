/* The table of schedulers, and looking a node up in what was read. */
#include "server/repair/executors/scheduler.h"

#include <stdlib.h>
#include <string.h>

static const struct scheduler *const schedulers[] = {&scheduler_slurm, &scheduler_kubernetes};

const struct scheduler *scheduler_of(struct str kind)
{
    for (size_t i = 0; i < COUNTOF(schedulers); i++) {
        if (str_eq_c(kind, schedulers[i]->kind)) {
            return schedulers[i];
        }
    }
    return NULL;
}

static int compare_text(struct str a, struct str b)
{
    size_t len = a.len < b.len ? a.len : b.len;
    int order = len == 0 ? 0 : memcmp(a.ptr, b.ptr, len);

    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

static int compare_nodes(const void *a, const void *b)
{
    const struct scheduler_node *x = a;
    const struct scheduler_node *y = b;

    return compare_text(x->name, y->name);
}

void scheduler_job_add(struct arena *arena, struct scheduler_node *node,
                       const struct scheduler_job *job)
{
    /* Grown by doubling: a node has few jobs. */
    if ((node->job_count & (node->job_count - 1)) == 0) {
        size_t cap = node->job_count == 0 ? 1 : node->job_count * 2;
        struct scheduler_job *more = arena_alloc(arena, cap * sizeof *more);
        if (node->job_count > 0) {
            memcpy(more, node->jobs, node->job_count * sizeof *more);
        }
        node->jobs = more;
    }
    node->jobs[node->job_count++] = *job;
}

void scheduler_snapshot_sort(struct scheduler_snapshot *snapshot)
{
    if (snapshot->count > 0) {
        qsort(snapshot->nodes, snapshot->count, sizeof *snapshot->nodes, compare_nodes);
    }
}

const struct scheduler_node *scheduler_node_find(const struct scheduler_snapshot *snapshot,
                                                 struct str name)
{
    const struct scheduler_node key = {.name = name};

    return snapshot->count == 0 ? NULL
                                : bsearch(&key, snapshot->nodes, snapshot->count,
                                          sizeof *snapshot->nodes, compare_nodes);
}
