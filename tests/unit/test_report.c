/* Promises of server/report.h. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "server/report.h"

#define NOW INT64_C(1800000000000000)
#define BOOT "\"boot_id\":\"0190a0b0-0000-7000-8000-000000000001\""

static struct arena *arena;

static void make_arena(void)
{
    arena = arena_new(8u << 20);
}

static void drop_arena(void)
{
    arena_free(arena);
}

TestSuite(report, .init = make_arena, .fini = drop_arena);

static struct report read_all(const char *text)
{
    struct report report;
    const char *detail = "";
    enum err err = report_read(arena, str_of(text), NOW, &report, &detail);
    cr_assert_eq(err, ERR_NONE, "%s: %s", detail, text);
    return report;
}

/* A report with these further members. */
static struct report read_with(const char *members)
{
    return read_all(arena_printf(arena, "{" BOOT ",\"seq\":7,%s}", members));
}

static struct report read_events(const char *events)
{
    return read_with(arena_printf(arena, "\"streams\":[{\"stream\":1,\"events\":[%s]}]", events));
}

Test(report, readings_keep_their_units)
{
    struct report r = read_with("\"ready\":true,\"nonce\":\"q-_9\",\"metrics\":{\"cpu_ratio\":0."
                                "3149,\"mem_used_mib\":81234,"
                                "\"disk_ratio\":1,\"net_rx_mbps\":12.4,\"fabric_tx_mbps\":0}");
    cr_assert_eq(r.seq, 7);
    cr_assert(r.ready);
    cr_assert(str_eq_c(r.nonce, "q-_9"));
    cr_assert_eq(r.metrics[READING_CPU], 315);
    cr_assert_eq(r.metrics[READING_MEM], 81234);
    cr_assert_eq(r.metrics[READING_DISK], 1000);
    cr_assert_eq(r.metrics[READING_NET_RX], 12);
    cr_assert_eq(r.metrics[READING_FABRIC_TX], 0);
}

Test(report, what_cannot_be_read_is_unknown_and_never_zero)
{
    struct report r =
        read_with("\"metrics\":{\"cpu_ratio\":null,\"mem_used_mib\":-1,\"disk_ratio\":1.5,"
                  "\"net_rx_mbps\":\"12\",\"net_tx_mbps\":[1],\"fabric_rx_mbps\":4e9}");
    for (size_t i = 0; i < READING_COUNT; i++) {
        cr_assert_eq(r.metrics[i], REPORT_UNKNOWN, "metric %zu", i);
    }
    cr_assert_eq(r.gpus[GPU_UTIL].len, 0);
}

Test(report, gpu_arrays_become_array_texts)
{
    struct report r = read_with("\"gpus\":{\"util\":[97,98,null,101,-1],\"mem_mib\":[],"
                                "\"temp_c\":[-5,61.5,\"x\",{\"a\":[1]}],\"power_w\":7}");
    cr_assert(str_eq_c(r.gpus[GPU_UTIL], "\"{97,98,NULL,NULL,NULL}\""));
    cr_assert(str_eq_c(r.gpus[GPU_MEM], "\"{}\""));
    cr_assert(str_eq_c(r.gpus[GPU_TEMP], "\"{-5,62,NULL,NULL}\""));
    cr_assert_eq(r.gpus[GPU_POWER].len, 0);
}

Test(report, gpus_beyond_the_bound_are_left_out)
{
    struct buf text = {0};
    buf_add_c(&text, "\"gpus\":{\"mem_mib\":[2147483647");
    for (int i = 0; i < 100; i++) {
        buf_add_c(&text, ",2147483647");
    }
    buf_add_c(&text, "]}");
    struct report r = read_with(text.ptr);
    cr_assert_eq(r.gpus[GPU_MEM].len, REPORT_GPUS_MAX * 11 - 1 + 4);
    buf_free(&text);
}

Test(report, unknown_members_are_passed_over)
{
    struct report r =
        read_all("{\"new\":{\"a\":[{}]}," BOOT ",\"seq\":1,\"x\":\"\\u00e9\",\"gpus\":null}");
    cr_assert_eq(r.seq, 1);
}

