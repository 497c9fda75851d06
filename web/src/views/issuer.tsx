/* One identity provider: its steps from the issuer to activation, each a form of its own that the address names. */
import type { ComponentChildren, ComponentType } from "preact";
import { useSignal } from "@preact/signals";
import type { ViewProps } from "../app";
import { patch, request, type ApiError } from "../api";
import type { Issuer } from "../identity-types";
import { navigate, query } from "../router";
import { refresh, useQuery, type Query } from "../store";
import { Button, CheckBox, Command, Field } from "../ui/controls";
import { FactList, Section, Time } from "../ui/page";
import { Icon } from "../ui/icons";
import { Loaded, Note } from "../ui/states";
import { ask, asked, askNothing, lacks } from "./asked";
import { Discovery, KeysState, useOf } from "./issuer-parts";
import { IssuerClaims } from "./issuer-claims";
import { testedOf, TokenTester } from "./token-tester";
import { MissingPage } from "./missing";
import { presetOf } from "./presets";
import { problemOf, SettingsPage } from "./settings";
import { VerbForm } from "./verb-form";

export interface StepProps {
  issuer: Issuer;
  save: Save;
}

export interface Save {
  /** sends the fields with the version that is shown; true when they were taken */
  send: (fields: Record<string, unknown>) => Promise<boolean>;
  error: ApiError | null;
  busy: boolean;
  /** why nothing can be changed, or null */
  off: string | null;
}

function useSave(query: Query<Issuer>): Save {
  const error = useSignal<ApiError | null>(null);
  const busy = useSignal(false);
  const send = async (fields: Record<string, unknown>) => {
    const issuer = query.data.peek();
    if (!issuer || busy.peek()) {
      return false;
    }
    busy.value = true;
    error.value = null;
    try {
      query.put(await patch<Issuer>(`/issuers/${issuer.id}`, fields, issuer.version));
      refresh("/issuers?");
      return true;
    } catch (cause) {
      error.value = problemOf(cause);
      if (error.value.status === 412) {
        await query.read();
      }
      return false;
    } finally {
      busy.value = false;
    }
  };
  return { send, error: error.value, busy: busy.value, off: lacks("issuer.write") };
}

/** What a refused change says, with the fields that have no place of their own. */
export function SaveError({ save, fields }: { save: Save; fields: readonly string[] }) {
  if (!save.error) {
    return null;
  }
  const others = save.error.errors.filter((one) => !fields.includes((one.pointer ?? "").slice(2).split("/")[0] ?? ""));
  return (
    <Note tone="bad" alert title={`${save.error.title}.`}>
      <p class="t2">
        {save.error.detail} {save.error.status === 412 ? "The steps show the newer state, and what you typed is still here: save again if it holds." : ""}
      </p>
      {others.map((one) => (
        <p class="t2" key={one.pointer}>
          {(one.pointer ?? "").slice(2)} {one.detail}
        </p>
      ))}
    </Note>
  );
}

/** The buttons below a step: save, and go on when that worked. */
export function StepFoot({ save, next, onSave, children }: { save: Save; next: string; onSave: () => Promise<boolean>; children?: ComponentChildren }) {
  return (
    <p class="row8">
      <Button kind="primary" busy={save.busy} disabled={save.off} onClick={() => void onSave().then((taken) => taken && goTo(next))}>
        Save and go on
      </Button>
      {children}
    </p>
  );
}

function goTo(step: string): void {
  const next = new URLSearchParams(query.peek());
  next.set("step", step);
  navigate(`${location.pathname}?${next.toString()}`);
}

