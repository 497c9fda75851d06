/* One round of all collectors, and what comes in between. */
#include "agent/agent.h"

#include "agent/rules/engine.h"
#include "base/clock.h"

void watch_init(struct agent *agent)
{
    struct collector *all[COLLECTORS - SOURCES] = {
        &agent->cpu.collector,     &agent->memory.collector,    &agent->disk.collector,
        &agent->network.collector, &agent->fabric.collector,    &agent->gpu.collector,
        &agent->kmsg.collector,    &agent->inventory.collector, &agent->custom.collector,
    };
    struct readings *readings = &agent->readings;

    cpu_init(&agent->cpu);
    memory_init(&agent->memory);
    disk_init(&agent->disk, &agent->options);
    network_init(&agent->network);
    fabric_init(&agent->fabric, &agent->options);
    gpu_init(&agent->gpu, &agent->options, &agent->grace);
    kmsg_init(&agent->kmsg, &agent->options, &agent->boot);
    inventory_init(&agent->inventory);
    custom_init(&agent->custom, &agent->options);
    custom_load(&agent->custom, &agent->options, agent->faults, clock_mono_us());
    faults_set_settings(agent->faults, &agent->custom.settings);
    grace_init(&agent->grace, &agent->options);
    grace_look(&agent->grace, clock_mono_us());
    for (size_t i = 0; i < COUNTOF(all); i++) {
        agent->collectors[i] = all[i];
    }
    for (size_t i = 0; i < SOURCES; i++) {
        source_init(&agent->sources[i], source_kinds[i], &agent->options);
        agent->collectors[COUNTOF(all) + i] = &agent->sources[i].collector;
    }
    *readings = (struct readings){.cpu_ratio = READING_NONE,
                                  .mem_used_mib = READING_NONE,
                                  .mem_total_mib = READING_NONE,
                                  .disk_ratio = READING_NONE,
                                  .net_rx_mbps = READING_NONE,
                                  .net_tx_mbps = READING_NONE,
                                  .fabric_rx_mbps = READING_NONE,
                                  .fabric_tx_mbps = READING_NONE};
}

void watch_stop(struct agent *agent)
{
    probe_stop(&agent->disk.probe);
    probe_stop(&agent->fabric.probe);
    probe_stop(&agent->gpu.probe);
    for (size_t i = 0; i < SOURCES; i++) {
        source_stop(&agent->sources[i]);
    }
    kmsg_stop(&agent->kmsg);
    inventory_free(&agent->inventory);
    custom_stop(&agent->custom);
}

void watch_ask(struct agent *agent, int64_t now_us)
{
    if (collector_may_try(&agent->disk.collector, now_us)) {
        (void)probe_ask(&agent->disk.probe, now_us);
    }
    grace_look(&agent->grace, now_us);
    fabric_ask(&agent->fabric, now_us);
    gpu_ask(&agent->gpu, now_us);
}

/* A source that could not be read the last time holds nobody up. */
static bool is_worth_waiting(const struct collector *collector, const struct probe *probe)
{
    return probe->busy && (!collector->finished_once || collector->state == COLLECTOR_OK);
}

bool watch_waits(const struct agent *agent)
{
    return is_worth_waiting(&agent->disk.collector, &agent->disk.probe) ||
           is_worth_waiting(&agent->fabric.collector, &agent->fabric.probe) ||
           is_worth_waiting(&agent->gpu.collector, &agent->gpu.probe);
}

/* Sources keep their own time; what they find goes with the next report. */
static void tick_sources(struct agent *agent, int64_t now_us)
{
    struct source_facts facts = {
        .options = &agent->options,
        .settings = &agent->custom.settings,
        .readings = &agent->readings,
        .kmsg_ok = agent->kmsg.collector.state == COLLECTOR_OK,
        .gpus_asked = agent->gpu.collector.finished_once,
        .nvml_ok = agent->gpu.works,
        .ib_quiet = now_us < agent->fabric.quiet_until_us,
        .uptime_s = agent->grace.uptime_s,
    };

    for (size_t i = 0; i < SOURCES; i++) {
        struct source *source = &agent->sources[i];

        source_news(source, probe_tick(&source->probe, now_us), agent->faults, &agent->grace,
                    now_us);
        source_ask(source, &facts, now_us);
    }
}

void watch_tick(struct agent *agent, int64_t now_us)
{
    struct readings *readings = &agent->readings;

    disk_news(&agent->disk, probe_tick(&agent->disk.probe, now_us), readings, agent->faults,
              now_us);
    fabric_news(&agent->fabric, probe_tick(&agent->fabric.probe, now_us), readings, agent->faults,
                now_us);
    gpu_news(&agent->gpu, probe_tick(&agent->gpu.probe, now_us), readings, agent->faults, now_us);
    struct facts facts = {.driver_hangs = agent->gpu.timeouts > 0,
                          .driver_works = agent->gpu.works,
                          .nvswitch_count = -1};
    engine_set_facts(agent->kmsg.engine, &facts);
    kmsg_read(&agent->kmsg, now_us);
    if (agent->kmsg.access_reg) {
        agent->kmsg.access_reg = false;
        fabric_hush(&agent->fabric, now_us);
    }
    (void)kmsg_tell(&agent->kmsg, agent->faults, false, now_us);
    tick_sources(agent, now_us);
    own_commands_tick(&agent->custom.commands, &agent->custom.settings, &agent->options,
                      agent->faults, now_us);
}

void watch_read(struct agent *agent, int64_t now_us)
{
    cpu_collect(&agent->cpu, &agent->options, &agent->readings, now_us);
    memory_collect(&agent->memory, &agent->options, &agent->readings, now_us);
    network_collect(&agent->network, &agent->options, &agent->readings, now_us);
    /* Slow to change: once a minute, and when the GPUs or their driver changed. */
    bool due = agent->inventory.built_us == 0 || agent->gpu.inventory_news ||
               now_us - agent->inventory.built_us >= 60 * INT64_C(1000000);
    if (due) {
        agent->gpu.inventory_news = false;
        inventory_collect(&agent->inventory, &agent->options, &agent->readings, now_us);
    }
    (void)kmsg_tell(&agent->kmsg, agent->faults, true, now_us);
    own_metrics_judge(&agent->custom.metrics, &agent->custom.settings, &agent->readings,
                      agent->faults, now_us);
}

bool watch_ready(const struct agent *agent)
{
    for (size_t i = 0; i < COLLECTORS; i++) {
        if (!agent->collectors[i]->finished_once) {
            return false;
        }
    }
    return true;
}

int64_t watch_due(const struct agent *agent, int64_t now_us)
{
    int64_t dues[] = {probe_due(&agent->disk.probe), probe_due(&agent->fabric.probe),
                      probe_due(&agent->gpu.probe), kmsg_due(&agent->kmsg, now_us),
                      own_commands_due(&agent->custom.commands)};
    int64_t due = INT64_MAX;

    for (size_t i = 0; i < COUNTOF(dues); i++) {
        due = dues[i] < due ? dues[i] : due;
    }
    for (size_t i = 0; i < SOURCES; i++) {
        int64_t source = source_due(&agent->sources[i]);

        due = source < due ? source : due;
    }
    return due;
}