Test(report, refusals_say_what_is_wrong)
{
    static const struct {
        const char *text;
        enum err err;
    } cases[] = {
        {"", ERR_BAD_JSON},
        {"[]", ERR_INVALID_FIELDS},
        {"[1,]", ERR_BAD_JSON},
        {"{", ERR_BAD_JSON},
        {"{" BOOT ",\"seq\":1} x", ERR_BAD_JSON},
        {"{" BOOT ",\"seq\":1,\"gpus\":{\"util\":[1,}}", ERR_BAD_JSON},
        {"{" BOOT ",\"seq\":1,\"streams\":[{\"events\":[{\"seq\":tru}]}]}", ERR_BAD_JSON},
        {"{" BOOT "}", ERR_INVALID_FIELDS},
        {"{\"seq\":1}", ERR_INVALID_FIELDS},
        {"{" BOOT ",\"seq\":0}", ERR_INVALID_FIELDS},
        {"{" BOOT ",\"seq\":1.5}", ERR_INVALID_FIELDS},
        {"{\"boot_id\":\"x\",\"seq\":1}", ERR_INVALID_FIELDS},
        {"{\"boot_id\":{},\"seq\":1}", ERR_INVALID_FIELDS},
        {"{" BOOT ",\"seq\":1,\"streams\":{}}", ERR_INVALID_FIELDS},
        {"{" BOOT ",\"seq\":1,\"seq\":2}", ERR_INVALID_FIELDS},
    };
    for (size_t i = 0; i < COUNTOF(cases); i++) {
        struct report report;
        const char *detail = NULL;
        enum err err = report_read(arena, str_of(cases[i].text), NOW, &report, &detail);
        cr_assert_eq(err, cases[i].err, "case %zu: %d", i, (int)err);
        cr_assert_not_null(detail, "case %zu", i);
    }
}

Test(report, an_event_is_read_whole)
{
    struct report r = read_events(
        "{\"seq\":12,\"at\":\"2026-12-01T14:28:03.117Z\",\"check_id\":\"gpu_lost\",\"code\":79,"
        "\"device\":\"0000:bb:00\",\"severity\":\"critical\",\"action\":\"reboot\",\"node_fault\":"
        "true,"
        "\"clears\":\"new_boot\",\"quiet_seconds\":30,\"count\":4,\"summary\":\"a \\\"b\\\"\","
        "\"lines\":[{\"at\":\"2026-12-01T14:28:03Z\",\"source\":\"kernel\",\"text\":\"x\\ty\","
        "\"opened\":true},"
        "{\"text\":\"z\"},{\"source\":\"no text\"}]}");
    cr_assert_eq(r.event_count, 1);
    const struct report_event *e = &r.events[0];
    cr_assert_eq(e->seq, 12);
    cr_assert(str_eq_c(e->check_id, "gpu_lost"));
    cr_assert(str_eq_c(e->code, "79"));
    cr_assert(str_eq_c(e->device, "0000:bb:00"));
    cr_assert_str_eq(e->severity, "critical");
    cr_assert_str_eq(e->action, "reboot");
    cr_assert_str_eq(e->clears, "new_boot");
    cr_assert(e->node_fault);
    cr_assert_eq(e->quiet_seconds, 30);
    cr_assert_eq(e->count, 4);
    cr_assert(str_eq_c(e->summary, "a \"b\""));
    cr_assert_eq(e->line_count, 2);
    cr_assert(str_eq_c(e->lines, "{\"at\":\"2026-12-01T14:28:03Z\",\"source\":\"kernel\",\"text\":"
                                 "\"x\\ty\",\"opened\":true},"
                                 "{\"at\":null,\"source\":\"\",\"text\":\"z\",\"opened\":false}"));
    cr_assert_eq(r.streams[0].stream, 1);
    cr_assert(uuid_eq(&r.streams[0].boot_id, &r.boot_id));
}

