/* An agent's report, decoded from its JSON text without a library and without the heap. */
#ifndef SERVER_REPORT_H
#define SERVER_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "base/uuid.h"

/* docs/agent-protocol.md promises these to agents. */
#define REPORT_EVENTS_MAX 2048
/* Each turn of a condition costs the writers a statement of its own. */
#define REPORT_CLEARS_MAX 256
#define REPORT_STREAMS_MAX 16
#define REPORT_STREAM_LAST 2 /* streams are 0, 1 and 2 */
#define REPORT_GPUS_MAX 64
#define REPORT_LINES_MAX 20
#define REPORT_DEVICES_MAX 256
#define REPORT_COLLECTORS_MAX 64
#define REPORT_RESULTS_MAX 16

/* What cannot be read: NULL in the database. */
#define REPORT_UNKNOWN INT32_MIN

enum report_kind {
    REPORT_FAULT,
    REPORT_CLEAR, /* its condition is gone */
    REPORT_NOTE,  /* the agent's own: it had to drop events; opens no incident */
};

/* Texts are valid UTF-8 without NUL, within the limits of the tables; they lie in the body or the
 * arena. */
struct report_event {
    int64_t seq;        /* >= 1, growing within its stream */
    int64_t at_us;      /* by the server's clock, not in the future */
    int64_t count;      /* >= 1 */
    int64_t kernel_seq; /* number of its kernel record; 0 = from elsewhere */
    struct str check_id;
    struct str code;
    struct str device;
    struct str summary;
    struct str lines; /* JSON objects joined by commas; empty for none */
    const char *severity;
    const char *action;
    const char *clears;
    int32_t quiet_seconds;
    uint8_t line_count;
    uint8_t kind; /* enum report_kind */
    bool node_fault;
};

/* Events of one boot and stream, which lie together. */
struct report_stream {
    struct uuid boot_id;
    int stream;
    size_t first; /* index into report.events */
    size_t count;
};

struct report_reject {
    int64_t stream;
    int64_t seq;
    const char *reason; /* static text */
};

enum report_reading {
    READING_CPU, /* permille */
    READING_MEM, /* MiB, as all memory */
    READING_MEM_TOTAL,
    READING_DISK,   /* permille */
    READING_NET_RX, /* Mbit/s, as all rates */
    READING_NET_TX,
    READING_FABRIC_RX,
    READING_FABRIC_TX,
    READING_COUNT
};

enum report_gpu {
    GPU_UTIL, /* percent */
    GPU_MEM,
    GPU_MEM_TOTAL,
    GPU_TEMP,  /* degrees Celsius */
    GPU_POWER, /* W */
    GPU_COUNT
};

/* Absent texts have ptr NULL. */
struct report_inventory {
    struct str agent_version;
    struct str kernel;
    struct str os_image;
    struct str driver_version;
    struct str gpu_type;
    struct str host_serial;
    struct str address;
    struct str rack; /* the node's place, from its own configuration */
    struct str leaf;
    struct str partition;
    int64_t cpus;         /* -1 = absent */
    int64_t memory_mib;   /* -1 = absent */
    int64_t booted_at_us; /* 0 = absent */
};

/* Over the GPUs of a node that could be read. */
struct report_figures {
    int64_t sum;
    int32_t max;
    int32_t read; /* how many; 0 = sum and max mean nothing */
};

struct report {
    struct uuid boot_id;
    int64_t seq;      /* >= 1 */
    struct str nonce; /* base64url, <= 64 characters; empty when there is no usable one */
    bool ready;
    int64_t command_key;         /* number of the newest that it trusts; 0 = not said */
    struct str settings;         /* version that it runs, empty = none; ptr NULL = it takes none */
    struct str settings_refused; /* version that it could not use; empty = none */
    int32_t metrics[READING_COUNT];
    /* An element of a text[]: "{97,98,NULL}" with its quotes, or NULL; empty = absent. */
    struct str gpus[GPU_COUNT];
    struct report_figures gpu_figures[GPU_COUNT];
    struct report_event *events;
    size_t event_count;
    struct report_stream streams[REPORT_STREAMS_MAX];
    size_t stream_count;
    struct report_reject *rejects;
    size_t reject_count;
    bool has_inventory;
    struct report_inventory inventory;
    /* JSON arrays, checked and each thing named once, as SQL_AGENT_FACTS takes them; ptr NULL =
     * absent. */
    struct str devices;
    struct str collectors;
    struct str results;
};

/*
 * Decodes a body of at most 1 MiB that was received at received_us. Lenient: unknown fields are
 * passed over, a reading of a wrong type is unknown, an event that cannot be stored is in `rejects`
 * with its reason while the rest is kept.
 * ERR_BAD_JSON; ERR_INVALID_FIELDS (boot_id or seq is missing, or a part is no object or array);
 * ERR_TOO_LARGE (more events, clears or streams than a report may hold); *ret_detail says what is
 * wrong.
 */
enum err report_read(struct arena *arena, struct str body, int64_t received_us,
                     struct report *ret_report, const char **ret_detail) MUST_CHECK;

#endif
