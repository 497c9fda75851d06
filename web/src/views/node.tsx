/* A node: its state, why, and its facts. */
import { useEffect } from "preact/hooks";
import type { ViewProps } from "../app";
import { useQuery } from "../store";
import type { NodeDetail } from "../types";
import { STATE_WORD, StateMark, markKind } from "../ui/marks";
import { FactList, PageSentence, Section, Time } from "../ui/page";
import { Shell } from "../ui/shell";
import { Loaded } from "../ui/states";
import { MissingPage } from "./missing";

export function NodePage({ params }: ViewProps) {
  const id = params.node ?? "";
  const node = useQuery<NodeDetail>(`/nodes/${id}`, { events: (_, event) => event.node_id === id, everyMs: 10_000 });
  const data = node.data.value;
  useEffect(() => {
    document.title = `${data?.name ?? "Node"} · Muster`;
  }, [data?.name]);
  if (node.error.value?.status === 404) {
    return <MissingPage />;
  }
  return (
    <Shell scope={{}}>
      <PageSentence parts={data ? [<b>{data.name}</b>, STATE_WORD[markKind(data.state, data.warning)], data.reason] : ["Node"]} />
      <Section title="Node">
        <Loaded query={node} what="This node">
          {(one) => (
            <FactList
              facts={[
                ["State", <StateMark state={one.state} warning={one.warning} />],
                ["Since", <Time iso={one.state_since} />],
                ["Seen", <Time iso={one.seen_at} form="ago" />],
                ["Rack", one.rack || "not set"],
              ]}
            />
          )}
        </Loaded>
      </Section>
    </Shell>
  );
}
