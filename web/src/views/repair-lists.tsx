/* Repairs in lists: those that wait for a person, those that run, those whose outcome is not known, and the past ones. */
import type { Signal } from "@preact/signals";
import { action, count, sentence } from "../format";
import { ago, parse } from "../time";
import type { Repair } from "../types";
import { Button, CheckBox } from "../ui/controls";
import { Mark } from "../ui/marks";
import { Nothing, Section, Time } from "../ui/page";
import { Steady } from "../ui/steady";
import { Table, type Column } from "../ui/table";
import { beginWithin } from "./approve";
import { openDialog, Outcome, RepairSteps } from "./repair-parts";
import { byMuster, CANCELLABLE, decidedBy, decider, hurts, outcome, secondPerson, title, took, touches, why } from "./repair-words";
import { WhyNotList, whyNotWords } from "./why-not";

/** Clusters by id, where a list spans several. */
export type ClusterNames = Map<string, string> | null;

function nodeHref(repair: Repair): string {
  return `/clusters/${repair.cluster_id}/nodes/${repair.node_id}`;
}

function Name({ repair, mark }: { repair: Repair; mark: boolean }) {
  return (
    <span class="st">
      {mark && <Mark kind={repair.incident_id ? "unhealthy" : "pending"} {...{ label: repair.incident_id ? "Fault" : "Asked for" }} />}
      <a class="name strong" href={`/repairs/${repair.id}`}>
        {sentence(action(repair.action))}
      </a>
      <a href={nodeHref(repair)}>{repair.node_name}</a>
    </span>
  );
}

function Touched({ repair }: { repair: Repair }) {
  const { strong, rest } = touches(repair.plan);
  return (
    <>
      {hurts(repair.plan) ? <b>{strong}</b> : strong} {rest}
    </>
  );
}

function clusterColumn(names: ClusterNames): Column<Repair>[] {
  return names ? [{ key: "cluster", head: "Cluster", class: "two nw", cell: (repair) => <a href={`/clusters/${repair.cluster_id}/repairs`}>{names.get(repair.cluster_id) ?? "…"}</a> }] : [];
}

export const oldestFirst = (a: Repair, b: Repair) => a.created_at.localeCompare(b.created_at);

/** Oldest first, so that rows that arrive come to the end and move nothing; or in another order, which is then said. */
export function Waiting({ repairs, names = null, order = oldestFirst, orderWords = "", chosen }: { repairs: Repair[]; names?: ClusterNames; order?: (a: Repair, b: Repair) => number; orderWords?: string; chosen?: Signal<string[]> }) {
  const sorted = [...repairs].sort(order);
  return (
    <Section title="Waiting for you" hint={`${count(sorted.length)}${orderWords && sorted.length > 1 ? `, ${orderWords}` : ""}`}>

      <Steady rows={sorted} one="repair">
        {(rows) => (rows.length === 0 ? <p class="t3">Nothing waits for approval.</p> : <WaitingRows rows={rows} names={names} {...(chosen ? { chosen } : {})} />)}
      </Steady>
    </Section>
  );
}

function Second({ repair }: { repair: Repair }) {
  const told = [secondPerson(repair), repair.wave != null && `wave ${repair.wave} of its batch`].filter(Boolean).join(", ");
  return told ? <span class="sub">{told}</span> : null;
}

function toggle(chosen: Signal<string[]>, id: string, on: boolean): void {
  chosen.value = on ? [...chosen.peek(), id] : chosen.peek().filter((one) => one !== id);
}

function pickColumn(chosen: Signal<string[]> | undefined): Column<Repair>[] {
  return chosen
    ? [
        {
          key: "pick",
          head: <span class="vh">Select</span>,
          class: "two pick",
          cell: (repair) => <CheckBox label={`Select ${title(repair)}`} hideLabel checked={chosen.value.includes(repair.id)} onChange={(on) => toggle(chosen, repair.id, on)} />,
        },
      ]
    : [];
}

function WaitingRows({ rows, names, chosen }: { rows: Repair[]; names: ClusterNames; chosen?: Signal<string[]> }) {
  return (
    <>
      <Table
        name="Waiting for you"
        class="desk"
        rows={rows}
        rowKey={(repair) => repair.id}
        columns={[
          ...pickColumn(chosen),
          { key: "what", head: "Repair", class: "two nw", cell: (repair) => <><Name repair={repair} mark /><Second repair={repair} /></> },
          ...clusterColumn(names),
          { key: "why", head: "Why", class: "two t2 whyshort", cell: (repair) => <>{why(repair)}<WhyNotList repair={repair} /></> },
          { key: "touches", head: "What it touches", class: "two t2", cell: (repair) => <Touched repair={repair} /> },
          { key: "waits", head: "Waits for", number: true, class: "two nw", cell: (repair) => <Time iso={repair.created_at} /> },
          { key: "within", head: "Begins within", number: true, class: "two nw", cell: beginWithin },
          {
            key: "review",
            head: <span class="vh">Decide</span>,
            number: true,
            class: "two nw",
            cell: (repair) => (
              <Button kind={repair === rows[0] ? "primary" : "default"} label={`Review… ${title(repair)}`} onClick={() => openDialog("approve", { repair: repair.id })}>
                Review…
              </Button>
            ),
          },
        ]}
      />
      <ul class="mobile mlist">
        {rows.map((repair) => (
          <li key={repair.id}>
            <button type="button" class="r" onClick={() => openDialog("approve", { repair: repair.id })}>
              <Mark kind={repair.incident_id ? "unhealthy" : "pending"} />
              <span>
                <b>{sentence(action(repair.action))}</b> {repair.node_name}
                {names && <span class="t3"> in {names.get(repair.cluster_id)}</span>}
              </span>
              <span class="t3 s12">
                <Time iso={repair.created_at} />
              </span>
              <span class="sub">{why(repair)}</span>
              <span class="sub">
                <Touched repair={repair} />
              </span>
              <span class="sub">{[secondPerson(repair), whyNotWords(repair)].filter(Boolean).join(". ")}</span>
            </button>
          </li>
        ))}
      </ul>
    </>
  );
}