function IssuerStep({ issuer, save }: StepProps) {
  const url = useSignal(issuer.issuer);
  const title = useSignal(issuer.title);
  const name = useSignal(issuer.name);
  const discovery = useSignal(issuer.discovery_url ?? "");
  const authority = useSignal(issuer.ca_certificate ?? "");
  const field = (key: string) => save.error?.field(key);
  return (
    <div class="stack form1">
      <Field label="Issuer" name="issuer" required help="iss of its tokens, byte for byte; a slash at the end counts." value={url.value} onInput={(value) => (url.value = value)} error={field("issuer")} />
      <Discovery issuer={url.value} discoveryUrl={discovery.value} caCertificate={authority.value} />
      <Field label="Title" name="title" help={`On the button: Sign in with ${title.value || "…"}`} value={title.value} onInput={(value) => (title.value = value)} error={field("title")} />
      <Field label="Short name" name="name" required value={name.value} onInput={(value) => (name.value = value)} error={field("name")} />
      <details open={!!(issuer.discovery_url || issuer.ca_certificate)}>
        <summary>Its documents are somewhere else, or have a certificate of our own authority</summary>
        <div class="stack gap12">
          <Field label="Discovery address" name="discovery_url" help="Where its documents are fetched; empty: below the issuer." value={discovery.value} onInput={(value) => (discovery.value = value)} error={field("discovery_url")} />
          <Field label="Authorities (PEM)" name="ca_certificate" multiline help="The only ones trusted for this provider; empty: those of the system." value={authority.value} onInput={(value) => (authority.value = value)} error={field("ca_certificate")} />
        </div>
      </details>
      <SaveError save={save} fields={["issuer", "title", "name", "discovery_url", "ca_certificate"]} />
      <StepFoot save={save} next="client" onSave={() => save.send({ issuer: url.value.trim(), title: title.value.trim(), name: name.value.trim(), discovery_url: discovery.value.trim() || null, ca_certificate: authority.value.trim() || null })} />
    </div>
  );
}

function ClientStep({ issuer, save }: StepProps) {
  const id = useSignal(issuer.client_id ?? "");
  const secret = useSignal("");
  const scopes = useSignal(issuer.scopes.join(" "));
  const field = (key: string) => save.error?.field(key);
  const send = async () => {
    const taken = await save.send({ client_id: id.value.trim() || null, scopes: scopes.value.split(/[\s,]+/).filter(Boolean), ...(secret.value ? { client_secret: secret.value } : {}) });
    if (taken) {
      secret.value = "";
    }
    return taken;
  };
  return (
    <div class="stack form1">
      <p class="t2">{presetOf(issuer.preset).client}</p>
      <div>
        <p class="lbl">Redirect URI, to copy into the provider</p>
        <Command text={issuer.redirect_uri} label="Redirect URI" />
      </div>
      <div>
        <p class="lbl">Address after signing out, where it asks for one</p>
        <Command text={`${new URL(issuer.redirect_uri).origin}/sign-in`} label="Address after signing out" />
      </div>
      <div>
        <p class="lbl">Back-channel logout URI, where the provider has one</p>
        <Command text={issuer.backchannel_logout_uri} label="Back-channel logout URI" />
      </div>
      <Field label="Client id" name="client_id" help="What the provider shows after the client is made." value={id.value} onInput={(value) => (id.value = value)} error={field("client_id")} />
      <Field
        label="Client secret"
        name="client_secret"
        help={issuer.client_secret_set ? "One is set. Leave this empty to keep it; it cannot be read back." : "It is sealed and cannot be read back. Leave it empty for a public client."}
        value={secret.value}
        onInput={(value) => (secret.value = value)}
        error={field("client_secret")}
      />
      <Field label="Scopes" name="scopes" help="openid is always asked for; groups is often a scope of its own; offline_access lets a change of groups count during a session." value={scopes.value} onInput={(value) => (scopes.value = value)} error={field("scopes")} />
      <SaveError save={save} fields={["client_id", "client_secret", "scopes"]} />
      <StepFoot save={save} next="claims" onSave={send} />
    </div>
  );
}

function ClaimsStep({ issuer, save }: StepProps) {
  return <IssuerClaims issuer={issuer} save={save} />;
}

function TestStep({ issuer }: StepProps) {
  return <TokenTester issuer={issuer} />;
}

function RefreshKeys({ issuer }: { issuer: Issuer }) {
  const error = useSignal<ApiError | null>(null);
  const busy = useSignal(false);
  const read = async () => {
    busy.value = true;
    error.value = null;
    try {
      await request("POST", `/issuers/${issuer.id}/refresh-keys`, { body: {} });
      refresh(`/issuers/${issuer.id}`);
    } catch (cause) {
      error.value = problemOf(cause);
    } finally {
      busy.value = false;
    }
  };
  return (
    <>
      <p class="row8">
        <Button small busy={busy.value} disabled={lacks("issuer.write")} onClick={() => void read()}>
          {busy.value ? "Reading…" : "Read the keys now"}
        </Button>
      </p>
      {error.value && <p class="s12 c-unhealthy gap4">{error.value.detail || error.value.title}</p>}
    </>
  );
}

