/* Promises of server/secrets.h. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "server/secrets.h"

static char dir[] = "/tmp/muster-secrets-XXXXXX";
static struct secrets *secrets;
static struct arena *arena;
static struct secret_key key;
static const struct uuid org = {{1, 2, 3}};
static const struct uuid other_org = {{1, 2, 4}};
static const struct secret_place place = {"issuer.client_secret", {{9, 8, 7}}};

static void path_of(const char *name, char path[128])
{
    (void)snprintf(path, 128, "%s/%s", dir, name);
}

static struct secrets *open_secrets(void)
{
    char error[256] = "";
    struct secrets *opened = secrets_open(dir, error, sizeof error);
    cr_assert_not_null(opened, "%s", error);
    return opened;
}

static void make_all(void)
{
    cr_assert_not_null(mkdtemp(dir));
    secrets = open_secrets();
    arena = arena_new((size_t)1 << 20);
    secret_key_make(&org, 1, &key);
}

static void drop_all(void)
{
    char path[128];
    secrets_close(secrets);
    arena_free(arena);
    path_of("master.key", path);
    (void)unlink(path);
    path_of("master.previous.key", path);
    (void)unlink(path);
    (void)rmdir(dir);
}

TestSuite(secrets, .init = make_all, .fini = drop_all);

static struct str seal(const char *text)
{
    return secret_seal(&key, &place, str_of(text), arena);
}

Test(secrets, the_master_key_is_for_the_servers_user_only)
{
    char path[128];
    struct stat about;
    path_of("master.key", path);
    cr_assert_eq(stat(path, &about), 0);
    cr_assert_eq(about.st_mode & 0777, 0600);
    cr_assert_eq(about.st_size, CRYPTO_KEY_LEN);
}

Test(secrets, what_is_sealed_opens_again)
{
    static const char *const texts[] = {"", "s", "a secret of some length, with \xc3\xa4 in it"};
    for (size_t i = 0; i < COUNTOF(texts); i++) {
        struct str plain;
        cr_assert(secret_unseal(&key, &place, seal(texts[i]), arena, &plain));
        cr_assert(str_eq_c(plain, texts[i]), "text %zu", i);
    }
}

Test(secrets, a_sealed_text_does_not_hold_the_secret_and_never_looks_the_same)
{
    struct str one = seal("hunter2hunter2");
    struct str two = seal("hunter2hunter2");
    cr_assert_null(memmem(one.ptr, one.len, "hunter2", 7));
    cr_assert_neq(memcmp(one.ptr, two.ptr, one.len), 0);
}

Test(secrets, I8_a_changed_or_cut_text_does_not_open)
{
    struct str sealed = seal("a secret");
    struct str plain;
    for (size_t i = 0; i < sealed.len; i++) {
        char *changed = arena_strndup(arena, sealed.ptr, sealed.len);
        changed[i] ^= 1;
        cr_assert_not(secret_unseal(&key, &place, (struct str){changed, sealed.len}, arena, &plain),
                      "byte %zu", i);
        cr_assert_not(secret_unseal(&key, &place, (struct str){sealed.ptr, i}, arena, &plain),
                      "cut at %zu", i);
    }
}

Test(secrets, I8_a_text_that_was_moved_does_not_open)
{
    struct str sealed = seal("a secret");
    struct secret_place row = place;
    struct secret_place table = place;
    struct secret_key moved = key;
    struct str plain;
    row.id.bytes[15] ^= 1;
    table.table = "login.refresh_token";
    moved.org = other_org;
    cr_assert_not(secret_unseal(&key, &row, sealed, arena, &plain));
    cr_assert_not(secret_unseal(&key, &table, sealed, arena, &plain));
    cr_assert_not(secret_unseal(&moved, &place, sealed, arena, &plain));
    cr_assert(secret_unseal(&key, &place, sealed, arena, &plain));
}

Test(secrets, a_key_of_another_version_does_not_open)
{
    struct str sealed = seal("a secret");
    struct str plain;
    cr_assert_eq(secret_version(sealed), 1);
    key.version = 2;
    cr_assert_not(secret_unseal(&key, &place, sealed, arena, &plain));
    cr_assert_eq(secret_version(STR("no sealed text, however long it may be made")), 0);
}

Test(secrets, a_wrapped_key_opens_with_the_same_file_only)
{
    struct secret_wrapped wrapped;
    struct secret_key found;
    secret_key_wrap(secrets, &key, &wrapped);
    struct secrets *again = open_secrets();
    cr_assert(secret_key_unwrap(again, &org, 1, &wrapped, &found));
    cr_assert_eq(memcmp(found.bytes, key.bytes, sizeof key.bytes), 0);
    secrets_close(again);

    char path[128];
    path_of("master.key", path);
    cr_assert_eq(unlink(path), 0);
    again = open_secrets();
    cr_assert_not(secret_key_unwrap(again, &org, 1, &wrapped, &found));
    secrets_close(again);
}

Test(secrets, I8_a_wrapped_key_that_was_moved_or_changed_does_not_open)
{
    struct secret_wrapped wrapped;
    struct secret_key found;
    secret_key_wrap(secrets, &key, &wrapped);
    cr_assert_not(secret_key_unwrap(secrets, &other_org, 1, &wrapped, &found));
    cr_assert_not(secret_key_unwrap(secrets, &org, 2, &wrapped, &found));
    wrapped.bytes[SECRETS_WRAPPED_LEN - 1] ^= 1;
    cr_assert_not(secret_key_unwrap(secrets, &org, 1, &wrapped, &found));
}

Test(secrets, a_running_server_follows_a_rotation_by_itself)
{
    struct secret_wrapped old;
    struct secret_wrapped fresh;
    struct secret_key found;
    struct secrets *other = open_secrets();
    secret_key_wrap(other, &key, &old);
    cr_assert_eq(secrets_rotate_begin(secrets), 0);
    cr_assert(secret_key_unwrap(secrets, &org, 1, &old, &found));
    secret_key_wrap(secrets, &found, &fresh);
    cr_assert_neq(memcmp(fresh.master.bytes, old.master.bytes, SECRETS_MASTER_ID_LEN), 0);
    cr_assert(secret_key_unwrap(other, &org, 1, &fresh, &found));
    cr_assert(secret_key_unwrap(other, &org, 1, &old, &found));
    cr_assert_eq(secrets_rotate_end(secrets), 0);
    cr_assert(secret_key_unwrap(other, &org, 1, &fresh, &found));
    secrets_close(other);
}

Test(secrets, a_rotation_that_was_cut_off_goes_on_with_the_same_pair)
{
    struct secrets_master_id first;
    struct secrets_master_id second;
    struct secrets_master_id again;
    cr_assert(secrets_master(secrets, false, &first));
    cr_assert_eq(secrets_rotate_begin(secrets), 0);
    cr_assert(secrets_master(secrets, true, &second));
    cr_assert_neq(memcmp(&first, &second, sizeof first), 0);
    cr_assert_eq(secrets_rotate_begin(secrets), 0);
    cr_assert(secrets_master(secrets, true, &again));
    cr_assert_eq(memcmp(&again, &second, sizeof again), 0);
}

Test(secrets, a_rotation_cut_off_before_the_change_begins_anew)
{
    char path[128];
    char copy[128];
    CLEANUP(buf_free) struct buf data = {0};
    struct secrets_master_id first;
    struct secrets_master_id second;
    path_of("master.key", path);
    path_of("master.previous.key", copy);
    cr_assert_eq(file_read(path, 64, &data), 0);
    cr_assert_eq(file_write_durable(copy, buf_str(&data), 0600), 0);
    cr_assert(secrets_master(secrets, false, &first));
    cr_assert_eq(secrets_rotate_begin(secrets), 0);
    cr_assert(secrets_master(secrets, true, &second));
    cr_assert_neq(memcmp(&first, &second, sizeof first), 0);
}

Test(secrets, a_file_of_another_size_is_refused_with_its_name)
{
    char path[128];
    char error[256] = "";
    path_of("master.key", path);
    cr_assert_eq(file_write_durable(path, STR("short"), 0600), 0);
    cr_assert_null(secrets_open(dir, error, sizeof error));
    cr_assert_not_null(strstr(error, "master.key"));
}
