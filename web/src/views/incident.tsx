/* An incident by itself: what failed, what was folded into it and why, its evidence, its memory, how it ends. */
import type { ComponentChild } from "preact";
import { useEffect } from "preact/hooks";
import type { ViewProps } from "../app";
import { withQuery } from "../api";
import { counted } from "../format";
import { useQuery } from "../store";
import { parse } from "../time";
import type { Event, Incident, List, Overview } from "../types";
import { Button, CopyButton } from "../ui/controls";
import { Mark } from "../ui/marks";
import { FactList, PageSentence, Section, Time } from "../ui/page";
import { Evidence } from "../ui/records";
import { Shell } from "../ui/shell";
import { Loaded } from "../ui/states";
import { ClusterTabs } from "./cluster";
import { Changes } from "./happened";
import { CloseForm, incidentFacts, IncidentNotes, Members } from "./incident-parts";
import { incidentMark, isCommon, lasted, nodesOf, repeatWords, sharedPart } from "./incident-words";
import { MissingPage } from "./missing";
import { closeDialog, dialogNow, lacks, openDialog } from "./repair-parts";

function sentenceOf(incident: Incident): ComponentChild[] {
  const common = isCommon(incident);
  const nodes = nodesOf(incident);
  const open = incident.closed_at === null;
  return [
    <>
      <Mark kind={incidentMark(incident)} /> <b>Incident {incident.no}</b> {open ? "open for" : "over after"} <b>{lasted(incident)}</b>
    </>,
    common ? (
      <>
        <b>{counted(nodes.length || incident.count, "node")}</b> behind <b>{sharedPart(incident)}</b>
      </>
    ) : (
      <>
        <a href={`/clusters/${incident.cluster_id}/nodes/${incident.node_id}`}>{incident.node_name}</a>: {incident.summary}
      </>
    ),
    incident.mode === "shadow" ? <b>in shadow</b> : repeatWords(incident),
  ];
}

function asText(incident: Incident): string {
  return incident.evidence.map((line) => `${line.at} ${line.source} ${line.text}`).join("\n");
}

function Events({ incident }: { incident: Incident }) {
  const since = new Date((parse(incident.first_at) ?? 0) - 60_000).toISOString().slice(0, 19) + "Z";
  const events = useQuery<List<Event>>(withQuery("/events", { cluster_id: incident.cluster_id, node_id: incident.node_id, since, limit: 200 }), { events: (_, event) => event.cluster_id === incident.cluster_id });
  const members = new Set([incident.id, ...incident.members.map((one) => one.id)]);
  return (
    <Section title="What happened" hint="events of it and of what follows from it, newest first">
      <Loaded query={events} what="The events of this incident" rows={3}>
        {(list) => {
          const mine = list.items.filter((event) => event.incident_id !== null && members.has(event.incident_id));
          return mine.length > 0 ? <Changes events={mine} rows={20} {...(incident.node_name ? { of: incident.node_name } : {})} /> : <p class="t3">{list.next_cursor ? "Not among the newest 200 events of this node." : "No event is left of it."}</p>;
        }}
      </Loaded>
    </Section>
  );
}

function Body({ incident }: { incident: Incident }) {
  const common = isCommon(incident);
  return (
    <div class="cols aside">
      <div>
        <div class="sec stack">
          <IncidentNotes incident={incident} />
        </div>
        {!common && (
          <Section
            title="Evidence"
            hint={`${counted(incident.evidence.length, "line")}; tinted: what opened it`}
            end={
              incident.evidence.length > 0 && (
                <CopyButton small kind="quiet" text={() => asText(incident)}>
                  Copy as text
                </CopyButton>
              )
            }
          >
            {incident.evidence.length > 0 ? <Evidence lines={incident.evidence} label="Evidence lines" /> : <p class="t3">No line was kept.</p>}
          </Section>
        )}
        <Section title={common ? "Its nodes" : "What follows from it"} hint={incident.members.length > 0 ? counted(incident.members.length, "incident") : ""}>
          <Members incident={incident} />
        </Section>
        <Events incident={incident} />
      </div>
      <div>
        <Section title="Incident" hint={<>last seen <Time iso={incident.last_at} form="ago" /></>}>
          <FactList wide facts={[["Node", incident.node_id ? <a href={`/clusters/${incident.cluster_id}/nodes/${incident.node_id}`}>{incident.node_name}</a> : `${counted(nodesOf(incident).length || incident.count, "node")}`], ...incidentFacts(incident)]} />
        </Section>
      </div>
    </div>
  );
}

export function IncidentPage({ params }: ViewProps) {
  const id = params.incident ?? "";
  const live = useQuery<Incident>(`/incidents/${id}`, { events: (type) => type.startsWith("incident.") });
  const incident = live.data.value;
  const overview = useQuery<Overview>(incident ? `/clusters/${incident.cluster_id}/overview` : null, { everyMs: 60_000 });
  const cluster = overview.data.value?.cluster.name;
  useEffect(() => {
    document.title = `${incident ? `Incident ${incident.no}` : "Incident"} · Muster`;
  }, [incident?.no]);
  if (live.error.value?.status === 404 || live.error.value?.status === 400) {
    return <MissingPage />;
  }
  return (
    <Shell scope={incident ? { clusterId: incident.cluster_id, ...(cluster ? { clusterName: cluster } : {}) } : {}}>
      <PageSentence
        parts={incident ? sentenceOf(incident) : ["Incident"]}
        announce={incident ? `Incident ${incident.no} ${incident.state}` : ""}
        actions={
          incident?.state === "open" && (
            <Button disabled={lacks("incident.write", "Closing")} showReason={false} onClick={() => openDialog("close")}>
              Close incident {incident.no}…
            </Button>
          )
        }
      />
      {incident && <ClusterTabs clusterId={incident.cluster_id} overview={overview.data.value} current="checks" />}
      <div class={incident ? undefined : "sec"}>
        <Loaded query={live} what="This incident" rows={8}>
          {(one) => <Body incident={one} />}
        </Loaded>
      </div>
      {incident && dialogNow().name === "close" && <CloseForm incident={incident} onClose={closeDialog} />}
    </Shell>
  );
}