function ActivateStep({ issuer, save }: StepProps) {
  const sure = useSignal(false);
  const tested = testedOf(issuer.id);
  const signIn = useSignal(issuer.sign_in);
  const bearer = useSignal(issuer.bearer);
  const changed = signIn.value !== issuer.sign_in || bearer.value !== issuer.bearer;
  const missing = signIn.value && !issuer.client_id ? "People sign in with a client: fill in the step Client first." : !signIn.value && !bearer.value ? "Say what it is used for first." : null;
  const untested = !issuer.enabled && !tested && !sure.value ? "Test a token first, or tick that you do without." : null;
  return (
    <div class="stack form1">
      <div>
        <p>
          <CheckBox label="People may sign in to the console with it" checked={signIn.value} onChange={(value) => (signIn.value = value)} />
        </p>
        <p>
          <CheckBox label="The API takes its tokens (automation)" checked={bearer.value} onChange={(value) => (bearer.value = value)} />
        </p>
      </div>
      {!issuer.enabled && (
        <div>
          {tested ? (
            <p class="st wrap">
              <Icon name="tick" tone="good" /> <span>A token of {tested} passed all checks.</span>
            </p>
          ) : (
            <CheckBox label="I have not tested a token. Activate it all the same" checked={sure.value} onChange={(value) => (sure.value = value)} />
          )}
        </div>
      )}
      <SaveError save={save} fields={[]} />
      <p class="row8">
        {issuer.enabled ? (
          <>
            <Button kind="primary" busy={save.busy} disabled={save.off ?? missing ?? (changed ? null : "Nothing is changed.")} onClick={() => void save.send({ sign_in: signIn.value, bearer: bearer.value })}>
              Save
            </Button>
            <Button disabled={save.off} onClick={() => ask("deactivate")}>
              Deactivate…
            </Button>
          </>
        ) : (
          <Button kind="primary" busy={save.busy} disabled={save.off ?? missing ?? untested} onClick={() => void save.send({ sign_in: signIn.value, bearer: bearer.value, enabled: true })}>
            Activate {issuer.title || issuer.name}
          </Button>
        )}
        <Button disabled={save.off} showReason={false} onClick={() => ask("remove")}>
          Remove…
        </Button>
      </p>
      <p class="s12 t3">Signing in with a link from the server stays possible: musterd sign-in-link.</p>
    </div>
  );
}

