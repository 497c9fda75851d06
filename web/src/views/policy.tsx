/* The editor of a policy: what happens at a fault, the limits, and a replay over real events before it is saved. */
import { useEffect } from "preact/hooks";
import { useSignal } from "@preact/signals";
import type { ViewProps } from "../app";
import { ApiError, patch, post } from "../api";
import { counted } from "../format";
import { navigate, query } from "../router";
import { me } from "../session";
import { refresh, useQuery, type Query } from "../store";
import type { ClusterItem, List, NodeDetail } from "../types";
import type { Policy, PolicyEffective, PolicyNumber, PolicySettings } from "../repair-types";
import { Button, CheckBox } from "../ui/controls";
import { PageSentence, Section } from "../ui/page";
import { Shell } from "../ui/shell";
import { Loaded, Note } from "../ui/states";
import { lacks } from "./asked";
import { MissingPage } from "./missing";
import { Faults } from "./policy-faults";
import { PolicyForm } from "./policy-form";
import { ReplayAside, useReplay } from "./policy-replay";
import { changedFields, changesOf, DEFAULT_SETTINGS, readNumber, windowsError, type NumberRow } from "./policy-table";
import { DeletePolicy, Versions } from "./policy-versions";
import { orgName } from "./settings";

interface Place {
  clusterId: string | null;
  nodeId: string | null;
  name: string;
}

function bodyOf(place: Place): Record<string, string> {
  return place.nodeId ? { node_id: place.nodeId } : place.clusterId ? { cluster_id: place.clusterId } : {};
}

const linesOf = (text: string) => text.split("\n").map((line) => line.trim()).filter(Boolean);

/** The complaint of the server about a field or a part of it. */
function serverError(error: ApiError | null, name: string): string | null {
  const found = error?.errors.find((one) => one.pointer === `#/${name}` || one.pointer?.startsWith(`#/${name}/`));
  const part = found?.pointer?.split("/")[2];
  return found ? `${part !== undefined ? `Line ${Number(part) + 1}: ` : ""}${found.detail}.` : null;
}

function useEditor(base: PolicySettings) {
  const draft = useSignal(base);
  const typed = useSignal<Partial<Record<PolicyNumber, string>>>({});
  const errors = useSignal<Partial<Record<string, string>>>({});
  const windows = useSignal(base.windows.join("\n"));
  const refused = useSignal<ApiError | null>(null);
  const complain = (name: string, error: string | null) => {
    const next = { ...errors.peek() };
    delete next[name];
    errors.value = error ? { ...next, [name]: error } : next;
  };
  const set = (change: Partial<PolicySettings>) => {
    refused.value = null;
    draft.value = { ...draft.peek(), ...change };
  };
  return {
    draft,
    typed,
    errors,
    windows,
    refused,
    set,
    type: (row: NumberRow, text: string, factor: number) => {
      typed.value = { ...typed.peek(), [row.name]: text };
      const read = readNumber(row, text, factor);
      complain(row.name, "error" in read ? read.error : null);
      if ("value" in read) {
        set({ [row.name]: read.value });
      }
    },
    typeWindows: (text: string) => {
      windows.value = text;
      const lines = linesOf(text);
      const error = windowsError(lines);
      complain("windows", error);
      if (!error) {
        set({ windows: lines });
      }
    },
    discard: () => {
      draft.value = base;
      typed.value = {};
      errors.value = {};
      windows.value = base.windows.join("\n");
      refused.value = null;
    },
    errorOf: (name: string) => errors.value[name] ?? serverError(refused.value, name),
  };
}

function Failed({ error, onReload }: { error: ApiError; onReload: () => void }) {
  const behind = error.status === 412;
  const unsure = error.status === 0 || error.status >= 500;
  return (
    <div class="sec">
      <Note tone="bad" alert title={behind ? "Somebody saved another version meanwhile. Nothing was saved." : unsure ? "It is not known whether this was saved." : `It was not saved: ${error.title}.`}>
        <p class="t2">
          {behind ? "Read theirs, then make your change again." : error.detail} {error.errors.length > 0 && "The fields that were refused say why."}
        </p>
        {(behind || unsure) && (
          <p class="row8">
            <Button small onClick={onReload}>
              Read it again
            </Button>
          </p>
        )}
      </Note>
    </div>
  );
}

