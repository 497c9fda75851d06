/* PCI addresses as drivers and tools write them, in one form. */
#include "agent/rules/pci.h"

#include <stdio.h>

static bool parse_hex_part(struct str part, size_t digits_min, size_t digits_max,
                           uint64_t *ret_value)
{
    if (part.len < digits_min || part.len > digits_max) {
        return false;
    }
    for (size_t i = 0; i < part.len; i++) {
        char c = part.ptr[i];

        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'))) {
            return false;
        }
    }
    return str_parse_hex_u64(part, ret_value);
}

/* "GPU-I:05", possibly followed by the compute instance. */
static bool parse_mig(struct str text, int *ret_instance)
{
    struct str part;
    uint64_t value;

    if (!str_split(&text, ' ', &part) || !str_starts(part, STR("GPU-I:"))) {
        return false;
    }
    part.ptr += 6;
    part.len -= 6;
    if (!str_parse_u64(part, 0, 63, &value)) {
        return false;
    }
    *ret_instance = (int)value;
    return true;
}

bool pci_parse(struct str text, struct pci *ret_pci)
{
    struct str parts[3];
    struct str part;
    struct str slot;
    uint64_t numbers[3] = {0, 0, 0};
    uint64_t function;
    size_t count = 0;
    int instance = -1;

    text = str_trim(text);
    if (str_starts(text, STR("PCI:"))) {
        text.ptr += 4;
        text.len -= 4;
    }
    struct str address = text;
    ptrdiff_t space = str_find(text, STR(" "), 0);
    if (space >= 0) {
        address.len = (size_t)space;
        text.ptr += space + 1;
        text.len -= (size_t)space + 1;
        if (!parse_mig(str_trim(text), &instance)) {
            return false;
        }
    }
    while (str_split(&address, ':', &part)) {
        if (count == COUNTOF(parts)) {
            return false;
        }
        parts[count++] = part;
    }
    if (count < 2 || (count == 3 && !parse_hex_part(parts[0], 4, 8, &numbers[0])) ||
        !parse_hex_part(parts[count - 2], 2, 2, &numbers[1])) {
        return false;
    }
    part = parts[count - 1];
    if (!str_split(&part, '.', &slot) || !parse_hex_part(slot, 2, 2, &numbers[2])) {
        return false;
    }
    if (part.len > 0 && !parse_hex_part(part, 1, 1, &function)) {
        return false;
    }
    (void)snprintf(ret_pci->text, sizeof(ret_pci->text), "%04x:%02x:%02x", (unsigned)numbers[0],
                   (unsigned)numbers[1], (unsigned)numbers[2]);
    ret_pci->mig_instance = instance;
    return true;
}
