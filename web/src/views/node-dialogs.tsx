/* What a person can do to a node: cordon it, ask for a repair, report what no check sees, close an incident. */
import { useSignal } from "@preact/signals";
import { patch, post, type ApiError } from "../api";
import { action, percent } from "../format";
import { refresh, useQuery, type Query } from "../store";
import { moment, serverNow } from "../time";
import type { Incident, NodeDetail, NodeSummary, Repair } from "../types";
import { Button, CheckBox, Field, Options, SelectField, type Choice, type Option } from "../ui/controls";
import { Block, Dialog, Split } from "../ui/dialog";
import { FactList } from "../ui/page";
import { ConsequenceList, Evidence, type Consequence } from "../ui/records";
import { ErrorNote, Note, Skeleton } from "../ui/states";
import { touchedItems, useKey, useOpenBreakers } from "./approve";
import { CloseForm, incidentFacts, incidentHref, IncidentNotes, Members } from "./incident-parts";
import { ACTIONS, usePreview, type Previewed } from "./override";
import { closeDialog, dialogNow, lacks, openDialog } from "./repair-parts";
import { problemOf } from "./settings";
import { VerbForm } from "./verb-form";

interface Part {
  node: NodeDetail;
  onClose: () => void;
}

function renew(node: NodeDetail): void {
  for (const prefix of [`/nodes/${node.id}`, `/clusters/${node.cluster_id}/`, "/incidents", "/repairs", "/events"]) {
    refresh(prefix);
  }
}

function useNow(node: NodeDetail): string {
  if (node.gpus.length === 0) {
    return `Its CPUs are ${percent(node.cpu_ratio)} busy now.`;
  }
  return node.gpu_util_ratio === null ? "Its use cannot be read now." : `Its GPUs are ${percent(node.gpu_util_ratio)} busy now.`;
}

function CordonForm({ node, onClose }: Part) {
  const comment = useSignal("");
  const cordon = node.schedulable;
  const open = node.incidents.filter((one) => one.node_fault).length;
  const items: Consequence[] = cordon
    ? [
        { subject: "New work", weight: "warn", fact: "It takes no new work until somebody uncordons it" },
        { subject: "Running work", weight: "good", fact: "Nothing that runs there is touched", detail: useNow(node) },
      ]
    : [{ subject: "New work", weight: open ? "warn" : "good", fact: open ? "It takes new work although a fault is open" : "It takes new work again", ...(open ? { detail: node.incidents.map((one) => one.summary).join("; ") } : {}) }];
  return (
    <VerbForm<NodeSummary>
      title={`${cordon ? "Cordon" : "Uncordon"} ${node.name}`}
      lead={cordon ? "For work on the node, or while you look." : "The node is put back into scheduling."}
      path={`/nodes/${node.id}/${cordon ? "cordon" : "uncordon"}`}
      body={() => (comment.value.trim() ? { comment: comment.value.trim() } : {})}
      verb={`${cordon ? "Cordon" : "Uncordon"} ${node.name}`}
      disabled={lacks("node.write", cordon ? "Cordoning" : "Uncordoning")}
      binds="It takes effect at once and can be undone at any time."
      done={() => {
        renew(node);
        onClose();
      }}
      onClose={onClose}
      fields={["comment"]}
    >
      {(error) => (
        <>
          <ConsequenceList label="What it touches" items={items} />
          <Field label="Comment" name="comment" multiline value={comment.value} onInput={(value) => (comment.value = value)} placeholder="Why; others see it in the events" error={error?.field("comment")} />
        </>
      )}
    </VerbForm>
  );
}

const LENGTHS: Choice[] = [
  { value: "1", label: "1 hour" },
  { value: "4", label: "4 hours" },
  { value: "8", label: "8 hours" },
  { value: "24", label: "1 day" },
  { value: "72", label: "3 days" },
  { value: "168", label: "1 week" },
];
const HOUR_MS = 3_600_000;

