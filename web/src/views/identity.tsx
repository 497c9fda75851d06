/* Settings > Identity: the identity providers of this organization, and adding one. */
import { useEffect } from "preact/hooks";
import { useSignal } from "@preact/signals";
import type { ViewProps } from "../app";
import { newIdempotencyKey, post, type ApiError } from "../api";
import type { Issuer } from "../identity-types";
import { navigate, query, setQuery } from "../router";
import { refresh, type Query } from "../store";
import type { List } from "../types";
import { Button, Command, Field, Options } from "../ui/controls";
import { Section } from "../ui/page";
import { Empty, Loaded, Note } from "../ui/states";
import { Listing } from "../ui/listing";
import { lacks } from "./asked";
import { Discovery, KeysState, useOf } from "./issuer-parts";
import { usePaged } from "./paged";
import { firstAnswers, PRESETS, presetOf } from "./presets";
import { orgName, problemOf, SettingsPage } from "./settings";

const DRAFT = "muster-issuer-draft";
const NEEDS = { permission: "issuer.read", what: "identity providers" };

function AddButton() {
  const off = lacks("issuer.write");
  return off ? (
    <Button disabled={off}>Add a provider…</Button>
  ) : (
    <a class="btn primary" href="/settings/identity/new">
      Add a provider…
    </a>
  );
}

function Providers() {
  const paged = usePaged<Issuer>("/issuers?limit=50", { events: (type) => type.startsWith("issuer."), everyMs: 30_000 });
  return (
    <>
      <Loaded query={paged.first as Query<List<Issuer>>} what="The list of identity providers">
        {() =>
          paged.rows.length === 0 ? (
            <Empty title="Let your team sign in with its own identity provider">
              <p>Until then people sign in with a link that is made on the server. That stays possible, for the day on which the provider is out.</p>
              <p class="row8 gap16">
                <AddButton />
              </p>
            </Empty>
          ) : (
            <div class="gap16">
              <Listing
                name="Identity providers"
                rows={paged.rows}
                rowKey={(one) => one.id}
                columns={[
                  { key: "title", head: "Provider", cell: (one) => <a class="name" href={`/settings/identity/${one.id}`}>{one.title || one.name}</a> },
                  { key: "preset", head: "Kind", class: "nw mid-only", cell: (one) => presetOf(one.preset).title },
                  { key: "issuer", head: "Issuer", cell: (one) => <span class="mono brk">{one.issuer}</span> },
                  { key: "use", head: "Used for", class: "nw", cell: (one) => (one.enabled ? useOf(one) : <span class="t3">off</span>) },
                  { key: "keys", head: "Keys", cell: (one) => <KeysState issuer={one} /> },
                ]}
              />
            </div>
          )
        }
      </Loaded>
      {paged.foot("provider")}
    </>
  );
}

export function IdentityPage() {
  return (
    <SettingsPage title="Identity" parts={[<><b>Identity</b> of {orgName()}</>, "who may sign in, and with what"]} needs={NEEDS} actions={<AddButton />}>
      {() => <Providers />}
    </SettingsPage>
  );
}

interface Draft {
  preset: string;
  answers: Record<string, string>;
  title: string;
  name: string;
  client: string;
}

/** What was typed, kept over a reload; there is no secret in it. */
function keptDraft(): Draft {
  const fresh = { preset: "", answers: {}, title: "", name: "", client: "" };
  try {
    return { ...fresh, ...(JSON.parse(sessionStorage.getItem(DRAFT) ?? "{}") as Partial<Draft>) };
  } catch {
    return fresh;
  }
}

function keepDraft(draft: Draft | null): void {
  try {
    if (draft) {
      sessionStorage.setItem(DRAFT, JSON.stringify(draft));
    } else {
      sessionStorage.removeItem(DRAFT);
    }
  } catch {
    /* a reload begins anew */
  }
}

