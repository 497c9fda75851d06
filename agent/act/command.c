/* Orders from the server: what they say, and whether this node obeys. */
#include "agent/act/command.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/json_path.h"
#include "agent/rules/pci.h"

static bool read_uuid(struct str payload, const char *path, char *text)
{
    struct uuid uuid;
    struct str value;

    if (!json_path_text(payload, path, &value) || !uuid_parse(value, &uuid)) {
        return false;
    }
    uuid_format(&uuid, text);
    return true;
}

static bool read_word(struct str payload, const char *path, char *text, size_t cap)
{
    struct str value;

    if (!json_path_text(payload, path, &value) || value.len == 0 || value.len >= cap) {
        return false;
    }
    for (size_t i = 0; i < value.len; i++) {
        char c = value.ptr[i];

        if (c <= ' ' || c == '\\' || c >= 0x7f) {
            return false;
        }
    }
    memcpy(text, value.ptr, value.len);
    text[value.len] = '\0';
    return true;
}

static bool read_epoch(struct str payload, int64_t epoch[2])
{
    struct json_reader reader;
    struct str raw;

    if (!json_path(payload, "epoch", &raw)) {
        return false;
    }
    json_open(&reader, raw);
    if (json_next(&reader, NULL) != JSON_ARR) {
        return false;
    }
    for (size_t i = 0; i < 2; i++) {
        if (json_next(&reader, NULL) != JSON_NUM || !json_get_i64(&reader, &epoch[i]) ||
            epoch[i] < 0) {
            return false;
        }
    }
    return json_next(&reader, NULL) == JSON_END;
}

/* args.gpus are PCI addresses and nothing else: they become a program's argument. */
static bool read_gpus(struct str payload, char *text, size_t cap)
{
    struct json_reader reader;
    struct str raw;
    struct pci pci;
    enum json_type type;
    size_t len = 0;

    text[0] = '\0';
    if (!json_path(payload, "args/gpus", &raw)) {
        return true;
    }
    json_open(&reader, raw);
    if (json_next(&reader, NULL) != JSON_ARR) {
        return false;
    }
    while ((type = json_next(&reader, NULL)) != JSON_END) {
        bool plain = false;

        if (type != JSON_STR || !json_get_raw_str(&reader, &raw, &plain) || !plain ||
            !pci_parse(raw, &pci) || pci.mig_instance >= 0) {
            return false;
        }
        int more = snprintf(text + len, cap - len, "%s%s", len > 0 ? "," : "", pci.text);
        if (more < 0 || (size_t)more >= cap - len) {
            return false;
        }
        len += (size_t)more;
    }
    return true;
}

static bool is_simulated(struct str payload)
{
    struct str raw;

    return json_path(payload, "args/simulated", &raw) && str_eq_c(str_trim(raw), "true");
}

bool command_parse(struct str payload, struct command *ret_command)
{
    struct json_reader reader;
    struct command command = {.repair_no = 0};

    if (payload.len > COMMAND_PAYLOAD_MAX) {
        return false;
    }
    json_open(&reader, payload);
    if (json_next(&reader, NULL) != JSON_OBJ || !json_skip(&reader) || !json_close(&reader)) {
        return false;
    }
    if (!read_uuid(payload, "command_id", command.id) ||
        !read_uuid(payload, "org_id", command.org_id) ||
        !read_uuid(payload, "cluster_id", command.cluster_id) ||
        !read_uuid(payload, "node_id", command.node_id) ||
        !read_uuid(payload, "boot_id", command.boot_id) ||
        !read_word(payload, "action", command.action, sizeof(command.action)) ||
        !read_word(payload, "nonce", command.nonce, sizeof(command.nonce)) ||
        !read_epoch(payload, command.epoch) ||
        !read_gpus(payload, command.gpus, sizeof(command.gpus))) {
        return false;
    }
    command.simulated = is_simulated(payload);
    if (!json_path_i64(payload, "repair_no", &command.repair_no)) {
        command.repair_no = 0;
    }
    *ret_command = command;
    return true;
}

