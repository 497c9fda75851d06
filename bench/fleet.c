/* Simulated nodes: what they measure, what breaks, and the report they would send now. */
#include "bench/fleet.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/encode.h"
#include "bench/tell.h"

#define NODES_A_RACK 32
#define GPU_MEM_MIB 81559
#define DAY_S 86400.0
#define SECOND_US 1000000LL

/* xorshift64*: the simulator needs speed, not secrecy. */
static uint64_t next_random(void)
{
    static uint64_t state;
    if (state == 0) {
        crypto_random(&state, sizeof(state));
        state |= 1;
    }
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * 2685821657736338717ULL;
}

static double random_ratio(void)
{
    return (double)(next_random() >> 11) / 9007199254740992.0;
}

static double random_between(double low, double high)
{
    return low + (high - low) * random_ratio();
}

/* The same answer for the same job and time slice. */
static uint32_t mix(uint64_t a, uint64_t b)
{
    uint64_t x = a * 0x9E3779B97F4A7C15ULL ^ (b + 0x7F4A7C15ULL) * 0xBF58476D1CE4E5B9ULL;
    x ^= x >> 31;
    x *= 0x94D049BB133111EBULL;
    return (uint32_t)(x >> 32);
}

struct fleet *fleet_new(size_t count, const char *prefix)
{
    struct fleet *fleet = calloc(1, sizeof(*fleet));
    assert(fleet != NULL);
    fleet->nodes = calloc(count, sizeof(*fleet->nodes));
    assert(fleet->nodes != NULL);
    fleet->count = count;
    fleet->prefix = prefix;
    fleet->unhealthy_max = 0.02;
    fleet->faulted_us = clock_mono_us();
    for (size_t i = 0; i < count; i++) {
        struct sim_node *node = &fleet->nodes[i];
        node->index = i;
        node->boot_id = uuid_v4();
        node->booted_us = clock_wall_us() - (int64_t)(random_between(1, 30) * DAY_S) * SECOND_US;
        node->inventory_due = true;
    }
    return fleet;
}

void fleet_free(struct fleet *fleet)
{
    if (fleet == NULL) {
        return;
    }
    for (size_t i = 0; i < fleet->count; i++) {
        buf_free(&fleet->nodes[i].body);
    }
    free(fleet->nodes);
    free(fleet);
}

void fleet_name(const struct fleet *fleet, const struct sim_node *node, char name[FLEET_NAME_MAX])
{
    (void)snprintf(name, FLEET_NAME_MAX, "%.16s-%02zu-%02zu", fleet->prefix,
                   node->index / NODES_A_RACK + 1, node->index % NODES_A_RACK + 1);
}

struct ed25519 *fleet_key(const struct fleet *fleet, const struct sim_node *node)
{
    uint8_t text[32 + sizeof(uint64_t)];
    uint64_t index = node->index;
    memcpy(text, fleet->seed, 32);
    memcpy(text + 32, &index, sizeof(index));
    uint8_t seed[SHA256_LEN];
    crypto_sha256((struct str){(const char *)text, sizeof(text)}, seed);
    return ed25519_import(seed);
}

void fleet_random_nonce(char nonce[24])
{
    uint64_t bytes[2] = {next_random(), next_random()};
    crypto_b64(bytes, sizeof(bytes), nonce);
}

/* ------------------------------------------------------------------ faults */
static void add_event(struct sim_node *node, const struct fault_kind *kind, bool clear)
{
    if (node->event_count == FLEET_EVENTS_MAX) {
        return;
    }
    int stream = strcmp(kind->severity, "critical") == 0 ? 0 : 1;
    node->events[node->event_count++] = (struct sim_event){
        .kind = kind,
        .gpu = node->fault_gpu,
        .stream = stream,
        .seq = ++node->stream_seq[stream],
        .at_us = clock_wall_us(),
        .clear = clear,
    };
}

static void break_node(struct fleet *fleet, struct sim_node *node, const struct fault_kind *kind,
                       int64_t now_us)
{
    node->fault = kind;
    node->fault_gpu = (int)(next_random() % FLEET_GPUS);
    /* In a demo a fault that nobody repairs ends after 10 to 40 minutes, so that the fleet
     * recovers. */
    node->fault_clears_us =
        fleet->demo ? now_us + (int64_t)random_between(600, 2400) * SECOND_US : 0;
    fleet->broken++;
    add_event(node, kind, false);
    node->next_us = now_us;
}

static void mend_node(struct fleet *fleet, struct sim_node *node, bool send_clear)
{
    if (send_clear) {
        add_event(node, node->fault, true);
    }
    node->fault = NULL;
    node->fault_clears_us = 0;
    fleet->broken--;
}

