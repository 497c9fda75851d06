/* What the server answers to a report. */
#include "agent/answer.h"

#include "agent/act/command.h"
#include "agent/settings.h"
#include "base/json.h"

static bool read_text(struct json_reader *reader, struct str *ret_text)
{
    bool plain;

    return json_get_raw_str(reader, ret_text, &plain);
}

static bool read_payload(struct json_reader *reader, size_t max, struct buf *payload)
{
    struct str raw;
    struct str text;

    if (!read_text(reader, &raw) || raw.len > 2 * max) {
        return false;
    }
    buf_clear(payload);
    buf_reserve(payload, raw.len + 1);
    if (!json_unescape(raw, payload->ptr, raw.len + 1, &text)) {
        return false;
    }
    payload->len = text.len;
    return true;
}

static bool read_command(struct json_reader *reader, struct answer *answer)
{
    enum json_type type;
    struct str key;
    size_t at = answer->command_count;
    bool keep = at < ANSWER_COMMANDS_MAX;

    while ((type = json_next(reader, &key)) != JSON_END) {
        bool good;

        if (keep && type == JSON_STR && str_eq_c(key, "payload")) {
            good = read_payload(reader, COMMAND_PAYLOAD_MAX, &answer->commands[at].payload);
        } else if (keep && type == JSON_STR && str_eq_c(key, "signature")) {
            good = read_text(reader, &answer->commands[at].signature);
        } else {
            good = type != JSON_ERROR && json_skip(reader);
        }
        if (!good) {
            return false;
        }
    }
    answer->command_count += keep;
    return true;
}

static bool read_rejected(struct json_reader *reader, struct answer *answer)
{
    enum json_type type;
    struct str key;
    size_t at = answer->rejected_count < ANSWER_REJECTED_MAX ? answer->rejected_count
                                                             : ANSWER_REJECTED_MAX - 1;

    while ((type = json_next(reader, &key)) != JSON_END) {
        bool good;

        if (type == JSON_NUM && str_eq_c(key, "stream")) {
            good = json_get_i64(reader, &answer->rejected[at].stream);
        } else if (type == JSON_NUM && str_eq_c(key, "seq")) {
            good = json_get_i64(reader, &answer->rejected[at].seq);
        } else if (type == JSON_STR && str_eq_c(key, "reason")) {
            good = read_text(reader, &answer->rejected[at].reason);
        } else {
            good = type != JSON_ERROR && json_skip(reader);
        }
        if (!good) {
            return false;
        }
    }
    answer->rejected_count++;
    return true;
}

static bool read_key(struct json_reader *reader, struct answer *answer)
{
    struct answer_key key = {.n = 0};
    enum json_type type;
    struct str name;

    while ((type = json_next(reader, &name)) != JSON_END) {
        bool good;

        if (type == JSON_NUM && str_eq_c(name, "n")) {
            good = json_get_i64(reader, &key.n);
        } else if (type == JSON_STR && str_eq_c(name, "public_key")) {
            good = read_text(reader, &key.public_key);
        } else if (type == JSON_STR && str_eq_c(name, "signature")) {
            good = read_text(reader, &key.signature);
        } else {
            good = type != JSON_ERROR && json_skip(reader);
        }
        if (!good) {
            return false;
        }
    }
    if (answer->key_count < ANSWER_KEYS_MAX) {
        answer->keys[answer->key_count++] = key;
    }
    return true;
}

static bool read_settings(struct json_reader *reader, struct answer *answer)
{
    enum json_type type;
    struct str name;

    while ((type = json_next(reader, &name)) != JSON_END) {
        bool good;

        if (type == JSON_STR && str_eq_c(name, "document")) {
            good = read_payload(reader, SETTINGS_MAX, &answer->settings);
        } else if (type == JSON_STR && str_eq_c(name, "signature")) {
            good = read_text(reader, &answer->settings_signature);
        } else {
            good = type != JSON_ERROR && json_skip(reader);
        }
        if (!good) {
            return false;
        }
    }
    return true;
}

static bool read_list(struct json_reader *reader, struct answer *answer,
                      bool (*read)(struct json_reader *reader, struct answer *answer))
{
    enum json_type type;

    while ((type = json_next(reader, NULL)) == JSON_OBJ) {
        if (!read(reader, answer)) {
            return false;
        }
    }
    return type == JSON_END;
}

static bool read_member(struct json_reader *reader, enum json_type type, struct str key,
                        struct answer *answer)
{
    if (type == JSON_NUM && str_eq_c(key, "interval_seconds")) {
        return json_get_double(reader, &answer->interval_seconds);
    }
    if (type == JSON_BOOL && str_eq_c(key, "reconnect")) {
        return json_get_bool(reader, &answer->reconnect);
    }
    if (type == JSON_ARR && str_eq_c(key, "commands")) {
        return read_list(reader, answer, read_command);
    }
    if (type == JSON_ARR && str_eq_c(key, "rejected")) {
        return read_list(reader, answer, read_rejected);
    }
    if (type == JSON_ARR && str_eq_c(key, "command_keys")) {
        return read_list(reader, answer, read_key);
    }
    if (type == JSON_OBJ && str_eq_c(key, "settings")) {
        return read_settings(reader, answer);
    }
    return type != JSON_ERROR && json_skip(reader);
}

bool answer_read(struct str body, struct answer *ret_answer)
{
    struct json_reader reader;
    enum json_type type;
    struct str key;

    *ret_answer = (struct answer){.interval_seconds = -1};
    json_open(&reader, body);
    if (json_next(&reader, NULL) != JSON_OBJ) {
        return false;
    }
    while ((type = json_next(&reader, &key)) != JSON_END) {
        if (!read_member(&reader, type, key, ret_answer)) {
            return false;
        }
    }
    return json_close(&reader);
}

void answer_free(struct answer *answer)
{
    for (size_t i = 0; i < ANSWER_COMMANDS_MAX; i++) {
        buf_free(&answer->commands[i].payload);
    }
    buf_free(&answer->settings);
}