interface EditorProps {
  place: Place;
  base: PolicySettings;
  /** null: it is written for the first time */
  policy: Policy | null;
  defaults: PolicySettings;
  onSaved: (policy: Policy) => void;
  onReload: () => void;
}

function title(props: EditorProps, n: number) {
  const version = (props.policy?.version ?? 0) + 1;
  return [
    <>
      <b>Repair policy</b> of {props.place.name}
      {props.policy === null ? ", not written yet" : n > 0 ? `, draft of version ${version}` : `, version ${props.policy.version}`}
    </>,
    n > 0 && (
      <>
        <b>{counted(n, "change")}</b> to {props.policy ? `version ${props.policy.version}` : "what counts now"}
      </>
    ),
    props.policy?.settings.dry_run && n === 0 && "on trial: it starts nothing",
  ];
}

function Editor(props: EditorProps) {
  const { place, base, policy } = props;
  const editor = useEditor(base);
  const replay = useReplay();
  const busy = useSignal(false);
  const draft = editor.draft.value;
  const changes = changesOf(base, draft);
  const version = (policy?.version ?? 0) + 1;
  const wrong = Object.keys(editor.errors.value).length;
  const fix = wrong > 0 ? `Fix ${counted(wrong, "field")} first.` : null;
  const replayed = replay.result.value !== null && replay.of.value === JSON.stringify(draft);
  const lack = lacks("cluster.write") ?? fix ?? (policy && changes.length === 0 ? "Nothing has changed." : replayed ? null : "Replay it first: it shows what it would have done.");
  const save = async () => {
    busy.value = true;
    editor.refused.value = null;
    try {
      const saved = policy ? await patch<Policy>(`/policies/${policy.id}`, changedFields(base, draft), policy.version) : await post<Policy>("/policies", { ...bodyOf(place), ...changedFields(props.defaults, draft) });
      for (const prefix of ["/policies", "/clusters/", "/nodes/", "/repairs", "/audit"]) {
        refresh(prefix);
      }
      props.onSaved(saved);
    } catch (cause) {
      editor.refused.value = cause instanceof ApiError ? cause : new ApiError(0, "console", "The console failed", String(cause), null);
    } finally {
      busy.value = false;
    }
  };
  return (
    <>
      <PageSentence
        parts={title(props, changes.length)}
        above={<p class="crumb"><a href="/settings/policies">Policies and stops</a></p>}
        actions={
          <>
            {changes.length > 0 && <Button onClick={editor.discard}>Discard</Button>}
            <Button kind="primary" busy={busy.value} disabled={lack} showReason={false} onClick={() => void save()}>
              Save version {version}
            </Button>
          </>
        }
      />
      {lack && <p class="reason gap8">{lack}</p>}
      {editor.refused.value && <Failed error={editor.refused.value} onReload={props.onReload} />}
      <div class="cols policy">
        <div>
          <Section title="On trial">
            <CheckBox label="It decides and tells, and starts nothing" checked={draft.dry_run} onChange={(dry_run) => editor.set({ dry_run })} />
            <p class="s12 t3">Waiting repairs then say when the policy would have started them.</p>
          </Section>
          <Faults draft={draft} base={base} onChange={(next) => editor.set(next)} clusterId={place.clusterId} error={editor.errorOf("automatic") ?? editor.errorOf("confirm") ?? editor.errorOf("warn")} />
          <PolicyForm draft={draft} base={base} defaults={props.defaults} typed={editor.typed.value} errorOf={editor.errorOf} set={editor.set} type={editor.type} windows={editor.windows.value} typeWindows={editor.typeWindows} />
        </div>
        <div>
          <ReplayAside replay={replay} draft={draft} place={bodyOf(place)} title={policy ? `Version ${version}` : "This policy"} lack={lacks("cluster.write") ?? fix} />
          {changes.length > 0 && (
            <Section title="Changes" hint={policy ? `to version ${policy.version}` : "to what counts now"}>
              <dl class="facts wide">
                {changes.map((one) => [
                  <dt key={one.name}>{one.label}</dt>,
                  <dd key={`${one.name} value`}>
                    <span class="t3">{one.from} →</span> {one.to}
                  </dd>,
                ])}
              </dl>
            </Section>
          )}
          {policy && <Versions policy={policy} />}
          {policy && <DeletePolicy policy={policy} name={place.name} />}
        </div>
      </div>
    </>
  );
}