static const struct fault_kind *draw_kind(double *ret_sum)
{
    double sum = 0;
    for (size_t i = 0; i < fault_kinds_count; i++) {
        sum += fault_kinds[i].rate_per_1000_node_days;
    }
    *ret_sum = sum;
    double at = random_ratio() * sum;
    for (size_t i = 0; i < fault_kinds_count; i++) {
        at -= fault_kinds[i].rate_per_1000_node_days;
        if (at <= 0) {
            return &fault_kinds[i];
        }
    }
    return &fault_kinds[0];
}

/* A fault that ends by itself: the node boots when only a boot ends the incident. */
static void end_fault(struct fleet *fleet, struct sim_node *node, int64_t now_us)
{
    if (strcmp(node->fault->clears, "new_boot") == 0) {
        node->state = SIM_BOOTING;
        node->wake_us = now_us + (int64_t)random_between(20, 40) * SECOND_US;
        node->reboot_due = true;
        return;
    }
    if (strcmp(node->fault->clears, "event") == 0) {
        mend_node(fleet, node, true);
        return;
    }
    node->fault_clears_us = 0;
}

bool fleet_break(struct fleet *fleet, size_t index, const struct fault_kind *kind, int64_t now_us)
{
    struct sim_node *node = &fleet->nodes[index];
    if (node->state != SIM_LIVE || node->fault != NULL) {
        return false;
    }
    break_node(fleet, node, kind, now_us);
    return true;
}

bool fleet_silence(struct fleet *fleet, size_t index, int64_t seconds, int64_t now_us)
{
    struct sim_node *node = &fleet->nodes[index];
    if (node->state != SIM_LIVE) {
        return false;
    }
    node->state = SIM_SILENT;
    node->wake_us = now_us + seconds * SECOND_US;
    return true;
}

bool fleet_mend(struct fleet *fleet, size_t index, int64_t now_us)
{
    struct sim_node *node = &fleet->nodes[index];
    if (node->state == SIM_SILENT) {
        node->wake_us = now_us;
        return true;
    }
    if (node->state != SIM_LIVE || node->fault == NULL) {
        return false;
    }
    if (strcmp(node->fault->clears, "person") == 0) {
        /* The part is well again; the incident waits for a person. */
        mend_node(fleet, node, false);
    } else {
        end_fault(fleet, node, now_us);
    }
    return true;
}

void fleet_faults(struct fleet *fleet, int64_t now_us)
{
    double elapsed_s = (double)(now_us - fleet->faulted_us) / (double)SECOND_US;
    if (elapsed_s < 1) {
        return;
    }
    fleet->faulted_us = now_us;
    double sum;
    const struct fault_kind *kind = draw_kind(&sum);
    double expected = fleet->fault_rate * sum / 1000 * (double)fleet->count * elapsed_s / DAY_S;
    /* Small fleets show at least one broken node. */
    double most = fmax(2, fleet->unhealthy_max * (double)fleet->count);
    if (random_ratio() < expected && (double)fleet->broken < most) {
        struct sim_node *node = &fleet->nodes[next_random() % fleet->count];
        if (node->state == SIM_LIVE && node->fault == NULL) {
            break_node(fleet, node, kind, now_us);
        }
    }
    for (size_t i = 0; i < fleet->count; i++) {
        struct sim_node *node = &fleet->nodes[i];
        if (node->state == SIM_LIVE && node->fault != NULL && node->fault_clears_us != 0 &&
            node->fault_clears_us <= now_us) {
            end_fault(fleet, node, now_us);
        }
    }
}

void fleet_boot(struct fleet *fleet, struct sim_node *node, int64_t now_us)
{
    node->boot_id = uuid_v4();
    node->booted_us = clock_wall_us();
    node->state = SIM_LIVE;
    node->next_us = now_us;
    node->inventory_due = true;
    node->reboot_due = false;
    memset(node->stream_seq, 0, sizeof(node->stream_seq));
    node->event_count = 0;
    const struct fault_kind *fault = node->fault;
    if (fault == NULL) {
        return;
    }
    bool cured = random_ratio() < fault->cured_by_reboot || strcmp(fault->clears, "new_boot") == 0;
    if (cured) {
        mend_node(fleet, node, strcmp(fault->clears, "event") == 0);
    } else {
        add_event(node, fault, false);
    }
}

/* ------------------------------------------------------------------ readings */
struct reading {
    int util[FLEET_GPUS]; /* -1 = not readable */
    int mem_mib[FLEET_GPUS];
    int temp_c[FLEET_GPUS];
    int power_w[FLEET_GPUS];
    double cpu_ratio;
    double mem_ratio;
    int net_mbps;
    int fabric_mbps;
};

