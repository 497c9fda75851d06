/* Faults on request: which kinds there are, and orders to break, silence or mend nodes. */
#include "bench/orders.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/log.h"

#define SECOND_US 1000000LL
#define SILENCE_S 600
#define AFTER_MAX_S 86400
#define NODE_MAX 200000
#define TEXT_MAX 65536

static const struct fault_kind *find_kind(struct str id)
{
    for (size_t i = 0; i < fault_kinds_count; i++) {
        if (str_eq_c(id, fault_kinds[i].id)) {
            return &fault_kinds[i];
        }
    }
    return NULL;
}

/* "3" or "3-5". */
static bool parse_nodes(struct str text, struct order *order)
{
    struct str rest = text;
    struct str part;
    int64_t first;
    int64_t last;

    if (!str_split(&rest, '-', &part) || !str_parse_i64(part, 1, NODE_MAX, &first)) {
        return false;
    }
    last = first;
    if (rest.len > 0 && !str_parse_i64(rest, first, NODE_MAX, &last)) {
        return false;
    }
    order->first = (size_t)first;
    order->last = (size_t)last;
    return true;
}

bool order_parse(struct str text, struct order *ret_order)
{
    struct order order = {.verb = ORDER_BREAK};
    struct str rest = text;
    struct str head;
    struct str id;

    if (!str_split(&rest, '+', &head) ||
        (rest.len > 0 && !str_parse_i64(rest, 0, AFTER_MAX_S, &order.after_s))) {
        return false;
    }
    rest = head;
    if (!str_split(&rest, '@', &id) || (rest.len > 0 && !parse_nodes(rest, &order))) {
        return false;
    }
    if (str_eq_c(id, "silence")) {
        order.verb = ORDER_SILENCE;
    } else if (str_eq_c(id, "mend")) {
        order.verb = ORDER_MEND;
    } else {
        order.kind = find_kind(id);
    }
    *ret_order = order;
    return order.verb != ORDER_BREAK || order.kind != NULL;
}

bool orders_take(struct orders *orders, struct str text, int64_t now_us, struct str *ret_bad)
{
    size_t start = 0;

    for (size_t i = 0; i <= text.len; i++) {
        if (i < text.len && strchr(", \t\r\n", text.ptr[i]) == NULL) {
            continue;
        }
        struct str word = {text.ptr + start, i - start};
        start = i + 1;
        if (word.len == 0) {
            continue;
        }
        struct order order;
        if (orders->count == ORDERS_MAX || !order_parse(word, &order)) {
            *ret_bad = word;
            return false;
        }
        order.due_us = now_us + order.after_s * SECOND_US;
        orders->items[orders->count++] = order;
    }
    return true;
}

static bool obey_at(const struct order *order, struct fleet *fleet, size_t index, int64_t now_us)
{
    switch (order->verb) {
    case ORDER_BREAK:
        return fleet_break(fleet, index, order->kind, now_us);
    case ORDER_SILENCE:
        return fleet_silence(fleet, index, SILENCE_S, now_us);
    case ORDER_MEND:
        return fleet_mend(fleet, index, now_us);
    }
    return false;
}

/* Nodes that cannot are counted, not asked again: they are broken already, or not there yet. */
static void obey(const struct order *order, struct fleet *fleet, int64_t now_us)
{
    const char *what = order->verb == ORDER_BREAK     ? order->kind->id
                       : order->verb == ORDER_SILENCE ? "silence"
                                                      : "mend";
    size_t first = order->first == 0 ? 1 : order->first;
    size_t last = order->first == 0 ? fleet->count : order->last;
    size_t done = 0;
    for (size_t n = first; n <= last && n <= fleet->count; n++) {
        done += obey_at(order, fleet, n - 1, now_us);
        if (order->first == 0 && done > 0) {
            break;
        }
    }
    log_info("order %s: %zu nodes", what, done);
}

static void take_left(struct orders *orders, int64_t now_us)
{
    char path[4096];
    char taken[4096];
    CLEANUP(buf_free) struct buf text = {0};
    struct str bad;

    (void)snprintf(path, sizeof(path), "%s/orders", orders->state_dir);
    (void)snprintf(taken, sizeof(taken), "%s/orders.taken", orders->state_dir);
    if (rename(path, taken) != 0) {
        return;
    }
    if (file_read(taken, TEXT_MAX, &text) == 0 &&
        !orders_take(orders, buf_str(&text), now_us, &bad)) {
        log_warning("there is no order %.*s", (int)bad.len, bad.ptr);
    }
    (void)unlink(taken);
}

void orders_turn(struct orders *orders, struct fleet *fleet, int64_t now_us)
{
    if (now_us - orders->looked_us < SECOND_US) {
        return;
    }
    orders->looked_us = now_us;
    if (orders->state_dir != NULL && orders->state_dir[0] != '\0') {
        take_left(orders, now_us);
    }
    size_t kept = 0;
    for (size_t i = 0; i < orders->count; i++) {
        if (orders->items[i].due_us <= now_us) {
            obey(&orders->items[i], fleet, now_us);
        } else {
            orders->items[kept++] = orders->items[i];
        }
    }
    orders->count = kept;
}

int orders_leave(const char *state_dir, struct str text)
{
    char path[4096];

    (void)snprintf(path, sizeof(path), "%s/orders", state_dir);
    CLEANUP(cleanup_fd) int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0) {
        return errno;
    }
    return file_write_all(fd, text);
}

void orders_list(struct buf *out)
{
    buf_printf(out, "%-24s %-20s %-9s %-12s %s\n", "KIND", "CHECK", "SEVERITY", "ASKS FOR",
               "ENDS BY");
    for (size_t i = 0; i < fault_kinds_count; i++) {
        const struct fault_kind *kind = &fault_kinds[i];
        buf_printf(out, "%-24s %-20s %-9s %-12s %s\n", kind->id, kind->check_id, kind->severity,
                   kind->action, kind->clears);
    }
    buf_printf(out, "%-24s %-20s %-9s %-12s %s\n", "silence", "none: the node is unknown", "", "",
               "itself, after 10 min");
    buf_add_c(out, "\nChecks that no kind fails:\n");
    for (size_t i = 0; i < fault_reasons_count; i++) {
        buf_printf(out, "%-24s %s\n", fault_reasons[i].check_id, fault_reasons[i].why);
    }
}
