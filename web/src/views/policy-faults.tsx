/* What happens at a fault: each check with its action and its mode; codes of a check in rows of their own. */
import { useSignal } from "@preact/signals";
import { action, count, sentence } from "../format";
import { useQuery } from "../store";
import type { PolicyMode, PolicySettings, RepairStatistics } from "../repair-types";
import { Button, Field, type Choice } from "../ui/controls";
import { Nothing, Section } from "../ui/page";
import { Loaded } from "../ui/states";
import { Table } from "../ui/table";
import { faultError, listed, MODE_WORDS, withMode } from "./policy-table";

interface Check {
  check_id: string;
  title: string;
  action: string;
  node_fault: boolean;
}

export interface FaultsProps {
  draft: PolicySettings;
  base: PolicySettings;
  onChange: (draft: PolicySettings) => void;
  clusterId: string | null;
  /** what the server says is wrong with the lists */
  error: string | null;
}

interface Row {
  fault: string;
  title: string;
  action: string;
}

function rowsOf(checks: Check[], draft: PolicySettings, base: PolicySettings): Row[] {
  const titles = new Map(checks.map((one) => [one.check_id, one]));
  const acting = checks.filter((one) => one.node_fault && one.action !== "none");
  const named = [draft, base].flatMap((one) => [...one.automatic, ...one.confirm, ...one.warn]);
  const faults = [...new Set([...acting.map((one) => one.check_id), ...named])].sort();
  return faults.map((fault) => {
    const [check = "", code] = fault.split(/:(.*)/);
    const known = titles.get(check);
    return { fault, title: known ? `${known.title}${code ? `, code ${code}` : ""}` : fault, action: known?.action ?? "none" };
  });
}

function ModeSelect({ row, value, other, onChange }: { row: Row; value: PolicyMode | null; other: PolicyMode; onChange: (mode: PolicyMode | null) => void }) {
  const choices: Choice[] = [{ value: "", label: `As others: ${MODE_WORDS[other].toLowerCase()}` }, ...(Object.keys(MODE_WORDS) as PolicyMode[]).map((mode) => ({ value: mode, label: MODE_WORDS[mode] }))];
  return (
    <span class="sel">
      <select aria-label={`Mode of ${row.fault}`} value={value ?? ""} onChange={(event) => onChange((event.currentTarget.value || null) as PolicyMode | null)}>
        {choices.map((choice) => (
          <option key={choice.value} value={choice.value} selected={choice.value === (value ?? "")}>
            {choice.label}
          </option>
        ))}
      </select>
    </span>
  );
}

function rightOf(statistics: RepairStatistics | null, fault: string): string | null {
  const [check, code] = fault.split(/:(.*)/);
  const rules = (statistics?.by_rule ?? []).filter((one) => one.check_id === check && (!code || one.code === code));
  const total = rules.reduce((sum, one) => sum + one.repairs, 0);
  return total ? `${count(rules.reduce((sum, one) => sum + one.right, 0))} of ${count(total)}` : null;
}

function AddFault({ onAdd }: { onAdd: (fault: string) => void }) {
  const text = useSignal("");
  const error = useSignal<string | null>(null);
  const add = () => {
    const fault = text.value.trim();
    error.value = faultError(fault);
    if (!error.value) {
      onAdd(fault);
      text.value = "";
    }
  };
  return (
    <form
      class="addrow"
      onSubmit={(event) => {
        event.preventDefault();
        add();
      }}
    >
      <Field label="A code of a check" name="fault" value={text.value} onInput={(value) => (text.value = value)} placeholder="gpu_xid:119" error={error.value} help="It counts before the check's own row." />
      <Button type="submit">Add a row</Button>
    </form>
  );
}

function modeCell(props: FaultsProps, row: Row) {
  const { draft } = props;
  if (row.action === "remove") {
    return <span class="tag">Ask: never automatic</span>;
  }
  return <ModeSelect row={row} value={listed(draft, row.fault)} other={draft.mode} onChange={(mode) => props.onChange(withMode(draft, row.fault, mode))} />;
}

/** Why an automatic mode would not act after all, or what it was before. */
function noteOf(draft: PolicySettings, base: PolicySettings, row: Row): string {
  const mode = listed(draft, row.fault);
  const was = listed(base, row.fault);
  const notes = [
    mode !== was && `changed, was ${was ? MODE_WORDS[was].toLowerCase() : "as others"}`,
    (mode ?? draft.mode) === "automatic" && row.action !== "none" && row.action !== "remove" && !draft.actions.includes(row.action) && `${action(row.action)} may not start by itself: see below`,
  ];
  return notes.filter(Boolean).join("; ");
}

export function Faults(props: FaultsProps) {
  const { draft, base } = props;
  const checks = useQuery<{ items: Check[] }>("/checks");
  const statistics = useQuery<RepairStatistics>(props.clusterId ? `/clusters/${props.clusterId}/repair-statistics` : null).data.value;
  return (
    <Section title="What happens at a fault" hint="automatic acts without asking, within the limits below">
      <Loaded query={checks} what="The checks" rows={8}>
        {({ items }) => (
          <Table
            name="What happens at a fault"
            rows={rowsOf(items, draft, base)}
            rowKey={(row) => row.fault}
            rowClass={(row) => (listed(draft, row.fault) !== listed(base, row.fault) ? "on" : undefined)}
            columns={[
              { key: "fault", head: "Fault", class: "two", cell: (row) => <><b>{row.title}</b><span class="sub mono">{row.fault}</span></> },
              { key: "action", head: "Action", class: "two nw", cell: (row) => (row.action === "none" ? <Nothing /> : sentence(action(row.action))) },
              { key: "mode", head: "Mode", class: "two nw", cell: (row) => modeCell(props, row) },
              ...(statistics ? [{ key: "right", head: "Right", number: true, class: "two nw", cell: (row: Row) => rightOf(statistics, row.fault) ?? <Nothing>not tried</Nothing> }] : []),
              { key: "note", head: <span class="vh">Note</span>, class: "two t2 s12", cell: (row) => noteOf(draft, base, row) },
            ]}
          />
        )}
      </Loaded>
      {props.error && <p class="help c-unhealthy gap8">{props.error}</p>}
      <AddFault onAdd={(fault) => props.onChange(withMode(draft, fault, "automatic"))} />
    </Section>
  );
}
