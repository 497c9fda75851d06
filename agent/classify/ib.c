/* InfiniBand ports: ibstat, sysfs files, ibdev2netdev. */
#include <string.h>

#include "agent/classify/classify.h"
#include "agent/rules/match.h"

struct port {
    struct str device;
    struct str state; /* Down, Initializing, Armed, Active */
    struct str phys;  /* Disabled, Polling, LinkUp, ... */
    struct str rate;  /* Gb/s */
    bool any;
};

static void lower(struct str text, char *buf, size_t cap)
{
    size_t len = text.len < cap ? text.len : cap - 1;

    for (size_t i = 0; i < len; i++) {
        char c = text.ptr[i];

        buf[i] = (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    }
    buf[len] = '\0';
}

static void judge_down(struct classify *classify, const struct port *port, struct finding *finding)
{
    char state[24];
    char phys[24];

    lower(port->state, state, sizeof(state));
    lower(port->phys, phys, sizeof(phys));
    finding_set_code(finding, "%s/%s", state, phys);
    finding->severity = SEVERITY_WARNING;
    if (classify->context->expected_port == 0) {
        finding->severity = SEVERITY_INFO;
    } else if (classify->context->expected_port == 1 && strcmp(phys, "linkup") != 0) {
        /* With the physical link up it is the subnet manager's or a virtual function's matter. */
        classify_set_fault(finding, ACTION_FAILOVER);
    }
    classify_add(classify, finding);
}

static void judge_port(struct classify *classify, struct port *port)
{
    struct finding finding = classify_finding("ib_link");
    int64_t wanted = classify->context->expected_rate_gbps;
    int64_t rate;

    if (!port->any) {
        return;
    }
    finding_set_device(&finding, port->device, false);
    if (!str_eq_nocase(port->state, STR("Active"))) {
        judge_down(classify, port, &finding);
    } else if (wanted > 0 && str_parse_i64(port->rate, 0, 100000, &rate) && rate < wanted) {
        finding_set_code(&finding, "rate %lld<%lld", (long long)rate, (long long)wanted);
        classify_set_fault(&finding, ACTION_FAILOVER);
        classify_add(classify, &finding);
    }
    *port = (struct port){.device = port->device};
}

/* ibstat */
static void read_ibstat(struct classify *classify, struct port *port, struct str line)
{
    struct match match;

    if (match_text("CA '%w'", line, &match)) {
        judge_port(classify, port);
        port->device = match.captures[0];
    } else if (match_text("Port %d:", line, &match)) {
        judge_port(classify, port);
    } else if (match_text("State: %w", line, &match)) {
        port->state = match.captures[0];
        port->any = true;
    } else if (match_text("Physical state: %w", line, &match)) {
        port->phys = match.captures[0];
    } else if (match_text("Rate: %d*", line, &match)) {
        port->rate = match.captures[0];
    }
}

/* "/sys/class/infiniband/mlx5_4/ports/1/state: 4: ACTIVE" */
static bool read_sysfs(struct classify *classify, struct port *port, struct str line)
{
    struct match match;
    struct str rest;
    struct str device;
    struct str name;

    if (!match_text("*/infiniband/%w: *", line, &match)) {
        return false;
    }
    rest = match.captures[0];
    if (!str_split(&rest, '/', &device)) {
        return true;
    }
    if (!str_eq(device, port->device)) {
        judge_port(classify, port);
        port->device = device;
    }
    name = rest;
    struct str value = {match.captures[0].ptr + match.captures[0].len + 1, 0};
    value.len = (size_t)(line.ptr + line.len - value.ptr);
    value = str_trim(value);
    if (str_ends(name, STR("/phys_state")) && match_text("%d: %w", value, &match)) {
        port->phys = match.captures[1];
    } else if (str_ends(name, STR("/state")) && match_text("%d: %w", value, &match)) {
        port->state = match.captures[1];
        port->any = true;
    } else if (str_ends(name, STR("/rate")) && match_text("%d *", value, &match)) {
        port->rate = match.captures[0];
    }
    return true;
}

void classify_ib(struct classify *classify, struct str input)
{
    struct port port = {.any = false};
    struct str line;

    while (str_split(&input, '\n', &line)) {
        line = str_trim(line);
        if (str_find(line, STR("==>"), 0) >= 0) {
            /* ibdev2netdev tells about IP over InfiniBand, which a pure fabric leaves down. */
            continue;
        }
        if (!read_sysfs(classify, &port, line)) {
            read_ibstat(classify, &port, line);
        }
    }
    judge_port(classify, &port);
}