enum work { WORK_IDLE, WORK_TRAINING, WORK_CHECKPOINT, WORK_INFERENCE };

/* Jobs are blocks of neighbours that change every 20 to 160 minutes: the two-valued load of real
 * clusters. */
static enum work work_of(const struct sim_node *node, int64_t wall_s)
{
    static const int sizes[] = {1, 2, 4, 8, 16, 32};
    size_t size = (size_t)sizes[mix(node->index / 32, 7) % COUNTOF(sizes)];
    uint64_t job = node->index / size;
    int64_t length_s = 1200 + mix(job, 1) % 8400;
    int64_t since = wall_s + mix(job, 2) % 86400;
    uint32_t lot = mix(job, (uint64_t)(since / length_s)) % 100;
    if (lot < 14) {
        return WORK_IDLE;
    }
    if (lot < 26) {
        return WORK_INFERENCE;
    }
    int64_t every_s = 900 + mix(job, 3) % 1800;
    return since % every_s < 30 + mix(job, 4) % 60 ? WORK_CHECKPOINT : WORK_TRAINING;
}

/* Sources of the numbers: published A100/H100 cluster statistics, an 8 x H100 air-cooled node (700
 * W limit). */
static void read_gpus(const struct sim_node *node, enum work work, double load,
                      struct reading *reading)
{
    for (int i = 0; i < FLEET_GPUS; i++) {
        double power = 72;
        int util = 0;
        int mem = (int)(next_random() % 500);
        if (work == WORK_TRAINING) {
            util = 97 + (int)(next_random() % 4);
            power = 700 * random_between(0.82, 0.95);
            mem = (int)(GPU_MEM_MIB * 0.86);
        } else if (work == WORK_CHECKPOINT) {
            util = (int)(next_random() % 30);
            power = 700 * 0.25;
            mem = (int)(GPU_MEM_MIB * 0.86);
        } else if (work == WORK_INFERENCE) {
            util = (int)(100 * load * random_between(0.8, 1.0));
            power = 700 * (0.2 + 0.5 * load);
            mem = (int)(GPU_MEM_MIB * 0.9);
        }
        reading->util[i] = util;
        reading->mem_mib[i] = mem;
        reading->power_w[i] = (int)power;
        /* Inlet 22 C, up to 38 C above it; rear GPUs run warmer. */
        reading->temp_c[i] = 32 + (int)(power / 700 * 30) + (i >= 4 ? 5 : 0);
        if (node->fault != NULL && node->fault->of_gpu && node->fault_gpu == i &&
            strcmp(node->fault->check_id, "gpu_lost") == 0) {
            reading->util[i] = -1;
        }
    }
}

static void read_node(const struct sim_node *node, struct reading *reading)
{
    int64_t wall_s = clock_wall_us() / SECOND_US;
    enum work work = work_of(node, wall_s);
    /* Inference follows the day: least at night, most at 15 h. */
    double load = 0.65 + 0.3 * sin(((double)(wall_s % 86400) / DAY_S - 0.375) * 2 * M_PI);
    static const double cpu[] = {0.01, 0.18, 0.45, 0.2};
    static const int fabric[] = {0, 220000, 12000, 3000};
    read_gpus(node, work, load, reading);
    reading->cpu_ratio = cpu[work] * random_between(0.8, 1.2);
    reading->mem_ratio = work == WORK_IDLE ? 0.04 : 0.22;
    reading->net_mbps = 5 + (int)(next_random() % (work == WORK_CHECKPOINT ? 20000 : 60));
    reading->fabric_mbps = (int)(fabric[work] * random_between(0.7, 1.2));
}

static void write_ints(struct enc *enc, const char *key, const int *values, const int *util)
{
    enc_key(enc, key);
    enc_arr(enc);
    for (int i = 0; i < FLEET_GPUS; i++) {
        if (util[i] < 0) {
            enc_null(enc);
        } else {
            enc_i64(enc, values[i]);
        }
    }
    enc_arr_end(enc);
}