function NewIssuer() {
  const named = query.value.get("preset") ?? "";
  const preset = PRESETS.find((one) => one.name === named) ?? null;
  const draft = useSignal<Draft>(keptDraft());
  const error = useSignal<ApiError | null>(null);
  const busy = useSignal(false);
  const key = useSignal({ text: "", key: "" });
  useEffect(() => {
    if (preset && draft.peek().preset !== preset.name) {
      draft.value = { preset: preset.name, answers: firstAnswers(preset), title: preset.name === "generic" ? "" : preset.title, name: preset.name === "generic" ? "" : preset.name, client: "" };
    }
  }, [named]);
  const change = (part: Partial<Draft>) => {
    draft.value = { ...draft.peek(), ...part };
    keepDraft(draft.value);
  };
  const { answers, title, name, client } = draft.value;
  const issuer = preset?.issuer(answers) ?? "";
  const open = preset?.asks.find((one) => !one.optional && !answers[one.key]?.trim());
  const missing = open ? `Say the ${open.label.charAt(0).toLowerCase()}${open.label.slice(1)} first.` : !name.trim() ? "Give it a short name first." : !client.trim() ? "Say the client id first." : null;
  const save = async () => {
    if (!preset || missing || busy.value) {
      return;
    }
    busy.value = true;
    error.value = null;
    const body = { ...preset.fields(answers), name: name.trim(), title: title.trim(), preset: preset.name, issuer, client_id: client.trim(), enabled: false };
    const text = JSON.stringify(body);
    if (key.peek().text !== text) {
      key.value = { text, key: newIdempotencyKey() };
    }
    try {
      const made = await post<Issuer>("/issuers", body, { idempotencyKey: key.peek().key });
      keepDraft(null);
      refresh("/issuers?");
      navigate(`/settings/identity/${made.id}?step=client`);
    } catch (cause) {
      error.value = problemOf(cause);
    } finally {
      busy.value = false;
    }
  };
  return (
    <form
      class="wizard"
      onSubmit={(event) => {
        event.preventDefault();
        void save();
      }}
    >
      <Section title="1. Provider">
        <Options legend="Which one is it" name="preset" options={PRESETS.map((one) => ({ value: one.name, label: one.title, sub: one.hint }))} value={named} onChange={(value) => setQuery({ preset: value })} />
      </Section>
      {preset && (
        <Section title="2. Issuer" hint="each asks only what it needs">
          <div class="stack form1">
            {preset.asks.map((ask) => (
              <Field
                key={preset.name + ask.key}
                label={ask.label}
                name={ask.key}
                required={!ask.optional}
                help={ask.help}
                placeholder={ask.placeholder}
                value={answers[ask.key] ?? ""}
                onInput={(value) => change({ answers: { ...answers, [ask.key]: value } })}
                error={preset.name === "generic" ? error.value?.field("issuer") : null}
              />
            ))}
            {preset.name !== "generic" && (
              <p class="s12 t2">
                Issuer: {issuer ? <code class="brk">{issuer}</code> : <span class="t3">follows from the answers</span>}
                {preset.name !== "generic" && error.value?.field("issuer") && <span class="c-unhealthy"> {error.value.field("issuer")}</span>}
              </p>
            )}
            <Discovery issuer={open ? "" : issuer} />
            <Field label="Title" name="title" help={`On the button: Sign in with ${title.trim() || "…"}`} value={title} onInput={(value) => change({ title: value })} error={error.value?.field("title")} />
            <Field label="Short name" name="name" required help="Lower case letters, digits and dashes; unique here." value={name} onInput={(value) => change({ name: value })} error={error.value?.field("name")} />
          </div>
        </Section>
      )}
      {preset && (
        <Section title="3. Client">
          <div class="stack form1">
            <p class="t2">{preset.client}</p>
            <div>
              <p class="lbl">Redirect URI, to copy into the provider</p>
              <Command text={`${location.origin}/auth/callback`} label="Redirect URI" />
            </div>
            <Field label="Client id" name="client_id" required help="What the provider shows after the client is made. Its secret comes next." value={client} onInput={(value) => change({ client: value })} error={error.value?.field("client_id")} />
            {error.value && (
              <Note tone="bad" alert title={`${error.value.title}.`}>
                <p class="t2">
                  {error.value.detail} {error.value.errors.map((one) => `${one.pointer?.slice(2) ?? ""} ${one.detail}`).join("; ")}
                </p>
              </Note>
            )}
            <p class="row8">
              <Button kind="primary" type="submit" busy={busy.value} disabled={missing}>
                Save as a draft
              </Button>
              <a class="btn quiet" href="/settings/identity">
                Cancel
              </a>
            </p>
            <p class="s12 t3">Nobody's sign-in changes until it is activated.</p>
          </div>
        </Section>
      )}
    </form>
  );
}

export function NewIssuerPage(_: ViewProps) {
  return (
    <SettingsPage title="Add an identity provider" parts={[<b>Add an identity provider</b>, "a draft first, tested before anybody depends on it"]} needs={{ permission: "issuer.write", what: "this form" }}>
      {() => <NewIssuer />}
    </SettingsPage>
  );
}
