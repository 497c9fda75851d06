/* What an incident is made of: what it follows from and what follows from it, its memory, its facts, and closing it. */
import type { ComponentChildren } from "preact";
import { useSignal } from "@preact/signals";
import { patch } from "../api";
import { action, count, counted, sentence } from "../format";
import { refresh, useQuery } from "../store";
import type { Incident, IncidentMember } from "../types";
import { Button, Field } from "../ui/controls";
import { Mark } from "../ui/marks";
import { Nothing, Time, type Fact } from "../ui/page";
import { ConsequenceList, type Consequence } from "../ui/records";
import { Note } from "../ui/states";
import { Table } from "../ui/table";
import { heldWords, isCommon, nodesOf, nth, repeatWords, REPEATS_OF_A_LEMON, sharedPart } from "./incident-words";
import { lacks } from "./repair-parts";
import { problemOf } from "./settings";
import { VerbForm } from "./verb-form";

export function renewIncident(incident: Incident): void {
  for (const prefix of ["/incidents", `/clusters/${incident.cluster_id}/`, ...(incident.node_id ? [`/nodes/${incident.node_id}`] : []), "/repairs", "/events"]) {
    refresh(prefix);
  }
}

export function incidentHref(id: string): string {
  return `/incidents/${id}`;
}

/** Why the root carries it: what they have in common. */
export function whyMember(root: Incident, member: IncidentMember): string {
  if (isCommon(root)) {
    return `behind ${sharedPart(root)}, within a minute`;
  }
  if (member.device && root.device && member.device === root.device) {
    return "same part, within ten minutes";
  }
  return member.device ? "same cause by another name of the part" : "of the whole node, after the fault";
}

function Other({ id, lead }: { id: string; lead: (other: Incident | null) => ComponentChildren }) {
  const other = useQuery<Incident>(`/incidents/${id}`, { events: (type) => type.startsWith("incident.") });
  return <>{lead(other.data.value)}</>;
}

/** What must be known before anything else about it. */
export function IncidentNotes({ incident }: { incident: Incident }) {
  const open = incident.closed_at === null;
  const again = repeatWords(incident);
  const nodes = nodesOf(incident);
  return (
    <>
      {incident.mode === "shadow" && (
        <Note tone="neutral" title="In shadow: recorded and shown, without effect.">
          <p class="t2">
            It changes no state and proposes no repair. <a href={`/settings/checks/${incident.check_id}`}>How this check is set</a> says why.
          </p>
        </Note>
      )}
      {isCommon(incident) && open && (
        <Note tone="warn" title={`${heldWords(incident)} while this is open.`}>
          <p class="t2">
            {nodes.length > 0 ? `${counted(nodes.length, "node")} share ${sharedPart(incident)}` : `They share ${sharedPart(incident)}`}: look at that part first. A person may still ask for a repair of one node. Closing it lets automatic repairs go on.
          </p>
        </Note>
      )}
      {incident.common_id && (
        <Other
          id={incident.common_id}
          lead={(common) => (
            <Note tone={common && common.closed_at === null ? "warn" : "neutral"} title={common ? `Part of incident ${common.no}: ${common.summary}.` : "Part of a cause that many nodes share."}>
              <p class="t2">
                {common?.closed_at ? "That cause is over." : "Repairs that start by themselves are held until that cause is closed."} <a href={incidentHref(incident.common_id ?? "")}>Look at the cause</a>
              </p>
            </Note>
          )}
        />
      )}
      {incident.root_id && (
        <Other
          id={incident.root_id}
          lead={(root) => (
            <Note tone="neutral" title={root ? `It follows from incident ${root.no}: ${root.summary}.` : "It follows from another incident of this node."}>
              <p class="t2">
                The root is what is repaired; this one ends with it or by its own rule. <a href={incidentHref(incident.root_id ?? "")}>Look at the root</a>
              </p>
            </Note>
          )}
        />
      )}
      {again && (
        <Note tone="warn" title={`${sentence(again)}.`}>
          <p class="t2">
            {incident.repeats >= REPEATS_OF_A_LEMON ? "What was repaired twice is not repaired by itself again: the part is to be removed by a person, whatever node it sits in." : `The ${nth(REPEATS_OF_A_LEMON)} time makes it a person's: the part is then to be removed.`}{" "}
            {incident.serial && <a href={`/serials?q=${encodeURIComponent(incident.serial)}`}>The past of {incident.serial}</a>}
          </p>
        </Note>
      )}
      {incident.action_reason && (
        <Note tone="neutral" title={`It asks for ${action(incident.action ?? "none")}, not for what the check says.`}>
          <p class="t2">{incident.action_reason}</p>
        </Note>
      )}
    </>
  );
}

