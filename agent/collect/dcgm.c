/* Metrics of dcgm-exporter on this node: a second voice, heard where NVML or the kernel's log is
 * out of reach. */
#include "agent/classify/dcgm.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/collect/source.h"
#include "agent/rules/pci.h"
#include "agent/rules/xid.h"
#include "base/clock.h"
#include "base/file.h"

#define BODY_MAX ((size_t)4 * 1024 * 1024)
#define PIECE ((size_t)64 * 1024)
#define PORT_DEFAULT 80

struct place {
    struct sockaddr_in address;
    struct str host;
    struct str path;
};

/* http://127.x.x.x[:port]/path or http://localhost[:port]/path: nothing leaves the node. */
static bool read_url(struct str url, struct place *ret_place)
{
    struct str rest = url;
    struct str host;
    struct str name;
    uint64_t port = PORT_DEFAULT;
    char text[32];

    if (!str_starts(rest, STR("http://"))) {
        return false;
    }
    rest.ptr += 7;
    rest.len -= 7;
    ret_place->path = (struct str){"/", 1};
    ptrdiff_t slash = str_find(rest, STR("/"), 0);
    if (slash >= 0) {
        ret_place->path = (struct str){rest.ptr + slash, rest.len - (size_t)slash};
        rest.len = (size_t)slash;
    }
    host = rest;
    ret_place->host = host;
    bool has_port = str_find(host, STR(":"), 0) >= 0;
    if (!str_split(&rest, ':', &name) || (has_port && !str_parse_u64(rest, 1, 65535, &port))) {
        return false;
    }
    (void)snprintf(text, sizeof(text), "%.*s", name.len > 30 ? 30 : (int)name.len, name.ptr);
    if (strcmp(text, "localhost") == 0) {
        (void)snprintf(text, sizeof(text), "127.0.0.1");
    }
    ret_place->address =
        (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    return inet_pton(AF_INET, text, &ret_place->address.sin_addr) == 1 &&
           strncmp(text, "127.", 4) == 0;
}

/* True when the socket is ready before the deadline. */
static bool wait_for(const struct look *look, int fd, short events)
{
    for (;;) {
        struct pollfd poll_fd = {.fd = fd, .events = events};
        int64_t left_us = look->deadline_us - clock_mono_us();
        int ready = poll(&poll_fd, 1, left_us <= 0 ? 0 : (int)(left_us / 1000 + 1));

        if (ready >= 0 || errno != EINTR) {
            return ready > 0;
        }
    }
}

/* 0, or an errno. */
static int exchange(const struct look *look, const struct place *place, struct buf *answer)
{
    CLEANUP(buf_free) struct buf request = {0};
    CLEANUP(cleanup_fd) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    socklen_t size = sizeof(int);
    int failed = 0;

    if (fd < 0) {
        return errno;
    }
    if (connect(fd, (const struct sockaddr *)&place->address, sizeof(place->address)) != 0 &&
        errno != EINPROGRESS) {
        return errno;
    }
    if (!wait_for(look, fd, POLLOUT)) {
        return ETIMEDOUT;
    }
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &failed, &size) != 0 || failed != 0) {
        return failed != 0 ? failed : errno;
    }
    /* HTTP/1.0: the answer ends with the connection and comes in one piece. */
    buf_printf(&request, "GET %.*s HTTP/1.0\r\nHost: %.*s\r\nConnection: close\r\n\r\n",
               STR_FMT(place->path), STR_FMT(place->host));
    if (send(fd, request.ptr, request.len, MSG_NOSIGNAL) != (ssize_t)request.len) {
        return EIO;
    }
    for (;;) {
        if (!wait_for(look, fd, POLLIN)) {
            return ETIMEDOUT;
        }
        buf_reserve(answer, PIECE);
        ssize_t got = recv(fd, answer->ptr + answer->len, PIECE, 0);
        if (got < 0 && (errno == EINTR || errno == EAGAIN)) {
            continue;
        }
        if (got <= 0) {
            return got < 0 ? errno : 0;
        }
        answer->len += (size_t)got;
        if (answer->len > BODY_MAX) {
            return EFBIG;
        }
    }
}

static bool ask_exporter(struct look *look, struct buf *answer, struct str *ret_body)
{
    const struct options *options = look->facts->options;
    struct place place;
    struct str status;

    if (options->dcgm_url[0] == '\0') {
        look_absent(look, "dcgm_url is empty");
        return false;
    }
    if (!read_url(str_of(options->dcgm_url), &place)) {
        look_unknown(look, "dcgm_url must be http:// on 127.0.0.1 or localhost");
        return false;
    }
    int failed = exchange(look, &place, answer);
    if (failed == ECONNREFUSED) {
        look_absent(look, "nothing listens at %.100s", options->dcgm_url);
        return false;
    }
    if (failed != 0) {
        look->timed_out = failed == ETIMEDOUT;
        look_unknown(look, "%.100s: %s", options->dcgm_url, strerrordesc_np(failed));
        return false;
    }
    struct str text = buf_str(answer);
    ptrdiff_t end = str_find(text, STR("\r\n\r\n"), 0);
    struct str rest = text;
    if (end < 0 || !str_split(&rest, '\n', &status) || !str_starts(status, STR("HTTP/1.")) ||
        str_find(status, STR(" 200"), 0) < 0) {
        look_unknown(look, "%.100s does not answer with metrics", options->dcgm_url);
        return false;
    }
    *ret_body = (struct str){text.ptr + end + 4, text.len - (size_t)end - 4};
    return true;
}