/** For work on a node: faults are recorded, nothing is proposed, and it ends by itself. */
function MaintenanceForm({ node, onClose }: Part) {
  const hours = useSignal("4");
  const ends = node.state === "paused";
  const until = new Date(Math.ceil((serverNow() + Number(hours.value) * HOUR_MS) / 60_000) * 60_000);
  const open = node.incidents.filter((one) => one.node_fault && one.mode !== "shadow").length;
  const items: Consequence[] = ends
    ? [{ subject: "State", weight: open ? "warn" : "good", fact: open ? "A fault is open: it becomes unhealthy and a repair may be proposed" : "It returns to the state that its checks say" }]
    : [
        { subject: "Faults", weight: "good", fact: "They are recorded and shown; no repair is proposed for them" },
        { subject: "New work", weight: "warn", fact: node.schedulable ? "The scheduler may still give it work: cordon it besides, to keep work away" : "It takes none: it is cordoned" },
        { subject: "End", weight: "good", fact: `By itself at ${moment(until.getTime())}; the state before returns` },
      ];
  return (
    <VerbForm<NodeDetail>
      title={ends ? `End the maintenance of ${node.name}` : `Put ${node.name} in maintenance`}
      lead={ends ? `It would end by itself${node.paused_until ? ` at ${moment(Date.parse(node.paused_until))}` : ""}.` : "For work on the machine, so that nobody repairs what you take apart."}
      path=""
      send={async () => {
        await patch(`/nodes/${node.id}`, { paused_until: ends ? null : until.toISOString().replace(".000", "") }, node.version);
        return true;
      }}
      verb={ends ? "End the maintenance" : "Begin the maintenance"}
      disabled={lacks("node.write", "Changing nodes")}
      binds={ends ? "It takes effect at once." : "It can be ended before at any time."}
      done={() => {
        renew(node);
        onClose();
      }}
      onClose={onClose}
      fields={["paused_until"]}
    >
      {(error) => (
        <>
          {!ends && <SelectField label="For how long" name="paused_until" choices={LENGTHS} value={hours.value} onChange={(value) => (hours.value = value)} help={error?.field("paused_until") ?? ""} />}
          <ConsequenceList label="What it touches" items={items} />
        </>
      )}
    </VerbForm>
  );
}

function PreviewOf({ node, wanted, preview }: { node: NodeDetail; wanted: string; preview: Previewed }) {
  const open = useOpenBreakers(node.cluster_id, node.id);
  const shown = preview.plan.value;
  if (preview.error.value) {
    return <ErrorNote error={preview.error.value} what={`The plan of ${action(wanted)}`} stillWorks="Nothing was asked for." />;
  }
  if (!shown) {
    return <Skeleton rows={5} label="the plan" />;
  }
  return (
    <>
      <ConsequenceList label="What it touches" items={touchedItems(shown.plan, node, null, open)} />
      {shown.plan.how === null ? <p class="s12 c-warning gap8">Nothing here can carry out {action(wanted)}: it would have to be done by hand.</p> : <p class="s12 t3 gap8">{shown.plan.how}</p>}
    </>
  );
}

function RequestForm({ node, onClose }: Part) {
  const asked = node.incidents.find((one) => one.action && one.action !== "none")?.action ?? "reboot";
  const chosen = useSignal(ACTIONS.some((one) => one.value === asked) ? asked : "reboot");
  const reason = useSignal("");
  const busy = useSignal(false);
  const error = useSignal<ApiError | null>(null);
  const preview = usePreview(node.id, chosen.value);
  const open = node.repair;
  const options = node.gpus.length === 0 ? ACTIONS.filter((one) => one.value !== "reset_gpu") : ACTIONS;
  const lack =
    lacks("repair.request", "Requesting a repair") ??
    (open ? `Repair ${open.no} of this node is still open (${open.state}). Decide or cancel it first.` : preview.error.value ? `${preview.error.value.title}.` : reason.value.trim() === "" ? "Say why first." : null);
  const key = useKey();
  const send = async () => {
    busy.value = true;
    error.value = null;
    try {
      const body = { action: chosen.value, reason: reason.value.trim() };
      const repair = await post<Repair>(`/nodes/${node.id}/repairs`, body, { idempotencyKey: key(body) });
      renew(node);
      openDialog("approve", { repair: repair.id });
    } catch (cause) {
      error.value = problemOf(cause);
    } finally {
      busy.value = false;
    }
  };
  return (
    <Dialog
      title={`Request a repair of ${node.name}`}
      lead="Nothing is done yet: the repair is proposed, and somebody who may decide sees this plan first."
      onClose={onClose}
      binds={lack ? <b>{lack}</b> : "It is proposed with this plan; you or another person decides on it next."}
      buttons={
        <>
          <Button onClick={onClose}>Close</Button>
          <Button kind="primary" busy={busy.value} disabled={lack} showReason={false} onClick={() => void send()}>
            Request {action(chosen.value)}
          </Button>
        </>
      }
    >
      <Split
        facts={
          <Block title="What it touches" hint={`of ${action(chosen.value)}, not proposed yet`}>
            <PreviewOf node={node} wanted={chosen.value} preview={preview} />
          </Block>
        }
        decision={
          <>
            <div class="blk">
              <Options
                legend="Action"
                name="action"
                value={chosen.value}
                onChange={(value) => (chosen.value = value)}
                options={options.map((one) => (one.value === asked && node.incidents.length > 0 ? { ...one, sub: `${one.sub}; what the open incident asks for` } : one))}
              />
            </div>
            <div class="blk">
              <Field label="Why" name="reason" multiline required value={reason.value} onInput={(value) => (reason.value = value)} placeholder="What you saw; the approver reads it first" error={error.value?.field("reason")} />
            </div>
            {error.value && (
              <div class="blk">
                <Note tone="bad" alert title={error.value.status === 0 || error.value.status >= 500 ? "It is not known whether this arrived." : `${error.value.title}.`}>
                  <p class="t2">{error.value.detail}</p>
                </Note>
              </div>
            )}
          </>
        }
      />
    </Dialog>
  );
}

