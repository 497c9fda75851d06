/* Settings > Webhooks: what is told to programs elsewhere, whether it arrives, and what was not taken. */
import { useComputed, useSignal } from "@preact/signals";
import type { ViewProps } from "../app";
import { newIdempotencyKey, patch, request, type ApiError } from "../api";
import type { Webhook, WebhookCreated, WebhookDelivery } from "../identity-types";
import { refresh, useQuery, type Query } from "../store";
import { now, parse, span } from "../time";
import type { ClusterItem, List } from "../types";
import { Button, CheckBox, Field, SelectField } from "../ui/controls";
import { FactList, Section, Time } from "../ui/page";
import { Listing } from "../ui/listing";
import { Empty, Loaded, Note } from "../ui/states";
import { ask, asked, askNothing } from "./asked";
import { usePaged } from "./paged";
import { DURATION, orgName, problemOf, SecretDialog, SettingsPage } from "./settings";
import { VerbForm } from "./verb-form";

const LIST = "/webhooks?limit=50";
const NEEDS = { permission: "webhook.write", what: "webhooks" };

export const KINDS: readonly [kind: string, words: string][] = [
  ["repair.proposed", "A repair waits for a decision"],
  ["repair.approved", "A repair was approved"],
  ["repair.rejected", "A repair was rejected"],
  ["repair.begun", "A repair begins"],
  ["repair.succeeded", "A repair succeeded"],
  ["repair.failed", "A repair failed"],
  ["repair.cancelled", "A repair was cancelled"],
  ["repair.resolved", "A repair is not needed any more"],
  ["repair.unknown", "Nobody knows how a repair ended"],
  ["breaker.opened", "A breaker opened"],
  ["breaker.reset", "A breaker was reset"],
  ["repairs.stopped", "Repairs were stopped"],
  ["repairs.allowed", "Repairs are allowed again"],
  ["incident.opened", "An incident opened"],
  ["incident.closed", "An incident closed"],
  ["node.state_changed", "A node changed its state"],
];

const OVERLAPS = [
  { value: "1h", label: "1 hour more" },
  { value: "24h", label: "24 hours more" },
  { value: "7d", label: "7 days more" },
];

function tryWords(delivery: WebhookDelivery): string {
  const last = delivery.tries[delivery.tries.length - 1];
  return last ? last.error || `It answered ${last.status ?? ""}` : "Not tried yet";
}

/** One message, sent at once; what became of it is said beside the button. */
function TestButton({ webhook, after }: { webhook: { id: string; name: string }; after?: () => void }) {
  const busy = useSignal(false);
  const end = useSignal<WebhookDelivery | null>(null);
  const error = useSignal<ApiError | null>(null);
  const send = async () => {
    busy.value = true;
    error.value = null;
    end.value = null;
    try {
      end.value = (await request<WebhookDelivery>("POST", `/webhooks/${webhook.id}/test`, { body: {}, idempotencyKey: newIdempotencyKey() })).data;
      after?.();
    } catch (cause) {
      error.value = problemOf(cause);
    } finally {
      busy.value = false;
    }
  };
  const last = end.value?.tries[end.value.tries.length - 1];
  return (
    <div class="row8">
      <Button small label={`Send a test to ${webhook.name}`} busy={busy.value} onClick={() => void send()}>
        Send a test
      </Button>
      <span role="status" class={end.value?.state === "failed" || error.value ? "c-warning" : "t2"}>
        {busy.value && "Sending…"}
        {end.value && (end.value.state === "delivered" ? `It arrived: ${last?.status ?? ""} after ${last?.duration_ms ?? 0} ms.` : `It did not arrive. ${tryWords(end.value)}`)}
        {error.value && error.value.detail}
      </span>
    </div>
  );
}

