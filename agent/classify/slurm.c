/* What Slurm says about its nodes: scontrol, sinfo, slurmctld's log, bare reasons. */
#include <stdio.h>

#include "agent/classify/classify.h"
#include "agent/rules/match.h"
#include "base/json.h"

static const struct {
    const char *pattern;
    const char *code;
    enum severity severity;
    enum action action;
} reasons[] = {
    {"(?i)*gres/gpu count reported lower*", "gres_low", SEVERITY_WARNING, ACTION_NONE},
    {"(?i)*unexpectedly rebooted*", "unexpected_reboot", SEVERITY_WARNING, ACTION_NONE},
    {"(?i)*reboot timed out*", "reboot_timed_out", SEVERITY_CRITICAL, ACTION_REPROVISION},
    {"(?i)*not responding*", "not_responding", SEVERITY_CRITICAL, ACTION_REBOOT},
    {"(?i)*kill task failed*", "kill_task_failed", SEVERITY_CRITICAL, ACTION_REBOOT},
    {"(?i)*low realmemory*", "low_memory", SEVERITY_WARNING, ACTION_NONE},
    {"(?i)*prolog error*", "prolog_error", SEVERITY_WARNING, ACTION_NONE},
    {"(?i)*epilog error*", "epilog_error", SEVERITY_WARNING, ACTION_NONE},
    {"muster:*", "muster", SEVERITY_INFO, ACTION_NONE},
    {"[user_problem]*", "user_problem", SEVERITY_INFO, ACTION_NONE},
    {"[HC]*", "health_check", SEVERITY_WARNING, ACTION_NONE},
};

/* One reason; words nobody knows were written by a person, whose drain is never touched. */
static struct finding judge_part(struct str reason)
{
    struct finding finding = classify_finding("slurm_node_state");
    struct match match;

    for (size_t i = 0; i < COUNTOF(reasons); i++) {
        if (!match_text(reasons[i].pattern, reason, &match)) {
            continue;
        }
        finding_set_code(&finding, "%s", reasons[i].code);
        finding.severity = reasons[i].severity;
        if (reasons[i].action != ACTION_NONE) {
            classify_set_fault(&finding, reasons[i].action);
        }
        return finding;
    }
    finding_set_code(&finding, "admin");
    return finding;
}

/* Reasons joined by "; ": the worst counts. */
static void judge_reason(struct classify *classify, struct str reason)
{
    struct finding worst = classify_finding("slurm_node_state");
    struct str part;
    size_t parts = 0;

    while (str_split(&reason, ';', &part)) {
        part = str_trim(part);
        if (part.len == 0) {
            continue;
        }
        struct finding finding = judge_part(part);
        if (parts == 0 || finding.severity > worst.severity) {
            worst = finding;
        }
        parts++;
    }
    if (parts == 0) {
        return;
    }
    if (parts > 1) {
        finding_set_code(&worst, "compound");
    }
    classify_add(classify, &worst);
}

/* The text after "Reason=" up to who wrote it: " [slurm@2022-07-23T15:31:00]". */
static bool cut_reason(struct str line, struct str *ret_reason)
{
    ptrdiff_t at = str_find(line, STR("Reason="), 0);
    struct match match;

    if (at < 0) {
        return false;
    }
    struct str reason = {line.ptr + at + 7, line.len - (size_t)at - 7};
    for (size_t from = 0; from < reason.len; from++) {
        ptrdiff_t open = str_find(reason, STR(" ["), from);

        if (open < 0) {
            break;
        }
        struct str tail = {reason.ptr + open, reason.len - (size_t)open};
        if (match_text(" [%w]*", tail, &match) && str_find(match.captures[0], STR("@"), 0) > 0) {
            reason.len = (size_t)open;
            break;
        }
        if (match_text(" [%w:*]*", tail, &match) && str_find(match.captures[0], STR("@"), 0) > 0) {
            reason.len = (size_t)open;
            break;
        }
        from = (size_t)open;
    }
    *ret_reason = str_trim(reason);
    return true;
}

static void add_state(struct classify *classify, const char *code, enum severity severity)
{
    struct finding finding = classify_finding("slurm_node_state");

    finding_set_code(&finding, "%s", code);
    finding.severity = severity;
    classify_add(classify, &finding);
}

/* "c017 mixed-": states with a mark that are no faults. */
static bool read_short(struct classify *classify, struct str line)
{
    struct str node;
    struct str state;

    if (!str_split(&line, ' ', &node)) {
        return false;
    }
    state = str_trim(line);
    if (state.len == 0 || str_find(state, STR(" "), 0) >= 0) {
        return false;
    }
    char mark = state.ptr[state.len - 1];
    if (mark == '*') {
        judge_reason(classify, STR("Not responding"));
    } else if (mark == '-' || mark == '#' || mark == '%' || mark == '@' || mark == '^' ||
               mark == '~' || mark == '!' || str_eq_c(state, "maint") ||
               str_eq_c(state, "planned")) {
        add_state(classify, "suffix", SEVERITY_INFO);
    }
    return true;
}

