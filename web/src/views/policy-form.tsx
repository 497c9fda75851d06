/* The rest of a policy: other faults, jobs, hours, what may start, two people, and the limits with their defaults. */
import { action, sentence } from "../format";
import type { PolicyNumber, PolicySettings } from "../repair-types";
import { CheckBox, Field, Options } from "../ui/controls";
import { Section } from "../ui/page";
import { amount, DECIDABLE, GROUPS, IDLE_ROWS, shownUnit, STARTABLE, type NumberGroup, type NumberRow } from "./policy-table";

export interface FormProps {
  draft: PolicySettings;
  base: PolicySettings;
  /** the default, as the server has it */
  defaults: PolicySettings;
  /** numbers as they were typed */
  typed: Partial<Record<PolicyNumber, string>>;
  /** a complaint about a field, by its name */
  errorOf: (name: string) => string | null;
  set: (change: Partial<PolicySettings>) => void;
  type: (row: NumberRow, text: string, factor: number) => void;
  windows: string;
  typeWindows: (text: string) => void;
}

function NumberField({ row, form }: { row: NumberRow; form: FormProps }) {
  const { factor, unit } = shownUnit(row, form.base[row.name]);
  const value = form.typed[row.name] ?? String(form.draft[row.name] / factor);
  const standard = form.defaults[row.name];
  const source = form.draft[row.name] === standard ? `Default ${amount(row, standard)}` : `Set here; default ${amount(row, standard)}`;
  return (
    <Field
      label={
        <>
          {row.label}
          {unit && <span class="t3 unit">{unit}</span>}
        </>
      }
      name={row.name}
      inputMode="decimal"
      value={value}
      onInput={(text) => form.type(row, text, factor)}
      help={`${source}. ${row.help}`}
      error={form.errorOf(row.name)}
    />
  );
}

function Group({ group, form }: { group: NumberGroup; form: FormProps }) {
  return (
    <Section title={group.title} hint={group.hint}>
      <div class="grid3">
        {group.rows.map((row) => (
          <NumberField key={row.name} row={row} form={form} />
        ))}
      </div>
    </Section>
  );
}

function Choices({ legend, names, chosen, onChange }: { legend: string; names: readonly string[]; chosen: readonly string[]; onChange: (chosen: string[]) => void }) {
  return (
    <fieldset class="choices">
      <legend class="lbl">{legend}</legend>
      {names.map((name) => (
        <CheckBox key={name} label={sentence(action(name))} checked={chosen.includes(name)} onChange={(on) => onChange(on ? [...names.filter((one) => chosen.includes(one) || one === name)] : chosen.filter((one) => one !== name))} />
      ))}
    </fieldset>
  );
}

export function PolicyForm(form: FormProps) {
  const { draft, set } = form;
  return (
    <>
      <Section title="Other faults" hint="those that no row above names">
        <Options
          legend="Mode"
          name="mode"
          value={draft.mode}
          onChange={(mode) => set({ mode: mode as PolicySettings["mode"] })}
          options={[
            { value: "confirm", label: "Ask", sub: "a person decides; the default" },
            { value: "automatic", label: "Automatic", sub: "they start by themselves, within the limits" },
            { value: "warn", label: "Warn only", sub: "they are told; no repair is proposed" },
          ]}
        />
      </Section>
      <Section title="Jobs on the node" hint="looked at again right before the act">
        <div class="cols half">
          <Options
            legend="When jobs outlast the wait"
            name="idle"
            value={draft.idle}
            onChange={(idle) => set({ idle: idle as PolicySettings["idle"] })}
            options={[
              { value: "never_interrupt", label: "Never interrupt", sub: "the repair ends and the node is given back; the default" },
              { value: "grace", label: "End them with a grace period", sub: "Slurm cancels, Kubernetes evicts" },
            ]}
          />
          <div class="stack">
            {IDLE_ROWS.filter((row) => row.name !== "grace_seconds" || draft.idle === "grace").map((row) => (
              <NumberField key={row.name} row={row} form={form} />
            ))}
          </div>
        </div>
      </Section>
      <Section title="Hours" hint="in which repairs start by themselves; people's approvals do not wait for them">
        <div class="cols half">
          <Field label="Windows" name="windows" multiline value={form.windows} onInput={form.typeWindows} placeholder={"mon-fri 22:00-06:00\nsat,sun 00:00-24:00"} help="One a line. None: always." error={form.errorOf("windows")} />
          <Field label="Time zone" name="time_zone" value={draft.time_zone} onInput={(time_zone) => set({ time_zone })} placeholder="Europe/Berlin" help="By its IANA name; default UTC." error={form.errorOf("time_zone")} />
        </div>
      </Section>
      <Section title="Who and what">
        <div class="cols half">
          <Choices legend="May start by itself" names={STARTABLE} chosen={draft.actions} onChange={(actions) => set({ actions })} />
          <Choices legend="Two people approve" names={DECIDABLE} chosen={draft.second_approver} onChange={(second_approver) => set({ second_approver })} />
        </div>
        <p class="s12 t3 gap8">A removal never starts by itself. Of two people, neither may be who asked for it.</p>
      </Section>
      {GROUPS.map((group) => (
        <Group key={group.title} group={group} form={form} />
      ))}
    </>
  );
}
