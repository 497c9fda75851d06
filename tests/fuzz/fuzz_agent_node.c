/* What an agent reads on its node: NVML's answer, /proc files, boot ids, spool records. */
#include <string.h>

#include "agent/boot.h"
#include "agent/collect/cpu.h"
#include "agent/collect/disk.h"
#include "agent/collect/memory.h"
#include "agent/collect/nvml_child.h"
#include "agent/spool_file.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct nvml_answer answer;
    struct disk_mount mounts[DISK_MOUNTS_MAX];
    struct str text = {(const char *)data, size};
    struct boot boot;
    struct str json;
    uint64_t numbers[2];
    int64_t sizes[2];
    unsigned stream;

    if (nvml_answer_read(text, &answer)) {
        FUZZ_CHECK(answer.count <= GPUS_MAX);
        FUZZ_CHECK(strlen(answer.driver_version) < sizeof(answer.driver_version));
        for (unsigned i = 0; i < answer.count; i++) {
            FUZZ_CHECK(strlen(answer.gpus[i].uuid) < sizeof(answer.gpus[i].uuid));
        }
    }
    FUZZ_CHECK(disk_parse_mounts(text, mounts, DISK_MOUNTS_MAX) <= DISK_MOUNTS_MAX);
    if (cpu_parse(text, &numbers[0], &numbers[1])) {
        FUZZ_CHECK(numbers[0] <= numbers[1]);
    }
    if (memory_parse(text, &sizes[0], &sizes[1])) {
        FUZZ_CHECK(sizes[1] <= sizes[0]);
    }
    (void)!boot_parse(text, &boot);
    (void)!spool_record_parse(text, &json);
    (void)!spool_file_name_parse(text, &stream, &numbers[0]);
    return 0;
}