function CreateDialog({ clusters, done }: { clusters: ClusterItem[]; done: (made: WebhookCreated) => void }) {
  const name = useSignal("");
  const url = useSignal("");
  const scope = useSignal("");
  const kinds = useSignal<readonly string[]>(["repair.proposed", "repair.unknown", "breaker.opened"]);
  const missing = !name.value.trim() ? "Give it a name first." : !url.value.trim() ? "Say where it is sent." : kinds.value.length === 0 ? "Choose what is told." : null;
  return (
    <VerbForm<WebhookCreated>
      title="Set up a webhook"
      lead="What happens from now on is told to this address, signed."
      path="/webhooks"
      body={() => ({ name: name.value.trim(), url: url.value.trim(), kinds: kinds.value, ...(scope.value ? { cluster_id: scope.value } : {}) })}
      verb="Set up webhook"
      disabled={missing}
      fields={["name", "url"]}
      onClose={askNothing}
      done={done}
    >
      {(error) => (
        <>
          <Field label="Name" name="name" required help="What it is for, like pager." value={name.value} onInput={(value) => (name.value = value)} error={error?.field("name")} />
          <Field label="Address" name="url" required help="https, and public unless the installation's owner allows it." value={url.value} onInput={(value) => (url.value = value)} error={error?.field("url")} />
          <SelectField
            label="Hears of"
            name="cluster_id"
            choices={[{ value: "", label: `All of ${orgName()}` }, ...clusters.map((one) => ({ value: one.id, label: `Only the cluster ${one.name}` }))]}
            value={scope.value}
            onChange={(value) => (scope.value = value)}
          />
          <fieldset class="field">
            <legend>Is told when</legend>
            {KINDS.map(([kind, words]) => (
              <CheckBox key={kind} label={words} checked={kinds.value.includes(kind)} onChange={(on) => (kinds.value = KINDS.map(([one]) => one).filter((one) => (one === kind ? on : kinds.value.includes(one))))} />
            ))}
          </fieldset>
        </>
      )}
    </VerbForm>
  );
}

function State({ webhook }: { webhook: Webhook }) {
  if (!webhook.enabled) {
    return <span class="c-warning">{webhook.disabled_at ? "disabled" : "off"}</span>;
  }
  return webhook.failures > 0 ? <span class="c-warning">{webhook.failures === 1 ? "the last try failed" : `the last ${webhook.failures} tries failed`}</span> : <>on</>;
}

function WebhooksList() {
  const paged = usePaged<Webhook>(LIST, { events: (type) => type.startsWith("webhook.") });
  const clusters = useQuery<List<ClusterItem>>("/clusters?limit=200");
  const names = useComputed(() => new Map(clusters.data.value?.items.map((one) => [one.id, one.name])));
  const made = useSignal<WebhookCreated | null>(null);
  const { what } = asked();
  return (
    <>
      <div class="filter">
        <Button kind="primary" onClick={() => ask("create")}>
          Set up a webhook…
        </Button>
      </div>
      <Loaded query={paged.first as Query<List<Webhook>>} what="The list of webhooks">
        {() =>
          paged.rows.length === 0 ? (
            <Empty title="No webhook yet">
              <p>A webhook tells a program of yours what happens here: a repair that waits for a decision, a breaker that opened. Each message is signed and sent until it is taken.</p>
            </Empty>
          ) : (
            <Listing
              name="Webhooks"
              rows={paged.rows}
              rowKey={(one) => one.id}
              columns={[
                {
                  key: "name",
                  head: "Name",
                  cell: (one) => (
                    <>
                      <a href={`/settings/webhooks/${one.id}`}>
                        <b>{one.name}</b>
                      </a>
                      <span class="sub">{one.url}</span>
                    </>
                  ),
                },
                { key: "state", head: "State", cell: (one) => <State webhook={one} /> },
                { key: "hears", head: "Hears of", cell: (one) => (one.cluster_id ? <a href={`/clusters/${one.cluster_id}`}>{names.value.get(one.cluster_id) ?? "a cluster"}</a> : `all of ${orgName()}`) },
                { key: "kinds", head: "Kinds", class: "nw", cell: (one) => `${one.kinds.length} of ${KINDS.length}` },
                { key: "taken", head: "Last taken", class: "nw", cell: (one) => <Time iso={one.delivered_at} form="ago" /> },
                { key: "by", head: "Made by", class: "mid-only", cell: (one) => one.created_by },
              ]}
            />
          )
        }
      </Loaded>
      {paged.foot("webhook")}
      {what === "create" && (
        <CreateDialog
          clusters={clusters.data.value?.items ?? []}
          done={(one) => {
            made.value = one;
            refresh(LIST);
            askNothing();
          }}
        />
      )}
      {made.value && <Secret made={made.value} onClose={() => (made.value = null)} />}
    </>
  );
}

