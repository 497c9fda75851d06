/* The small sources of `classify`: fabric manager, lspci, smartctl, chronyc, systemd. */
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

void classify_smartctl(struct classify *classify, struct str input)
{
    struct finding finding = classify_finding("disk_nvme");
    int64_t spare = -1;
    int64_t threshold = -1;
    int64_t value;
    struct str device;
    struct str passed;

    if (json_path_text(input, "device/name", &device)) {
        if (str_starts(device, STR("/dev/"))) {
            device.ptr += 5;
            device.len -= 5;
        }
        finding_set_device(&finding, device, false);
    }
    bool has_spare =
        json_path_i64(input, "nvme_smart_health_information_log/available_spare", &spare) &&
        json_path_i64(input, "nvme_smart_health_information_log/available_spare_threshold",
                      &threshold);
    if (has_spare && spare < threshold) {
        finding_set_code(&finding, "spare %lld<%lld", (long long)spare, (long long)threshold);
        classify_set_fault(&finding, ACTION_REMOVE);
    } else if (json_path(input, "smart_status/passed", &passed) && str_eq_c(passed, "false")) {
        finding_set_code(&finding, "smart_failed");
        classify_set_fault(&finding, ACTION_REMOVE);
    } else if (json_path_i64(input, "nvme_smart_health_information_log/critical_warning", &value) &&
               value != 0) {
        finding_set_code(&finding, "critical_warning %lld", (long long)value);
        classify_set_fault(&finding, ACTION_REMOVE);
    } else if (json_path_i64(input, "nvme_smart_health_information_log/percentage_used", &value) &&
               value >= 100) {
        finding_set_code(&finding, "worn");
        finding.severity = SEVERITY_WARNING;
    } else {
        return;
    }
    classify_add(classify, &finding);
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

/* "nvidia-persistenced.service inactive dead": unit, active state, sub-state. */
void classify_systemd(struct classify *classify, struct str input)
{
    struct match match;
    struct str line;

    while (str_split(&input, '\n', &line)) {
        struct finding finding = classify_finding("service");

        if (!match_text("%w %w %w", str_trim(line), &match) ||
            !(str_eq_c(match.captures[1], "inactive") || str_eq_c(match.captures[1], "failed"))) {
            continue;
        }
        struct str unit = match.captures[0];
        if (str_ends(unit, STR(".service"))) {
            unit.len -= 8;
        }
        finding_set_code(&finding, "%.*s", unit.len > 40 ? 40 : (int)unit.len, unit.ptr);
        finding.severity = SEVERITY_WARNING;
        classify_add(classify, &finding);
    }
}
