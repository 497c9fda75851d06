/* Events: of one cluster as a tab, of the whole org as a page. */
import { useEffect } from "preact/hooks";
import type { ViewProps } from "../app";
import { useQuery } from "../store";
import type { Event, List } from "../types";
import { PageSentence, Section } from "../ui/page";
import { Shell } from "../ui/shell";
import { Loaded } from "../ui/states";
import type { TabProps } from "./cluster";
import { Changes } from "./happened";

function EventList({ path }: { path: string }) {
  const events = useQuery<List<Event>>(path, { events: () => true });
  return (
    <Section title="Events">
      <Loaded query={events} what="The events">
        {(list) => <Changes events={list.items} rows={200} />}
      </Loaded>
    </Section>
  );
}

export function EventsTab({ clusterId }: TabProps) {
  return <EventList path={`/clusters/${clusterId}/events?limit=100`} />;
}

export function EventsPage(_: ViewProps) {
  useEffect(() => {
    document.title = "Events · Muster";
  }, []);
  return (
    <Shell scope={{}}>
      <PageSentence parts={[<b>Events</b>, "of all clusters"]} />
      <EventList path="/events?limit=100" />
    </Shell>
  );
}
