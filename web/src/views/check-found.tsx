/* What a check found lately, in all clusters: its incidents, newest first. */
import { withQuery } from "../api";
import type { Query } from "../store";
import type { Incident, List } from "../types";
import { Mark } from "../ui/marks";
import { Section, Time } from "../ui/page";
import { Loaded } from "../ui/states";
import { Table } from "../ui/table";
import { incidentHref } from "./incident-parts";
import { End, lasted, Result } from "./incident-words";
import { usePaged } from "./paged";

export function CheckFound({ checkId, names, title = "What it found" }: { checkId: string; names: Map<string, string>; title?: string }) {
  const paged = usePaged<Incident>(withQuery("/incidents", { check_id: [checkId], limit: 10 }), { events: (type) => type.startsWith("incident.") });
  return (
    <Section title={title} hint="in all clusters, newest first">
      <Loaded query={paged.first as Query<List<Incident>>} what="Its incidents" rows={3}>
        {() =>
          paged.rows.length === 0 ? (
            <p class="t3">It has never failed here.</p>
          ) : (
            <>
              <Table
                name="What it found"
                class="desk"
                rows={paged.rows}
                rowKey={(one) => one.id}
                columns={[
                  { key: "result", head: "Result", class: "nw", cell: (one) => <Result incident={one} /> },
                  { key: "where", head: "Node", class: "nw", cell: (one) => (one.node_id ? <a href={`/clusters/${one.cluster_id}/nodes/${one.node_id}`}>{one.node_name}</a> : (names.get(one.cluster_id) ?? "many nodes")) },
                  { key: "what", head: "What was found", class: "t2 why", cell: (one) => one.summary },
                  { key: "first", head: "Began", number: true, class: "nw", cell: (one) => <Time iso={one.first_at} form="moment" /> },
                  { key: "lasted", head: "Lasted", number: true, class: "nw", cell: lasted },
                  { key: "end", head: "End", class: "t2 nw", cell: (one) => <End incident={one} /> },
                  { key: "no", head: "Incident", number: true, cell: (one) => <a href={incidentHref(one.id)}>{one.no}</a> },
                ]}
              />
              <ul class="mobile mlist">
                {paged.rows.map((one) => (
                  <li key={one.id}>
                    <a class="r" href={incidentHref(one.id)}>
                      <Mark kind={one.closed_at ? "healthy" : "unhealthy"} label={one.closed_at ? "Over" : "Open"} />
                      <b>{one.node_name ?? "many nodes"}</b>
                      <span class="t3 s12">
                        <Time iso={one.first_at} form="moment" />
                      </span>
                      <span class="sub">{one.summary}</span>
                    </a>
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
