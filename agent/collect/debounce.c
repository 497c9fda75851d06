/* From what a look at the node found to what is told, by the rows of agent/rules/states.c. */
#include "agent/collect/debounce.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "agent/rules/checks.h"
#include "base/log.h"

struct seen {
    const struct state_row *row;
    struct finding finding;
    unsigned bad;  /* looks in a row that found it */
    unsigned good; /* looks in a row that did not */
    bool told;
    bool now; /* found by the present look */
};

void debounce_init(struct debounce *debounce, const char *source)
{
    *debounce = (struct debounce){.source = source};
}

void debounce_free(struct debounce *debounce)
{
    free(debounce->list);
    debounce->list = NULL;
    debounce->count = 0;
}

static struct seen *find_seen(struct debounce *debounce, const struct finding *finding)
{
    for (size_t i = 0; i < debounce->count; i++) {
        const struct finding *mine = &debounce->list[i].finding;

        if (strcmp(mine->check, finding->check) == 0 &&
            strcmp(mine->device, finding->device) == 0 &&
            strcmp(finding_fold(mine), finding_fold(finding)) == 0) {
            return &debounce->list[i];
        }
    }
    return NULL;
}

static struct seen *add_seen(struct debounce *debounce, const struct state_row *row,
                             const struct finding *finding)
{
    if (debounce->list == NULL) {
        debounce->list = calloc(DEBOUNCE_MAX, sizeof(debounce->list[0]));
        assert(debounce->list != NULL);
    }
    if (debounce->count == DEBOUNCE_MAX) {
        return NULL;
    }
    struct seen *seen = &debounce->list[debounce->count++];
    *seen = (struct seen){.row = row, .finding = *finding};
    return seen;
}

static void drop_seen(struct debounce *debounce, size_t at)
{
    debounce->list[at] = debounce->list[--debounce->count];
    if (debounce->count == 0) {
        debounce_free(debounce);
    }
}

/* Faults that an agent before this one told stay ours to end. */
static void adopt(const char *check, const char *device, const char *code, void *ctx)
{
    struct debounce *debounce = ctx;
    const struct state_row *row = state_row_find(debounce->source, check, code);
    const struct check_row *known = check_find(str_of(check));
    struct finding finding = {.clears = CLEARS_EVENT, .count = 1};

    if (row == NULL || row->kind != STATE_READING || known == NULL) {
        return;
    }
    finding.check = known->id;
    finding_set_code(&finding, "%s", code);
    finding_set_device(&finding, str_of(device), false);
    if (find_seen(debounce, &finding) == NULL) {
        struct seen *seen = add_seen(debounce, row, &finding);

        if (seen != NULL) {
            seen->told = true;
        }
    }
}

/* A sentence for those that bring none. */
static void name_finding(struct finding *finding)
{
    const struct check_row *row = check_find(str_of(finding->check));

    if (finding->summary[0] == '\0' && row != NULL) {
        finding_set_summary(finding, "%s%s%s: %s", row->title,
                            finding->device[0] != '\0' ? " of " : "", finding->device,
                            finding->code[0] != '\0' ? finding->code : "bad");
    }
}

static void take_finding(struct debounce *debounce, const struct debounce_round *round,
                         const struct finding *finding)
{
    const struct state_row *row =
        state_row_find(debounce->source, finding->check, finding_fold(finding));

    if (row == NULL) {
        log_warning("%s found %s %s, for which there is no rule", debounce->source, finding->check,
                    finding->code);
        return;
    }
    if (row->instead_of_nvml && round->nvml_ok) {
        return;
    }
    if (row->kind == STATE_EVENT) {
        struct finding named = *finding;
        struct fault_report report = {.finding = &named, .source = debounce->source};

        name_finding(&named);
        faults_tell(round->faults, &report);
        return;
    }
    struct seen *seen = find_seen(debounce, finding);
    if (seen == NULL) {
        seen = add_seen(debounce, row, finding);
    }
    if (seen != NULL) {
        seen->finding = *finding;
        name_finding(&seen->finding);
        seen->now = true;
    }
}

static void tell(const struct debounce *debounce, const struct debounce_round *round,
                 struct seen *seen, bool bad)
{
    struct finding finding = seen->finding;
    struct fault_report report = {.finding = &finding, .source = debounce->source};

    finding.clears = CLEARS_EVENT;
    finding.quiet_seconds = 0;
    if (!bad) {
        finding_set_summary(&finding, "the reading is good again");
    }
    faults_reading(round->faults, &report, bad);
}

/* One open fault of a check and a device is enough, until it gets worse. */
static bool may_tell(const struct debounce_round *round, const struct seen *seen)
{
    const struct finding *finding = &seen->finding;

    return seen->bad >= settings_raise(round->settings, seen->row) &&
           !grace_holds(round->grace, seen->row->grace, round->now_us) &&
           faults_gravest(round->faults, finding->check, finding->device) < (int)finding->severity;
}

/* True when nothing is left to remember. */
static bool settle(const struct debounce *debounce, const struct debounce_round *round,
                   struct seen *seen)
{
    if (seen->now) {
        seen->now = false;
        seen->good = 0;
        seen->bad++;
        if (seen->told || may_tell(round, seen)) {
            seen->told = true;
            tell(debounce, round, seen, true);
        }
        return false;
    }
    seen->bad = 0;
    seen->good++;
    if (seen->told && seen->good < settings_clear(round->settings, seen->row)) {
        return false;
    }
    if (seen->told) {
        tell(debounce, round, seen, false);
    }
    return true;
}

void debounce_round(struct debounce *debounce, const struct debounce_round *round)
{
    if (!debounce->adopted) {
        debounce->adopted = true;
        faults_each_reading(round->faults, adopt, debounce);
    }
    for (size_t i = 0; i < round->count; i++) {
        take_finding(debounce, round, &round->findings[i]);
    }
    for (size_t i = debounce->count; i-- > 0;) {
        struct seen *seen = &debounce->list[i];

        if (seen->row->instead_of_nvml && round->nvml_ok) {
            /* NVML judges it now, and ends it. */
            drop_seen(debounce, i);
        } else if (round->silence && !seen->now) {
            /* What cannot be seen neither lasts nor ends. */
            continue;
        } else if (settle(debounce, round, seen)) {
            drop_seen(debounce, i);
        }
    }
}