Test(report, an_event_that_cannot_be_stored_is_rejected_by_name)
{
    static const struct {
        const char *event;
        int64_t seq;
    } cases[] = {
        {"{\"seq\":5,\"severity\":\"info\"}", 5},
        {"{\"seq\":6,\"check_id\":\"\",\"severity\":\"info\"}", 6},
        {"{\"seq\":7,\"check_id\":\"x\"}", 7},
        {"{\"seq\":8,\"check_id\":\"x\",\"severity\":\"fatal\"}", 8},
        {"{\"check_id\":\"x\",\"severity\":\"info\"}", 0},
        {"{\"seq\":\"9\",\"check_id\":\"x\",\"severity\":\"info\"}", 0},
        {"{\"seq\":10,\"check_id\":"
         "\"a123456789b123456789c123456789d123456789e123456789f123456789g123\","
         "\"severity\":\"info\"}",
         10},
        {"{\"seq\":11,\"check_id\":[\"x\"],\"severity\":\"info\"}", 11},
    };
    for (size_t i = 0; i < COUNTOF(cases); i++) {
        struct report r = read_events(arena_printf(
            arena, "%s,{\"seq\":90,\"check_id\":\"good\",\"severity\":\"info\"}", cases[i].event));
        cr_assert_eq(r.event_count, 1, "case %zu", i);
        cr_assert_eq(r.events[0].seq, 90, "case %zu", i);
        cr_assert_eq(r.reject_count, 1, "case %zu", i);
        cr_assert_eq(r.rejects[0].seq, cases[i].seq, "case %zu", i);
        cr_assert_eq(r.rejects[0].stream, 1, "case %zu", i);
    }
}

Test(report, words_of_a_newer_agent_mean_the_careful_thing)
{
    struct report r = read_events("{\"seq\":1,\"check_id\":\"x\",\"severity\":\"info\","
                                  "\"action\":\"explode\",\"clears\":\"by_magic\"}");
    cr_assert_str_eq(r.events[0].action, "none");
    cr_assert_str_eq(r.events[0].clears, "person");
    cr_assert_eq(r.events[0].count, 1);
}

Test(report, seq_must_grow_within_a_stream)
{
    struct report r = read_with(
        "\"streams\":[{\"stream\":0,\"events\":[{\"seq\":3,\"check_id\":\"a\",\"severity\":"
        "\"info\"},"
        "{\"seq\":3,\"check_id\":\"b\",\"severity\":\"info\"},{\"seq\":9,\"check_id\":\"c\","
        "\"severity\":\"info\"}]},"
        "{\"events\":[{\"seq\":4,\"check_id\":\"d\",\"severity\":\"info\"},"
        "{\"seq\":10,\"check_id\":\"e\",\"severity\":\"info\"}],\"stream\":0},"
        "{\"stream\":2,\"events\":[{\"seq\":1,\"check_id\":\"f\",\"severity\":\"info\"}]}]");
    cr_assert_eq(r.event_count, 4);
    cr_assert_eq(r.reject_count, 2);
    cr_assert_eq(r.rejects[0].seq, 3);
    cr_assert_eq(r.rejects[1].seq, 4);
    cr_assert_eq(r.rejects[1].stream, 0);
    cr_assert_eq(r.stream_count, 3);
    cr_assert_eq(r.streams[1].first, 2);
    cr_assert_eq(r.streams[1].count, 1);
}

Test(report, a_stream_we_do_not_know_is_rejected)
{
    struct report r =
        read_with("\"streams\":[{\"stream\":7,\"events\":[{\"seq\":1,\"check_id\":\"a\","
                  "\"severity\":\"info\"}]},{\"events\":[{\"seq\":2}]},7,[],{}]");
    cr_assert_eq(r.event_count, 0);
    cr_assert_eq(r.reject_count, 2);
    cr_assert_eq(r.rejects[0].stream, 7);
}

Test(report, a_stream_may_name_an_older_boot)
{
    struct report r =
        read_with("\"streams\":[{\"boot_id\":\"0190a0b0-0000-7000-8000-000000000002\",\"stream\":0,"
                  "\"events\":[{\"seq\":1,\"check_id\":\"a\",\"severity\":\"info\"}]}]");
    cr_assert_eq(r.streams[0].boot_id.bytes[15], 2);
}

Test(report, clears_and_notes_need_no_severity)
{
    struct report r = read_events("{\"seq\":1,\"check_id\":\"a\",\"clear\":true},"
                                  "{\"seq\":2,\"check_id\":\"agent.dropped\",\"count\":40}");
    cr_assert_eq(r.events[0].kind, REPORT_CLEAR);
    cr_assert_eq(r.events[1].kind, REPORT_NOTE);
    cr_assert_eq(r.events[1].count, 40);
}

