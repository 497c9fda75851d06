/* A node: its state and why, what happened to it, what is recommended, its facts, GPUs and past. */
import type { ComponentChild, ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { useSignal } from "@preact/signals";
import type { ViewProps } from "../app";
import { ApiError, patch, withQuery } from "../api";
import { action, count, counted, mebibytes, mebibytesOf, megabits, percent, sentence } from "../format";
import { bindKeys } from "../keys";
import { navigate, query as address } from "../router";
import { useQuery } from "../store";
import { moment, now, parse, span, utc } from "../time";
import type { CheckList } from "../detection-types";
import type { PolicyEffective } from "../repair-types";
import type { Cluster, Event, Incident, List, NodeDetail, Overview, Repair } from "../types";
import { Button, CopyButton } from "../ui/controls";
import { Icon } from "../ui/icons";
import { Mark, markKind, STATE_WORD } from "../ui/marks";
import { Menu } from "../ui/menu";
import { FactList, Nothing, PageSentence, Section, Time, type Fact } from "../ui/page";
import { Evidence } from "../ui/records";
import { Shell } from "../ui/shell";
import { Loaded } from "../ui/states";
import { Table } from "../ui/table";
import { ClusterTabs } from "./cluster";
import { Changes } from "./happened";
import { incidentHref } from "./incident-parts";
import { askGuard, holding, stops, useGuard } from "./guard-words";
import { MissingPage } from "./missing";
import { End, incidentMark, lasted, repeatWords } from "./incident-words";
import { NodeDialogs } from "./node-dialogs";
import { NodeGpus } from "./node-gpus";
import { SchedulerSection } from "./node-scheduler";
import { NodeTimeline } from "./node-timeline";
import { usePaged } from "./paged";
import { RepairDialogs } from "./repair-dialogs";
import { automationWords, REACH_WORDS } from "./repair-limits";
import { lacks, openDialog, RepairSteps } from "./repair-parts";
import { CANCELLABLE, decidedBy, outcome, record, RUNNING, why } from "./repair-words";

function sentenceOf(node: NodeDetail): ComponentChild[] {
  const kind = markKind(node.state, node.warning);
  const since = parse(node.state_since);
  const use = node.gpus.length > 0 ? (node.gpu_util_ratio === null ? "use not known" : `${percent(node.gpu_util_ratio)} GPU busy`) : node.cpu_ratio === null ? "use not known" : `${percent(node.cpu_ratio)} CPU busy`;
  return [
    <>
      <Mark kind={kind} /> <b>{node.name}</b> {STATE_WORD[node.state].toLowerCase()}
      {since !== null && (
        <>
          {" "}
          for <b>{span(now.value - since)}</b>
        </>
      )}
    </>,
    node.reason?.replace(/\.$/, "") || (node.state === "healthy" ? use : "no reason given"),
    !node.schedulable && node.state !== "paused" && node.state !== "repairing" && <b>takes no new work</b>,
  ];
}

function eventsHref(node: NodeDetail): string {
  return withQuery(`/clusters/${node.cluster_id}/events`, { q: `node:${node.name}` });
}

function Actions({ node }: { node: NodeDetail }) {
  const write = lacks("node.write", "Changing nodes");
  return (
    <>
      <Button disabled={write} showReason={false} onClick={() => openDialog("cordon")}>
        {node.schedulable ? "Cordon…" : "Uncordon…"}
      </Button>
      {node.state === "paused" && (
        <Button disabled={write} showReason={false} onClick={() => openDialog("maintenance")}>
          End maintenance…
        </Button>
      )}
      <Button disabled={lacks("repair.request", "Requesting a repair")} showReason={false} onClick={() => openDialog("request")}>
        Request a repair…
      </Button>
      {node.ssh_command && <CopyButton text={node.ssh_command}>Copy SSH command</CopyButton>}
      <Menu class="btn icon" end label="More actions" button={<Icon name="more" />}>
        {(close) => (
          <ul aria-label="More actions">
            {node.state !== "paused" && (
              <li>
                <button
                  type="button"
                  aria-disabled={write ? true : undefined}
                  onClick={() => {
                    if (!write) {
                      close();
                      openDialog("maintenance");
                    }
                  }}
                >
                  Maintenance…
                </button>
              </li>
            )}
            <li>
              <button
                type="button"
                aria-disabled={lacks("incident.write", "Reporting") ? true : undefined}
                onClick={() => {
                  if (!lacks("incident.write", "Reporting")) {
                    close();
                    openDialog("report");
                  }
                }}
              >
                Report a problem…
              </button>
            </li>
            <li>
              <a href={eventsHref(node)} onClick={close}>
                All events of this node
              </a>
            </li>
            <li>
              <a href={`/nodes/${node.id}/machine`} onClick={close}>
                Past of this machine
              </a>
            </li>
            <li>
              <a href="/serials" onClick={close}>
                Find a serial…
              </a>
            </li>
          </ul>
        )}
      </Menu>
    </>
  );
}

function asText(incident: Incident): string {
  return incident.evidence.map((line) => `${line.at} ${line.source} ${line.text}`).join("\n");
}

function OneEvidence({ incident, several }: { incident: Incident; several: boolean }) {
  const name = `incident ${incident.no}, check ${incident.check_id}, ${counted(incident.evidence.length, "line")}`;
  const again = repeatWords(incident);
  return (
    <div class={several ? "evgroup" : undefined}>
      {several && (
        <p class="evhead">
          <b>{incident.summary}</b> <span class="hint">{name}</span>
        </p>
      )}
      {incident.evidence.length > 0 ? <Evidence lines={incident.evidence} label={`Evidence of ${name}`} /> : <p class="t3 s12">No line was kept.</p>}
      <div class="evfoot">
        <span>
          {incident.mode === "shadow" && <b>In shadow: without effect. </b>}
          {again && <b>{sentence(again)}. </b>}
          {incident.members.length > 0 && `${counted(incident.members.length, "other incident")} ${incident.members.length === 1 ? "follows" : "follow"} from it. `}
          {incident.common_id && (
            <>
              <a href={incidentHref(incident.common_id)}>Part of a cause that many nodes share</a>: automatic repair is held.{" "}
            </>
          )}
          {incident.clear_rule}{" "}
          {incident.count > 1 && (
            <>
              Seen {count(incident.count)} times, last <Time iso={incident.last_at} form="ago" />.{" "}
            </>
          )}
          {incident.note && `Note: ${incident.note}`}
        </span>
        {incident.evidence.length > 0 && (
          <CopyButton small kind="quiet" text={() => asText(incident)}>
            Copy as text
          </CopyButton>
        )}
        <a class="btn sm quiet" href={incidentHref(incident.id)} aria-label={`Open incident ${incident.no}`}>
          Open
        </a>
        <Button small disabled={lacks("incident.write", "Closing")} showReason={false} label={`Close incident ${incident.no}…`} onClick={() => openDialog("close", { incident: incident.id })}>
          Close incident…
        </Button>
      </div>
    </div>
  );
}

const SHOWN = 3;

/** What has an effect first, then roots, node faults and weight: what matters most stands on top. */
function NodeEvidence({ node }: { node: NodeDetail }) {
  const all = useSignal(false);
  const open = [...node.incidents].sort((a, b) => Number(a.mode === "shadow") - Number(b.mode === "shadow") || Number(a.root_id !== null) - Number(b.root_id !== null) || Number(b.node_fault) - Number(a.node_fault) || Number(b.severity === "critical") - Number(a.severity === "critical") || a.no - b.no);
  const first = open[0];
  if (!first) {
    return null;
  }
  const shown = all.value ? open : open.slice(0, SHOWN);
  return (
    <Section title="Evidence" hint={open.length === 1 ? `incident ${first.no}, check ${first.check_id}, ${counted(first.evidence.length, "line")}` : counted(open.length, "open incident")}>
      {shown.map((incident) => (
        <OneEvidence key={incident.id} incident={incident} several={open.length > 1} />
      ))}
      {open.length > SHOWN && !all.value && (
        <Button small onClick={() => (all.value = true)}>
          Show {count(open.length - SHOWN)} more
        </Button>
      )}
    </Section>
  );
}

function Recommendation({ node }: { node: NodeDetail }) {
  const id = node.repair?.id ?? null;
  const live = useQuery<Repair>(id ? `/repairs/${id}` : null, { events: (_, event) => event.repair_id === id });
  const asks = node.incidents.find((one) => one.action && one.action !== "none" && one.node_fault && one.mode !== "shadow");
  if (!id) {
    return asks ? (
      <Section title={`The check asks for: ${action(asks.action ?? "")}`}>
        <p class="t2">{asks.summary}. {asks.common_id ? "Nothing is proposed while the cause that it shares with other nodes is open." : node.state === "paused" ? "Nothing is proposed in maintenance." : "No repair is proposed now: one may have been rejected or have failed lately, or the node is silent."}</p>
      </Section>
    ) : null;
  }
  const name = node.repair ? sentence(action(node.repair.action)) : "";
  const running = node.repair && (RUNNING as readonly string[]).includes(node.repair.state);
  const heading = running ? `${name} is running` : node.repair?.state === "unknown" ? `${name}: outcome not known` : `Recommended: ${action(node.repair?.action ?? "")}`;
  return (
    <Section title={heading} end={<a href={`/repairs/${id}`}>Repair {node.repair?.no}</a>} class="aside1">
      <Loaded query={live} what="The repair" rows={3}>
        {(repair) => <OpenRepair repair={repair} />}
      </Loaded>
    </Section>
  );
}

function OpenRepair({ repair }: { repair: Repair }) {
  const plan = repair.plan;
  if (repair.state === "proposed") {
    const told = plan && record(plan);
    return (
      <>
        <p class="t2">
          {why(repair)}
          {/[.!?]$/.test(why(repair)) ? "" : "."} {plan?.loses ?? ""}
        </p>
        <p class="s12 t3 gap8">
          {told ? `${sentence(told)}. ` : ""}Waits for approval for {span(now.value - (parse(repair.created_at) ?? 0))}
          {plan ? `; begins within ${span(plan.policy.begin_within_seconds * 1000)} of it` : ""}.
        </p>
        {repair.blocked && <p class="s12 c-warning gap8">{repair.blocked}</p>}
        <p class="gap12">
          <Button kind="primary" onClick={() => openDialog("approve", { repair: repair.id })}>
            Review {action(repair.action)}…
          </Button>
        </p>
      </>
    );
  }
  if (repair.state === "unknown") {
    return (
      <>
        <p class="t2">{outcome(repair)}</p>
        <p class="gap12">
          <Button kind="primary" onClick={() => openDialog("settle", { repair: repair.id })}>
            Settle it…
          </Button>
        </p>
      </>
    );
  }
  return (
    <>
      <p class="t2 gap4">
        {why(repair)}. {repair.decided_by ? `Approved by ${decidedBy(repair)}.` : ""}
      </p>
      <div class="upright gap8">
        <RepairSteps repair={repair} />
      </div>
      {CANCELLABLE.includes(repair.state) && (
        <p class="gap12">
          <Button onClick={() => openDialog("cancel", { repair: repair.id })}>Cancel…</Button>
        </p>
      )}
    </>
  );
}

/** On, or off for this node; a person's change against the version that is shown. */
function AutoRepair({ node, onDone }: { node: NodeDetail; onDone: (node: NodeDetail) => void }) {
  const failed = useSignal<string | null>(null);
  const busy = useSignal(false);
  const turn = async () => {
    busy.value = true;
    failed.value = null;
    try {
      onDone(await patch<NodeDetail>(`/nodes/${node.id}`, { auto_repair: !node.auto_repair }, node.version));
    } catch (cause) {
      failed.value = cause instanceof ApiError && cause.status === 412 ? "Somebody changed the node meanwhile; it is read again. Press once more." : cause instanceof Error ? cause.message : String(cause);
      onDone(node);
    } finally {
      busy.value = false;
    }
  };
  return (
    <>
      {node.auto_repair ? "on for this node" : "off for this node"}{" "}
      <Button small busy={busy.value} disabled={lacks("node.write", "Changing nodes")} showReason={false} label={`Turn ${node.auto_repair ? "off" : "on"} auto-repair`} onClick={() => void turn()}>
        Turn {node.auto_repair ? "off" : "on"}
      </Button>
      <span class="vh" role="status">
        {failed.value === null ? "" : "Not changed"}
      </span>
      {failed.value && <span class="sub c-unhealthy">{failed.value}</span>}
    </>
  );
}

/** Stops that hold the node's repairs, whoever set them and at whatever reach, and its own stop. */
function NodeStops({ node }: { node: NodeDetail }) {
  const held = holding(stops(useGuard().data.value), node.cluster_id, node.id);
  const own = held.find((one) => one.reach === "node");
  const place = { reach: "node", id: node.id } as const;
  return (
    <>
      {held.length === 0 ? "may start" : <b>stopped by {held.map((one) => (one.reach === "node" ? one.by : `a stop of ${one.name}`)).join(", ")}</b>}{" "}
      <Button small label={own ? "Allow repairs of this node…" : "Stop repairs of this node…"} onClick={() => askGuard(own ? "allow" : "stop", place)}>
        {own ? "Allow…" : "Stop…"}
      </Button>
      {own?.why && <span class="sub">“{own.why}”</span>}
    </>
  );
}

function NodePolicy({ node }: { node: NodeDetail }) {
  const effective = useQuery<PolicyEffective>(`/nodes/${node.id}/policy`, { everyMs: 60_000 }).data.value;
  if (!effective) {
    return <Nothing>not read</Nothing>;
  }
  const own = effective.reach === "node";
  return (
    <>
      {automationWords(effective.settings)}
      <span class="sub">
        {effective.policy_id ? <a href={`/settings/policies/${effective.policy_id}`}>{REACH_WORDS[effective.reach]} {effective.version}</a> : REACH_WORDS[effective.reach]}
        {!own && (
          <>
            {"; "}
            <a href={`/settings/policies/new?node=${node.id}`}>write one for this node</a>
          </>
        )}
      </span>
    </>
  );
}

function differs(value: string | null, wanted: string | null | undefined): ComponentChildren {
  if (!value) {
    return <Nothing>not known</Nothing>;
  }
  if (!wanted) {
    return value;
  }
  return value === wanted ? (
    <>
      {value}
      <span class="t3">, as cluster</span>
    </>
  ) : (
    <>
      {value} <span class="drift">cluster wants {wanted}</span>
    </>
  );
}

function Collectors({ node }: { node: NodeDetail }) {
  if (node.collectors.length === 0) {
    return <Nothing>none has reported yet</Nothing>;
  }
  const works = node.collectors.filter((one) => one.state === "ok");
  const others = node.collectors.filter((one) => one.state !== "ok");
  return (
    <>
      {works.length > 0 ? `${counted(works.length, "works", "work")}: ${works.map((one) => one.name).join(", ")}` : "none works"}
      {others.map((one) => (
        <span class="sub" key={one.name}>
          <span class={one.state === "unknown" ? "c-warning" : undefined}>
            {one.name} {one.state}
          </span>
          {one.reason ? `: ${one.reason}` : ""}
        </span>
      ))}
    </>
  );
}

/** Until when, by whom, and that it ends by itself. */
function Maintenance({ node }: { node: NodeDetail }) {
  return (
    <>
      in maintenance
      {node.paused_until && (
        <>
          {" "}
          until <Time iso={node.paused_until} form="moment" />
        </>
      )}
      {node.paused_by ? `, by ${node.paused_by}` : ""}
      <span class="sub">
        Nothing is proposed meanwhile. {node.paused_until && <>It ends by itself in <Time iso={node.paused_until} form="left" />; the state before returns.</>}
      </span>
    </>
  );
}

/** What is missing so soon after a boot or a change of driver is a warning; after the deadline it is a fault. */
function graceOf(node: NodeDetail, graceSeconds: number | null): { until: number; why: string } | null {
  const booted = parse(node.booted_at) ?? 0;
  const changed = parse(node.driver_changed_at) ?? 0;
  const until = Math.max(booted, changed) + (graceSeconds ?? 0) * 1000;
  return graceSeconds !== null && until > now.value ? { until, why: changed > booted ? "its driver was changed" : "it booted" } : null;
}

function nodeFacts(node: NodeDetail, cluster: Cluster | null, graceSeconds: number | null, onNode: (node: NodeDetail) => void): Fact[] {
  const grace = graceOf(node, graceSeconds);
  const place = [node.rack && `rack ${node.rack}`, node.leaf, node.partition && `partition ${node.partition}`].filter(Boolean).join(", ");
  const booted = parse(node.booted_at);
  const latest = node.latest;
  const seen = parse(node.seen_at);
  return [
    ["Place", place || <Nothing>not set</Nothing>],
    ["Host", node.host_serial ? <><a class="mono" href={`/nodes/${node.id}/machine`}>{node.host_serial}</a>{node.joined_at && <span class="t3"> since {moment(parse(node.joined_at) ?? 0).replace(/ \d\d:\d\d$/, "")}</span>}</> : <Nothing>serial not known</Nothing>],
    ["Address", node.address ? <span class="mono">{node.address}</span> : <Nothing>not known</Nothing>],
    ["Work", node.state === "paused" ? <Maintenance node={node} /> : node.schedulable ? "takes new work" : <b>cordoned: takes no new work</b>],
    grace && ["Grace", <>until <time dateTime={new Date(grace.until).toISOString()} title={utc(grace.until)}>{moment(grace.until, now.value)}</time><span class="sub">{sentence(grace.why)} lately: GPUs, drivers and services that are missing are a warning until then, and a fault after it.</span></>],
    node.gpus.length > 0 || (node.gpus_expected ?? 0) > 0 ? ["Driver", differs(node.driver_version, cluster?.driver_version)] : null,
    ["OS image", differs(node.os_image, cluster?.os_image)],
    ["Kernel", node.kernel ? <span class="mono brk">{node.kernel}</span> : <Nothing>not known</Nothing>],
    ["Boot", booted === null ? <Nothing>not known</Nothing> : <>up for {span(now.value - booted)} <span class="t3">since <Time iso={node.booted_at} form="moment" /></span>{node.boot_id && <span class="sub mono">{node.boot_id.slice(0, 8)}</span>}</>],
    ["Agent", node.agent_version ? <>{node.agent_version}, {seen === null ? "never seen" : <>seen <Time iso={node.seen_at} form="ago" /></>}</> : <Nothing>none has joined</Nothing>],
    [
      "Machine",
      node.cpus
        ? <>{counted(node.cpus, "CPU")}{latest?.cpu_ratio != null ? `, ${percent(latest.cpu_ratio)} busy` : ""}{node.memory_mib ? <span class="sub">{latest?.mem_used_mib != null && latest.mem_total_mib ? `${mebibytesOf(latest.mem_used_mib, latest.mem_total_mib)} of memory` : `${mebibytes(node.memory_mib)} of memory`}{latest?.disk_ratio != null ? `, fullest disk ${percent(latest.disk_ratio)}` : ""}</span> : null}</>
        : <Nothing>not known</Nothing>,
    ],
    ["Network", latest?.net_rx_mbps == null ? <Nothing>no data</Nothing> : <>{megabits(latest.net_rx_mbps)} in, {megabits(latest.net_tx_mbps)} out{latest.fabric_rx_mbps != null && <span class="sub">fabric {megabits(latest.fabric_rx_mbps)} in, {megabits(latest.fabric_tx_mbps)} out</span>}</>],
    ["Collectors", <Collectors node={node} />],
    ["Auto-repair", <AutoRepair node={node} onDone={onNode} />],
    ["Repairs", <NodeStops node={node} />],
    ["Policy", <NodePolicy node={node} />],
  ];
}

function Incidents({ node }: { node: NodeDetail }) {
  const paged = usePaged<Incident>(withQuery("/incidents", { node_id: node.id, limit: 20 }), { events: (type, event) => type.startsWith("incident.") && event.node_id === node.id });
  const open = (incident: Incident) => openDialog("incident", { incident: incident.id });
  return (
    <Section title="Incidents" hint="open and past, newest first">
      <Loaded query={paged.first} what="The incidents of this node" rows={3}>
        {() =>
          paged.rows.length === 0 ? (
            <p class="t3">No check has ever failed here.</p>
          ) : (
            <>
              <Table
                name="Incidents"
                class="desk"
                rows={paged.rows}
                rowKey={(incident) => incident.id}
                columns={[
                  {
                    key: "what",
                    head: "Incident",
                    cell: (incident) => (
                      <span class="st wrap">
                        <Mark kind={incidentMark(incident)} label={incident.mode === "shadow" ? "In shadow" : incident.closed_at ? "Closed" : "Open"} />
                        <button type="button" class="linkish plain" onClick={() => open(incident)}>
                          {incident.summary}
                        </button>
                      </span>
                    ),
                  },
                  { key: "first", head: "Began", number: true, class: "nw", cell: (incident) => <Time iso={incident.first_at} form="moment" /> },
                  { key: "lasted", head: "Lasted", number: true, class: "nw", cell: lasted },
                  { key: "end", head: "End", class: "t2", cell: (incident) => <End incident={incident} /> },
                  { key: "no", head: "No.", number: true, cell: (incident) => incident.no },
                ]}
              />
              <ul class="mobile mlist">
                {paged.rows.map((incident) => (
                  <li key={incident.id}>
                    <button type="button" class="r" onClick={() => open(incident)}>
                      <Mark kind={incidentMark(incident)} />
                      <b>{incident.summary}</b>
                      <span class="t3 s12">
                        <Time iso={incident.first_at} form="moment" />
                      </span>
                      <span class="sub">
                        {lasted(incident)} · <End incident={incident} />
                      </span>
                    </button>
                  </li>
                ))}
              </ul>
            </>
          )
        }
      </Loaded>
      {paged.foot("incident")}
    </Section>
  );
}

/** Nothing to tell beside the facts: the events then take the place of the evidence. */
function calm(node: NodeDetail): boolean {
  return node.incidents.length === 0;
}

function NodeEvents({ node, rows }: { node: NodeDetail; rows: number }) {
  const events = useQuery<List<Event>>(withQuery("/events", { node_id: node.id, limit: 30 }), { events: (_, event) => event.node_id === node.id });
  return (
    <Section title="Events" hint="newest first" end={<a href={eventsHref(node)}>All events</a>}>
      <Loaded query={events} what="The events of this node" rows={4}>
        {(list) => <Changes events={list.items} rows={rows} of={node.name} />}
      </Loaded>
    </Section>
  );
}

export function NodePage({ params }: ViewProps) {
  const id = params.node ?? "";
  const node = useQuery<NodeDetail>(`/nodes/${id}`, { events: (_, event) => event.node_id === id, samplesOf: "*", sampleGapMs: 5_000 });
  const data = node.data.value;
  const clusterId = data?.cluster_id ?? params.cluster ?? null;
  const overview = useQuery<Overview>(clusterId ? `/clusters/${clusterId}/overview` : null, { events: (type, event) => /^(?:repair|cluster)\./.test(type) && event.cluster_id === clusterId, everyMs: 60_000 });
  const cluster = overview.data.value?.cluster ?? null;
  const checks = useQuery<CheckList>("/checks");
  useEffect(() => {
    document.title = `${data?.name ?? "Node"} · Muster`;
  }, [data?.name]);
  useEffect(() => {
    /* one address for one thing: links that know only the node lead here too */
    if (data && params.cluster !== data.cluster_id) {
      const search = address.peek().toString();
      navigate(`/clusters/${data.cluster_id}/nodes/${data.id}${search ? `?${search}` : ""}`, { replace: true });
    }
  }, [data?.id, data?.cluster_id, params.cluster]);
  useEffect(
    () =>
      bindKeys([
        {
          keys: "a",
          does: "Review the repair that waits",
          run: () => {
            const repair = node.data.peek()?.repair;
            if (repair?.state === "proposed") {
              openDialog("approve", { repair: repair.id });
            }
          },
        },
      ]),
    [node],
  );
  if (node.error.value?.status === 404 || node.error.value?.status === 400) {
    return <MissingPage />;
  }
  const lack = lacks("node.write", "Changing nodes");
  return (
    <Shell scope={clusterId ? { clusterId, ...(cluster ? { clusterName: cluster.name } : {}) } : {}}>
      <PageSentence parts={data ? sentenceOf(data) : ["Node"]} announce={data ? `${data.name} ${data.state}. ${data.reason ?? ""}` : ""} actions={data && <Actions node={data} />} />
      {data && lack && <p class="reason gap8">{lack}</p>}
      {clusterId && <ClusterTabs clusterId={clusterId} overview={overview.data.value} current="nodes" />}
      <div class={data ? undefined : "sec"}>
        <Loaded query={node} what="This node" rows={8}>
          {(one) => (
            <>
              <div class="cols aside node">
                <div>
                  <NodeTimeline node={one} />
                  <NodeEvidence node={one} />
                </div>
                <div>
                  <Recommendation node={one} />
                  <SchedulerSection node={one} />
                  <Section title="Node">
                    <FactList wide facts={nodeFacts(one, cluster, checks.data.value?.boot_grace_seconds ?? null, () => void node.read())} />
                  </Section>
                </div>
                <div>
                  <Incidents node={one} />
                  {calm(one) && <NodeEvents node={one} rows={6} />}
                </div>
              </div>
              <NodeGpus node={one} />
              {!calm(one) && <NodeEvents node={one} rows={20} />}
              <NodeDialogs node={one} />
            </>
          )}
        </Loaded>
      </div>
      <RepairDialogs />
    </Shell>
  );
}
