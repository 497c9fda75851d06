/* Parsers of what a node shows its sources: the first byte picks one, the rest is the input. */
#include <string.h>

#include "agent/classify/dcgm.h"
#include "agent/collect/fabric_manager.h"
#include "agent/collect/mounts.h"
#include "agent/collect/processes.h"
#include "agent/collect/rates.h"
#include "agent/collect/services.h"
#include "agent/collect/source.h"
#include "agent/rules/injection.h"
#include "tests/fuzz/fuzz.h"

static void read_process(struct str input)
{
    struct process process;

    if (process_parse(input, &process)) {
        FUZZ_CHECK(strlen(process.name) < sizeof(process.name));
    }
}

static void read_mount(struct str input)
{
    struct mount_line mount;

    if (mount_parse(input, &mount)) {
        FUZZ_CHECK(mount.path[0] == '/' && strlen(mount.path) < sizeof(mount.path));
    }
}

static void read_rate(struct str input)
{
    struct rate rate;
    struct rate again;
    struct buf text = {0};

    if (rate_read(input, &rate)) {
        (void)rate_add(&rate, 7, 600, 1000000);
        rate_write(&rate, &text);
        FUZZ_CHECK(rate_read(buf_str(&text), &again));
        FUZZ_CHECK(memcmp(&rate, &again, sizeof(rate)) == 0);
    }
    buf_free(&text);
}

static void read_injection(struct str input)
{
    struct finding finding;

    if (injection_parse(input, &finding)) {
        FUZZ_CHECK(finding.check != NULL);
    }
}

static void read_services(struct str input)
{
    struct buf lines = {0};

    (void)services_read(input, false, &lines);
    (void)services_read(input, true, &lines);
    buf_free(&lines);
}

static void read_answer(struct str input)
{
    struct finding findings[LOOK_FINDINGS_MAX];
    struct look_answer head;
    struct str memory;

    if (source_read(input, &head, findings, &memory)) {
        FUZZ_CHECK(head.count <= LOOK_FINDINGS_MAX && memory.len <= input.len);
    }
}

static void read_sample(struct str input)
{
    struct dcgm_sample sample;
    int64_t count;

    if (dcgm_parse(input, &sample)) {
        (void)dcgm_label(&sample, "gpu");
        (void)dcgm_label(&sample, "pci_bus_id");
        if (dcgm_count(&sample, &count)) {
            FUZZ_CHECK(count >= 0);
        }
    }
}

static void read_time(struct str input)
{
    int64_t at_s;

    if (fabric_manager_time(input, &at_s)) {
        FUZZ_CHECK(input.len >= 22);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const readers[])(struct str input) = {read_process,   read_mount,    read_rate,
                                                        read_injection, read_services, read_answer,
                                                        read_sample,    read_time};

    if (size > 0) {
        readers[data[0] % COUNTOF(readers)]((struct str){(const char *)data + 1, size - 1});
    }
    return 0;
}
