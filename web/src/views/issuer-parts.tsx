/* What the wizard and the page of an issuer share: lines of checks, the discovery check, the state of the keys. */
import { useSignal } from "@preact/signals";
import { post, type ApiError } from "../api";
import { counted } from "../format";
import type { CheckedLine, Discovered, Issuer } from "../identity-types";
import { Button } from "../ui/controls";
import { Time } from "../ui/page";
import { CheckLines } from "../ui/records";
import { Note } from "../ui/states";
import { lacks } from "./asked";
import { problemOf } from "./settings";

const CHECK_WORDS: Record<string, string> = {
  url: "Address", address: "Address", https: "https", reachable: "Reachable", document: "Document", issuer: "Issuer, byte for byte", endpoints: "Endpoints",
  jwks: "Keys", keys: "Keys", algorithms: "Algorithms", flow: "Flow", pkce: "PKCE", format: "Format", signature: "Signature", audience: "Audience",
  type: "Type", party: "Party", time: "Time", nonce: "Nonce", subject: "Subject", required: "Required claims", email: "Address verified",
  username: "User name", groups: "Groups", reserved: "Reserved names", user: "User rules", scopes: "Scopes",
};

export function Lines({ lines, label, fix }: { lines: CheckedLine[]; label: string; fix?: string | null }) {
  return (
    <CheckLines
      label={label}
      items={lines.map((line) => ({
        name: CHECK_WORDS[line.check] ?? line.check.replace(/_/g, " "),
        weight: line.passed === null ? "neutral" : line.passed ? "good" : "bad",
        value: line.passed === null ? <span class="t3">not reached</span> : <span class="brk">{line.detail}</span>,
        ...(line.passed === false && fix ? { fix } : {}),
      }))}
    />
  );
}

/** Fetches the provider's documents as the server would, and says each thing that was looked at. */
export function Discovery(props: { issuer: string; discoveryUrl?: string | null; caCertificate?: string | null; onFound?: (passed: boolean) => void }) {
  const found = useSignal<{ of: string; answer: Discovered } | null>(null);
  const error = useSignal<ApiError | null>(null);
  const busy = useSignal(false);
  const check = async () => {
    busy.value = true;
    error.value = null;
    try {
      const answer = await post<Discovered>("/issuers/discover", {
        issuer: props.issuer,
        ...(props.discoveryUrl ? { discovery_url: props.discoveryUrl } : {}),
        ...(props.caCertificate ? { ca_certificate: props.caCertificate } : {}),
      });
      found.value = { of: props.issuer, answer };
      props.onFound?.(answer.lines.every((line) => line.passed !== false));
    } catch (cause) {
      error.value = problemOf(cause);
    } finally {
      busy.value = false;
    }
  };
  const shown = found.value?.of === props.issuer ? found.value.answer : null;
  const bad = shown?.lines.filter((line) => line.passed === false).length ?? 0;
  return (
    <div class="stack">
      <p class="row8">
        <Button busy={busy.value} disabled={lacks("issuer.write") ?? (props.issuer ? null : "Answer the questions above first.")} onClick={() => void check()}>
          {busy.value ? "Asking the provider…" : shown ? "Check again" : "Check the provider"}
        </Button>
        {shown && <span class="s12 t2">{bad ? `${counted(bad, "line fails", "lines fail")}.` : "All lines pass."}</span>}
      </p>
      {error.value && (
        <Note tone="bad" alert title={`${error.value.title}.`}>
          <p class="t2">
            {error.value.detail} {error.value.errors.map((one) => one.detail).join(" ")}
          </p>
        </Note>
      )}
      {shown && <Lines lines={shown.lines} label="What the provider says" />}
    </div>
  );
}

/** "3 keys, read 5 min ago", or what is wrong. */
export function KeysState({ issuer }: { issuer: Issuer }) {
  const { keys } = issuer;
  if (!keys.fetched_at) {
    return keys.error ? <span class="c-unhealthy">no keys: {keys.error}</span> : <span class="t3">not read yet</span>;
  }
  return (
    <span class={keys.stale || keys.error ? "c-warning" : undefined}>
      {counted(keys.count, "key")}, read <Time iso={keys.fetched_at} form="ago" />
      {keys.error && `; not since: ${keys.error}`}
    </span>
  );
}

export function useOf(issuer: Issuer): string {
  const uses = [issuer.sign_in && "sign-in", issuer.bearer && "API tokens"].filter(Boolean).join(", ");
  return issuer.enabled ? uses || "nothing" : "off";
}
