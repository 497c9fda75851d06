/* What the pages of settings share: their frame, the refusal by role, dialogs that the address names, a secret shown once. */
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { ApiError } from "../api";
import { may, me } from "../session";
import type { Choice } from "../ui/controls";
import { Button, Command } from "../ui/controls";
import { Dialog } from "../ui/dialog";
import { PageSentence, Tabs, type Tab } from "../ui/page";
import { Shell } from "../ui/shell";
import { Note } from "../ui/states";
import { rolesWith } from "./roles";

export function orgName(): string {
  const org = me.value?.org;
  return org ? org.title || org.name : "this organization";
}

export interface SettingsProps {
  /** for the window's title */
  title: string;
  parts: ComponentChildren[];
  announce?: string;
  actions?: ComponentChildren;
  tabs?: Tab[];
  /** the permission without which nothing of it can be read; what: "the audit log" */
  needs?: { permission: string; what: string };
  children: () => ComponentChildren;
}

export function SettingsPage(props: SettingsProps) {
  useEffect(() => {
    document.title = `${props.title} · Muster`;
  }, [props.title]);
  const refused = props.needs && !may(props.needs.permission) ? props.needs : null;
  return (
    <Shell scope={{}}>
      <PageSentence
        parts={refused ? [<b>{props.title}</b>, `of ${orgName()}`] : props.parts}
        {...(props.announce && !refused ? { announce: props.announce } : {})}
        actions={refused ? null : props.actions}
      />
      {props.tabs && props.tabs.length > 0 && <Tabs label={props.title} tabs={props.tabs} />}
      {refused ? <Refused {...refused} /> : props.children()}
    </Shell>
  );
}

/** Which role is missing, and who can give it. */
export function Refused({ permission, what }: { permission: string; what: string }) {
  return (
    <div class="sec">
      <Note tone="neutral" icon="lock" title={`You may not see ${what}.`}>
        <p class="t2">
          It needs the permission {permission}: the role {rolesWith(permission)}. Somebody with the role admin in {orgName()} can give it.
        </p>
      </Note>
    </div>
  );
}

export function problemOf(cause: unknown): ApiError {
  return cause instanceof ApiError ? cause : new ApiError(0, "console", "The console failed", String(cause), null);
}

export const DURATION: Record<string, number> = { "15m": 900, "1h": 3600, "8h": 28_800, "24h": 86_400, "7d": 604_800, "30d": 2_592_000, "90d": 7_776_000, "365d": 31_536_000 };

export const LIFETIMES: Choice[] = [
  { value: "30d", label: "30 days" },
  { value: "90d", label: "90 days" },
  { value: "365d", label: "1 year" },
  { value: "never", label: "It does not expire" },
];

/** A secret that is not shown again: it lives in this dialog only. secret null: an earlier try has shown it. */
export function SecretDialog(props: { title: string; lead: ComponentChildren; secret: string | null; label: string; after?: ComponentChildren; onClose: () => void }) {
  return (
    <Dialog
      narrow
      title={props.title}
      lead={props.lead}
      onClose={props.onClose}
      binds={props.secret ? "It is not shown again." : null}
      buttons={
        <Button kind="primary" onClick={props.onClose}>
          {props.secret ? "I have kept it" : "Close"}
        </Button>
      }
    >
      <div class="pad stack">
        {props.secret ? (
          <Command text={props.secret} label={props.label} />
        ) : (
          <Note tone="warn" title="The secret was shown once already.">
            <p class="t2">This request had been carried out before, and only its answer was lost. Revoke it and make another one.</p>
          </Note>
        )}
        {props.after}
      </div>
    </Dialog>
  );
}