/* ---- Xid gauges and counters: edges only ---- */

/* "<gpu> <xid> <value>" of the look before; a gauge has xid 0. */
static bool recall(struct str memory, struct str gpu, int64_t xid, int64_t *ret_value)
{
    struct str line;
    int64_t number;

    while (str_split(&memory, '\n', &line)) {
        struct str name;
        struct str part;

        if (str_split(&line, ' ', &name) && str_eq(name, gpu) && str_split(&line, ' ', &part) &&
            str_parse_i64(part, 0, 9999, &number) && number == xid) {
            return str_parse_i64(line, 0, INT64_MAX, ret_value);
        }
    }
    return false;
}

struct edge {
    struct str gpu;
    int64_t xid;
    int64_t grown;
};

#define EDGES_MAX 64

static size_t find_edges(struct look *look, struct str body, struct edge *edges)
{
    struct dcgm_sample sample;
    struct str line;
    size_t count = 0;

    while (str_split(&body, '\n', &line)) {
        int64_t value;
        int64_t before;
        int64_t xid = 0;

        if (!dcgm_parse(str_trim(line), &sample) || !dcgm_count(&sample, &value)) {
            continue;
        }
        bool gauge = dcgm_is_xid_gauge(sample.name);
        bool counter = dcgm_is_xid_counter(sample.name) &&
                       str_parse_i64(dcgm_label(&sample, "xid"), 1, 9999, &xid);
        struct str gpu = dcgm_label(&sample, "gpu");
        if ((!gauge && !counter) || gpu.len == 0 || gpu.len > 8) {
            continue;
        }
        bool known = recall(look->memory, gpu, xid, &before);
        /* What was there at the first look may be days old; a counter that is new is not. */
        bool edge = gauge ? known && before != value && value > 0
                          : value > (known ? before : 0) && look->memory.len > 0;
        if (edge && count < EDGES_MAX) {
            edges[count++] =
                (struct edge){gpu, gauge ? value : xid, gauge || !known ? 1 : value - before};
        }
        buf_printf(&look->next, "%.*s %lld %lld\n", STR_FMT(gpu), (long long)xid, (long long)value);
    }
    return count;
}

static bool is_edge(const struct edge *edges, size_t count, struct finding *finding)
{
    int64_t code;

    if (!str_parse_i64(str_of(finding->code), 0, 9999, &code)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (edges[i].xid == code && str_eq_c(edges[i].gpu, finding->device)) {
            finding->count = edges[i].grown > 0 ? (uint64_t)edges[i].grown : 1;
            return true;
        }
    }
    return false;
}

/* ---- names ---- */

/* The exporter's index becomes the address that every other source uses. */
static void name_gpu(const struct look *look, struct str body, struct finding *finding)
{
    struct dcgm_sample sample;
    struct str line;
    struct pci pci;
    uint64_t index;

    while (str_split(&body, '\n', &line)) {
        if (dcgm_parse(str_trim(line), &sample) &&
            str_eq_c(dcgm_label(&sample, "gpu"), finding->device) &&
            pci_parse(dcgm_label(&sample, "pci_bus_id"), &pci)) {
            finding_set_device(finding, str_of(pci.text), true);
            return;
        }
    }
    if (look->facts->readings != NULL &&
        str_parse_u64(str_of(finding->device), 0, GPUS_MAX - 1, &index) &&
        index < look->facts->readings->gpu_count && look->facts->readings->gpus[index].known) {
        finding_set_device(finding, str_of(look->facts->readings->gpus[index].pci.text), true);
    }
}

static bool is_xid(const struct finding *finding)
{
    return finding->code_type == CODE_NUMBER && strcmp(finding->check, "gpu_recovery_action") != 0;
}

static void look_at_dcgm(struct look *look)
{
    CLEANUP(buf_free) struct buf answer = {0};
    struct edge edges[EDGES_MAX];
    struct classify *classify = look->classify;
    struct str body;
    size_t kept = 0;

    if (!ask_exporter(look, &answer, &body)) {
        return;
    }
    classify_dcgm(classify, body);
    size_t edge_count = find_edges(look, body, edges);
    for (size_t i = 0; i < classify->count; i++) {
        struct finding finding = classify->findings[i];

        if (is_xid(&finding)) {
            uint32_t code = 0;
            uint64_t number;

            /* The kernel's log is the first voice for Xids. */
            if (look->facts->kmsg_ok || !is_edge(edges, edge_count, &finding)) {
                continue;
            }
            if (str_parse_u64(str_of(finding.code), 1, 9999, &number)) {
                code = (uint32_t)number;
            }
            uint64_t count = finding.count;
            char device[FINDING_DEVICE_CAP];
            (void)memcpy(device, finding.device, sizeof(device));
            /* An edge is judged as an event, whatever the gauge alone says. */
            xid_describe(code, device, &finding);
            finding.count = count;
        }
        name_gpu(look, body, &finding);
        classify->findings[kept++] = finding;
    }
    classify->count = kept;
}

const struct source_kind source_dcgm = {.name = "dcgm",
                                        .period_s = 30,
                                        .patience = 1,
                                        .look = look_at_dcgm,
                                        .silent = "dcgm-exporter did not answer"};
