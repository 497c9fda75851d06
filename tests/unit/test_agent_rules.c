/* Promises of the agent's tables and small parsers: PCI addresses, patterns, kernel records, codes.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "agent/rules/checks.h"
#include "agent/rules/log_line.h"
#include "agent/rules/match.h"
#include "agent/rules/patterns.h"
#include "agent/rules/pci.h"
#include "agent/rules/xid.h"

Test(pci, every_form_of_an_address_names_the_same_slot)
{
    static const struct {
        const char *text;
        const char *address;
        int instance;
    } forms[] = {
        {"0000:b3:00", "0000:b3:00", -1},         {"PCI:0000:b3:00", "0000:b3:00", -1},
        {"0000:b3:00.0", "0000:b3:00", -1},       {"b3:00.0", "0000:b3:00", -1},
        {"00000000:B3:00.0", "0000:b3:00", -1},   {"00008ED0:00:00.0", "8ed0:00:00", -1},
        {"0000:01:00 GPU-I:05", "0000:01:00", 5}, {"PCI:0000:01:00 GPU-I:05 CI:1", "0000:01:00", 5},
        {"00010000:01:1f.7", "10000:01:1f", -1},  {" 0000:b3:00 ", "0000:b3:00", -1},
    };
    struct pci pci;

    for (size_t i = 0; i < COUNTOF(forms); i++) {
        cr_assert(pci_parse(str_of(forms[i].text), &pci), "%s", forms[i].text);
        cr_assert_str_eq(pci.text, forms[i].address, "%s", forms[i].text);
        cr_assert_eq(pci.mig_instance, forms[i].instance, "%s", forms[i].text);
    }
}

Test(pci, what_is_no_address_is_refused)
{
    static const char *const texts[] = {
        "",
        "0000",
        "b3",
        "0000:b3",
        "0:b3:00",
        "0000:b3:00:00",
        "0000:b3:0g",
        "000000000:b3:00",
        "0000:b3:00.g",
        "0000:b3:00 x",
        "0000:b3:00 GPU-I:",
        "0000:b3:00 GPU-I:99",
        "+000:b3:00",
        "0x00:b3:00",
        "12:34:56",
        ":b3:00",
    };
    struct pci pci;

    for (size_t i = 0; i < COUNTOF(texts); i++) {
        cr_assert_not(pci_parse(str_of(texts[i]), &pci), "\"%s\"", texts[i]);
    }
}

Test(match, signs_capture_what_they_stand_for)
{
    struct match match;

    cr_assert(match_text("nvme %w: I/O *timeout, reset controller*",
                         STR("nvme nvme4: I/O tag 22 (2016) QID 0 timeout, reset controller"),
                         &match));
    cr_assert(str_eq_c(match.captures[0], "nvme4"));
    cr_assert(match_text("INFO: task *:%d blocked for more than %d seconds*",
                         STR("INFO: task nvc:[driver]:5403 blocked for more than 120 seconds."),
                         &match));
    cr_assert(str_eq_c(match.captures[0], "5403"));
    cr_assert(str_eq_c(match.captures[1], "120"));
    cr_assert(match_text("NVRM: GPU %p: GPU has*", STR("NVRM: GPU 0000:09:00.0: GPU has fallen"),
                         &match));
    cr_assert(str_eq_c(match.captures[0], "0000:09:00.0"));
    cr_assert(match_text("(?i)%w: LOST carrier", STR("ib6: Lost Carrier"), &match));
    cr_assert(match_text("100%%", STR("100%"), &match));
}

Test(match, a_pattern_is_anchored_at_both_ends)
{
    struct match match;

    cr_assert_not(match_text("abc", STR("xabc"), &match));
    cr_assert_not(match_text("abc", STR("abcx"), &match));
    cr_assert(match_text("*abc*", STR("xabcx"), &match));
    cr_assert(match_text("*", STR(""), &match));
    cr_assert_not(match_text("%d", STR(""), &match));
}

Test(match, many_stars_over_a_long_text_end_soon)
{
    static char text[100001];
    struct match match;

    memset(text, 'a', sizeof(text) - 1);
    cr_assert_not(match_text("*a*a*a*a*a*a*a*a*b", str_of(text), &match));
}

Test(patterns, each_row_names_a_known_check_that_has_a_clear_rule)
{
    for (size_t i = 0; i < pattern_count; i++) {
        const struct pattern *row = &patterns[i];
        const struct check_row *check = check_find(str_of(row->check));

        cr_assert_not_null(check, "row %zu: %s", i, row->check);
        cr_assert_gt(strlen(check->clear_rule), 0);
        cr_assert_gt(strlen(row->title), 0, "row %zu", i);
        cr_assert_lt(strlen(row->check), 64);
        if (row->clears == CLEARS_QUIET) {
            cr_assert_gt(row->quiet_seconds, 0, "row %zu: quiet for how long?", i);
        }
    }
}

Test(patterns, a_service_line_is_never_a_node_fault)
{
    /* Anybody may log under any name; only the kernel is believed that much. */
    for (size_t i = 0; i < pattern_count; i++) {
        cr_assert(patterns[i].service == NULL || !patterns[i].node_fault, "row %zu", i);
    }
}