const SEVERITIES: readonly Option[] = [
  { value: "info", label: "Info", sub: "worth knowing; no mark on the node" },
  { value: "warning", label: "Warning", sub: "the node gets the warning mark and goes on working" },
  { value: "critical", label: "Critical", sub: "something is broken" },
];

function ReportForm({ node, onClose }: Part) {
  const summary = useSignal("");
  const severity = useSignal("warning");
  const fault = useSignal(false);
  const device = useSignal("");
  const devices = [{ value: "", label: "The node as a whole" }, ...node.gpus.map((gpu) => ({ value: gpu.pci ?? `gpu${gpu.index}`, label: `GPU ${gpu.index}${gpu.serial ? `, ${gpu.serial}` : ""}` }))];
  return (
    <VerbForm<Incident>
      title={`Report a problem of ${node.name}`}
      lead="For what no check sees: a smell, a noise, a cable. It becomes an incident that only a person closes."
      path={`/nodes/${node.id}/incidents`}
      body={() => ({ summary: summary.value.trim(), severity: severity.value, node_fault: fault.value, ...(device.value ? { device: device.value } : {}) })}
      verb="Report the problem"
      disabled={lacks("incident.write", "Reporting") ?? (summary.value.trim() === "" ? "Say what is wrong first." : null)}
      binds={fault.value ? "The node becomes unhealthy until the incident is closed." : "The node's state does not change."}
      done={() => {
        renew(node);
        onClose();
      }}
      onClose={onClose}
      fields={["summary"]}
    >
      {(error) => (
        <>
          <Field label="What is wrong" name="summary" required value={summary.value} onInput={(value) => (summary.value = value)} placeholder="Fan 3 rattles since the PDU swap" error={error?.field("summary")} />
          {devices.length > 1 && <SelectField label="Where" name="device" choices={devices} value={device.value} onChange={(value) => (device.value = value)} />}
          <Options legend="How bad" name="severity" options={SEVERITIES} value={severity.value} onChange={(value) => (severity.value = value)} />
          <CheckBox label="The node must not be used: make it unhealthy" checked={fault.value} onChange={(checked) => (fault.value = checked)} />
        </>
      )}
    </VerbForm>
  );
}

function IncidentDialog({ node, incident, onClose }: Part & { incident: Incident }) {
  return (
    <Dialog
      title={`Incident ${incident.no}: ${incident.summary}`}
      lead={incident.state === "open" ? `Open on ${node.name}` : `Closed, on ${node.name}`}
      onClose={onClose}
      narrow
      binds={<a href={incidentHref(incident.id)}>Open it as a page</a>}
      buttons={
        <>
          {incident.state === "open" && (
            <Button disabled={lacks("incident.write", "Closing")} onClick={() => openDialog("close", { incident: incident.id })}>
              Close incident {incident.no}…
            </Button>
          )}
          <Button kind="primary" onClick={onClose}>
            Close
          </Button>
        </>
      }
    >
      <div class="pad stack">
        <IncidentNotes incident={incident} />
        {incident.evidence.length ? <Evidence lines={incident.evidence} label="Evidence lines" /> : <p class="t3">No line was kept.</p>}
        {incident.members.length > 0 && <Members incident={incident} />}
        <FactList wide facts={incidentFacts(incident)} />
      </div>
    </Dialog>
  );
}

function WithIncident({ node, id, close, onClose }: Part & { id: string; close: boolean }) {
  const live = useQuery<Incident>(`/incidents/${id}`, { events: (type, event) => type.startsWith("incident.") && event.node_id === node.id });
  const incident = live.data.value;
  if (!incident) {
    return (
      <Dialog title="Incident" onClose={onClose} narrow buttons={<Button onClick={onClose}>Close</Button>}>
        <div class="pad">{live.error.value ? <ErrorNote error={live.error.value} what="This incident" query={live as Query<unknown>} /> : <Skeleton rows={4} label="the incident" />}</div>
      </Dialog>
    );
  }
  return close ? <CloseForm incident={incident} onClose={onClose} /> : <IncidentDialog node={node} incident={incident} onClose={onClose} />;
}

/** The dialog that the address names, if it is one of a node. */
export function NodeDialogs({ node }: { node: NodeDetail }) {
  const { name, incident } = dialogNow();
  const part = { node, onClose: closeDialog };
  switch (name) {
    case "cordon":
      return <CordonForm {...part} />;
    case "maintenance":
      return <MaintenanceForm {...part} />;
    case "request":
      return <RequestForm {...part} />;
    case "report":
      return <ReportForm {...part} />;
    case "close":
    case "incident":
      return incident ? <WithIncident key={`${name} ${incident}`} {...part} id={incident} close={name === "close"} /> : null;
    default:
      return null;
  }
}

