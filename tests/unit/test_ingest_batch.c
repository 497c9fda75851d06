/* Promises of server/ingest_batch.h. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "server/ingest_batch.h"

#define NOW INT64_C(1800000000000000)

static struct arena *arena;
static struct batch *batch;

static void make_batch(void)
{
    arena = arena_new(64u << 20);
    batch = batch_new();
}

static void drop_batch(void)
{
    batch_free(batch);
    arena_free(arena);
}

TestSuite(ingest_batch, .init = make_batch, .fini = drop_batch);

/* A report of node n of org o; events is JSON of stream 0. */
static struct batch_item *make_item(uint8_t o, uint8_t n, int seq, const char *events)
{
    struct report *report = arena_zalloc(arena, sizeof *report);
    struct batch_item *item = arena_zalloc(arena, sizeof *item);
    const char *detail = "";
    const char *text =
        arena_printf(arena,
                     "{\"boot_id\":\"0190a0b0-0000-7000-8000-000000000001\",\"seq\":%d,"
                     "\"metrics\":{\"cpu_ratio\":0.5},\"gpus\":{\"util\":[1,null]},"
                     "\"streams\":[{\"stream\":0,\"events\":[%s]}]}",
                     seq, events);
    cr_assert_eq(report_read(arena, str_of(text), NOW, report, &detail), ERR_NONE, "%s", detail);
    item->org.bytes[0] = o;
    item->node.bytes[0] = n;
    item->report = report;
    return item;
}

static char *fault(int seq, const char *check)
{
    return arena_printf(arena, "{\"seq\":%d,\"check_id\":\"%s\",\"severity\":\"info\"}", seq,
                        check);
}

static char *clear(int seq, const char *check)
{
    return arena_printf(arena, "{\"seq\":%d,\"check_id\":\"%s\",\"clear\":true}", seq, check);
}

static const char *value(const struct db_unit *unit, size_t column)
{
    return unit->args->values[column];
}

Test(ingest_batch, items_are_sorted_by_org_node_and_seq)
{
    struct batch_item *items[] = {make_item(2, 1, 1, ""), make_item(1, 2, 1, ""),
                                  make_item(1, 1, 2, ""), make_item(1, 1, 1, "")};
    batch_sort(items, COUNTOF(items));
    cr_assert_eq(items[0]->org.bytes[0] * 100 + items[0]->node.bytes[0] * 10, 110);
    cr_assert_eq(items[0]->report->seq, 1);
    cr_assert_eq(items[1]->report->seq, 2);
    cr_assert_eq(items[2]->node.bytes[0], 2);
    cr_assert_eq(items[3]->org.bytes[0], 2);
}

Test(ingest_batch, the_last_report_of_a_node_gives_its_readings)
{
    struct batch_item *items[] = {make_item(1, 1, 8, ""), make_item(1, 1, 9, ""),
                                  make_item(1, 2, 3, "")};
    struct db_unit units[16];
    batch_load(batch, items, COUNTOF(items));
    cr_assert_eq(batch_rows(batch), 2);
    cr_assert_eq(batch_units(batch, units, COUNTOF(units)), 1);
    cr_assert_eq(units[0].sql, SQL_INGEST_STATE);
    cr_assert_eq(units[0].args->count, 22);
    cr_assert_str_eq(value(&units[0], 2), "{9,3}");
    cr_assert_str_eq(value(&units[0], 5), "{500,500}");
    cr_assert_str_eq(value(&units[0], 6), "{NULL,NULL}");
    cr_assert_str_eq(value(&units[0], 13), "{\"{1,NULL}\",\"{1,NULL}\"}");
    cr_assert_str_eq(value(&units[0], 18), "{10,10}", "the mean of the readable GPUs, permille");
    cr_assert_str_eq(value(&units[0], 21), "{NULL,NULL}", "no temperature was sent");
    cr_assert_eq(batch_units(batch, units, COUNTOF(units)), 0);
}

Test(ingest_batch, events_stand_once_in_a_batch)
{
    struct batch_item *items[] = {
        make_item(1, 1, 8, arena_printf(arena, "%s,%s", fault(1, "a"), fault(2, "b"))),
        make_item(1, 1, 9,
                  arena_printf(arena, "%s,%s,%s", fault(1, "a"), fault(2, "b"), fault(3, "c"))),
        make_item(1, 2, 9, fault(1, "a")),
    };
    struct db_unit units[16];
    batch_load(batch, items, COUNTOF(items));
    cr_assert_eq(batch_events(batch), 4);
    cr_assert_eq(batch_units(batch, units, COUNTOF(units)), 2);
    cr_assert_eq(units[1].sql, SQL_INGEST_EVENTS);
    cr_assert_eq(units[1].args->count, 21);
    cr_assert_str_eq(value(&units[1], 5), "{1,2,3,1}");
    cr_assert_str_eq(value(&units[1], 10), "{\"a\",\"b\",\"c\",\"a\"}");
}