function Decided({ repair }: { repair: Repair }) {
  const at = parse(repair.decided_at);
  const who = byMuster(repair.decided_by) ? "Automatic" : `Approved by ${decider(repair.decided_by ?? "")}`;
  return (
    <p class="s12 t3">
      {who}
      {at !== null && ` ${ago(at)}`}
      {repair.comment ? `, “${repair.comment.replace(/\.$/, "")}”` : ""}.{" "}
      {CANCELLABLE.includes(repair.state) && (
        <>
          <button type="button" class="linkish" aria-label={`Cancel… ${title(repair)}`} onClick={() => openDialog("cancel", { repair: repair.id })}>
            Cancel…
          </button>{" "}
          is possible until Act starts.
        </>
      )}
    </p>
  );
}

export function Running({ repairs, names = null }: { repairs: Repair[]; names?: ClusterNames }) {
  const rows = [...repairs].sort((a, b) => (a.decided_at ?? a.created_at).localeCompare(b.decided_at ?? b.created_at));
  return (
    <Section title="Running" hint={count(rows.length)}>
      {rows.length === 0 ? (
        <p class="t3">No repair runs.</p>
      ) : (
        <ul>
          {rows.map((repair) => (
            <li class="run" key={repair.id}>
              <div>
                <div class="what">
                  <Mark kind="repairing" />
                  <a class="strong" href={`/repairs/${repair.id}`}>
                    {sentence(action(repair.action))}
                  </a>
                  <a href={nodeHref(repair)}>{repair.node_name}</a>
                  {names && <span class="t3 s12">{names.get(repair.cluster_id)}</span>}
                </div>
                <Decided repair={repair} />
              </div>
              <RepairSteps repair={repair} />
            </li>
          ))}
        </ul>
      )}
    </Section>
  );
}

/** Outcomes that nobody could see are work for a person. */
export function Unsettled({ repairs, names = null }: { repairs: Repair[]; names?: ClusterNames }) {
  if (repairs.length === 0) {
    return null;
  }
  return (
    <Section title="Outcome not known" hint={`${count(repairs.length)}; the node waits until it is settled`}>
      <ul class="rows unsettled">
        {repairs.map((repair) => (
          <li key={repair.id}>
            <Outcome repair={repair} />
            <span class="t2">
              <a href={`/repairs/${repair.id}`}>{title(repair)}</a>
              {names && ` in ${names.get(repair.cluster_id)}`}, since <Time iso={repair.state_since} form="ago" />
            </span>
            <Button label={`Settle it… ${title(repair)}`} onClick={() => openDialog("settle", { repair: repair.id })}>
              Settle it…
            </Button>
          </li>
        ))}
      </ul>
    </Section>
  );
}

export function PastTable({ repairs }: { repairs: Repair[] }) {
  return (
    <>
      <Table
        name="History"
        class="desk"
        rows={repairs}
        rowKey={(repair) => repair.id}
        columns={[
          { key: "what", head: "Repair", class: "nw", cell: (repair) => <Name repair={repair} mark={false} /> },
          { key: "why", head: "Why", class: "t2", cell: why },
          { key: "outcome", head: "Outcome", cell: (repair) => <Outcome repair={repair} /> },
          { key: "at", head: "Decided", number: true, class: "nw", cell: (repair) => <Time iso={repair.decided_at ?? repair.created_at} form="moment" /> },
          { key: "took", head: "Took", number: true, class: "nw", cell: (repair) => (repair.decided_at && repair.ended_at && repair.state !== "rejected" ? took(repair) : <Nothing />) },
          { key: "by", head: "Decided by", class: "t2 nw", cell: decidedBy },
          { key: "no", head: "No.", number: true, cell: (repair) => <a href={`/repairs/${repair.id}`}>{repair.no}</a> },
        ]}
      />
      <ul class="mobile mlist">
        {repairs.map((repair) => (
          <li key={repair.id}>
            <a class="r" href={`/repairs/${repair.id}`}>
              <OutcomeMark repair={repair} />
              <span>
                <b>{sentence(action(repair.action))}</b> {repair.node_name}
              </span>
              <span class="t3 s12">
                <Time iso={repair.decided_at ?? repair.created_at} form="moment" />
              </span>
              <span class="sub">{outcome(repair)}</span>
              <span class="sub">{why(repair)}</span>
            </a>
          </li>
        ))}
      </ul>
    </>
  );
}

function OutcomeMark({ repair }: { repair: Repair }) {
  return <Mark kind={repair.state === "succeeded" || repair.state === "resolved" ? "healthy" : repair.state === "failed" ? "unhealthy" : "paused"} />;
}