/** The default as the server has it: its own configuration may say another cooldown. */
function defaultsOf(effective: PolicyEffective | null): PolicySettings {
  return effective?.reach === "default" ? effective.settings : DEFAULT_SETTINGS;
}

function useTitle(name: string | null): void {
  useEffect(() => {
    document.title = `Policy${name ? ` of ${name}` : ""} · Muster`;
  }, [name]);
}

export function PolicyPage({ params }: ViewProps) {
  const live = useQuery<Policy>(`/policies/${params.policy}`);
  const policy = live.data.value;
  const turn = useSignal(0);
  const name = policy ? (policy.node_name ?? policy.cluster_name ?? `all of ${orgName()}`) : null;
  useTitle(name);
  if (live.error.value?.status === 404 || live.error.value?.status === 400) {
    return <MissingPage />;
  }
  return (
    <Shell scope={policy?.cluster_id && !policy.node_id ? { clusterId: policy.cluster_id, clusterName: policy.cluster_name ?? "" } : {}}>
      {!policy && <PageSentence parts={["Repair policy"]} />}
      <div class={policy ? undefined : "sec"}>
        <Loaded query={live} what="This policy" rows={10}>
          {(one) => (
            <Editor
              key={`${one.id} ${one.version} ${turn.value}`}
              place={{ clusterId: one.cluster_id, nodeId: one.node_id, name: name ?? "" }}
              base={{ ...DEFAULT_SETTINGS, ...one.settings }}
              policy={one}
              defaults={DEFAULT_SETTINGS}
              onSaved={(saved) => live.put(saved)}
              onReload={() => void live.read().then(() => (turn.value += 1))}
            />
          )}
        </Loaded>
      </div>
    </Shell>
  );
}

/** Written for the first time: it begins with what counts there now. */
export function NewPolicyPage(_: ViewProps) {
  const clusterId = query.value.get("cluster");
  const nodeId = query.value.get("node");
  const node = useQuery<NodeDetail>(nodeId ? `/nodes/${nodeId}` : null).data.value;
  const clusters = useQuery<List<ClusterItem>>("/clusters?limit=200").data.value?.items ?? null;
  const first = clusterId ?? node?.cluster_id ?? clusters?.[0]?.id ?? null;
  const counts = useQuery<PolicyEffective>(nodeId ? `/nodes/${nodeId}/policy` : first ? `/clusters/${first}/policy` : null);
  const whole = !clusterId && !nodeId;
  const name = nodeId ? (node?.name ?? "a node") : clusterId ? (clusters?.find((one) => one.id === clusterId)?.name ?? "a cluster") : `all of ${orgName()}`;
  useTitle(name);
  const effective = counts.data.value;
  const props = (settings: PolicySettings, defaults: PolicySettings): EditorProps => ({
    place: { clusterId: clusterId ?? (nodeId ? (node?.cluster_id ?? null) : null), nodeId, name },
    base: settings,
    policy: null,
    defaults,
    onSaved: (saved) => navigate(`/settings/policies/${saved.id}`, { replace: true }),
    onReload: () => navigate("/settings/policies"),
  });
  const bare = whole && clusters !== null && clusters.length === 0;
  return (
    <Shell scope={{}} key={me.value?.org.id}>
      {bare ? (
        <Editor {...props(DEFAULT_SETTINGS, DEFAULT_SETTINGS)} />
      ) : (
        <>
          {!effective && <PageSentence parts={["Repair policy"]} />}
          <div class={effective ? undefined : "sec"}>
            <Loaded query={counts as Query<PolicyEffective>} what="What counts now" rows={10}>
              {(one) => <Editor key={`${clusterId} ${nodeId}`} {...props(whole ? defaultsOf(one) : one.settings, defaultsOf(one))} />}
            </Loaded>
          </div>
        </>
      )}
    </Shell>
  );
}