Test(patterns, a_fault_has_an_action_and_an_action_is_a_fault)
{
    for (size_t i = 0; i < pattern_count; i++) {
        cr_assert_eq(patterns[i].node_fault, patterns[i].action != ACTION_NONE, "row %zu", i);
        cr_assert_eq(patterns[i].node_fault, patterns[i].severity == SEVERITY_CRITICAL, "row %zu",
                     i);
    }
}

Test(patterns, captures_that_a_row_uses_exist)
{
    for (size_t i = 0; i < pattern_count; i++) {
        const struct pattern *row = &patterns[i];
        int count = 0;

        for (const char *at = row->pattern; *at != '\0'; at++) {
            if (at[0] == '%' && at[1] == '%') {
                at++;
            } else if (at[0] == '%') {
                count++;
            }
        }
        cr_assert_leq(count, MATCH_CAPTURES_MAX, "row %zu", i);
        cr_assert_leq(row->device, count, "row %zu", i);
        const char *dollar = row->code != NULL ? strchr(row->code, '$') : NULL;
        cr_assert(dollar == NULL || dollar[1] - '0' <= count, "row %zu", i);
    }
}

Test(checks, ids_are_unique_and_short)
{
    for (size_t i = 0; i < check_row_count; i++) {
        cr_assert_eq(check_find(str_of(check_rows[i].id)), &check_rows[i], "%s", check_rows[i].id);
        cr_assert_leq(strlen(check_rows[i].id), 63);
    }
}

Test(xid, each_code_has_a_check_and_a_way_to_end)
{
    struct finding finding;

    for (size_t i = 0; i < xid_row_count; i++) {
        xid_describe(xid_rows[i].code, "0000:bb:00", &finding);
        cr_assert_not_null(check_find(str_of(finding.check)), "Xid %u", xid_rows[i].code);
        cr_assert(finding.clears != CLEARS_QUIET || finding.quiet_seconds > 0, "Xid %u",
                  xid_rows[i].code);
        cr_assert(i == 0 || xid_rows[i - 1].code < xid_rows[i].code);
    }
    for (size_t i = 1; i < sxid_row_count; i++) {
        cr_assert_lt(sxid_rows[i - 1].code, sxid_rows[i].code);
    }
}

Test(xid, a_code_of_an_application_is_never_a_node_fault)
{
    struct finding finding;

    for (size_t i = 0; i < xid_row_count; i++) {
        if (xid_rows[i].scope == XID_SCOPE_APP) {
            xid_describe(xid_rows[i].code, "0000:bb:00", &finding);
            cr_assert_not(finding.node_fault, "Xid %u", xid_rows[i].code);
            cr_assert_eq(finding.action, ACTION_NONE, "Xid %u", xid_rows[i].code);
        }
    }
}

Test(xid, a_code_that_is_not_in_the_table_is_a_warning_and_nothing_more)
{
    struct finding finding;

    xid_describe(999, "0000:bb:00", &finding);
    cr_assert_str_eq(finding.check, "gpu_xid");
    cr_assert_eq(finding.severity, SEVERITY_WARNING);
    cr_assert_eq(finding.action, ACTION_NONE);
    cr_assert_not(finding.node_fault);
}