/* "wn-1-30 drained* ADMIN SHUTDOWN root 2023-04-29T15:40:00" */
static bool read_listed(struct classify *classify, struct str line)
{
    static const char *const states[] = {"drain", "down", "fail"};
    struct str rest = line;
    struct str node;
    struct str state;

    if (!str_split(&rest, ' ', &node) || !str_split(&rest, ' ', &state)) {
        return false;
    }
    for (size_t i = 0; i < COUNTOF(states); i++) {
        if (str_starts(state, str_of(states[i]))) {
            judge_reason(classify, str_trim(rest));
            return true;
        }
    }
    return false;
}

static void read_line(struct classify *classify, struct str line)
{
    struct match match;
    struct str reason;

    if (match_text("*Setting node %s state to INVAL*", line, &match) ||
        match_text("NodeName=*State=*INVAL*", line, &match)) {
        add_state(classify, "inval", SEVERITY_WARNING);
    } else if (cut_reason(line, &reason)) {
        judge_reason(classify, reason);
    } else if (match_text("NodeName=*State=*NOT_RESPONDING*", line, &match)) {
        judge_reason(classify, STR("Not responding"));
    } else if (match_text("NodeName=*", line, &match)) {
        return;
    } else if (line.ptr[0] == '[' || !(read_short(classify, line) || read_listed(classify, line))) {
        judge_reason(classify, line);
    }
}

/* ---- `scontrol show node --json`, `sinfo --json` ---- */

#define WORDS_MAX 400

/* A state is one word in old releases and a list of words in new ones. */
static bool read_words(struct json_reader *reader, enum json_type type, char *words, size_t *len)
{
    enum json_type item = type;
    struct str raw;
    bool plain;

    if (type != JSON_STR && type != JSON_ARR) {
        return json_skip(reader);
    }
    while (type == JSON_STR || (item = json_next(reader, NULL)) != JSON_END) {
        if (item != JSON_STR || !json_get_raw_str(reader, &raw, &plain)) {
            return false;
        }
        for (size_t i = 0; i < raw.len && *len + 2 < WORDS_MAX; i++) {
            char c = raw.ptr[i];

            if (i == 0 && *len > 0) {
                words[(*len)++] = '+';
            }
            words[(*len)++] = (char)(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
        }
        if (type == JSON_STR) {
            break;
        }
    }
    return true;
}

static bool read_reason(struct json_reader *reader, char *reason, size_t cap)
{
    struct str raw;
    struct str text;
    bool plain;

    if (!json_get_raw_str(reader, &raw, &plain)) {
        return false;
    }
    if (!json_unescape(raw, reason, cap - 1, &text)) {
        text.len = 0;
    }
    reason[text.len] = '\0';
    for (size_t i = 0; i < text.len; i++) {
        reason[i] = reason[i] < ' ' && reason[i] >= 0 ? ' ' : reason[i];
    }
    return true;
}

/* One node, judged as the line that `scontrol show node` prints of it. */
static bool read_node(struct classify *classify, struct json_reader *reader)
{
    char states[WORDS_MAX];
    char reason[512] = "";
    char line[1024];
    enum json_type type;
    struct str key;
    size_t len = 0;

    while ((type = json_next(reader, &key)) != JSON_END) {
        bool good;

        if (type == JSON_ERROR) {
            return false;
        }
        if (str_eq_c(key, "state") || str_eq_c(key, "state_flags")) {
            good = read_words(reader, type, states, &len);
        } else if (str_eq_c(key, "reason") && type == JSON_STR) {
            good = read_reason(reader, reason, sizeof(reason));
        } else {
            good = json_skip(reader);
        }
        if (!good) {
            return false;
        }
    }
    int line_len = snprintf(line, sizeof(line), "NodeName=node State=%.*s%s%s", (int)len, states,
                            reason[0] != '\0' ? " Reason=" : "", reason);
    read_line(classify, (struct str){line, (size_t)line_len});
    return true;
}

static void read_json(struct classify *classify, struct str input)
{
    struct json_reader reader;
    enum json_type type;
    struct str key;

    json_open(&reader, input);
    if (json_next(&reader, NULL) != JSON_OBJ) {
        return;
    }
    while ((type = json_next(&reader, &key)) != JSON_END) {
        if (type == JSON_ERROR) {
            return;
        }
        if (type != JSON_ARR || !str_eq_c(key, "nodes")) {
            if (!json_skip(&reader)) {
                return;
            }
            continue;
        }
        while ((type = json_next(&reader, NULL)) != JSON_END) {
            if (type != JSON_OBJ || !read_node(classify, &reader)) {
                return;
            }
        }
    }
}

void classify_slurm(struct classify *classify, struct str input)
{
    if (str_starts(str_trim(input), STR("{"))) {
        read_json(classify, str_trim(input));
        return;
    }

    bool list = false; /* below the header of `sinfo -R` */
    struct match match;
    struct str line;

    while (str_split(&input, '\n', &line)) {
        line = str_trim(line);
        if (line.len == 0) {
            continue;
        }
        if (match_text("REASON *", line, &match)) {
            list = true;
        } else if (list) {
            judge_reason(classify, line);
        } else {
            read_line(classify, line);
        }
    }
}
