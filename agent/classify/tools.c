/* The small sources of `classify`: fabric manager, lspci, smartctl, chronyc, systemd. */
#include <stdio.h>
#include <string.h>

#include "agent/classify/classify.h"
#include "agent/json_path.h"
#include "agent/rules/match.h"
#include "agent/rules/pci.h"

/* A clock this far off spoils logs and leases. */
#define CLOCK_OFFSET_S 0.1

static void read_fabricmanager(struct classify *classify, struct str line)
{
    struct finding finding = classify_finding("nvswitch_sxid");
    struct match match;
    struct pci pci;
    int64_t code;

    if (match_text("*detected NVSwitch non-fatal error %d on *", line, &match)) {
        finding.severity = SEVERITY_WARNING;
    } else if (match_text("*detected NVSwitch fatal error %d on *", line, &match)) {
        classify_set_fault(&finding, ACTION_REBOOT);
    } else if (match_text("*number of NVSwitches don't match with any supported*topology*", line,
                          &match)) {
        finding = classify_finding("fabric_manager");
        finding_set_code(&finding, "topology");
        classify_set_fault(&finding, ACTION_REMOVE);
        classify_add(classify, &finding);
        return;
    } else {
        return;
    }
    if (str_parse_i64(match.captures[0], 1, 99999, &code)) {
        finding_set_code_number(&finding, code);
        if (match_text("*on NVSwitch pci bus id %p *", line, &match) &&
            pci_parse(match.captures[0], &pci)) {
            finding_set_device(&finding, str_of(pci.text), false);
        }
        classify_add(classify, &finding);
    }
}

void classify_fabricmanager(struct classify *classify, struct str input)
{
    struct str line;

    while (str_split(&input, '\n', &line)) {
        read_fabricmanager(classify, str_trim(line));
    }
}

/* Revision ff: the configuration space reads all ones, the device is gone but still listed. */
void classify_lspci(struct classify *classify, struct str input)
{
    struct match match;
    struct str line;
    struct pci pci;

    while (str_split(&input, '\n', &line)) {
        struct finding finding = classify_finding("gpu_lost");

        if (!match_text("%p *NVIDIA *(rev ff)*", str_trim(line), &match) ||
            !pci_parse(match.captures[0], &pci)) {
            continue;
        }
        finding_set_device(&finding, str_of(pci.text), true);
        finding_set_code(&finding, "rev_ff");
        classify_set_fault(&finding, ACTION_REBOOT);
        classify_add(classify, &finding);
    }
}

static void name_disk(struct str input, struct finding *finding)
{
    struct str device;
    struct str protocol;

    if (json_path_text(input, "device/name", &device)) {
        if (str_starts(device, STR("/dev/"))) {
            device.ptr += 5;
            device.len -= 5;
        }
        finding_set_device(finding, device, false);
    }
    if (json_path_text(input, "device/protocol", &protocol) && str_eq_c(protocol, "ATA")) {
        finding->check = "disk_ata";
    }
}

/* Attributes of ATA disks that count sectors which cannot be read (smartmontools' drivedb): 197
 * pending, 198 uncorrectable. */
static bool read_attribute(struct json_reader *reader, int64_t *sectors)
{
    enum json_type type;
    struct str key;
    struct str raw = {NULL, 0};
    int64_t id = 0;
    int64_t value;

    while ((type = json_next(reader, &key)) != JSON_END) {
        bool good;

        if (type == JSON_ERROR) {
            return false;
        }
        if (str_eq_c(key, "id") && type == JSON_NUM) {
            good = json_get_i64(reader, &id) || json_skip(reader);
        } else if (str_eq_c(key, "raw") && type == JSON_OBJ) {
            good = json_get_raw(reader, &raw);
        } else {
            good = json_skip(reader);
        }
        if (!good) {
            return false;
        }
    }
    if ((id == 197 || id == 198) && json_path_i64(raw, "value", &value) && value > *sectors) {
        *sectors = value;
    }
    return true;
}

static int64_t count_bad_sectors(struct str input)
{
    struct json_reader reader;
    struct str table;
    int64_t sectors = 0;
    enum json_type type;

    if (!json_path(input, "ata_smart_attributes/table", &table)) {
        return 0;
    }
    json_open(&reader, table);
    if (json_next(&reader, NULL) != JSON_ARR) {
        return 0;
    }
    while ((type = json_next(&reader, NULL)) == JSON_OBJ) {
        if (!read_attribute(&reader, &sectors)) {
            return 0;
        }
    }
    return type == JSON_END ? sectors : 0;
}