Test(xid, the_two_encodings_of_nvlink_5_never_say_different_things)
{
    for (size_t i = 0; i < nvlink5_row_count; i++) {
        const struct nvlink5_row *row = &nvlink5_rows[i];
        uint32_t status = row->status_count > 0 ? row->status[0] : 0;
        uint32_t old_words[] = {row->v1.value, status};
        uint32_t new_words[] = {row->v2.value, status};
        struct str unit = str_of(row->units[0]);

        cr_assert_eq(nvlink5_decode(row->xid, unit, old_words, 2), row->verdict, "row %zu, V1", i);
        cr_assert_eq(nvlink5_decode(row->xid, unit, new_words, 2), row->verdict, "row %zu, V2", i);
    }
    cr_assert_eq(nvlink5_decode(145, STR("RLW_REMAP"), NULL, 0), NVLINK5_UNKNOWN);
}

Test(kmsg, a_record_is_cut_into_its_parts)
{
    struct kmsg_record record;

    cr_assert(kmsg_parse(STR("4,1227,437812449932,-;NVRM: Xid\n SUBSYSTEM=pci\n DEVICE=+pci:0\n"),
                         &record));
    cr_assert_eq(record.priority, 4);
    cr_assert_eq(record.facility, 0);
    cr_assert_eq(record.seq, 1227);
    cr_assert_eq(record.uptime_us, 437812449932);
    cr_assert(str_eq_c(record.text, "NVRM: Xid"));
    cr_assert(kmsg_parse(STR("12,1,2,c,caller=T1;x;y"), &record));
    cr_assert_eq(record.facility, 1);
    cr_assert(record.continues);
    cr_assert(str_eq_c(record.text, "x;y"));
}

Test(kmsg, what_has_not_the_kernels_form_is_refused)
{
    static const char *const texts[] = {
        "",           ";",          "x",       "1,2,3;x",       "1,2,3,;x",
        "1,2,3,--;x", "-1,2,3,-;x", "1,2,-;x", "99999,1,1,-;x", "1,99999999999999999999,1,-;x",
        "4,1,1,-",
    };
    struct kmsg_record record;

    for (size_t i = 0; i < COUNTOF(texts); i++) {
        cr_assert_not(kmsg_parse(str_of(texts[i]), &record), "\"%s\"", texts[i]);
    }
}

Test(kmsg, escapes_become_their_bytes_and_never_overrun)
{
    char buf[8];
    struct str text = kmsg_unescape(STR("a\\x0ab\\x5cx\\x"), buf, sizeof(buf));

    cr_assert(str_eq_c(text, "a\nb\\x\\x"));
    cr_assert_eq(kmsg_unescape(STR("0123456789"), buf, sizeof(buf)).len, sizeof(buf));
}

Test(log_line, what_stands_in_front_of_a_kernel_line_is_taken_off)
{
    static const char *const lines[] = {
        "NVRM: x",
        "[ 1843.308145] NVRM: x",
        "[Fri Aug 30 11:43:09 2024] NVRM: x",
        "kernel: NVRM: x",
        "[Sun Dec  1 14:54:40 2024] node01 kernel: NVRM: x",
        "Feb 23 03:28:16 kernel: NVRM: x",
        "Sep 16 19:51:15 kernel: [    0.043437] NVRM: x",
        "kern: warning: [2026-04-22T21:27:51.288830314Z]: NVRM: x",
        "4,1227,437812449932,-;NVRM: x",
        "[...] NVRM: x",
    };
    struct log_line line;

    for (size_t i = 0; i < COUNTOF(lines); i++) {
        kernel_line_parse(str_of(lines[i]), &line);
        cr_assert(str_eq_c(line.text, "NVRM: x"), "%s -> %.*s", lines[i], STR_FMT(line.text));
    }
    kernel_line_parse(STR("[    0.064261] mce: x"), &line);
    cr_assert_eq(line.uptime_us, 64261);
}

Test(log_line, a_process_that_quotes_the_kernel_stays_a_process)
{
    struct log_line line;

    syslog_line_parse(STR("Dec  1 15:00:01 node01 python3[812]: NVRM: Xid (PCI:0000:3b:00): 79, x"),
                      &line);
    cr_assert(str_eq_c(line.ident, "python3"));
    syslog_line_parse(STR("<30>Dec  1 15:00:01 node01 kernel: [ 1.000000] NVRM: x"), &line);
    cr_assert(str_eq_c(line.ident, "kernel"));
    cr_assert(str_eq_c(line.text, "NVRM: x"));
    syslog_line_parse(
        STR("2024-06-30T11:07:05+00:00 node01 systemd-networkd[5398]: ib6: lost carrier"), &line);
    cr_assert(str_eq_c(line.ident, "systemd-networkd"));
    cr_assert(str_eq_c(line.text, "ib6: lost carrier"));
}