Test(report, times_are_never_in_the_future_and_follow_a_wrong_clock)
{
    char now[STR_RFC3339_LEN + 1];
    char later[STR_RFC3339_LEN + 1];
    str_format_rfc3339(NOW, now);
    str_format_rfc3339(NOW + 86400 * INT64_C(1000000), later);
    struct report r =
        read_with(arena_printf(arena,
                               "\"streams\":[{\"stream\":0,\"events\":[{\"seq\":1,\"check_id\":"
                               "\"a\",\"severity\":\"info\",\"at\":\"%s\"}]}]",
                               later));
    cr_assert_eq(r.events[0].at_us, NOW);
    /* A clock that is a day ahead; the event happened 60 s before the report was sent. */
    str_format_rfc3339(NOW + (86400 - 60) * INT64_C(1000000), now);
    r = read_with(arena_printf(arena,
                               "\"streams\":[{\"stream\":0,\"events\":[{\"seq\":1,\"check_id\":"
                               "\"a\",\"severity\":\"info\",\"at\":\"%s\"}]}],"
                               "\"sent_at\":\"%s\"",
                               now, later));
    cr_assert_eq(r.events[0].at_us, NOW - 60 * INT64_C(1000000));
    r = read_events("{\"seq\":1,\"check_id\":\"a\",\"severity\":\"info\"}");
    cr_assert_eq(r.events[0].at_us, NOW);
}

Test(report, too_many_events_are_refused_as_a_whole)
{
    struct buf text = {0};
    buf_add_c(&text, "{" BOOT ",\"seq\":1,\"streams\":[{\"stream\":0,\"events\":[{\"seq\":1}");
    for (int i = 0; i < REPORT_EVENTS_MAX; i++) {
        buf_printf(&text, ",{\"seq\":%d,\"check_id\":\"x\",\"severity\":\"info\"}", i + 2);
    }
    buf_add_c(&text, "]}]}");
    struct report report;
    const char *detail = NULL;
    cr_assert_eq(report_read(arena, buf_str(&text), NOW, &report, &detail), ERR_TOO_LARGE);
    buf_free(&text);
}

Test(report, too_many_clears_are_refused_as_a_whole)
{
    struct buf text = {0};
    buf_add_c(&text, "{" BOOT ",\"seq\":1,\"streams\":[{\"stream\":0,\"events\":[{\"seq\":1}");
    for (int i = 0; i <= REPORT_CLEARS_MAX; i++) {
        buf_printf(&text, ",{\"seq\":%d,\"check_id\":\"x\",\"clear\":true}", i + 2);
    }
    buf_add_c(&text, "]}]}");
    struct report report;
    const char *detail = NULL;
    cr_assert_eq(report_read(arena, buf_str(&text), NOW, &report, &detail), ERR_TOO_LARGE);
    buf_free(&text);
}

Test(report, long_texts_are_cut_at_a_character)
{
    struct buf text = {0};
    buf_add_c(&text, "{\"seq\":1,\"check_id\":\"x\",\"severity\":\"info\",\"summary\":\"a");
    for (int i = 0; i < 600; i++) {
        buf_add_c(&text, "\xc3\xa9");
    }
    buf_add_c(&text, "\",\"lines\":[{\"text\":\"");
    for (int i = 0; i < 200; i++) {
        buf_add_c(&text, "\\ud83d\\ude00");
    }
    buf_add_c(&text, "\"}]}");
    struct report r = read_events(text.ptr);
    cr_assert_eq(r.events[0].summary.len, 1023);
    cr_assert(str_is_utf8(r.events[0].summary));
    cr_assert(str_ends(r.events[0].lines, STR("\\ude00\",\"opened\":false}")));
    cr_assert(str_is_utf8(r.events[0].lines));
    buf_free(&text);
}

