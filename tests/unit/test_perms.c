/* Roles: what each may do, and above all what it may not. */
#include <criterion/criterion.h>

#include "server/perms.h"

Test(perms, each_role_reads_and_no_role_is_an_agent)
{
    for (unsigned bit = 0; bit < ROLE_COUNT; bit++) {
        unsigned perms = perms_of(1u << bit, false);
        cr_assert(perms & PERM_SESSION, "role %u", bit);
        cr_assert(perms & PERM_CLUSTER_READ, "role %u", bit);
        cr_assert_eq(perms & PERM_AGENT, 0u, "role %u", bit);
        cr_assert_eq(perms & PERM_PLATFORM, 0u, "role %u", bit);
    }
}

Test(perms, only_approvers_and_admins_decide)
{
    for (unsigned bit = 0; bit < ROLE_COUNT; bit++) {
        bool decides = (perms_of(1u << bit, false) & PERM_REPAIR_DECIDE) != 0;
        bool should = bit == ROLE_APPROVER_BIT || bit == ROLE_ADMIN_BIT;
        cr_assert_eq(decides, should, "role %u", bit);
    }
}

Test(perms, viewers_and_auditors_change_nothing)
{
    cr_assert_eq(perms_of(ROLE_VIEWER, false), (unsigned)(PERM_SESSION | PERM_CLUSTER_READ));
    cr_assert_eq(perms_of(ROLE_AUDITOR, false),
                 (unsigned)(PERM_SESSION | PERM_CLUSTER_READ | PERM_AUDIT_READ | PERM_ISSUER_READ));
}

Test(perms, only_script_authors_and_admins_write_what_runs_on_nodes)
{
    for (unsigned bit = 0; bit < ROLE_COUNT; bit++) {
        bool writes = (perms_of(1u << bit, false) & PERM_SCRIPT_WRITE) != 0;
        bool should = bit == ROLE_SCRIPT_AUTHOR_BIT || bit == ROLE_ADMIN_BIT;
        cr_assert_eq(writes, should, "role %u", bit);
    }
}

Test(perms, only_auditors_and_admins_read_the_audit_log)
{
    for (unsigned bit = 0; bit < ROLE_COUNT; bit++) {
        bool reads = (perms_of(1u << bit, false) & PERM_AUDIT_READ) != 0;
        bool should = bit == ROLE_AUDITOR_BIT || bit == ROLE_ADMIN_BIT;
        cr_assert_eq(reads, should, "role %u", bit);
    }
}

Test(perms, roles_add_up)
{
    cr_assert_eq(perms_of(ROLE_OPERATOR | ROLE_APPROVER, false),
                 perms_of(ROLE_OPERATOR, false) | perms_of(ROLE_APPROVER, false));
}

Test(perms, the_platform_is_for_its_administrators_only)
{
    cr_assert(perms_of(0, true) & PERM_PLATFORM);
    cr_assert_eq(perms_of(ROLE_ADMIN, false) & PERM_PLATFORM, 0u);
    cr_assert_eq(perms_of(0, false), (unsigned)PERM_SESSION);
}

Test(perms, names_are_found_again)
{
    for (unsigned bit = 0; bit < ROLE_COUNT; bit++) {
        unsigned role = 0;
        cr_assert(role_parse(str_of(role_name((enum role_bit)bit)), &role));
        cr_assert_eq(role, 1u << bit);
    }
    unsigned role = 7;
    cr_assert_not(role_parse(STR("root"), &role));
    cr_assert_not(role_parse(STR(""), &role));
    cr_assert_eq(role, 7u);
}

Test(perms, every_permission_has_a_name_of_its_own)
{
    for (int i = 0; i < PERM_COUNT; i++) {
        cr_assert_not_null(perm_name((enum perm_bit)i));
        for (int j = 0; j < i; j++) {
            cr_assert_str_neq(perm_name((enum perm_bit)i), perm_name((enum perm_bit)j));
        }
    }
}
