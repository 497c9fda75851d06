/* A fault that an operator acts out: the words of an injected kernel line. */
#include "agent/rules/injection.h"

#include "agent/rules/checks.h"

static bool take_word(struct str key, struct str value, struct finding *finding, bool *graded)
{
    if (str_eq_c(key, "check")) {
        const struct check_row *row = check_find(value);

        finding->check = row == NULL ? NULL : row->id;
        return row != NULL;
    }
    if (str_eq_c(key, "code")) {
        finding_set_code(finding, "%.*s", value.len > 40 ? 40 : (int)value.len, value.ptr);
        return true;
    }
    if (str_eq_c(key, "device")) {
        finding_set_device(finding, value, false);
        return true;
    }
    if (str_eq_c(key, "severity")) {
        *graded = true;
        return severity_parse(value, &finding->severity);
    }
    if (str_eq_c(key, "action")) {
        return action_parse(value, &finding->action);
    }
    if (str_eq_c(key, "clear")) {
        finding->clear = str_eq_c(value, "yes");
        return finding->clear;
    }
    return false;
}

bool injection_parse(struct str text, struct finding *ret_finding)
{
    struct finding finding = {.severity = SEVERITY_WARNING, .clears = CLEARS_EVENT, .count = 1};
    struct str word;
    bool graded = false;

    text = str_trim(text);
    if (!str_starts(text, STR("check="))) {
        return false;
    }
    while (str_split(&text, ' ', &word)) {
        struct str key;

        if (word.len == 0) {
            continue;
        }
        if (str_find(word, STR("="), 0) <= 0 || !str_split(&word, '=', &key) ||
            !take_word(key, word, &finding, &graded)) {
            return false;
        }
    }
    if (finding.action != ACTION_NONE && !graded) {
        finding.severity = SEVERITY_CRITICAL;
    }
    finding.node_fault = finding.action != ACTION_NONE && finding.severity == SEVERITY_CRITICAL;
    finding_set_summary(&finding, "injected by an operator: %s %s", finding.check, finding.code);
    *ret_finding = finding;
    return true;
}
