/* The catalogue of checks: no row without an end, and every check of the agent is in it. */
#include "server/health/traits.h"

#include <criterion/criterion.h>
#include <string.h>

#include "agent/rules/checks.h"
#include "agent/rules/states.h"

static bool is_one_of(const char *word, const char *const *words)
{
    for (; *words != NULL; words++) {
        if (strcmp(word, *words) == 0) {
            return true;
        }
    }
    return false;
}

Test(catalog, every_check_says_how_its_incidents_end)
{
    static const char *const rules[] = {"new_boot", "event", "quiet", "person", NULL};
    for (size_t i = 0; i < catalog_count; i++) {
        const struct catalog_check *check = &catalog_checks[i];
        cr_expect(is_one_of(check->clears, rules), "%s", check->check_id);
        cr_expect(strlen(check->clear_rule) > 10, "%s", check->check_id);
        bool is_quiet = strcmp(check->clears, "quiet") == 0;
        cr_expect_eq(is_quiet, check->quiet_seconds > 0, "%s", check->check_id);
    }
}

Test(catalog, words_are_those_of_incidents)
{
    static const char *const severities[] = {"info", "warning", "critical", NULL};
    static const char *const kinds[] = {"passive", "active", NULL};
    static const char *const actions[] = {"none",        "reset_gpu", "reboot", "power_cycle",
                                          "reprovision", "failover",  "remove", NULL};
    for (size_t i = 0; i < catalog_count; i++) {
        const struct catalog_check *check = &catalog_checks[i];
        cr_expect(is_one_of(check->severity, severities), "%s", check->check_id);
        cr_expect(is_one_of(check->kind, kinds), "%s", check->check_id);
        cr_expect(is_one_of(check->action, actions), "%s", check->check_id);
        bool acts = strcmp(check->action, "none") != 0;
        cr_expect(check->node_fault || !acts, "%s acts on a node that has no fault",
                  check->check_id);
    }
}

Test(catalog, ids_are_unique_and_found)
{
    for (size_t i = 0; i < catalog_count; i++) {
        cr_expect_eq(catalog_find(str_of(catalog_checks[i].check_id)), &catalog_checks[i], "%s",
                     catalog_checks[i].check_id);
    }
    cr_expect_null(catalog_find(STR("gpu")));
}

Test(catalog, every_check_of_the_agent_is_in_it)
{
    for (size_t i = 0; i < check_row_count; i++) {
        cr_expect_not_null(catalog_find(str_of(check_rows[i].id)), "%s", check_rows[i].id);
    }
    cr_expect_not_null(catalog_find(STR("reported")));
}

Test(catalog, traits_are_of_checks_that_exist_and_stand_once)
{
    for (size_t i = 0; i < catalog_trait_count; i++) {
        const struct catalog_trait *trait = &catalog_traits[i];
        cr_expect_not_null(catalog_find(str_of(trait->check_id)), "%s", trait->check_id);
        cr_expect_eq(catalog_trait_find(trait->check_id), trait, "%s", trait->check_id);
    }
    cr_expect_null(catalog_trait_find("no such check")->family);
}

/* Each list names checks of the catalog, separated by commas and in braces. */
Test(catalog, lists_for_statements_are_array_texts)
{
    const struct catalog_arrays *arrays = catalog_arrays();
    const char *const lists[] = {arrays->settling, arrays->shared,   arrays->network,
                                 arrays->grace,    arrays->settable, arrays->acting,
                                 arrays->counting, arrays->checks};
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        struct str rest = {lists[i] + 1, strlen(lists[i]) - 2};
        struct str name;
        cr_assert_eq(lists[i][0], '{');
        cr_assert_eq(lists[i][strlen(lists[i]) - 1], '}');
        while (rest.len > 0 && str_split(&rest, ',', &name)) {
            cr_expect_not_null(catalog_find(name), "%.*s", (int)name.len, name.ptr);
        }
    }
}

Test(catalog, looks_are_those_of_a_rule_of_the_agent)
{
    for (size_t i = 0; i < catalog_looks_count; i++) {
        const struct catalog_looks *looks = &catalog_looks[i];
        bool found = false;
        for (size_t k = 0; k < state_row_count; k++) {
            const struct state_row *row = &state_rows[k];
            found = found ||
                    (strcmp(row->check, looks->check_id) == 0 &&
                     row->raise_rounds == looks->looks && row->clear_rounds == looks->clear_looks &&
                     row->window_s == (uint32_t)looks->window_s);
        }
        cr_expect(found, "%s", looks->check_id);
        cr_expect_eq(catalog_looks_find(looks->check_id), looks);
    }
    for (size_t k = 0; k < state_row_count; k++) {
        /* Those of GPUs are NVML's first, which has no looks to set. */
        if (state_rows[k].kind == STATE_READING && !state_rows[k].instead_of_nvml) {
            cr_expect_not_null(catalog_looks_find(state_rows[k].check), "%s", state_rows[k].check);
        }
    }
}
