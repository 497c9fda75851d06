/* Faults that the readings of one GPU show. */
#ifndef AGENT_COLLECT_GPU_FAULTS_H
#define AGENT_COLLECT_GPU_FAULTS_H

#include "agent/collect/gpu.h"

/* One GPU's round; `sample` says that a clock sample is due. */
void gpu_judge(struct gpu_memory *memory, const struct nvml_gpu *seen, struct gpu_reading *reading,
               struct faults *faults, bool sample);

#endif