/** What was folded into it, and why. */
export function Members({ incident }: { incident: Incident }) {
  const common = isCommon(incident);
  if (incident.members.length === 0) {
    return <p class="t3">{common ? "No node of it is open any more, or its nodes only fell silent." : "Nothing follows from it: it stands alone."}</p>;
  }
  const mark = (member: IncidentMember) => <Mark kind={member.state === "closed" ? "healthy" : member.severity === "critical" ? "unhealthy" : "warning"} label={member.state === "closed" ? "Closed" : "Open"} />;
  return (
    <>
      <Table
        name="What follows from it"
        class="desk"
        rows={incident.members}
        rowKey={(member) => member.id}
        columns={[
          { key: "no", head: "No.", class: "nw", cell: (member) => <span class="st">{mark(member)}<a href={incidentHref(member.id)}>{member.no}</a></span> },
          ...(common ? [{ key: "node", head: "Node", class: "nw", cell: (member: IncidentMember) => (member.node_id ? <a href={`/nodes/${member.node_id}`}>{member.node_name}</a> : <Nothing />) }] : []),
          { key: "check", head: "Check", class: "nw", cell: (member) => <span class="mono s12">{member.check_id}</span> },
          { key: "what", head: "What was found", class: "why", cell: (member) => member.summary },
          { key: "why", head: "Why it belongs here", class: "t2", cell: (member) => whyMember(incident, member) },
          { key: "count", head: "Times", number: true, cell: (member) => count(member.count) },
        ]}
      />
      <ul class="mobile mlist">
        {incident.members.map((member) => (
          <li key={member.id}>
            <a class="r" href={incidentHref(member.id)}>
              {mark(member)}
              <span>
                <b>{common ? member.node_name : member.check_id}</b> {member.summary}
              </span>
              <span class="t3 s12">{counted(member.count, "time")}</span>
              <span class="sub">{whyMember(incident, member)}</span>
            </a>
          </li>
        ))}
      </ul>
    </>
  );
}

/** Kept with the incident, for whoever looks next. */
function NoteOf({ incident }: { incident: Incident }) {
  const editing = useSignal(false);
  const text = useSignal(incident.note ?? "");
  const failed = useSignal<string | null>(null);
  const busy = useSignal(false);
  const save = async () => {
    busy.value = true;
    failed.value = null;
    try {
      await patch<Incident>(`/incidents/${incident.id}`, { note: text.value.trim() }, incident.version);
      editing.value = false;
    } catch (cause) {
      const problem = problemOf(cause);
      failed.value = problem.status === 412 ? "Somebody changed it meanwhile; it is read again. Save once more." : problem.field("note") ?? problem.detail;
    } finally {
      busy.value = false;
      renewIncident(incident);
    }
  };
  if (!editing.value) {
    return (
      <>
        {incident.note || <Nothing />}{" "}
        <Button
          small
          disabled={lacks("incident.write", "Writing a note")}
          showReason={false}
          label="Change the note"
          onClick={() => {
            text.value = incident.note ?? "";
            editing.value = true;
          }}
        >
          Change
        </Button>
      </>
    );
  }
  return (
    <form
      class="stack"
      onSubmit={(event) => {
        event.preventDefault();
        void save();
      }}
    >
      <Field label="Note" name="note" multiline value={text.value} onInput={(value) => (text.value = value)} placeholder="Vendor case 4711" error={failed.value} />
      <p class="row8">
        <Button small type="submit" kind="primary" busy={busy.value}>
          Save the note
        </Button>
        <Button small onClick={() => (editing.value = false)}>
          Leave it
        </Button>
      </p>
    </form>
  );
}