function Secret({ made, onClose }: { made: WebhookCreated; onClose: () => void }) {
  return (
    <SecretDialog
      title={`The secret of ${made.name}`}
      lead="The receiver verifies with it what it is sent. Keep it there."
      secret={made.secret}
      label="The secret"
      after={<TestButton webhook={made} />}
      onClose={onClose}
    />
  );
}

function Deliveries({ webhook }: { webhook: Webhook }) {
  const first = `/webhooks/${webhook.id}/deliveries?limit=50`;
  const paged = usePaged<WebhookDelivery>(first, { events: (type) => type.startsWith("webhook.") });
  const error = useSignal<ApiError | null>(null);
  const again = async (delivery: WebhookDelivery) => {
    error.value = null;
    try {
      await request("POST", `/webhooks/${webhook.id}/deliveries/${delivery.id}/redeliver`, { body: {}, idempotencyKey: newIdempotencyKey() });
      refresh(first);
    } catch (cause) {
      error.value = problemOf(cause);
    }
  };
  const off = webhook.enabled ? null : "It is disabled.";
  return (
    <Section
      title="Deliveries"
      hint="of the last 30 days, newest first"
      end={
        <Button small onClick={() => refresh(first)}>
          Read again
        </Button>
      }
    >
      {error.value && (
        <Note tone="bad" alert title={`${error.value.title}.`}>
          <p class="t2">{error.value.detail}</p>
        </Note>
      )}
      <Loaded query={paged.first as Query<List<WebhookDelivery>>} what="The deliveries">
        {() =>
          paged.rows.length === 0 ? (
            <Empty title="Nothing was sent yet" level={2}>
              <p>What happens from now on and is of its kinds will be listed here.</p>
            </Empty>
          ) : (
            <Listing
              name="Deliveries"
              rows={paged.rows}
              rowKey={(one) => one.id}
              columns={[
                {
                  key: "kind",
                  head: "What",
                  cell: (one) => (
                    <>
                      <b>{one.kind}</b>
                      <span class="sub">{one.body.data.summary}</span>
                    </>
                  ),
                },
                {
                  key: "state",
                  head: "State",
                  cell: (one) => (
                    <>
                      <span class={one.state === "failed" ? "c-warning" : undefined}>{one.state}</span>
                      {one.state !== "delivered" && <span class="sub">{tryWords(one)}</span>}
                    </>
                  ),
                },
                { key: "tries", head: "Tries", class: "nw", number: true, cell: (one) => one.attempts },
                { key: "took", head: "Took", class: "nw", number: true, cell: (one) => `${one.tries[one.tries.length - 1]?.duration_ms ?? 0} ms` },
                { key: "at", head: "Made", class: "nw", cell: (one) => <Time iso={one.created_at} form="ago" /> },
                { key: "next", head: "Next try", class: "nw", cell: (one) => <Time iso={one.next_at} form="left" none="none" /> },
                {
                  key: "do",
                  head: <span class="vh">Actions</span>,
                  class: "nw num",
                  cell: (one) => (
                    <Button small label={`Send again ${one.kind} of ${one.created_at}`} disabled={off} showReason={false} onClick={() => void again(one)}>
                      Send again
                    </Button>
                  ),
                },
              ]}
            />
          )
        }
      </Loaded>
      {paged.foot("delivery", "deliveries")}
    </Section>
  );
}

