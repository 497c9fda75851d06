/* Output of nvidia-smi: messages, tables, -q blocks, CSV queries and series of clock reasons. */
#include <stdio.h>

#include "agent/classify/classify.h"
#include "agent/rules/match.h"
#include "agent/rules/pci.h"
#include "agent/rules/xid.h"

/* A driver that is still being loaded is no fault. */
#define BOOT_GRACE_S 600
/* Volta's table of retired pages holds 64; Azure calls for replacement at 62 with one pending. */
#define RETIRED_FULL 62
#define RETIRED_MANY 15
/* A clock reason counts when it holds in 6 of 10 minutes (gpud's limit). */
#define SUSTAINED_S 600
#define SUSTAINED_PERCENT 60
#define BUSY_PERCENT 10
#define COLUMNS_MAX 32

/* ---- messages ---- */

static bool in_container_only(const struct classify_context *context)
{
    return str_eq_c(context->scope, "container") && context->host_gpu_count >= 0 &&
           context->host_gpu_count >= context->expected;
}

/* "Unable to determine the device handle for GPU0000:20:00.0: Unknown Error" */
static bool read_handle(struct classify *classify, struct str line)
{
    struct finding finding = classify_finding("gpu_lost");
    struct match match;
    struct pci pci;

    if (!match_text("Unable to determine the device handle for GPU%p:*", line, &match) &&
        !match_text("Unable to determine the device handle for GPU %p:*", line, &match)) {
        return false;
    }
    if (in_container_only(classify->context) || !pci_parse(match.captures[0], &pci)) {
        return true;
    }
    finding_set_device(&finding, str_of(pci.text), true);
    finding_set_code(&finding,
                     str_find(line, STR("GPU is lost"), 0) >= 0 ? "GPU_IS_LOST" : "UNKNOWN");
    classify_set_fault(&finding, ACTION_REBOOT);
    classify_add(classify, &finding);
    return true;
}

static void add_no_devices(struct classify *classify)
{
    struct finding finding = classify_finding("gpu_count");

    if (classify->context->expected_gpus == 0) {
        return;
    }
    if (classify->context->expected_gpus > 0) {
        finding_set_code(&finding, "0/%lld", (long long)classify->context->expected_gpus);
    } else {
        finding_set_code(&finding, "0");
    }
    classify_set_fault(&finding, ACTION_REBOOT);
    classify_add(classify, &finding);
}

static void add_not_loaded(struct classify *classify)
{
    struct finding finding = classify_finding("driver_not_loaded");

    finding_set_code_number(&finding, 9);
    if (classify->context->uptime_s < 0 || classify->context->uptime_s >= BOOT_GRACE_S) {
        classify_set_fault(&finding, ACTION_REBOOT);
    }
    classify_add(classify, &finding);
}

static bool read_message(struct classify *classify, struct str line)
{
    struct finding finding;

    if (read_handle(classify, line)) {
        return true;
    }
    if (str_starts(line, STR("No devices were found"))) {
        add_no_devices(classify);
        return true;
    }
    if (str_starts(line, STR("NVIDIA-SMI has failed because it couldn't communicate"))) {
        add_not_loaded(classify);
        return true;
    }
    if (str_starts(line, STR("Failed to initialize NVML: Driver/library version mismatch"))) {
        finding = classify_finding("driver_mismatch");
        classify_set_fault(&finding, ACTION_REBOOT);
        classify_add(classify, &finding);
        return true;
    }
    return false;
}

/* ---- recovery action ---- */

static void add_recovery(struct classify *classify, struct str gpu, struct str word)
{
    static const char *const words[] = {"None", "Reset", "Reboot", "Drain P2P", "Drain and Reset"};
    struct finding finding = classify_finding("gpu_recovery_action");

    for (unsigned value = 1; value < COUNTOF(words); value++) {
        if (!str_eq_nocase(word, str_of(words[value]))) {
            continue;
        }
        const struct recovery_row *row = recovery_find(value);
        finding_set_code_number(&finding, value);
        finding_set_device(&finding, gpu, true);
        finding.severity = SEVERITY_WARNING;
        if (row != NULL && row->action != ACTION_NONE) {
            classify_set_fault(&finding, row->action);
        }
        classify_add(classify, &finding);
    }
}