export function incidentFacts(incident: Incident): Fact[] {
  const common = isCommon(incident);
  return [
    ["Check", <a href={`/settings/checks/${incident.check_id}`} class="mono">{incident.check_id}</a>],
    common ? ["Shared", sharedPart(incident)] : incident.code ? ["Code", <span class="mono">{String(incident.code)}</span>] : null,
    incident.device ? ["Device", <span class="mono">{incident.device}</span>] : null,
    incident.serial ? ["Serial", <a class="mono brk" href={`/serials?q=${encodeURIComponent(incident.serial)}`}>{incident.serial}</a>] : null,
    ["Severity", `${incident.severity}${incident.node_fault ? ", a fault of the node" : ""}`],
    common ? null : ["Asks for", incident.action && incident.action !== "none" ? action(incident.action) : <Nothing>nothing</Nothing>],
    ["First seen", <Time iso={incident.first_at} form="moment" />],
    ["Last seen", <Time iso={incident.last_at} form="moment" />],
    ["Times", count(incident.count)],
    common ? null : ["Memory", incident.repeats > 1 ? (repeatWords(incident) ?? "") : "first time in 30 days"],
    incident.closed_at ? ["Closed", <><Time iso={incident.closed_at} form="moment" />{incident.closed_by ? ` by ${incident.closed_by}` : ""}{incident.close_reason ? `: ${incident.close_reason}` : ""}</>] : ["Clears", common ? "Clears when no incident or silent node of it is left." : incident.clear_rule],
    incident.repair_id ? ["Repair", <a href={`/repairs/${incident.repair_id}`}>open it</a>] : null,
    ["Note", <NoteOf incident={incident} />],
  ];
}

export function CloseForm({ incident, onClose }: { incident: Incident; onClose: () => void }) {
  const reason = useSignal("");
  const common = isCommon(incident);
  const name = incident.node_name ?? "the node";
  const state: Consequence = common
    ? { subject: "Repairs", weight: "warn", fact: "Repairs of its nodes may start by themselves again", detail: "Each node's own incident stays open until its own rule ends it" }
    : incident.mode === "shadow"
      ? { subject: "State", weight: "good", fact: "It is in shadow: no state changes" }
      : incident.node_fault
        ? { subject: "State", weight: "warn", fact: `${name} counts as healthy again, unless another fault is open` }
        : { subject: "State", weight: "good", fact: "The node's state does not change" };
  const next: Consequence = { subject: "Next time", weight: "good", fact: common ? "The same faults do not open it again; others of the same part do" : "The same fault opens a new incident when it is seen again" };
  return (
    <VerbForm<Incident>
      title={common ? `Close incident ${incident.no}` : `Close incident ${incident.no} of ${name}`}
      lead={incident.clears === "person" ? "Only a person can close it." : common ? "It closes by itself when nothing of it is open." : `It closes by itself: ${incident.clear_rule.charAt(0).toLowerCase()}${incident.clear_rule.slice(1)}`}
      path={`/incidents/${incident.id}/close`}
      body={() => ({ reason: reason.value.trim() })}
      verb={`Close incident ${incident.no}`}
      disabled={lacks("incident.write", "Closing") ?? (reason.value.trim() === "" ? "Say how you know that it is gone." : null)}
      binds="It stands in the history as closed by you."
      done={() => {
        renewIncident(incident);
        onClose();
      }}
      onClose={onClose}
      fields={["reason"]}
    >
      {(error) => (
        <>
          <p class="t2">{incident.summary}</p>
          <ConsequenceList label="What it touches" items={[state, next]} />
          <Field label="Reason" name="reason" multiline required value={reason.value} onInput={(value) => (reason.value = value)} placeholder={common ? "The PDU is on again" : "Cable reseated, counters still for 20 min"} error={error?.field("reason")} />
        </>
      )}
    </VerbForm>
  );
}
