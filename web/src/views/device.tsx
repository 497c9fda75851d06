/* A program at a command line that waits to be let in: who asks, from where, and yes or no. */
import { useEffect } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { get, post, type ApiError } from "../api";
import type { DeviceRequest } from "../identity-types";
import { navigate, query } from "../router";
import { me } from "../session";
import { Button, Field } from "../ui/controls";
import { FactList, PageSentence, Time } from "../ui/page";
import { Shell } from "../ui/shell";
import { ErrorNote, Note, Skeleton } from "../ui/states";
import { roleTitle } from "./roles";
import { orgName, problemOf } from "./settings";

/** As the server writes it: lower case, with the dash that people leave out. */
export function readCode(text: string): string {
  const letters = text.toLowerCase().replace(/[^a-z0-9]/g, "");
  return letters.length === 8 ? `${letters.slice(0, 4)}-${letters.slice(4)}` : letters;
}

function AskCode({ wrong }: { wrong: string | null }) {
  const code = useSignal(wrong ?? "");
  const given = readCode(code.value);
  return (
    <form
      class="sec form1 stack"
      onSubmit={(event) => {
        event.preventDefault();
        if (given) {
          navigate(`/device?code=${encodeURIComponent(given)}`);
        }
      }}
    >
      <Field label="Code" name="code" placeholder="bcdf-ghjk" help="The program shows it. It holds for ten minutes." value={code.value} onInput={(value) => (code.value = value)} error={wrong ? "No program waits with this code. It may be mistyped, used or older than ten minutes." : null} />
      <p>
        <Button kind="primary" type="submit" disabled={given ? null : "Type the code first."}>
          Look it up
        </Button>
      </p>
    </form>
  );
}

function Decide({ request, decided }: { request: DeviceRequest; decided: (answer: DeviceRequest) => void }) {
  const error = useSignal<ApiError | null>(null);
  const busy = useSignal(false);
  const decide = async (decision: "approve" | "deny") => {
    busy.value = true;
    error.value = null;
    try {
      decided(await post<DeviceRequest>(`/device-codes/${request.user_code}`, { decision }));
    } catch (cause) {
      error.value = problemOf(cause);
    } finally {
      busy.value = false;
    }
  };
  return (
    <div class="sec form1 stack">
      <FactList
        facts={[
          ["Code", <b class="mono">{request.user_code}</b>],
          ["Program", request.client],
          ["From", request.address],
          ["Asked", <Time iso={request.created_at} form="ago" />],
          ["Holds for", <Time iso={request.expires_at} form="left" />],
        ]}
      />
      <Note tone="warn" title={`It will act as ${me.value?.name ?? "you"} in ${orgName()} for 12 hours.`}>
        <p class="t2">
          With all that you may do: {me.value?.roles.map(roleTitle).join(", ").toLowerCase() || "no role"}. Allow it only if you started it yourself just now, and the code there is the same.
        </p>
      </Note>
      {error.value && (
        <Note tone="bad" alert title={`${error.value.title}.`}>
          <p class="t2">{error.value.detail}</p>
        </Note>
      )}
      <p class="row8">
        <Button busy={busy.value} onClick={() => void decide("deny")}>
          Do not let it in
        </Button>
        <Button kind="primary" busy={busy.value} onClick={() => void decide("approve")}>
          Let {request.client} in
        </Button>
      </p>
    </div>
  );
}

function Done({ request }: { request: DeviceRequest }) {
  const allowed = request.state === "approved";
  return (
    <div class="sec form1">
      <Note tone={allowed ? "good" : "neutral"} title={allowed ? `${request.client} is let in.` : `${request.client} is not let in.`}>
        <p class="t2">
          {allowed ? (
            <>
              It goes on by itself; this page can be closed. Its session is among those of <a href="/account">your account</a>.
            </>
          ) : (
            "It has been told so. Nobody has been signed in."
          )}
        </p>
      </Note>
    </div>
  );
}

export function DevicePage() {
  const code = readCode(query.value.get("code") ?? query.value.get("user_code") ?? "");
  const request = useSignal<DeviceRequest | null>(null);
  const error = useSignal<ApiError | null>(null);
  const look = async () => {
    request.value = null;
    error.value = null;
    try {
      request.value = await get<DeviceRequest>(`/device-codes/${encodeURIComponent(code)}`);
    } catch (cause) {
      error.value = problemOf(cause);
    }
  };
  useEffect(() => {
    document.title = "Let a program in · Muster";
    if (code) {
      void look();
    } else {
      request.value = null;
      error.value = null;
    }
  }, [code]);
  const found = request.value;
  const unknown = error.value?.status === 404 || error.value?.status === 422 || error.value?.status === 400;
  const title = !found ? "Let a program in" : found.state === "pending" ? `Let ${found.client} in?` : found.state === "approved" ? "Let in" : "Not let in";
  return (
    <Shell scope={{}}>
      <PageSentence parts={[<b>{title}</b>, found ? `it asks from ${found.address}` : "that signs in at a command line"]} announce={title} />
      {found ? (
        found.state === "pending" ? (
          <Decide request={found} decided={(answer) => (request.value = answer)} />
        ) : (
          <Done request={found} />
        )
      ) : error.value && !unknown ? (
        <div class="sec">
          <ErrorNote error={error.value} what="What this code asks for" retry={() => void look()} />
        </div>
      ) : code && !error.value ? (
        <div class="sec">
          <Skeleton rows={4} label="what this code asks for" />
        </div>
      ) : (
        <AskCode key={code} wrong={code || null} />
      )}
    </Shell>
  );
}
