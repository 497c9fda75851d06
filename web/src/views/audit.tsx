/* The audit log: who did what to what, from where, and whether the chain of its rows is whole. */
import { useEffect, useId, useMemo } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { withQuery } from "../api";
import { count, counted } from "../format";
import type { AuditLine, AuditRow } from "../identity-types";
import { narrow } from "../media";
import { query, setQuery } from "../router";
import { me } from "../session";
import { refresh, type Query } from "../store";
import { clock, DAY, moment, now, parse, utc } from "../time";
import type { List } from "../types";
import { Button, CopyButton, Select } from "../ui/controls";
import { Icon } from "../ui/icons";
import { FactList, Nothing, type Fact } from "../ui/page";
import { Loaded, Note } from "../ui/states";
import { TableFrame } from "../ui/table";
import { faultOf, linesAfter, walk, type Walk } from "./audit-chain";
import { Diff } from "./diff";
import { usePaged } from "./paged";
import { orgName, SettingsPage } from "./settings";

const PAGE = 50;

const ACTIONS = [
  "cluster.create", "cluster.update", "command.create", "device.create", "device.update", "incident.close", "incident.report",
  "incident.update", "installation.restore", "issuer.create", "issuer.delete", "issuer.update", "join_token.create", "join_token.revoke", "member.create", "member.delete", "node.create",
  "node.join", "node.revoke_key", "node.update", "note.add", "org.create", "org.update", "project.create", "project.update",
  "repair.approve", "repair.cancel", "repair.reject", "repair.request", "repair.settle", "session.create", "session.delete_all",
  "session.switch", "sign_in_link.create", "token.create", "token.revoke", "token.rotate",
];

const SPANS = [
  { value: "", label: "Any time" },
  { value: "1h", label: "Last hour" },
  { value: "24h", label: "Last 24 h" },
  { value: "7d", label: "Last 7 days" },
  { value: "30d", label: "Last 30 days" },
];
const SPAN_MS: Record<string, number> = { "1h": DAY / 24, "24h": DAY, "7d": 7 * DAY, "30d": 30 * DAY };

/** A relative span stays relative in the address; here it becomes a minute, so that pages of one list agree. */
function sinceOf(params: URLSearchParams): string | null {
  const last = SPAN_MS[params.get("last") ?? ""];
  if (!last) {
    return params.get("since");
  }
  return new Date(Math.floor((now.peek() - last) / 60_000) * 60_000).toISOString().replace(".000", "");
}

/** A field of the filter that is sent when it is left or Enter is pressed. */
function FilterField(props: { label: string; value: string; choices: string[]; placeholder: string; onChange: (value: string) => void }) {
  const id = useId();
  const draft = useSignal(props.value);
  useEffect(() => {
    draft.value = props.value;
  }, [props.value]);
  const send = () => draft.value.trim() !== props.value && props.onChange(draft.value.trim());
  return (
    <label class="sel grow1">
      <span>{props.label}</span>
      <input
        type="text"
        list={id}
        value={draft.value}
        placeholder={props.placeholder}
        spellcheck={false}
        autocomplete="off"
        onInput={(event) => (draft.value = event.currentTarget.value)}
        onKeyDown={(event) => event.key === "Enter" && send()}
        onBlur={send}
      />
      <datalist id={id}>
        {props.choices.map((choice) => (
          <option key={choice} value={choice} />
        ))}
      </datalist>
    </label>
  );
}

function Result({ row }: { row: AuditRow }) {
  if (row.outcome === "done" || row.outcome === null) {
    return <>{row.outcome ?? <Nothing>not recorded</Nothing>}</>;
  }
  return (
    <span class="st wrap">
      <Icon name="close" tone="bad" />
      <span>
        {row.outcome}
        {row.reason ? `: ${row.reason.replace(/_/g, " ")}` : ""}
      </span>
    </span>
  );
}

const KINDS: Record<string, string> = { session: "a session in the browser", service: "a service token", agent: "the key of a node", token: "a token of an identity provider", none: "no credential" };

interface Checked {
  line: AuditLine;
  fault: string | null;
}

