/* No such page. */
import { useEffect } from "preact/hooks";
import { Shell } from "../ui/shell";
import { Empty } from "../ui/states";

export function MissingPage() {
  useEffect(() => {
    document.title = "No such page · Muster";
  }, []);
  return (
    <Shell scope={{}}>
      <Empty level={1} title="There is no such page">
        <p>
          The address may be mistyped, or the thing belongs to another organization. <a href="/clusters">All clusters</a> shows what you may see.
        </p>
      </Empty>
    </Shell>
  );
}