/* ---- the table of plain nvidia-smi ---- */

static bool read_table_head(struct str line, struct str *gpu)
{
    struct match match;

    if (!match_text("| *%d  *|*%p *|*", line, &match) ||
        str_find(match.captures[1], STR(":"), 0) < 0) {
        return false;
    }
    *gpu = match.captures[0];
    return true;
}

static void read_table_values(struct classify *classify, struct str gpu, struct str line)
{
    struct finding finding = classify_finding("gpu_sensor");
    struct match match;
    struct str asked = classify->context->q_gpu_recovery_action;

    if (asked.len > 0 && !str_eq_nocase(asked, STR("None"))) {
        add_recovery(classify, gpu, asked);
        return;
    }
    finding_set_device(&finding, gpu, true);
    if (match_text("*ERR! / %w*", line, &match)) {
        finding_set_code(&finding, "power_unreadable");
    } else {
        finding_set_code(&finding, "fan_unreadable");
    }
    classify_add(classify, &finding);
}

/* ---- blocks of nvidia-smi -q ---- */

struct block {
    struct str gpu; /* PCI address or index of the GPU the lines are about; empty = unknown */
    bool by_index;
    int64_t retired[2]; /* single bit, double bit; -1 = not seen */
    bool retired_pending;
    bool remap_pending;
    bool remap_failed;
    bool in_remap;
};

static void name_gpu(struct finding *finding, const struct block *block)
{
    struct pci pci;

    if (block->by_index) {
        finding_set_device(finding, block->gpu, true);
    } else if (pci_parse(block->gpu, &pci)) {
        finding_set_device(finding, str_of(pci.text), true);
    }
}

static void judge_retired(struct classify *classify, const struct block *block)
{
    struct finding finding = classify_finding("gpu_page_retirement");
    int64_t total = block->retired[0] + block->retired[1];

    if (block->retired[0] < 0 || block->retired[1] < 0 || total == 0) {
        return;
    }
    name_gpu(&finding, block);
    finding_set_code_number(&finding, total);
    if (block->retired_pending && total >= RETIRED_FULL) {
        classify_set_fault(&finding, ACTION_REMOVE);
    } else if (block->retired_pending) {
        finding.severity = SEVERITY_WARNING;
        finding.action = ACTION_RESET_GPU;
        finding.deferred = true;
    } else if (total >= RETIRED_MANY) {
        finding.severity = SEVERITY_WARNING;
    }
    classify_add(classify, &finding);
}

static void judge_remap(struct classify *classify, const struct block *block)
{
    struct finding finding = classify_finding("gpu_row_remap");

    name_gpu(&finding, block);
    if (block->remap_failed) {
        finding_set_code(&finding, "failure");
        classify_set_fault(&finding, ACTION_REMOVE);
    } else if (block->remap_pending) {
        finding_set_code(&finding, "pending");
        finding.severity = SEVERITY_WARNING;
        finding.action = ACTION_RESET_GPU;
        finding.deferred = true;
    } else {
        return;
    }
    classify_add(classify, &finding);
}

static void end_block(struct classify *classify, struct block *block)
{
    judge_retired(classify, block);
    judge_remap(classify, block);
    *block = (struct block){.retired = {-1, -1}};
}

static void read_pair(struct block *block, struct str key, struct str value)
{
    bool yes = str_eq_c(value, "Yes");
    int64_t number;

    if (str_eq_c(key, "Single Bit ECC") && str_parse_i64(value, 0, INT32_MAX, &number)) {
        block->retired[0] = number;
    } else if (str_eq_c(key, "Double Bit ECC") && str_parse_i64(value, 0, INT32_MAX, &number)) {
        block->retired[1] = number;
    } else if (str_starts(key, STR("Pending Page"))) {
        block->retired_pending = yes;
    } else if (str_eq_c(key, "Pending")) {
        block->remap_pending = yes;
    } else if (str_eq_c(key, "Remapping Failure Occurred")) {
        block->remap_failed = yes;
    }
}

/* "GPU 00000002:00:00.0", "GPU 6: NVIDIA A100-SXM4-80GB (UUID: ...)" */
static bool read_block_head(struct classify *classify, struct block *block, struct str line)
{
    struct match match;
    bool by_index = match_text("GPU %d: *", line, &match);

    if (!by_index && !match_text("GPU %p", line, &match)) {
        return false;
    }
    end_block(classify, block);
    block->gpu = match.captures[0];
    block->by_index = by_index;
    return true;
}