/** The hashes of one row, computed in this browser from the text that was hashed. */
function useHashes(seq: number): Fact[] {
  const found = useSignal<Checked | null>(null);
  const failed = useSignal<string | null>(null);
  const orgId = me.value?.org.id ?? "";
  useEffect(() => {
    const abort = new AbortController();
    const look = async () => {
      const { lines } = await linesAfter(Math.max(0, seq - 2), 2, abort.signal);
      const line = lines.find((one) => one.seq === seq);
      if (!line) {
        throw new Error("The row is not in the export.");
      }
      found.value = { line, fault: await faultOf(orgId, line, lines.find((one) => one.seq === seq - 1) ?? null) };
    };
    look().catch((cause: Error) => !abort.signal.aborted && (failed.value = cause.message));
    return () => abort.abort();
  }, [seq, orgId]);
  if (failed.value) {
    return [["Hash", <span class="c-unhealthy">could not be read. {failed.value}</span>]];
  }
  const short = (hash: string) => `${hash.slice(0, 4)}…${hash.slice(-4)}`;
  const { line, fault } = found.value ?? {};
  return [
    ["Previous", line ? <span class="mono" title={line.prev_hash}>{seq > 1 ? `row ${count(seq - 1)}, ` : "none, "}{short(line.prev_hash)}</span> : "reading"],
    [
      "Hash",
      line ? (
        <span>
          <span class="mono" title={line.hash}>{short(line.hash)}</span>, {fault ? <b class="c-unhealthy">{fault}</b> : "matches"}
        </span>
      ) : (
        "reading"
      ),
    ],
  ];
}

function Detail({ row }: { row: AuditRow }) {
  const at = parse(row.at) ?? 0;
  const hashes = useHashes(row.seq);
  return (
    <div class="opened cols half">
      <div>
        <Diff before={row.before} after={row.after} label={`What row ${row.seq} changed`} />
        {row.comment && <p class="gap8">“{row.comment}”</p>}
        <p class="row8">
          {row.actor && (
            <Button small onClick={() => setQuery({ actor: row.actor, row: null })}>
              Only what {row.actor} did
            </Button>
          )}
          {row.target && (
            <Button small onClick={() => setQuery({ target: row.target, row: null })}>
              Only this target
            </Button>
          )}
        </p>
      </div>
      <div>
        <FactList
          facts={[
            ["Time", utc(at)],
            ["With", row.kind ? (KINDS[row.kind] ?? row.kind) : "a command on the server"],
            row.credential ? ["Credential", <span class="mono brk">{row.credential}</span>] : null,
            row.issuer ? ["Issuer", <span class="mono brk">{row.issuer}</span>] : null,
            row.subject ? ["Subject", <span class="mono brk">{row.subject}</span>] : null,
            ["From", row.address ?? <Nothing>not recorded</Nothing>],
            row.target ? ["Target", <span class="mono brk">{row.target}</span>] : null,
            row.request_id ? ["Request", <span class="mono brk">{row.request_id}</span>] : null,
            ...hashes,
          ]}
        />
      </div>
    </div>
  );
}

function RowLink({ row, open }: { row: AuditRow; open: boolean }) {
  return (
    <button type="button" class="linkish" aria-expanded={open} aria-label={`Row ${row.seq}, ${row.action ?? ""} by ${row.actor ?? "muster"}`} onClick={() => setQuery({ row: open ? null : String(row.seq) })}>
      {count(row.seq)}
    </button>
  );
}