static void set_number(struct finding *finding, const char *word, int64_t number)
{
    finding_set_code(finding, "%s %lld", word, (long long)number);
    (void)snprintf(finding->fold_code, sizeof(finding->fold_code), "%s", word);
}

void classify_smartctl(struct classify *classify, struct str input)
{
    static const char health[] = "nvme_smart_health_information_log";
    struct finding finding = classify_finding("disk_nvme");
    struct str log = {NULL, 0};
    int64_t spare = -1;
    int64_t threshold = -1;
    int64_t value;
    struct str passed;

    name_disk(input, &finding);
    bool has_log = json_path(input, health, &log);
    int64_t sectors = count_bad_sectors(input);
    if (has_log && json_path_i64(log, "available_spare", &spare) &&
        json_path_i64(log, "available_spare_threshold", &threshold) && spare < threshold) {
        finding_set_code(&finding, "spare %lld<%lld", (long long)spare, (long long)threshold);
        (void)snprintf(finding.fold_code, sizeof(finding.fold_code), "spare");
        classify_set_fault(&finding, ACTION_REMOVE);
    } else if (json_path(input, "smart_status/passed", &passed) && str_eq_c(passed, "false")) {
        finding_set_code(&finding, "smart_failed");
        classify_set_fault(&finding, ACTION_REMOVE);
    } else if (has_log && json_path_i64(log, "critical_warning", &value) && value != 0) {
        set_number(&finding, "critical_warning", value);
        classify_set_fault(&finding, ACTION_REMOVE);
    } else if (has_log && json_path_i64(log, "percentage_used", &value) && value >= 100) {
        finding_set_code(&finding, "worn");
        finding.severity = SEVERITY_WARNING;
    } else if (sectors > 0) {
        set_number(&finding, "bad_sectors", sectors);
        finding.severity = SEVERITY_WARNING;
    } else {
        return;
    }
    classify_add(classify, &finding);
}

/* `chronyc -c tracking`: reference, name, stratum, time, system time, 8 numbers, leap status. */
static bool read_chrony_csv(struct str line, struct finding *finding)
{
    struct str fields[14];
    size_t count = 0;
    double offset = 0;

    while (count < COUNTOF(fields) && str_split(&line, ',', &fields[count])) {
        count++;
    }
    if (count < COUNTOF(fields) || !str_parse_double(fields[4], &offset)) {
        return false;
    }
    if (str_eq_c(fields[13], "Not synchronised")) {
        finding_set_code(finding, "unsynchronised");
    } else if (offset > CLOCK_OFFSET_S || offset < -CLOCK_OFFSET_S) {
        finding_set_code(finding, "offset");
    }
    return true;
}

void classify_chronyc(struct classify *classify, struct str input)
{
    struct finding finding = classify_finding("clock");
    struct match match;
    struct str line;
    double offset = 0;

    finding.severity = SEVERITY_WARNING;
    while (str_split(&input, '\n', &line)) {
        line = str_trim(line);
        if (read_chrony_csv(line, &finding)) {
            continue;
        }
        if (match_text("Leap status*: Not synchronised", line, &match)) {
            finding_set_code(&finding, "unsynchronised");
            classify_add(classify, &finding);
            return;
        }
        if (match_text("System time*: %w seconds *", line, &match) &&
            str_parse_double(match.captures[0], &offset) && offset > CLOCK_OFFSET_S) {
            finding_set_code(&finding, "offset");
        }
    }
    if (finding.code_type != CODE_NONE) {
        classify_add(classify, &finding);
    }
}

/* "nvidia-persistenced.service inactive dead": unit, active state, sub-state. One that systemd
 * starts again and again is down as well. */
void classify_systemd(struct classify *classify, struct str input)
{
    struct match match;
    struct str line;

    while (str_split(&input, '\n', &line)) {
        struct finding finding = classify_finding("service");

        if (!match_text("%w %w %w", str_trim(line), &match)) {
            continue;
        }
        bool down = str_eq_c(match.captures[1], "inactive") ||
                    str_eq_c(match.captures[1], "failed") ||
                    str_eq_c(match.captures[2], "auto-restart");
        if (!down) {
            continue;
        }
        struct str unit = match.captures[0];
        if (str_ends(unit, STR(".service"))) {
            unit.len -= 8;
        }
        finding_set_code(&finding, "%.*s", unit.len > 40 ? 40 : (int)unit.len, unit.ptr);
        finding_set_device(&finding, unit, false);
        finding_set_summary(&finding, "%.*s is %.*s (%.*s)", unit.len > 40 ? 40 : (int)unit.len,
                            unit.ptr, STR_FMT(match.captures[1]), STR_FMT(match.captures[2]));
        finding.severity = SEVERITY_WARNING;
        classify_add(classify, &finding);
    }
}