static void read_block_line(struct classify *classify, struct block *block, struct str line)
{
    struct str key;
    struct str rest = line;

    if (str_starts(line,
                   STR("NVML: Unable to retrieve NVLink information as all links are inactive"))) {
        struct finding finding = classify_finding("gpu_nvlink");

        name_gpu(&finding, block);
        finding_set_code(&finding, "all_inactive");
        classify_set_fault(&finding, ACTION_REBOOT);
        classify_add(classify, &finding);
        return;
    }
    if (str_split(&rest, ':', &key) && rest.len > 0) {
        read_pair(block, str_trim(key), str_trim(rest));
    }
}

/* ---- series of clock event reasons ---- */

/* nvml.h nvmlClocksEventReason*: from the gravest down. */
static const struct {
    uint64_t bit;
    const char *check;
    const char *code;
    bool fault; /* when it lasts */
} reasons[] = {
    {0x40, "gpu_thermal", "hw_thermal", true},   {0x80, "gpu_power_brake", "hw_power_brake", true},
    {0x20, "gpu_thermal", "sw_thermal", false},  {0x08, "gpu_thermal", "hw_slowdown", false},
    {0x04, "gpu_clocks", "sw_power_cap", false}, {0x02, "gpu_clocks", "app_clocks", false},
    {0x10, "gpu_clocks", "sync_boost", false},   {0x100, "gpu_clocks", "display_clocks", false},
    {0x01, "gpu_clocks", "gpu_idle", false},
};

static bool is_hex_word(struct str line, uint64_t *ret_value)
{
    return str_starts(line, STR("0x")) && str_parse_hex_u64(line, ret_value);
}

static void judge_reason(struct classify *classify, size_t index, size_t hits, size_t samples)
{
    const struct classify_context *context = classify->context;
    int64_t interval_s = context->interval_s > 0 ? context->interval_s : 0;
    struct finding finding = classify_finding(reasons[index].check);
    bool lasting =
        (int64_t)samples * interval_s >= SUSTAINED_S && hits * 100 >= samples * SUSTAINED_PERCENT;
    char gpu[24];

    (void)snprintf(gpu, sizeof(gpu), "%lld", (long long)(context->gpu > 0 ? context->gpu : 0));
    finding_set_device(&finding, str_of(gpu), true);
    finding_set_code(&finding, "%s", reasons[index].code);
    if (reasons[index].fault && lasting) {
        classify_set_fault(&finding, ACTION_FAILOVER);
    } else if (lasting && index < 4) {
        finding.severity = SEVERITY_WARNING;
    }
    classify_add(classify, &finding);
}

/* The gravest reason that occurs; hardware slowdown (0x8) accompanies the two above it. */
static bool read_reasons(struct classify *classify, struct str input)
{
    size_t hits[COUNTOF(reasons)] = {0};
    struct str line;
    size_t samples = 0;
    uint64_t value;

    while (str_split(&input, '\n', &line)) {
        line = str_trim(line);
        if (line.len == 0) {
            continue;
        }
        if (!is_hex_word(line, &value)) {
            return false;
        }
        samples++;
        for (size_t i = 0; i < COUNTOF(reasons); i++) {
            hits[i] += (value & reasons[i].bit) != 0;
        }
    }
    for (size_t i = 0; i < COUNTOF(reasons); i++) {
        if (hits[i] > 0) {
            judge_reason(classify, i, hits[i], samples);
            break;
        }
    }
    return samples > 0;
}

/* ---- CSV by the columns of the query ---- */

struct csv {
    struct str names[COLUMNS_MAX];
    size_t count;
    struct str values[COLUMNS_MAX];
};

static size_t split_columns(struct str line, struct str *columns)
{
    struct str part;
    size_t count = 0;

    while (count < COLUMNS_MAX && str_split(&line, ',', &part)) {
        columns[count++] = str_trim(part);
    }
    return count;
}

static struct str column(const struct csv *csv, const char *name)
{
    for (size_t i = 0; i < csv->count; i++) {
        if (str_eq_c(csv->names[i], name)) {
            return csv->values[i];
        }
    }
    return (struct str){NULL, 0};
}