function Rows({ rows, open }: { rows: AuditRow[]; open: number }) {
  if (narrow.value) {
    return (
      <ul class="rows" aria-label="Audit rows">
        {rows.map((row) => (
          <li key={row.seq} class={row.seq === open ? "on" : undefined}>
            <div class="tworow">
              <RowLink row={row} open={row.seq === open} />
              <span>
                <b>{row.actor ?? "muster"}</b> <span class="mono">{row.action}</span> {row.target_name}
                <span class="sub">
                  {moment(parse(row.at) ?? 0, now.value)}, <Result row={row} />
                </span>
              </span>
            </div>
            {row.seq === open && <Detail row={row} />}
          </li>
        ))}
      </ul>
    );
  }
  return (
    <TableFrame name="Audit rows">
      <table class="tbl">
        <thead>
          <tr>
            <th scope="col" class="num">Row</th>
            <th scope="col">Time</th>
            <th scope="col">Who</th>
            <th scope="col">Did</th>
            <th scope="col">To what</th>
            <th scope="col">Result</th>
            <th scope="col" class="mid-only">From</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => {
            const at = parse(row.at) ?? 0;
            const isOpen = row.seq === open;
            return [
              <tr key={row.seq} class={isOpen ? "on" : undefined}>
                <td class="num"><RowLink row={row} open={isOpen} /></td>
                <td class="nw t2"><time dateTime={row.at} title={utc(at)}>{moment(at, now.value)}</time></td>
                <td>{row.actor ?? "muster"}</td>
                <td class="mono nw">{row.action}</td>
                <td>{row.target_name || <Nothing />}</td>
                <td><Result row={row} /></td>
                <td class="mid-only nw t2">{row.address ?? "the server"}</td>
              </tr>,
              isOpen && (
                <tr key={`${row.seq}-open`} class="openrow">
                  <td colSpan={7}><Detail row={row} /></td>
                </tr>
              ),
            ];
          })}
        </tbody>
      </table>
    </TableFrame>
  );
}

/* what this browser has checked, kept while the person goes elsewhere; it belongs to one org */
interface Chain extends Walk {
  orgId: string;
  what: "check" | "export";
  at: number;
  failed: string | null;
}

function sentence(chain: Chain | null, head: number | null) {
  if (chain?.bad) {
    return [<b>Row {count(chain.bad.seq)} is not as it was written</b>, chain.bad.why];
  }
  if (chain?.done && chain.what === "check" && !chain.failed) {
    return [<><b>Chain whole to row {count(chain.last)}</b>, checked at {clock(chain.at)}</>, "nothing missing, nothing changed"];
  }
  return [<><b>Audit log</b> of {orgName()}</>, head === null ? null : `${counted(head, "row")}, chained by hash`];
}

function useChain() {
  const chain = useSignal<Chain | null>(null);
  const abort = useSignal<AbortController | null>(null);
  const orgId = me.value?.org.id ?? "";
  const run = async (what: Chain["what"]) => {
    const stop = new AbortController();
    abort.value = stop;
    const parts: string[] = [];
    const tell = (state: Walk) => (chain.value = { ...state, orgId, what, at: now.peek(), failed: null });
    tell({ rows: 0, last: 0, bad: null, done: false });
    try {
      const end = await walk({ orgId, check: what === "check", ...(what === "export" ? { keep: (text: string) => void parts.push(text) } : {}), tell, signal: stop.signal });
      if (what === "export") {
        const link = document.createElement("a");
        link.href = URL.createObjectURL(new Blob(parts, { type: "application/jsonl" }));
        link.download = `audit-${me.peek()?.org.name ?? "org"}-1-${end.last}.jsonl`;
        link.click();
        URL.revokeObjectURL(link.href);
      }
    } catch (cause) {
      chain.value = stop.signal.aborted ? null : { ...(chain.peek() as Chain), done: true, failed: cause instanceof Error ? cause.message : String(cause) };
    } finally {
      abort.value = null;
    }
  };
  useEffect(() => () => abort.peek()?.abort(), []);
  return { chain, busy: abort.value !== null, run, stop: () => abort.peek()?.abort() };
}

function ChainNote({ chain, head, stop, busy }: { chain: Chain; head: number | null; stop: () => void; busy: boolean }) {
  if (busy) {
    return (
      <p class="staleline s12 gap8" role="status">
        {chain.what === "check" ? "Checking" : "Reading"} row {count(chain.last)}
        {head ? ` of ${count(head)}` : ""}.{" "}
        <button type="button" class="linkish" onClick={stop}>
          Stop
        </button>
      </p>
    );
  }
  if (chain.failed) {
    return (
      <div class="gap12">
        <Note tone="bad" alert title={chain.what === "check" ? "The chain could not be checked." : "The log could not be exported."}>
          <p class="t2">
            {chain.failed} {chain.last ? `Rows 1 to ${count(chain.last)} were read.` : ""}
          </p>
        </Note>
      </div>
    );
  }
  if (chain.bad) {
    return (
      <div class="gap12">
        <Note tone="bad" alert title={`Row ${count(chain.bad.seq)}: ${chain.bad.why}.`}>
          <p class="t2">
            {chain.rows ? `Rows 1 to ${count(chain.last)} are whole. ` : ""}Somebody with access to the database changed the log. On the server, <code>musterd audit verify</code> compares it with the signed heads kept outside of the database.
          </p>
        </Note>
      </div>
    );
  }
  return null;
}