Test(report, inventory_is_checked_and_each_part_named_once)
{
    struct report r = read_with(
        "\"inventory\":{\"agent_version\":\"1.2\",\"kernel\":null,\"cpus\":64,\"memory_mib\":-4,"
        "\"booted_at\":\"2026-12-01T00:00:00Z\",\"devices\":["
        "{\"type\":\"gpu\",\"index\":0,\"serial\":\"A\",\"pci\":\"0000:1b:00\",\"memory_mib\":"
        "81559},"
        "{\"type\":\"gpu\",\"index\":1,\"serial\":\"A\"},{\"type\":\"tape\",\"serial\":\"B\"},"
        "{\"type\":\"nic\",\"pci\":\"0000:2c:00\"},{\"type\":\"disk\"}]}");
    cr_assert(r.has_inventory);
    cr_assert(str_eq_c(r.inventory.agent_version, "1.2"));
    cr_assert_null(r.inventory.kernel.ptr);
    cr_assert_eq(r.inventory.cpus, 64);
    cr_assert_eq(r.inventory.memory_mib, -1);
    cr_assert_neq(r.inventory.booted_at_us, 0);
    cr_assert_neq(str_find(r.devices, STR("\"serial\":\"0000:2c:00\""), 0), -1);
    cr_assert_eq(str_find(r.devices, STR("tape"), 0), -1);
    ptrdiff_t first = str_find(r.devices, STR("\"serial\":\"A\""), 0);
    cr_assert_neq(first, -1);
    cr_assert_eq(str_find(r.devices, STR("\"serial\":\"A\""), (size_t)first + 1), -1);
}

Test(report, an_inventory_without_devices_says_nothing_about_them)
{
    struct report r = read_with("\"inventory\":{}");
    cr_assert(r.has_inventory);
    cr_assert_null(r.devices.ptr);
    r = read_with("\"inventory\":{\"devices\":[]}");
    cr_assert(str_eq_c(r.devices, "[]"));
}

Test(report, of_several_results_of_one_command_the_last_counts)
{
    struct report r = read_with("\"results\":[{\"command_id\":\"0190a0b0-0000-7000-8000-"
                                "0000000000aa\",\"state\":\"accepted\"},"
                                "{\"command_id\":\"0190A0B0-0000-7000-8000-0000000000AA\","
                                "\"state\":\"done\",\"detail\":\"ok\"},"
                                "{\"command_id\":\"x\",\"state\":\"done\"},{\"state\":\"done\"}],"
                                "\"collectors\":[{\"name\":\"kmsg\",\"state\":\"odd\"}]");
    cr_assert_eq(str_find(r.results, STR("accepted"), 0), -1);
    cr_assert_neq(str_find(r.results, STR("\"done\",\"detail\":\"ok\""), 0), -1);
    cr_assert_null(r.collectors.ptr);
}

Test(report, a_body_of_the_greatest_size_stays_within_a_request_s_arena)
{
    static const struct {
        const char *head;
        const char *piece; /* repeated */
        const char *tail;
    } cases[] = {
        {"\"streams\":[{\"stream\":0,\"events\":[", "{\"lines\":[{\"text\":\"a\"}]},", "{}]}]"},
        {"\"streams\":[{\"stream\":0,\"events\":[{", "\"lines\":[{\"text\":\"a\"}],",
         "\"x\":0}]}]"},
        {"\"streams\":[{\"stream\":0,\"events\":[{", "\"code\":\"\\n\",", "\"x\":0}]}]"},
        {"\"streams\":[{\"stream\":0,\"events\":[{", "\"code\":1,", "\"x\":0}]}]"},
        {"\"gpus\":{", "\"util\":[],", "\"x\":0}"},
        {"\"inventory\":{", "\"devices\":[],", "\"x\":0}"},
        {"\"inventory\":{", "\"kernel\":\"\\n\",", "\"x\":0}"},
        {"\"collectors\":[{", "\"name\":\"\\n\",", "\"x\":0}]"},
    };
    for (size_t i = 0; i < COUNTOF(cases); i++) {
        struct buf text = {0};
        buf_printf(&text, "{" BOOT ",\"seq\":1,%s", cases[i].head);
        while (text.len < (1u << 20) - 100) {
            buf_add_c(&text, cases[i].piece);
        }
        buf_printf(&text, "%s}", cases[i].tail);
        /* The body lies in the same arena. */
        (void)arena_strndup(arena, text.ptr, text.len);
        struct report report;
        const char *detail = NULL;
        enum err err = report_read(arena, buf_str(&text), NOW, &report, &detail);
        cr_assert(err == ERR_NONE || err == ERR_TOO_LARGE, "case %zu: %s", i, detail);
        arena_reset(arena);
        buf_free(&text);
    }
}