const STEPS: readonly { key: string; label: string; told: (issuer: Issuer) => string; view: ComponentType<StepProps> }[] = [
  { key: "issuer", label: "Issuer", told: (issuer) => issuer.issuer.replace(/^https:\/\//, ""), view: IssuerStep },
  { key: "client", label: "Client", told: (issuer) => issuer.client_id ?? "none yet", view: ClientStep },
  { key: "claims", label: "Claims", told: (issuer) => [issuer.username_claim, issuer.groups_path ?? issuer.groups_claim ?? "no groups"].join(", "), view: ClaimsStep },
  { key: "test", label: "Test a token", told: (issuer) => testedOf(issuer.id) ?? "not yet in this browser", view: TestStep },
  { key: "activate", label: "Activate", told: (issuer) => useOf(issuer), view: ActivateStep },
];

function isDone(key: string, issuer: Issuer): boolean {
  switch (key) {
    case "client":
      return !!issuer.client_id;
    case "test":
      return testedOf(issuer.id) !== null;
    case "activate":
      return issuer.enabled;
    default:
      return true;
  }
}

function StepNav({ issuer, current }: { issuer: Issuer; current: string }) {
  return (
    <nav aria-label="Steps" class="stepnav">
      <ol>
        {STEPS.map((step, i) => (
          <li key={step.key}>
            <a href={`/settings/identity/${issuer.id}?step=${step.key}`} aria-current={step.key === current ? "step" : undefined} class={isDone(step.key, issuer) ? "done" : undefined}>
              <i aria-hidden="true">{isDone(step.key, issuer) ? <Icon name="tick" /> : i + 1}</i>
              <span>
                {step.label}
                {isDone(step.key, issuer) && <span class="vh">, done</span>}
                <span class="sub brk">{step.told(issuer)}</span>
              </span>
            </a>
          </li>
        ))}
      </ol>
    </nav>
  );
}

function Facts({ issuer }: { issuer: Issuer }) {
  return (
    <Section title="State">
      <FactList
        facts={[
          ["Used for", issuer.enabled ? useOf(issuer) : "nothing: it is a draft or was deactivated"],
          ["Keys", <KeysState issuer={issuer} />],
          issuer.keys.unusable.length > 0 && ["Left out", issuer.keys.unusable.map((key) => `${key.kid ?? "without an id"}: ${key.reason.replace(/_/g, " ")}`).join("; ")],
          ["Made by", issuer.created_by],
          ["Changed", <Time iso={issuer.updated_at} form="moment" />],
        ]}
      />
      <RefreshKeys issuer={issuer} />
    </Section>
  );
}

function Dialogs({ issuer, save }: StepProps) {
  const { what } = asked();
  const name = issuer.title || issuer.name;
  if (what === "remove") {
    return (
      <VerbForm
        title={`Remove ${name}`}
        lead="Its tokens are refused within 5 seconds, and the roles of its groups go."
        path={`/issuers/${issuer.id}`}
        method="DELETE"
        verb={`Remove ${name}`}
        binds="Who came by it is known again when the same issuer is set up anew."
        onClose={askNothing}
        done={() => {
          refresh("/issuers?");
          navigate("/settings/identity");
        }}
      >
        {() => <p>{issuer.sign_in && issuer.enabled ? "Nobody can sign in with it any more." : "Nobody signs in with it now."} Signing in with a link from the server stays possible.</p>}
      </VerbForm>
    );
  }
  if (what === "deactivate") {
    return (
      <VerbForm
        title={`Deactivate ${name}`}
        lead="Nobody can sign in with it, and the API refuses its tokens, until it is activated again."
        path={`/issuers/${issuer.id}`}
        send={() => save.send({ enabled: false })}
        verb={`Deactivate ${name}`}
        binds="Everything that is set stays."
        onClose={askNothing}
        done={askNothing}
      >
        {() => <p>Roles that come by its groups rest meanwhile. Make sure that somebody else can sign in: a link from the server always works.</p>}
      </VerbForm>
    );
  }
  return null;
}

export function IssuerPage({ params }: ViewProps) {
  const issuer = useQuery<Issuer>(`/issuers/${params.issuer ?? ""}`, { events: (type) => type.startsWith("issuer."), everyMs: 30_000 });
  const save = useSave(issuer);
  const step = STEPS.find((one) => one.key === query.value.get("step")) ?? (STEPS[0] as (typeof STEPS)[number]);
  const data = issuer.data.value;
  if (issuer.error.value?.status === 404) {
    return <MissingPage />;
  }
  const View = step.view;
  return (
    <SettingsPage
      title={data ? data.title || data.name : "Identity provider"}
      parts={data ? [<b>{data.title || data.name}</b>, data.enabled ? `used for ${useOf(data) || "nothing"}` : "a draft: nobody depends on it yet"] : [<b>Identity provider</b>]}
      needs={{ permission: "issuer.read", what: "this identity provider" }}
      actions={<a class="btn" href="/settings/identity">All providers</a>}
    >
      {() => (
        <Loaded query={issuer} what="This identity provider" rows={8}>
          {(one) => (
            <div class="stepped">
              <div>
                <StepNav issuer={one} current={step.key} />
              </div>
              <Section title={step.label} hint={step.key === "test" ? "read in memory, never stored, not in any log" : presetOf(one.preset).title}>
                <View key={`${one.id}-${step.key}`} issuer={one} save={save} />
              </Section>
              {step.key !== "test" && <Facts issuer={one} />}
              <Dialogs issuer={one} save={save} />
            </div>
          )}
        </Loaded>
      )}
    </SettingsPage>
  );
}

