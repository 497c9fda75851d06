/* Policies: the table of their fields, defaults, and what the mode of a fault is. */
#include "server/repair/policy.h"

#include <assert.h>
#include <string.h>

static const char *const modes[] = {"confirm", "automatic", "warn", NULL};
static const char *const idles[] = {"never_interrupt", "grace", NULL};
static const char *const day_names[] = {"mon", "tue", "wed", "thu", "fri", "sat", "sun"};
/* No node leaves a cluster by itself. */
static const char *const automatic_actions[] = {"reset_gpu",   "reboot",   "power_cycle",
                                                "reprovision", "failover", NULL};
static const char *const all_actions[] = {"reset_gpu", "reboot", "power_cycle", "reprovision",
                                          "failover",  "remove", NULL};

#define ROW(type, member, min, max, names)                               \
    {                                                                    \
#member, type, offsetof(struct policy_in, member),               \
            offsetof(struct policy_in, has_##member), 0, min, max, names \
    }
#define NUMBER_ROW(member, low, high, fallback) ROW(FIELD_I64, member, low, high, NULL),

#define SETTINGS_ROWS                                                               \
    ROW(FIELD_ENUM, mode, 0, 0, modes),                                             \
        ROW(FIELD_STR_LIST, automatic, 0, POLICY_FAULTS_MAX, NULL),                 \
        ROW(FIELD_STR_LIST, confirm, 0, POLICY_FAULTS_MAX, NULL),                   \
        ROW(FIELD_STR_LIST, warn, 0, POLICY_FAULTS_MAX, NULL),                      \
        ROW(FIELD_STR_LIST, actions, 0, ACTION_COUNT, automatic_actions),           \
        ROW(FIELD_STR_LIST, windows, 0, POLICY_WINDOWS_MAX, NULL),                  \
        ROW(FIELD_STR, time_zone, 1, 63, NULL), ROW(FIELD_ENUM, idle, 0, 0, idles), \
        ROW(FIELD_STR_LIST, second_approver, 0, ACTION_COUNT, all_actions),         \
        ROW(FIELD_BOOL, dry_run, 0, 0, NULL), POLICY_NUMBER_TABLE(NUMBER_ROW)       \
    {                                                                               \
        NULL, FIELD_STR, 0, 0, 0, 0, 0, NULL                                        \
    }

const struct field policy_create_body[] = {ROW(FIELD_UUID, cluster_id, 0, 0, NULL),
                                           ROW(FIELD_UUID, node_id, 0, 0, NULL), SETTINGS_ROWS};
const struct field policy_update_body[] = {SETTINGS_ROWS};

struct policy policy_default(int64_t cooldown_seconds)
{
    struct policy policy = {
        .mode = POLICY_CONFIRM,
        .actions = 1u << ACTION_RESET_GPU | 1u << ACTION_REBOOT | 1u << ACTION_POWER_CYCLE,
        .time_zone = STR("UTC"),
        .idle = IDLE_NEVER_INTERRUPT,
    };

#define NUMBER_DEFAULT(name, low, high, fallback) policy.name = fallback;
    POLICY_NUMBER_TABLE(NUMBER_DEFAULT)
#undef NUMBER_DEFAULT
    policy.cooldown_seconds = cooldown_seconds;
    return policy;
}

/* ------------------------------------------------------------------ reading */

static unsigned actions_of(const struct str_list *list)
{
    unsigned mask = 0;

    for (size_t i = 0; i < list->count; i++) {
        enum repair_action action;
        if (action_parse(list->items[i], &action)) {
            mask |= 1u << action;
        }
    }
    return mask;
}

static void refuse(struct arena *arena, struct decode_errors *errors, const char *list, size_t at,
                   const char *detail)
{
    decode_error_add(arena, errors, arena_printf(arena, "#/%s/%zu", list, at), "invalid_format",
                     detail);
}

static bool is_name(struct str text)
{
    bool good = text.len > 0 && text.len <= 63;

    for (size_t i = 0; good && i < text.len; i++) {
        char c = text.ptr[i];
        good = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-';
    }
    return good;
}

static bool faults_are_good(struct arena *arena, const char *list_name, const struct str_list *list,
                            struct decode_errors *errors)
{
    bool all = true;

    for (size_t i = 0; i < list->count; i++) {
        struct str rest = list->items[i];
        struct str check;
        bool good = policy_splits(&rest, &check);
        bool has_code = good && list->items[i].len > check.len;
        struct str name = good && str_starts(check, STR("custom:"))
                              ? (struct str){check.ptr + 7, check.len - 7}
                              : check;
        if (!good || !is_name(name) || (has_code && (rest.len == 0 || rest.len > 63))) {
            refuse(arena, errors, list_name, i,
                   "must be a check, or a check and a code: gpu_xid:119");
            all = false;
        }
    }
    return all;
}

static bool read_day(struct str text, int *ret_day)
{
    for (int i = 0; i < (int)COUNTOF(day_names); i++) {
        if (str_eq_c(text, day_names[i])) {
            *ret_day = i;
            return true;
        }
    }
    return false;
}

/* "mon-fri,sun" */
static bool read_days(struct str text, unsigned *ret_days)
{
    struct str part;

    *ret_days = 0;
    while (text.len > 0 && str_split(&text, ',', &part)) {
        struct str first;
        int from;
        int to;
        bool range = memchr(part.ptr, '-', part.len) != NULL;
        if (!str_split(&part, '-', &first) || !read_day(first, &from) ||
            (range && !read_day(part, &to))) {
            return false;
        }
        to = range ? to : from;
        for (int day = from;; day = (day + 1) % 7) {
            *ret_days |= 1u << day;
            if (day == to) {
                break;
            }
        }
    }
    return *ret_days != 0;
}

/* "22:00"; 24:00 is the end of the day */
static bool read_minute(struct str text, int *ret_minute)
{
    uint64_t hours;
    uint64_t minutes;

    if (text.len != 5 || text.ptr[2] != ':' ||
        !str_parse_u64((struct str){text.ptr, 2}, 0, 24, &hours) ||
        !str_parse_u64((struct str){text.ptr + 3, 2}, 0, 59, &minutes) ||
        (hours == 24 && minutes > 0)) {
        return false;
    }
    *ret_minute = (int)(hours * 60 + minutes);
    return true;
}

static bool read_window(struct str text, struct policy_window *ret_window)
{
    struct str days;
    struct str from;

    return str_split(&text, ' ', &days) && read_days(days, &ret_window->days) &&
           str_split(&text, '-', &from) && read_minute(from, &ret_window->from) &&
           read_minute(text, &ret_window->to) && ret_window->from < 24 * 60;
}

static bool apply_windows(struct arena *arena, const struct policy_in *in,
                          struct decode_errors *errors, struct policy *policy)
{
    bool all = true;

    policy->windows_count = 0;
    policy->window_texts = in->windows;
    for (size_t i = 0; i < in->windows.count && i < POLICY_WINDOWS_MAX; i++) {
        if (read_window(in->windows.items[i], &policy->windows[i])) {
            policy->windows_count++;
        } else {
            refuse(arena, errors, "windows", i, "must look like: mon-fri 22:00-06:00");
            all = false;
        }
    }
    return all;
}

static bool apply_faults(struct arena *arena, const struct policy_in *in,
                         struct decode_errors *errors, struct policy *policy)
{
    bool good = faults_are_good(arena, "automatic", &in->automatic, errors);

    good = faults_are_good(arena, "confirm", &in->confirm, errors) && good;
    good = faults_are_good(arena, "warn", &in->warn, errors) && good;
    if (in->has_automatic) {
        policy->automatic = in->automatic;
    }
    if (in->has_confirm) {
        policy->confirm = in->confirm;
    }
    if (in->has_warn) {
        policy->warn = in->warn;
    }
    return good;
}

static int name_place(const char *const *names, struct str text)
{
    int place = 0;

    while (names[place] != NULL && !str_eq_c(text, names[place])) {
        place++;
    }
    assert(names[place] != NULL);
    return place;
}

bool policy_apply(struct arena *arena, const struct policy_in *in, struct decode_errors *errors,
                  struct policy *policy)
{
    bool good = apply_faults(arena, in, errors, policy);

    if (in->has_mode) {
        policy->mode = (enum policy_mode)name_place(modes, in->mode);
    }
    if (in->has_idle) {
        policy->idle = (enum policy_idle)name_place(idles, in->idle);
    }
    if (in->has_actions) {
        policy->actions = actions_of(&in->actions);
    }
    if (in->has_second_approver) {
        policy->second_approver = actions_of(&in->second_approver);
    }
    if (in->has_time_zone) {
        policy->time_zone = in->time_zone;
    }
    if (in->has_dry_run) {
        policy->dry_run = in->dry_run;
    }
    if (in->has_windows) {
        good = apply_windows(arena, in, errors, policy) && good;
    }
#define NUMBER_APPLY(name, low, high, fallback) \
    policy->name = in->has_##name ? in->name : policy->name;
    POLICY_NUMBER_TABLE(NUMBER_APPLY)
#undef NUMBER_APPLY
    return good;
}

struct policy policy_read(struct arena *arena, struct str settings, int64_t cooldown_seconds)
{
    struct policy policy = policy_default(cooldown_seconds);
    struct policy_in *in = arena_zalloc(arena, sizeof *in);
    struct decode_errors errors = {0};
    const char *detail = NULL;

    if (settings.len == 0) {
        return policy;
    }
    if (decode_body(arena, settings, policy_update_body, in, &errors, &detail) != 0 ||
        !policy_apply(arena, in, &errors, &policy)) {
        policy = policy_default(cooldown_seconds);
        policy.broken = true;
    }
    return policy;
}

/* ------------------------------------------------------------------ writing */

static void write_list(struct enc *enc, const char *key, const struct str_list *list)
{
    enc_key(enc, key);
    enc_arr(enc);
    for (size_t i = 0; i < list->count; i++) {
        enc_str(enc, list->items[i]);
    }
    enc_arr_end(enc);
}

static void write_actions(struct enc *enc, const char *key, unsigned mask)
{
    enc_key(enc, key);
    enc_arr(enc);
    for (unsigned i = 0; i < ACTION_COUNT; i++) {
        if ((mask & (1u << i)) != 0) {
            enc_cstr(enc, action_info((enum repair_action)i)->name);
        }
    }
    enc_arr_end(enc);
}

void policy_write(struct enc *enc, const struct policy *policy)
{
    enc_obj(enc);
    enc_key(enc, "mode");
    enc_cstr(enc, modes[policy->mode]);
    write_list(enc, "automatic", &policy->automatic);
    write_list(enc, "confirm", &policy->confirm);
    write_list(enc, "warn", &policy->warn);
    write_actions(enc, "actions", policy->actions);
    write_list(enc, "windows", &policy->window_texts);
    enc_key(enc, "time_zone");
    enc_str(enc, policy->time_zone);
    enc_key(enc, "idle");
    enc_cstr(enc, idles[policy->idle]);
    write_actions(enc, "second_approver", policy->second_approver);
    enc_key(enc, "dry_run");
    enc_bool(enc, policy->dry_run);
#define NUMBER_WRITE(name, low, high, fallback) \
    enc_key(enc, #name);                        \
    enc_i64(enc, policy->name);
    POLICY_NUMBER_TABLE(NUMBER_WRITE)
#undef NUMBER_WRITE
    enc_obj_end(enc);
}

/* ------------------------------------------------------------------ asking */

int64_t policy_attempts(const struct policy *policy, enum repair_action action)
{
    switch (action) {
    case ACTION_RESET_GPU:
        return policy->attempts_reset_gpu;
    case ACTION_REBOOT:
        return policy->attempts_reboot;
    case ACTION_POWER_CYCLE:
        return policy->attempts_power_cycle;
    case ACTION_REPROVISION:
        return policy->attempts_reprovision;
    case ACTION_FAILOVER:
        return policy->attempts_failover;
    case ACTION_REMOVE:
    case ACTION_COUNT:
        break;
    }
    return 0;
}

bool policy_splits(struct str *rest, struct str *ret_check)
{
    struct str own = STR("custom:");
    bool good = str_starts(*rest, own);

    if (!good) {
        return str_split(rest, ':', ret_check);
    }
    /* A check of an org's own has the separator in its name. */
    struct str whole = *rest;
    struct str name;
    rest->ptr += own.len;
    rest->len -= own.len;
    good = str_split(rest, ':', &name);
    *ret_check = (struct str){whole.ptr, own.len + (good ? name.len : 0)};
    return good;
}

/* 0 = not named, 1 = by its check, 2 = by check and code */
static int match(const struct str_list *list, struct str check_id, struct str code)
{
    int best = 0;

    for (size_t i = 0; i < list->count; i++) {
        struct str rest = list->items[i];
        struct str check;
        if (!policy_splits(&rest, &check) || !str_eq(check, check_id)) {
            continue;
        }
        bool by_code = list->items[i].len > check.len;
        if (!by_code && best == 0) {
            best = 1;
        } else if (by_code && str_eq(rest, code)) {
            best = 2;
        }
    }
    return best;
}

enum policy_mode policy_mode_for(const struct policy *policy, struct str check_id, struct str code)
{
    int automatic = match(&policy->automatic, check_id, code);
    int confirm = match(&policy->confirm, check_id, code);
    int warn = match(&policy->warn, check_id, code);

    /* Named twice, the more careful list counts. */
    if (warn > 0 && warn >= confirm && warn >= automatic) {
        return POLICY_WARN;
    }
    if (confirm > 0 && confirm >= automatic) {
        return POLICY_CONFIRM;
    }
    if (automatic > 0) {
        return POLICY_AUTOMATIC;
    }
    /* What an org's own check asks for begins by itself only where a policy names the check. */
    bool own = str_starts(check_id, STR("custom:"));
    return own && policy->mode == POLICY_AUTOMATIC ? POLICY_CONFIRM : policy->mode;
}

const char *policy_mode_name(enum policy_mode mode)
{
    assert(mode <= POLICY_WARN);
    return modes[mode];
}

bool policy_window_open(const struct policy *policy, int weekday, int minute)
{
    int yesterday = (weekday + 6) % 7;

    if (policy->windows_count == 0) {
        return true;
    }
    for (size_t i = 0; i < policy->windows_count; i++) {
        const struct policy_window *w = &policy->windows[i];
        bool overnight = w->to <= w->from;
        bool today =
            (w->days & (1u << weekday)) != 0 && minute >= w->from && (overnight || minute < w->to);
        bool from_yesterday = overnight && (w->days & (1u << yesterday)) != 0 && minute < w->to;
        if (today || from_yesterday) {
            return true;
        }
    }
    return false;
}
