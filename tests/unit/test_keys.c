/* Promises of server/keys.h. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "server/keys.h"

static char dir[] = "/tmp/muster-keys-XXXXXX";
static struct keys *keys;
static const struct uuid node = {{1, 2, 3}};
static const struct uuid cluster = {{9, 8, 7}};

static struct keys *open_keys(void)
{
    char error[256] = "";
    struct keys *opened = keys_open(dir, error, sizeof error);
    cr_assert_not_null(opened, "%s", error);
    return opened;
}

static void make_dir(void)
{
    cr_assert_not_null(mkdtemp(dir));
    keys = open_keys();
}

static void cluster_path(char path[128])
{
    char id[UUID_TEXT_LEN + 1];
    uuid_format(&cluster, id);
    (void)snprintf(path, 128, "%s/%s.ed25519", dir, id);
}

static void drop_dir(void)
{
    char path[128];
    keys_close(keys);
    clock_test_off();
    cluster_path(path);
    (void)unlink(path);
    (void)snprintf(path, sizeof path, "%s/server.key", dir);
    (void)unlink(path);
    (void)rmdir(dir);
}

TestSuite(keys, .init = make_dir, .fini = drop_dir);

Test(keys, a_nonce_is_good_for_its_node_only)
{
    char text[KEYS_NONCE_TEXT_LEN + 1];
    keys_seal_nonce(keys, &node, text);
    cr_assert(keys_check_nonce(keys, &node, str_of(text)));
    cr_assert_not(keys_check_nonce(keys, &cluster, str_of(text)));
}

Test(keys, a_nonce_ends_after_its_life)
{
    char text[KEYS_NONCE_TEXT_LEN + 1];
    clock_test_set(INT64_C(1800000000000000));
    keys_seal_nonce(keys, &node, text);
    clock_test_advance(KEYS_NONCE_LIFE_S * INT64_C(1000000));
    cr_assert(keys_check_nonce(keys, &node, str_of(text)));
    clock_test_advance(1);
    cr_assert_not(keys_check_nonce(keys, &node, str_of(text)));
}

Test(keys, a_changed_nonce_is_refused)
{
    char text[KEYS_NONCE_TEXT_LEN + 1];
    keys_seal_nonce(keys, &node, text);
    for (size_t i = 0; i < KEYS_NONCE_TEXT_LEN; i++) {
        char kept = text[i];
        text[i] = kept == 'A' ? 'B' : 'A';
        cr_assert_not(keys_check_nonce(keys, &node, str_of(text)), "character %zu", i);
        text[i] = kept;
    }
    cr_assert_not(keys_check_nonce(keys, &node, STR("")));
    cr_assert_not(keys_check_nonce(keys, &node, (struct str){text, KEYS_NONCE_TEXT_LEN - 1}));
}

Test(keys, another_replica_with_the_same_folder_checks_the_nonce)
{
    char text[KEYS_NONCE_TEXT_LEN + 1];
    struct keys *other = open_keys();
    keys_seal_nonce(keys, &node, text);
    cr_assert(keys_check_nonce(other, &node, str_of(text)));
    keys_close(other);
}

Test(keys, a_cluster_key_is_made_once_and_signs)
{
    uint8_t first[ED25519_PUBLIC_LEN];
    uint8_t again[ED25519_PUBLIC_LEN];
    uint8_t signature[ED25519_SIGNATURE_LEN];
    struct keys *other = open_keys();
    cr_assert_not(keys_cluster_public(keys, &cluster, 1, false, first));
    cr_assert_not(keys_cluster_sign(keys, &cluster, 1, STR("text"), signature));
    cr_assert(keys_cluster_public(keys, &cluster, 1, true, first));
    cr_assert(keys_cluster_public(other, &cluster, 1, true, again));
    cr_assert_eq(memcmp(first, again, sizeof first), 0);
    cr_assert(keys_cluster_sign(other, &cluster, 1, STR("text"), signature));
    cr_assert(ed25519_verify(first, STR("text"), signature));
    keys_close(other);
}

Test(keys, keys_are_for_the_server_s_user_only)
{
    uint8_t unused[ED25519_PUBLIC_LEN];
    char path[128];
    struct stat info;
    cr_assert(keys_cluster_public(keys, &cluster, 1, true, unused));
    cluster_path(path);
    cr_assert_eq(stat(path, &info), 0);
    cr_assert_eq(info.st_mode & 0777, 0600);
}

Test(keys, a_damaged_key_is_refused_and_not_replaced)
{
    uint8_t unused[ED25519_PUBLIC_LEN];
    char path[128];
    cluster_path(path);
    cr_assert_eq(file_write_durable(path, STR("short"), 0600), 0);
    cr_assert_not(keys_cluster_public(keys, &cluster, 1, true, unused));
    CLEANUP(buf_free) struct buf data = {0};
    cr_assert_eq(file_read(path, 100, &data), 0);
    cr_assert(str_eq_c(buf_str(&data), "short"));
}
