/* The GPUs of a node. One that is lost keeps its row, with its serial: that is what is looked for in the rack. */
import { celsius, count, mebibytesOf, NO_DATA, percent, watts } from "../format";
import { moment, now, parse } from "../time";
import type { Gpu, Incident, NodeDetail } from "../types";
import { Mark, RatioBar, type MarkKind } from "../ui/marks";
import { Nothing, Section } from "../ui/page";
import { TableFrame } from "../ui/table";

const MARK: Record<Gpu["state"], MarkKind> = { ok: "healthy", fault: "unhealthy", warning: "warning", unknown: "unknown" };
const WORD: Record<Gpu["state"], string> = { ok: "Healthy", fault: "Fault", warning: "Warning", unknown: "No data" };

function incidentOf(gpu: Gpu, node: NodeDetail): Incident | null {
  return node.incidents.find((one) => one.id === gpu.incident_id) ?? null;
}

/** "not on the bus since 14:28": the time is that of the incident that says so. */
function lostWords(gpu: Gpu, node: NodeDetail): string {
  const at = parse(incidentOf(gpu, node)?.first_at);
  return at === null ? "not on the bus" : `not on the bus since ${moment(at, now.value)}`;
}

function memory(gpu: Gpu): string {
  return gpu.mem_used_mib == null || gpu.mem_total_mib == null ? NO_DATA : mebibytesOf(gpu.mem_used_mib, gpu.mem_total_mib);
}

function figure(text: string) {
  return text === NO_DATA ? <Nothing>{NO_DATA}</Nothing> : text;
}

/** The serial leads to the past of the part, on whatever node it sat. */
function Serial({ gpu }: { gpu: Gpu }) {
  return gpu.device_id ? <a href={`/devices/${gpu.device_id}`}>{gpu.serial}</a> : <>{gpu.serial}</>;
}

function StateCell({ gpu }: { gpu: Gpu }) {
  return (
    <span class="st">
      <Mark kind={gpu.present ? MARK[gpu.state] : "unhealthy"} />
      {gpu.present ? WORD[gpu.state] : "Lost"}
    </span>
  );
}

function Figures({ gpu }: { gpu: Gpu }) {
  return (
    <>
      <td class="num nw">
        {gpu.util_ratio === null ? (
          <Nothing>{NO_DATA}</Nothing>
        ) : (
          <span class="barcell">
            <RatioBar ratio={gpu.util_ratio} />
            <span>{percent(gpu.util_ratio)}</span>
          </span>
        )}
      </td>
      <td class="num nw">{figure(memory(gpu))}</td>
      <td class="num nw">{figure(celsius(gpu.temp_c))}</td>
      <td class="num nw">{figure(watts(gpu.power_w))}</td>
    </>
  );
}

function counts(node: NodeDetail): string {
  const model = node.gpus.find((gpu) => gpu.model)?.model ?? node.gpu_type ?? "GPU";
  const there = node.gpus.filter((gpu) => gpu.present).length;
  const expected = node.gpus_expected;
  const first = `${count(Math.max(node.gpus.length, expected ?? 0))} × ${model.replace(/^NVIDIA /, "")}`;
  return expected === null ? `${first}; on the bus ${count(there)}` : `${first}; expected ${count(expected)}, on the bus ${count(there)}`;
}

export function NodeGpus({ node }: { node: NodeDetail }) {
  if (node.gpus.length === 0) {
    const expected = node.gpus_expected ?? 0;
    return (
      <Section title="GPUs">
        <p class="t3">{expected > 0 ? `${count(expected)} are expected; none has been seen yet.` : "No GPU has been seen on this node."}</p>
      </Section>
    );
  }
  return (
    <Section title="GPUs" hint={counts(node)}>
      <TableFrame name="GPUs" class="desk">
        <table class="tbl">
          <thead>
            <tr>
              <th scope="col" class="num gpuno">
                GPU
              </th>
              <th scope="col">State</th>
              <th scope="col">Serial</th>
              <th scope="col">PCI</th>
              <th scope="col" class="num">
                Busy
              </th>
              <th scope="col" class="num">
                Memory
              </th>
              <th scope="col" class="num">
                Temp
              </th>
              <th scope="col" class="num">
                Power
              </th>
            </tr>
          </thead>
          <tbody>
            {node.gpus.map((gpu) => (
              <tr key={`${gpu.index} ${gpu.device_id}`} class={!gpu.present || gpu.state === "fault" ? "badrow" : undefined}>
                <td class="num">{gpu.index}</td>
                <td>
                  <StateCell gpu={gpu} />
                </td>
                <td class="mono nw">{gpu.serial ? <Serial gpu={gpu} /> : <Nothing>not known</Nothing>}</td>
                <td class="mono nw">{gpu.pci || <Nothing>not known</Nothing>}</td>
                {gpu.present ? (
                  <Figures gpu={gpu} />
                ) : (
                  <td class="t2 lost" colSpan={4}>
                    {lostWords(gpu, node)}
                  </td>
                )}
              </tr>
            ))}
          </tbody>
        </table>
      </TableFrame>
      <ul class="mobile mlist">
        {node.gpus.map((gpu) => (
          <li key={`${gpu.index} ${gpu.device_id}`} class={!gpu.present || gpu.state === "fault" ? "badrow" : undefined}>
            <div class="r">
              <Mark kind={gpu.present ? MARK[gpu.state] : "unhealthy"} />
              <span>
                <b>GPU {gpu.index}</b> {gpu.present ? (gpu.state === "ok" ? "" : WORD[gpu.state].toLowerCase()) : "lost"}
              </span>
              <span class="t2 s12">{gpu.present ? `${percent(gpu.util_ratio)}${gpu.util_ratio === null ? "" : " busy"}` : ""}</span>
              <span class="sub">
                <span class="mono">{gpu.serial ? <Serial gpu={gpu} /> : "serial not known"}</span> · {gpu.present ? `${memory(gpu)}, ${celsius(gpu.temp_c)}, ${watts(gpu.power_w)}` : lostWords(gpu, node)}
              </span>
            </div>
          </li>
        ))}
      </ul>
    </Section>
  );
}