static bool column_number(const struct csv *csv, const char *name, int64_t *ret_value)
{
    return str_parse_i64(column(csv, name), 0, INT32_MAX, ret_value);
}

static void judge_pcie(struct classify *classify, const struct csv *csv, struct str gpu)
{
    struct finding finding = classify_finding("gpu_pcie");
    int64_t width;
    int64_t width_max;
    int64_t generation;
    int64_t generation_max;
    int64_t busy = 0;

    finding_set_device(&finding, gpu, true);
    bool has_busy = column_number(csv, "utilization.gpu", &busy);
    bool idle = !has_busy || busy < BUSY_PERCENT;
    if (column_number(csv, "pcie.link.width.current", &width) &&
        column_number(csv, "pcie.link.width.max", &width_max) && width < width_max) {
        finding_set_code(&finding, "width %lld<%lld", (long long)width, (long long)width_max);
        classify_set_fault(&finding, ACTION_REBOOT);
        classify_add(classify, &finding);
        return;
    }
    if (column_number(csv, "pcie.link.gen.current", &generation) &&
        column_number(csv, "pcie.link.gen.max", &generation_max) && generation < generation_max) {
        finding_set_code(&finding, "gen %lld<%lld%s", (long long)generation,
                         (long long)generation_max, idle ? " idle" : "");
        finding.severity = idle ? SEVERITY_INFO : SEVERITY_WARNING;
        classify_add(classify, &finding);
    }
}

static void judge_row(struct classify *classify, const struct csv *csv)
{
    struct str gpu = column(csv, "index");
    struct block block = {.gpu = gpu, .by_index = true, .retired = {-1, -1}};
    int64_t index;

    if (gpu.len == 0) {
        gpu = column(csv, "pci.bus_id");
        block.gpu = gpu;
        block.by_index = false;
    } else if (!str_parse_i64(gpu, 0, 1023, &index)) {
        return; /* the header line */
    }
    for (size_t i = 0; i < csv->count; i++) {
        if (str_eq_c(csv->values[i], "[GPU is lost]")) {
            struct finding finding = classify_finding("gpu_lost");

            finding_set_device(&finding, gpu, true);
            finding_set_code(&finding, "GPU_IS_LOST");
            classify_set_fault(&finding, ACTION_REBOOT);
            classify_add(classify, &finding);
            return;
        }
    }
    add_recovery(classify, gpu, column(csv, "gpu_recovery_action"));
    judge_pcie(classify, csv, gpu);
    block.remap_pending = str_eq_nocase(column(csv, "remapped_rows.pending"), STR("Yes"));
    block.remap_failed = str_eq_nocase(column(csv, "remapped_rows.failure"), STR("Yes"));
    judge_remap(classify, &block);
}

static void read_csv(struct classify *classify, struct str input)
{
    struct csv csv;
    struct str line;

    csv.count = split_columns(classify->context->query, csv.names);
    while (str_split(&input, '\n', &line)) {
        if (split_columns(line, csv.values) == csv.count && csv.count > 0) {
            judge_row(classify, &csv);
        }
    }
}

/* A row of the table: its first line names the GPU, its second holds the readings. */
static void read_table_line(struct classify *classify, struct str line, struct str *gpu)
{
    if (read_table_head(line, gpu)) {
        return;
    }
    if (gpu->len > 0 && str_find(line, STR("ERR!"), 0) >= 0) {
        read_table_values(classify, *gpu, line);
    }
    gpu->len = 0;
}

void classify_smi(struct classify *classify, struct str input)
{
    struct block block = {.retired = {-1, -1}};
    struct str table_gpu = {NULL, 0};
    struct str line;

    if (classify->context->query.len > 0) {
        read_csv(classify, input);
        return;
    }
    if (read_reasons(classify, input)) {
        return;
    }
    while (str_split(&input, '\n', &line)) {
        line = str_trim(line);
        if (line.len > 0 && line.ptr[0] == '|') {
            read_table_line(classify, line, &table_gpu);
        } else if (!read_message(classify, line) && !read_block_head(classify, &block, line)) {
            read_block_line(classify, &block, line);
        }
    }
    end_block(classify, &block);
}
