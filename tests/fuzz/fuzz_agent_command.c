/* What a server may send an agent: answers, the orders in them, and what becomes a program's
 * arguments. */
#include <string.h>

#include "agent/act/command.h"
#include "agent/answer.h"
#include "agent/rules/pci.h"
#include "tests/fuzz/fuzz.h"

static void check_order(struct str payload)
{
    struct command command;
    struct pci pci;

    if (!command_parse(payload, &command)) {
        return;
    }
    FUZZ_CHECK(strlen(command.id) == UUID_TEXT_LEN && strlen(command.boot_id) == UUID_TEXT_LEN);
    FUZZ_CHECK(command.epoch[0] >= 0 && command.epoch[1] >= 0);
    FUZZ_CHECK(strpbrk(command.action, " \n\t\"\\") == NULL);
    struct str rest = str_of(command.gpus);
    struct str gpu;
    while (str_split(&rest, ',', &gpu)) {
        FUZZ_CHECK(pci_parse(gpu, &pci));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    struct answer answer;

    check_order(text);
    if (answer_read(text, &answer)) {
        for (size_t i = 0; i < answer.command_count; i++) {
            check_order(buf_str(&answer.commands[i].payload));
        }
    }
    answer_free(&answer);
    return 0;
}