static void write_metrics(struct enc *enc, const struct sim_node *node)
{
    static const int total[FLEET_GPUS] = {GPU_MEM_MIB, GPU_MEM_MIB, GPU_MEM_MIB, GPU_MEM_MIB,
                                          GPU_MEM_MIB, GPU_MEM_MIB, GPU_MEM_MIB, GPU_MEM_MIB};
    struct reading reading;
    read_node(node, &reading);
    enc_key(enc, "metrics");
    enc_obj(enc);
    enc_key(enc, "cpu_ratio");
    enc_double(enc, reading.cpu_ratio, 3);
    enc_key(enc, "mem_used_mib");
    enc_i64(enc, (int64_t)(2063000 * reading.mem_ratio));
    enc_key(enc, "mem_total_mib");
    enc_i64(enc, 2063000);
    enc_key(enc, "disk_ratio");
    enc_double(enc, 0.3 + (double)(node->index % 40) / 100, 3);
    enc_key(enc, "net_rx_mbps");
    enc_i64(enc, reading.net_mbps);
    enc_key(enc, "net_tx_mbps");
    enc_i64(enc, reading.net_mbps / 2);
    enc_key(enc, "fabric_rx_mbps");
    enc_i64(enc, reading.fabric_mbps);
    enc_key(enc, "fabric_tx_mbps");
    enc_i64(enc, reading.fabric_mbps);
    enc_obj_end(enc);
    enc_key(enc, "gpus");
    enc_obj(enc);
    write_ints(enc, "util", reading.util, reading.util);
    write_ints(enc, "mem_mib", reading.mem_mib, reading.util);
    write_ints(enc, "mem_total_mib", total, reading.util);
    write_ints(enc, "temp_c", reading.temp_c, reading.util);
    write_ints(enc, "power_w", reading.power_w, reading.util);
    enc_obj_end(enc);
}

static void write_inventory(struct enc *enc, const struct sim_node *node)
{
    char text[64];
    enc_key(enc, "inventory");
    enc_obj(enc);
    static const char *const fixed[][2] = {
        {"agent_version", "sim-" MUSTER_VERSION},
        {"kernel", "6.8.0-48-generic"},
        {"os_image", "Ubuntu 22.04.5 LTS"},
        {"gpu_type", "NVIDIA H100 80GB HBM3"},
    };
    for (size_t i = 0; i < COUNTOF(fixed); i++) {
        enc_key(enc, fixed[i][0]);
        enc_cstr(enc, fixed[i][1]);
    }
    enc_key(enc, "driver_version");
    enc_cstr(enc, node->index % 97 == 5 ? "570.86.15" : "570.124.06");
    enc_key(enc, "host_serial");
    (void)snprintf(text, sizeof(text), "SIM%06zu", node->index + 1);
    enc_cstr(enc, text);
    enc_key(enc, "rack");
    (void)snprintf(text, sizeof(text), "r%02zu", node->index / NODES_A_RACK + 1);
    enc_cstr(enc, text);
    enc_key(enc, "leaf");
    (void)snprintf(text, sizeof(text), "leaf-%02zu", node->index / NODES_A_RACK + 1);
    enc_cstr(enc, text);
    enc_key(enc, "cpus");
    enc_i64(enc, 192);
    enc_key(enc, "memory_mib");
    enc_i64(enc, 2063000);
    enc_key(enc, "booted_at");
    enc_time(enc, node->booted_us);
    enc_key(enc, "devices");
    enc_arr(enc);
    for (int i = 0; i < FLEET_GPUS; i++) {
        char pci[16];
        tell_gpu_pci(i, pci);
        enc_obj(enc);
        enc_key(enc, "type");
        enc_cstr(enc, "gpu");
        enc_key(enc, "index");
        enc_i64(enc, i);
        enc_key(enc, "serial");
        (void)snprintf(text, sizeof(text), "16539%05zu%02d", node->index, i);
        enc_cstr(enc, text);
        enc_key(enc, "pci");
        enc_cstr(enc, pci);
        enc_key(enc, "model");
        enc_cstr(enc, "NVIDIA H100 80GB HBM3");
        enc_key(enc, "memory_mib");
        enc_i64(enc, GPU_MEM_MIB);
        enc_obj_end(enc);
    }
    enc_arr_end(enc);
    enc_obj_end(enc);
}

void fleet_report(struct sim_node *node)
{
    buf_clear(&node->body);
    struct enc enc;
    enc_init(&enc, &node->body);
    fleet_random_nonce(node->nonce);
    enc_obj(&enc);
    enc_key(&enc, "boot_id");
    enc_uuid(&enc, &node->boot_id);
    enc_key(&enc, "seq");
    enc_i64(&enc, ++node->seq);
    enc_key(&enc, "nonce");
    enc_cstr(&enc, node->nonce);
    enc_key(&enc, "ready");
    enc_bool(&enc, true);
    write_metrics(&enc, node);
    tell_streams(&enc, node);
    if (node->inventory_due) {
        write_inventory(&enc, node);
        enc_key(&enc, "collectors");
        tell_collectors(&enc, node);
    }
    if (node->command_state != NULL) {
        tell_result(&enc, node);
    }
    enc_obj_end(&enc);
}
