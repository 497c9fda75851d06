/* The table of background loops. */
#include "server/loops/loops.h"

#include "server/follow.h"
#include "server/wake.h"

static const struct runner_spec *const specs[LOOPS_COUNT] = {
    &derive_nodes_loop,     &close_incidents_loop, &propose_repairs_loop, &approve_repairs_loop,
    &run_repairs_loop,      &roll_up_loop,         &maintain_loop,        &sign_audit_loop,
    &watch_schedulers_loop, &drive_machines_loop,  &refresh_logins_loop,  &send_webhooks_loop,
    &resolve_settings_loop, &drive_hooks_loop,     &drive_ironic_loop,
};

static struct runner *runners[LOOPS_COUNT];

/* Changes that other replicas made, and requests of this one. */
static void on_follow(void *ctx, const struct follow_change *changes, size_t count, bool auth_moved)
{
    (void)ctx;
    (void)auth_moved;
    for (size_t i = 0; i < count; i++) {
        if (changes[i].events) {
            wake_org(&changes[i].head.org, WAKE_ANY);
        } else if (changes[i].commands) {
            wake_org(&changes[i].head.org, WAKE_REPAIR);
        }
    }
}

void loops_start(struct follow *follow)
{
    if (follow != NULL) {
        follow_subscribe(follow, on_follow, NULL);
    }
    for (size_t i = 0; i < LOOPS_COUNT; i++) {
        runners[i] = runner_start(specs[i], follow);
    }
}

void loops_stop(void)
{
    for (size_t i = 0; i < LOOPS_COUNT; i++) {
        runner_stop(runners[i]);
        runners[i] = NULL;
    }
}

size_t loops_read_status(struct runner_status status[LOOPS_COUNT])
{
    size_t count = 0;

    for (size_t i = 0; i < LOOPS_COUNT; i++) {
        if (runners[i] != NULL) {
            runner_read_status(runners[i], &status[count++]);
        }
    }
    return count;
}

static void write_family(struct buf *out, const char *name, const char *type, const char *help)
{
    buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void loops_write_metrics(struct buf *out)
{
    struct runner_status status[LOOPS_COUNT];
    size_t count = loops_read_status(status);

    write_family(out, "muster_background_age_seconds", "gauge",
                 "Since a background loop last looked at everything.");
    for (size_t i = 0; i < count; i++) {
        if (status[i].age_us >= 0) {
            buf_printf(out, "muster_background_age_seconds{loop=\"%s\"} %.3f\n", status[i].name,
                       (double)status[i].age_us / 1e6);
        }
    }
    write_family(out, "muster_background_duration_seconds", "gauge", "How long that took.");
    for (size_t i = 0; i < count; i++) {
        buf_printf(out, "muster_background_duration_seconds{loop=\"%s\"} %.6f\n", status[i].name,
                   (double)status[i].duration_us / 1e6);
    }
    write_family(out, "muster_background_runs_total", "counter", "Runs for one organization.");
    for (size_t i = 0; i < count; i++) {
        buf_printf(out, "muster_background_runs_total{loop=\"%s\"} %llu\n", status[i].name,
                   (unsigned long long)status[i].runs);
    }
    write_family(out, "muster_background_failures_total", "counter", "Of them, failed.");
    for (size_t i = 0; i < count; i++) {
        buf_printf(out, "muster_background_failures_total{loop=\"%s\"} %llu\n", status[i].name,
                   (unsigned long long)status[i].failures);
    }
    maintain_write_metrics(out);
}
