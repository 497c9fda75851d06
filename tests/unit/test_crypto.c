/* Promises of base/crypto.h. */
#include <criterion/criterion.h>
#include <string.h>

#include "base/crypto.h"

Test(crypto, sha256_matches_fips_180)
{
    static const struct {
        const char *text;
        const char *hex;
    } vectors[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    };

    for (size_t i = 0; i < COUNTOF(vectors); i++) {
        uint8_t hash[SHA256_LEN];
        char hex[2 * SHA256_LEN + 1];

        crypto_sha256(str_of(vectors[i].text), hash);
        crypto_hex(hash, sizeof(hash), hex);
        cr_assert_str_eq(hex, vectors[i].hex);
    }
}

Test(crypto, unhex_takes_exactly_the_length_asked_for)
{
    uint8_t bytes[3] = {9, 9, 9};

    cr_assert(crypto_unhex(STR("00aBfF"), bytes, 3));
    cr_assert_eq(memcmp(bytes, "\x00\xab\xff", 3), 0);
    cr_assert_not(crypto_unhex(STR("00abf"), bytes, 3));
    cr_assert_not(crypto_unhex(STR("00abf"), bytes, 2));
    cr_assert_not(crypto_unhex(STR("00abffff"), bytes, 3));
    cr_assert_not(crypto_unhex(STR("00abfg"), bytes, 3));
    cr_assert_eq(memcmp(bytes, "\x00\xab\xff", 3), 0, "a refusal writes nothing");
}

/* RFC 4648 10, in the alphabet of its section 5 and without padding. */
Test(crypto, base64url_matches_rfc_4648)
{
    static const struct {
        const char *plain;
        const char *text;
    } vectors[] = {
        {"", ""},           {"f", "Zg"},          {"fo", "Zm8"},          {"foo", "Zm9v"},
        {"foob", "Zm9vYg"}, {"fooba", "Zm9vYmE"}, {"foobar", "Zm9vYmFy"}, {"\xfb\xff", "-_8"},
    };

    for (size_t i = 0; i < COUNTOF(vectors); i++) {
        size_t len = strlen(vectors[i].plain);
        char text[16];
        char back[16];
        size_t back_len = 99;

        crypto_b64(vectors[i].plain, len, text);
        cr_assert_str_eq(text, vectors[i].text);
        cr_assert_eq(crypto_b64_len(len), strlen(text));
        cr_assert(crypto_unb64(str_of(text), back, sizeof(back), &back_len));
        cr_assert_eq(back_len, len);
        cr_assert_eq(memcmp(back, vectors[i].plain, len), 0);
    }
}

Test(crypto, base64url_has_one_spelling_only)
{
    static const char *const bad[] = {"Zg==", "Zh", "Zm9", "Z", "Zm8 ", "Zm+v", "Zm/v", "Zm\n8"};

    for (size_t i = 0; i < COUNTOF(bad); i++) {
        char back[16];
        size_t len;

        cr_assert_not(crypto_unb64(str_of(bad[i]), back, sizeof(back), &len), "%s", bad[i]);
    }
}

Test(crypto, base64url_does_not_write_past_the_room)
{
    char back[4] = {0, 0, 0, 77};
    size_t len;

    cr_assert(crypto_unb64(STR("Zm9v"), back, 3, &len));
    cr_assert_not(crypto_unb64(STR("Zm9vYg"), back, 3, &len));
    cr_assert_eq(back[3], 77);
}

Test(crypto, a_token_has_its_prefix_and_43_characters_and_is_new_each_time)
{
    char a[64];
    char b[64];

    crypto_token("mst_", a);
    crypto_token("mst_", b);
    cr_assert_eq(strlen(a), 4 + 43);
    cr_assert_eq(strncmp(a, "mst_", 4), 0);
    cr_assert_str_neq(a, b);
}

/* RFC 8032 7.1, test 2. */
Test(crypto, ed25519_matches_rfc_8032)
{
    uint8_t seed[32];
    uint8_t public_key[ED25519_PUBLIC_LEN];
    uint8_t expected[ED25519_PUBLIC_LEN];
    uint8_t sig[ED25519_SIGNATURE_LEN];
    char hex[2 * ED25519_SIGNATURE_LEN + 1];
    struct ed25519 *key;

    cr_assert(crypto_unhex(STR("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb"),
                           seed, 32));
    cr_assert(crypto_unhex(STR("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"),
                           expected, 32));
    key = ed25519_import(seed);
    cr_assert_not_null(key);
    ed25519_public(key, public_key);
    cr_assert_eq(memcmp(public_key, expected, 32), 0);
    ed25519_sign(key, STR("\x72"), sig);
    crypto_hex(sig, sizeof(sig), hex);
    cr_assert_str_eq(hex, "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
                          "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00");
    cr_assert(ed25519_verify(public_key, STR("\x72"), sig));
    ed25519_free(key);
}