bool command_is_destructive(const char *action)
{
    return strcmp(action, "reboot") == 0 || strcmp(action, "reset_gpu") == 0;
}

static bool is_allowed(const char *list, const char *action)
{
    struct str rest = str_of(list);
    struct str part;

    while (str_split(&rest, ',', &part)) {
        if (str_eq_c(str_trim(part), action)) {
            return true;
        }
    }
    return false;
}

static bool is_signed(const struct command_rules *rules, struct str payload, struct str signature)
{
    uint8_t bytes[ED25519_SIGNATURE_LEN];
    size_t len;

    return crypto_unb64(signature, bytes, sizeof(bytes), &len) && len == sizeof(bytes) &&
           ed25519_verify(rules->identity->command_key, payload, bytes);
}

static enum verdict refuse(char *reason, size_t cap, const char *sentence)
{
    (void)snprintf(reason, cap, "%s", sentence);
    return VERDICT_REFUSED;
}

/* Rule 5: this node's own ceiling. */
static enum verdict judge_ceiling(const struct command_rules *rules, const struct command *command,
                                  char *reason, size_t cap)
{
    if (!is_allowed(rules->allowed_actions, command->action)) {
        return refuse(reason, cap, "this node does not allow the action (allowed_actions)");
    }
    if (access(rules->deny_file, F_OK) == 0 || errno != ENOENT) {
        /* A file that cannot be looked up counts as there: the safe side. */
        return refuse(reason, cap, "this node denies all commands (deny_file exists)");
    }
    if (command_is_destructive(command->action) &&
        command_log_last_hour(rules->log, rules->now_s) >= (size_t)rules->destructive_per_hour) {
        return refuse(reason, cap,
                      "this node has begun its number of acts for this hour "
                      "(destructive_per_hour)");
    }
    return VERDICT_ACT;
}

enum verdict command_judge(const struct command_rules *rules, struct str payload,
                           struct str signature, struct command *ret_command, char *ret_reason,
                           size_t reason_cap)
{
    if (!command_parse(payload, ret_command)) {
        (void)snprintf(ret_reason, reason_cap, "the command cannot be read");
        return VERDICT_IGNORED;
    }
    if (!is_signed(rules, payload, signature)) {
        return refuse(ret_reason, reason_cap, "the signature is not the cluster's");
    }
    if (strcmp(ret_command->org_id, rules->identity->org_id) != 0 ||
        strcmp(ret_command->cluster_id, rules->identity->cluster_id) != 0 ||
        strcmp(ret_command->node_id, rules->identity->node_id) != 0) {
        return refuse(ret_reason, reason_cap, "the command is for another node");
    }
    if (ret_command->simulated) {
        return refuse(ret_reason, reason_cap, "the command is for a simulated node");
    }
    if (strcmp(ret_command->action, "reset_gpu") == 0 && ret_command->gpus[0] == '\0') {
        return refuse(ret_reason, reason_cap, "the command names no GPU");
    }
    if (rules->log == NULL) {
        return refuse(ret_reason, reason_cap, "the command log cannot be used");
    }
    if (command_log_find(rules->log, ret_command->id) != NULL) {
        return VERDICT_KNOWN;
    }
    if (rules->nonce[0] == '\0' || strcmp(ret_command->nonce, rules->nonce) != 0) {
        return refuse(ret_reason, reason_cap,
                      "the command does not answer this node's last report");
    }
    if (!command_log_epoch_is_new(rules->log, ret_command->epoch)) {
        return refuse(ret_reason, reason_cap, "the command is older than one that was begun");
    }
    if (command_is_destructive(ret_command->action) &&
        strcmp(ret_command->boot_id, rules->boot_id) != 0) {
        return refuse(ret_reason, reason_cap, "the command was meant for another boot");
    }
    return judge_ceiling(rules, ret_command, ret_reason, reason_cap);
}
