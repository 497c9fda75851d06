/* What can be done with the selected nodes: the bar at the foot, and the dialog that cordons them one by one. */
import { useSignal } from "@preact/signals";
import { ApiError, get, post, withQuery } from "../api";
import { counted } from "../format";
import { query } from "../router";
import { may } from "../session";
import { refresh } from "../store";
import type { List, NodeSummary } from "../types";
import { Button, CopyButton, Field } from "../ui/controls";
import { Dialog } from "../ui/dialog";
import { CheckLines, type CheckLineItem } from "../ui/records";
import { idOfName, select, selection } from "./selection";

type Verb = "cordon" | "uncordon";

const WORDS: Record<Verb, { title: string; lead: string; done: string; missing: string }> = {
  cordon: {
    title: "Cordon",
    lead: "No new job is placed on them; what runs there goes on. Their health is still watched.",
    done: "cordoned",
    missing: "It needs the permission node.write.",
  },
  uncordon: {
    title: "Uncordon",
    lead: "New jobs may be placed on them again.",
    done: "may be used again",
    missing: "It needs the permission node.write.",
  },
};

async function resolve(clusterId: string, name: string): Promise<string> {
  const known = idOfName(name);
  if (known) {
    return known;
  }
  const found = await get<List<NodeSummary>>(withQuery(`/clusters/${clusterId}/nodes`, { q: name, limit: 50 }));
  const node = found.items.find((one) => one.name === name);
  if (!node) {
    throw new ApiError(404, "not_found", "There is no such node in this cluster", "", null);
  }
  return node.id;
}

function VerbDialog({ clusterId, verb, names, onClose }: { clusterId: string; verb: Verb; names: string[]; onClose: () => void }) {
  const comment = useSignal("");
  const busy = useSignal(false);
  const results = useSignal<CheckLineItem[]>([]);
  const words = WORDS[verb];
  const title = `${words.title} ${counted(names.length, "node")}`;
  const run = async () => {
    busy.value = true;
    results.value = [];
    for (const name of names) {
      let line: CheckLineItem;
      try {
        const id = await resolve(clusterId, name);
        await post(`/nodes/${id}/${verb}`, comment.value ? { comment: comment.value } : {});
        line = { name, weight: "good", value: words.done };
      } catch (cause) {
        line = { name, weight: "bad", value: cause instanceof Error ? cause.message : String(cause) };
      }
      results.value = [...results.value, line];
    }
    refresh(`/clusters/${clusterId}/`);
    busy.value = false;
  };
  const done = results.value.length === names.length;
  return (
    <Dialog
      narrow
      title={title}
      lead={words.lead}
      onClose={onClose}
      binds={busy.value ? `${results.value.length} of ${names.length} done` : done ? "" : "Each node is asked for by itself; one that refuses does not stop the others."}
      buttons={
        done ? (
          <Button kind="primary" onClick={onClose}>
            Close
          </Button>
        ) : (
          <>
            <Button onClick={onClose}>Cancel</Button>
            <Button kind="primary" busy={busy.value} onClick={() => void run()}>
              {title}
            </Button>
          </>
        )
      }
    >
      <div class="pad">
        {results.value.length > 0 ? (
          <CheckLines label="Result by node" items={results.value} />
        ) : (
          <>
            <p class="t2 brk">{names.join(", ")}</p>
            <div class="gap16">
              <Field label="Comment" name="comment" value={comment.value} onInput={(value) => (comment.value = value)} help="Stands in the events of each node." />
            </div>
          </>
        )}
      </div>
    </Dialog>
  );
}

export function SelectionBar({ clusterId }: { clusterId: string }) {
  const open = useSignal<Verb | null>(null);
  const names = [...selection.value].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  if (names.length === 0) {
    return null;
  }
  const past = query.value.get("at") ? "You look at the past; go back to now first." : null;
  const refused = may("node.write") ? past : WORDS.cordon.missing;
  return (
    <>
      <div class="bulk" role="region" aria-label="Selection">
        <b>{counted(names.length, "node")} selected</b>
        <span class="t3">{names.length <= 3 ? names.join(", ") : ""}</span>
        <span class="grow" />
        <CopyButton kind="quiet" text={names.join("\n")}>
          Copy names
        </CopyButton>
        <Button disabled={refused} showReason={false} onClick={() => (open.value = "uncordon")}>
          Uncordon {counted(names.length, "node")}…
        </Button>
        <Button kind="primary" disabled={refused} onClick={() => (open.value = "cordon")}>
          Cordon {counted(names.length, "node")}…
        </Button>
        <Button kind="quiet" onClick={() => select(new Set())}>
          Clear
        </Button>
      </div>
      {open.value && <VerbDialog clusterId={clusterId} verb={open.value} names={names} onClose={() => (open.value = null)} />}
    </>
  );
}