Test(crypto, a_changed_message_signature_or_key_does_not_verify)
{
    CLEANUP(ed25519_freep) struct ed25519 *key = ed25519_new();
    uint8_t public_key[ED25519_PUBLIC_LEN];
    uint8_t sig[ED25519_SIGNATURE_LEN];

    ed25519_public(key, public_key);
    ed25519_sign(key, STR("order"), sig);
    cr_assert(ed25519_verify(public_key, STR("order"), sig));
    cr_assert_not(ed25519_verify(public_key, STR("orders"), sig));
    sig[10] ^= 1;
    cr_assert_not(ed25519_verify(public_key, STR("order"), sig));
    sig[10] ^= 1;
    public_key[3] ^= 1;
    cr_assert_not(ed25519_verify(public_key, STR("order"), sig));
}

Test(crypto, an_exported_key_signs_the_same)
{
    CLEANUP(ed25519_freep) struct ed25519 *key = ed25519_new();
    CLEANUP(ed25519_freep) struct ed25519 *again = NULL;
    uint8_t seed[32];
    uint8_t a[ED25519_SIGNATURE_LEN];
    uint8_t b[ED25519_SIGNATURE_LEN];

    ed25519_export(key, seed);
    again = ed25519_import(seed);
    ed25519_sign(key, (struct str){0}, a);
    ed25519_sign(again, (struct str){0}, b);
    cr_assert_eq(memcmp(a, b, sizeof(a)), 0);
}

Test(crypto, hmac_agrees_with_rfc_4231)
{
    /* RFC 4231 4.3: test case 2. */
    uint8_t mac[SHA256_LEN];
    char text[2 * SHA256_LEN + 1];

    crypto_hmac_sha256(STR("Jefe"), STR("what do ya want for nothing?"), mac);
    crypto_hex(mac, sizeof(mac), text);
    cr_assert_str_eq(text, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

Test(crypto, equal_compares_all_bytes)
{
    cr_assert(crypto_equal("abc", "abc", 3));
    cr_assert_not(crypto_equal("abc", "abd", 3));
    cr_assert_not(crypto_equal("xbc", "abc", 3));
}

Test(crypto, random_bytes_differ_and_fill_all)
{
    static uint8_t a[4096];
    static uint8_t b[4096];
    size_t zeros = 0;

    crypto_random(a, sizeof(a));
    crypto_random(b, sizeof(b));
    cr_assert_neq(memcmp(a, b, sizeof(a)), 0);
    for (size_t i = 0; i < sizeof(a); i++) {
        zeros += a[i] == 0 ? 1 : 0;
    }
    /* 16 are expected; 80 is 16 standard deviations away. */
    cr_assert_lt(zeros, 80);
}

/* NIST's GCM test case 16 (McGrew and Viega), with its nonce put where a seal has it. */
Test(crypto, unsealing_matches_the_standards_vector)
{
    uint8_t key[CRYPTO_KEY_LEN];
    uint8_t bound[20];
    uint8_t sealed[12 + 60 + 16];
    uint8_t plain[60];
    uint8_t wanted[60];
    cr_assert(crypto_unhex(STR("feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308"),
                           key, sizeof key));
    cr_assert(crypto_unhex(STR("feedfacedeadbeeffeedfacedeadbeefabaddad2"), bound, sizeof bound));
    cr_assert(crypto_unhex(
        STR("cafebabefacedbaddecaf888"
            "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b"
            "1056828838c5f61e6393ba7a0abcc9f66276fc6ece0f4e1768cddf8853bb2d551b"),
        sealed, sizeof sealed));
    cr_assert(crypto_unhex(
        STR("d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e"
            "2449a6b525b16aedf5aa0de657ba637b39"),
        wanted, sizeof wanted));
    struct str bound_text = {(const char *)bound, sizeof bound};
    struct str text = {(const char *)sealed, sizeof sealed};
    cr_assert(crypto_unseal(key, bound_text, text, plain));
    cr_assert_eq(memcmp(plain, wanted, sizeof plain), 0);
    bound[0] ^= 1;
    cr_assert_not(crypto_unseal(key, bound_text, text, plain));
}

Test(crypto, base64_matches_rfc_4648)
{
    static const struct {
        const char *plain;
        const char *text;
    } vectors[] = {{"", ""},
                   {"f", "Zg=="},
                   {"fo", "Zm8="},
                   {"foo", "Zm9v"},
                   {"foob", "Zm9vYg=="},
                   {"fooba", "Zm9vYmE="},
                   {"foobar", "Zm9vYmFy"},
                   {"\xff\xfe\xfd", "//79"}};
    for (size_t i = 0; i < COUNTOF(vectors); i++) {
        char text[16];
        crypto_base64(vectors[i].plain, strlen(vectors[i].plain), text);
        cr_assert_str_eq(text, vectors[i].text);
        cr_assert_eq(crypto_base64_len(strlen(vectors[i].plain)), strlen(text));
    }
}