function WebhookFacts({ webhook, query }: { webhook: Webhook; query: Query<Webhook> }) {
  const error = useSignal<ApiError | null>(null);
  const set = async (enabled: boolean) => {
    error.value = null;
    try {
      query.put(await patch<Webhook>(`/webhooks/${webhook.id}`, { enabled }, webhook.version));
      refresh(LIST);
    } catch (cause) {
      error.value = problemOf(cause);
      void query.read();
    }
  };
  const until = parse(webhook.previous_until);
  return (
    <>
      {webhook.disabled_at && !webhook.enabled && (
        <Note tone="warn" title="Muster disabled this webhook.">
          <p class="t2">{webhook.disabled_reason} Enabled again, it sends what waited and tells what happens from then on.</p>
        </Note>
      )}
      {error.value && (
        <Note tone="bad" alert title={`${error.value.title}.`}>
          <p class="t2">{error.value.detail}</p>
        </Note>
      )}
      <FactList
        wide
        facts={[
          ["Address", webhook.url],
          ["State", <State webhook={webhook} />],
          ["Told when", webhook.kinds.map((kind) => KINDS.find(([one]) => one === kind)?.[1] ?? kind).join("; ")],
          ["Last taken", <Time iso={webhook.delivered_at} form="ago" />],
          until !== null && until > now.value && ["Secrets", `The one before signs too, for ${span(until - now.value)} more`],
        ]}
      />
      <div class="row8">
        <TestButton webhook={webhook} after={() => refresh(`/webhooks/${webhook.id}/deliveries?limit=50`)} />
        <Button small onClick={() => void set(!webhook.enabled)}>
          {webhook.enabled ? "Disable" : "Enable"}
        </Button>
        <Button small onClick={() => ask("rotate")}>
          Rotate the secret…
        </Button>
        <Button small onClick={() => ask("remove")}>
          Remove…
        </Button>
      </div>
    </>
  );
}

function RotateDialog({ webhook, done }: { webhook: Webhook; done: (made: WebhookCreated) => void }) {
  const overlap = useSignal("24h");
  return (
    <VerbForm<WebhookCreated>
      title={`Give ${webhook.name} a new secret`}
      lead="For a while each message has two signatures, so that the receiver can be changed in between."
      path={`/webhooks/${webhook.id}/rotate`}
      body={() => ({ overlap_seconds: DURATION[overlap.value] })}
      verb={`Rotate ${webhook.name}`}
      onClose={askNothing}
      done={done}
    >
      {() => <SelectField label="The present secret signs" name="overlap_seconds" choices={OVERLAPS} value={overlap.value} onChange={(value) => (overlap.value = value)} />}
    </VerbForm>
  );
}

function OneWebhook({ id }: { id: string }) {
  const path = `/webhooks/${id}`;
  const query = useQuery<Webhook>(path, { events: (type) => type.startsWith("webhook.") });
  const made = useSignal<WebhookCreated | null>(null);
  const gone = useSignal(false);
  const { what } = asked();
  if (gone.value) {
    return (
      <Note tone="neutral" title="It is removed.">
        <p class="t2">
          <a href="/settings/webhooks">All webhooks</a>
        </p>
      </Note>
    );
  }
  return (
    <Loaded query={query} what="The webhook">
      {(webhook) => (
        <>
          <Section title={webhook.name}>
            <WebhookFacts webhook={webhook} query={query} />
          </Section>
          <Deliveries webhook={webhook} />
          {what === "rotate" && (
            <RotateDialog
              webhook={webhook}
              done={(one) => {
                made.value = one;
                refresh(path);
                askNothing();
              }}
            />
          )}
          {what === "remove" && (
            <VerbForm
              title={`Remove ${webhook.name}`}
              path={path}
              method="DELETE"
              verb={`Remove ${webhook.name}`}
              binds="What waits is not sent, and its deliveries are forgotten."
              onClose={askNothing}
              done={() => {
                gone.value = true;
                refresh(LIST);
                askNothing();
              }}
            >
              {() => <p>It was made by {webhook.created_by}.</p>}
            </VerbForm>
          )}
          {made.value && <Secret made={made.value} onClose={() => (made.value = null)} />}
        </>
      )}
    </Loaded>
  );
}

export function WebhooksPage({ params }: ViewProps) {
  const id = params.webhook;
  return (
    <SettingsPage title="Webhooks" parts={[<><b>Webhooks</b> of {orgName()}</>, id ? <a href="/settings/webhooks">all webhooks</a> : "what is told to programs elsewhere"]} needs={NEEDS}>
      {() => (id ? <OneWebhook key={id} id={id} /> : <WebhooksList />)}
    </SettingsPage>
  );
}