Test(ingest_batch, each_turn_of_a_key_has_a_statement_of_its_own)
{
    struct batch_item *items[] = {
        make_item(1, 1, 1,
                  arena_printf(arena, "%s,%s,%s,%s,%s,%s", fault(1, "a"), fault(2, "a"),
                               clear(3, "a"), fault(4, "b"), fault(5, "a"), clear(6, "b")))};
    struct db_unit units[16];
    batch_load(batch, items, 1);
    cr_assert_eq(batch_units(batch, units, COUNTOF(units)), 4);
    cr_assert_str_eq(value(&units[1], 5), "{1,2}");
    /* b stands behind the clear of a in its stream, whose mark only rises. */
    cr_assert_str_eq(value(&units[2], 5), "{3,4}");
    cr_assert_str_eq(value(&units[3], 5), "{5,6}");
}

Test(ingest_batch, turns_of_one_node_do_not_hold_up_another)
{
    struct batch_item *items[] = {
        make_item(1, 1, 1, arena_printf(arena, "%s,%s", fault(1, "a"), clear(2, "a"))),
        make_item(1, 2, 1, arena_printf(arena, "%s,%s", fault(1, "a"), fault(2, "a")))};
    struct db_unit units[16];
    batch_load(batch, items, COUNTOF(items));
    cr_assert_eq(batch_units(batch, units, COUNTOF(units)), 3);
    cr_assert_str_eq(value(&units[1], 5), "{1,1,2}");
    cr_assert_str_eq(value(&units[2], 5), "{2}");
}

Test(ingest_batch, more_turns_than_a_transaction_holds_come_in_further_ones)
{
    CLEANUP(buf_free) struct buf events = {0};
    for (int seq = 1; seq <= 40; seq++) {
        buf_printf(&events, "%s%s", seq == 1 ? "" : ",",
                   seq % 2 == 1 ? fault(seq, "a") : clear(seq, "a"));
    }
    struct batch_item *items[] = {make_item(1, 1, 1, events.ptr)};
    struct db_unit units[16];
    batch_load(batch, items, 1);
    cr_assert_eq(batch_units(batch, units, COUNTOF(units)), 16);
    cr_assert_eq(units[0].sql, SQL_INGEST_STATE);
    cr_assert_str_eq(value(&units[15], 5), "{15}");
    cr_assert_eq(batch_units(batch, units, COUNTOF(units)), 15);
    cr_assert_str_eq(value(&units[0], 5), "{16}");
    cr_assert_eq(batch_units(batch, units, COUNTOF(units)), 10);
    cr_assert_str_eq(value(&units[9], 5), "{40}");
    cr_assert_eq(batch_units(batch, units, COUNTOF(units)), 0);
}

Test(ingest_batch, texts_are_quoted)
{
    struct batch_item *items[] = {make_item(1, 1, 1,
                                            "{\"seq\":1,\"check_id\":\"a\",\"severity\":\"info\","
                                            "\"summary\":\"a \\\"b\\\\ {c},NULL\"}")};
    struct db_unit units[16];
    batch_load(batch, items, 1);
    cr_assert_eq(batch_units(batch, units, COUNTOF(units)), 2);
    cr_assert_str_eq(value(&units[1], 18), "{\"a \\\"b\\\\ {c},NULL\"}");
    cr_assert_str_eq(value(&units[1], 9), "{\"\"}");
}

Test(ingest_batch, only_the_first_lines_of_a_key_are_sent)
{
    CLEANUP(buf_free) struct buf events = {0};
    for (int seq = 1; seq <= 30; seq++) {
        buf_printf(
            &events,
            "%s{\"seq\":%d,\"check_id\":\"a\",\"severity\":\"info\",\"lines\":[{\"text\":\"x\"}]}",
            seq == 1 ? "" : ",", seq);
    }
    struct batch_item *items[] = {make_item(1, 1, 1, events.ptr)};
    struct db_unit units[16];
    batch_load(batch, items, 1);
    cr_assert_eq(batch_units(batch, units, COUNTOF(units)), 2);
    size_t lines = 0;
    for (const char *at = value(&units[1], 19); (at = strstr(at, "text")) != NULL; at++) {
        lines++;
    }
    cr_assert_eq(lines, REPORT_LINES_MAX);
}

Test(ingest_batch, one_event_can_be_sent_alone)
{
    struct batch_item *item =
        make_item(1, 1, 1, arena_printf(arena, "%s,%s", fault(1, "a"), fault(2, "b")));
    struct db_unit units[16];
    batch_load_event(batch, item, 1);
    cr_assert_eq(batch_units(batch, units, COUNTOF(units)), 1);
    cr_assert_str_eq(value(&units[0], 10), "{\"b\"}");
    batch_load_state(batch, &item, 1);
    cr_assert_eq(batch_units(batch, units, COUNTOF(units)), 1);
    cr_assert_eq(units[0].sql, SQL_INGEST_STATE);
    cr_assert_not(batch_item_is_refused(item, 1));
    batch_item_refuse(item, 1);
    cr_assert(batch_item_is_refused(item, 1));
    cr_assert_not(batch_item_is_refused(item, 0));
}