export function AuditPage() {
  return (
    <AuditView key={me.value?.org.id ?? ""} />
  );
}

function AuditView() {
  const params = query.value;
  const { chain, busy, run, stop } = useChain();
  const actor = params.get("actor") ?? "";
  const action = params.get("action") ?? "";
  const target = params.get("target") ?? "";
  const last = params.get("last") ?? "";
  const since = useMemo(() => sinceOf(params), [params]);
  const may = me.value?.permissions.includes("audit.read") ?? false;
  const first = withQuery("/audit", { actor, action: action.split(/[\s,]+/), target, since, until: params.get("until"), limit: PAGE });
  const paged = usePaged<AuditRow>(first, {}, (row) => String(row.seq));
  const list = paged.first.data.value;
  const head = list?.as_of_seq ?? null;
  const open = Number(params.get("row") ?? 0);
  const narrowed = actor || action || target || since || params.get("until");
  const noCrypto = typeof crypto.subtle === "undefined" ? "This browser computes hashes over https only." : null;
  return (
    <SettingsPage
      title="Audit log"
      parts={sentence(chain.value, head)}
      needs={{ permission: "audit.read", what: "the audit log" }}
      actions={
        <>
          <Button busy={busy} disabled={noCrypto} onClick={() => void run("check")}>
            {busy && chain.value?.what === "check" ? "Checking…" : "Check the chain"}
          </Button>
          <Button busy={busy} onClick={() => void run("export")}>
            {busy && chain.value?.what === "export" ? "Exporting…" : "Export as JSON lines"}
          </Button>
        </>
      }
    >
      {() => (
        <>
          {chain.value && <ChainNote chain={chain.value} head={head} stop={stop} busy={busy} />}
          <div class="filter">
            <FilterField label="Who" value={actor} placeholder="anybody" choices={[...new Set(paged.rows.map((row) => row.actor ?? "").filter(Boolean))]} onChange={(value) => setQuery({ actor: value, row: null })} />
            <FilterField label="Did" value={action} placeholder="repair.approve" choices={ACTIONS} onChange={(value) => setQuery({ action: value, row: null })} />
            {target && (
              <span class="chip">
                target {paged.rows[0]?.target_name || `${target.slice(0, 8)}…`}
                <button type="button" aria-label="Remove filter target" onClick={() => setQuery({ target: null })}>
                  <Icon name="close" />
                </button>
              </span>
            )}
            <Select label="Time" choices={SPANS} value={last} onChange={(value) => setQuery({ last: value, since: null, until: null, row: null })} />
            <CopyButton class="desk" text={() => location.href}>
              Copy link
            </CopyButton>
            <Button onClick={() => refresh("/audit?")}>Read again</Button>
          </div>
          {may && (
            <Loaded query={paged.first as Query<List<AuditRow>>} what="The audit log" rows={8}>
              {() =>
                paged.rows.length > 0 ? (
                  <Rows rows={paged.rows} open={open} />
                ) : (
                  <div class="sec">
                    <p>{narrowed ? "No row matches. Names and actions are compared as a whole." : "Nothing has been changed in this organization yet."}</p>
                    {narrowed && (
                      <p class="row8">
                        <Button small onClick={() => setQuery({ actor: null, action: null, target: null, since: null, until: null, last: null, row: null })}>
                          Clear the filter
                        </Button>
                      </p>
                    )}
                  </div>
                )
              }
            </Loaded>
          )}
          {may && paged.foot("row")}
        </>
      )}
    </SettingsPage>
  );
}
