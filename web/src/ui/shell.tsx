/* What stands around every page: top bar, rail, live mark, and the banner when updates have stopped. */
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { count } from "../format";
import { keysOn, setKeysOn, shortcuts } from "../keys";
import { lastBeat, liveState, paused, reconnectNow, retryAt } from "../live";
import { path } from "../router";
import { me, signOut, switchOrg } from "../session";
import { useQuery } from "../store";
import { switchTheme, theme } from "../theme";
import { clock, moment, now, parse, span } from "../time";
import type { ClusterItem, List } from "../types";
import { useGuard } from "../views/guard-words";
import { Button, CheckBox } from "./controls";
import { Dialog } from "./dialog";
import { GuardBanners } from "./guard";
import { Brand, Icon } from "./icons";
import { Mark, Patterns } from "./marks";
import { clusterMark } from "./verdict";
import { Menu } from "./menu";
import { Banner, ErrorNote, Skeleton } from "./states";

/** Set by the page that shows a cluster, so that the top bar can name it. */
export interface Scope {
  clusterId?: string;
  clusterName?: string;
}

/* the person menu opens what the shell draws */
const keysShown = { show: () => undefined as void };

function OrgSwitcher() {
  const who = me.value;
  const failed = useSignal<string | null>(null);
  if (!who) {
    return null;
  }
  const name = (
    <>
      {who.org.title || who.org.name} {who.org.demo && <span class="tag">demo</span>}
    </>
  );
  if (who.orgs.length < 2) {
    return <span class="scopename org">{name}</span>;
  }
  return (
    <Menu class="scopebutton org" button={<>{name} <Icon name="down" /></>} label={`${who.org.title || who.org.name} ${who.org.demo ? "demo" : ""}, switch to another organization`}>
      {(close) => (
        <ul aria-label="Organizations">
          {who.orgs.map((org) => (
            <li key={org.id}>
              <button
                type="button"
                aria-current={org.id === who.org.id ? "true" : undefined}
                onClick={() => {
                  failed.value = null;
                  switchOrg(org.id).then(close, (cause: Error) => (failed.value = cause.message));
                }}
              >
                {org.title || org.name} {org.demo && <span class="tag">demo</span>}
              </button>
            </li>
          ))}
          {failed.value && <li class="c-unhealthy s12 popnote" role="alert">{failed.value}</li>}
        </ul>
      )}
    </Menu>
  );
}

function ClusterChoices({ current, close }: { current: string; close: () => void }) {
  const clusters = useQuery<List<ClusterItem>>("/clusters?limit=200");
  const list = clusters.data.value;
  if (!list) {
    return clusters.error.value ? <ErrorNote error={clusters.error.value} what="The list of clusters" /> : <Skeleton rows={3} label="clusters" />;
  }
  return (
    <ul aria-label="Clusters">
      {list.items.map((cluster) => (
        <li key={cluster.id}>
          <a href={`/clusters/${cluster.id}`} aria-current={cluster.id === current ? "true" : undefined} onClick={close}>
            <Mark kind={clusterMark(cluster.rollup)} />
            {cluster.name}
            <span class="n">{count(cluster.rollup?.nodes ?? 0)}</span>
          </a>
        </li>
      ))}
      <li class="rule">
        <a href="/clusters" onClick={close}>
          All clusters
        </a>
      </li>
    </ul>
  );
}

function LiveMark() {
  const state = liveState(now.value);
  const silence = span(now.value - lastBeat.value);
  const words: Record<string, string> = {
    live: "Live",
    connecting: "Connecting",
    paused: "Paused",
    stale: lastBeat.value ? `Stale ${silence}` : "Stale",
    offline: "Offline",
  };
  const press = paused.value ? "Press to go on with updates" : "Press to pause updates";
  return (
    <button type="button" class={`live ${state}`} aria-label={`${words[state]}. ${press}`} title={press} onClick={() => (paused.value = !paused.value)}>
      <i aria-hidden="true" />
      <span class="w">{words[state]}</span>
    </button>
  );
}

function StaleBanner() {
  const state = liveState(now.value);
  if (state === "paused") {
    return (
      <Banner tone="neutral" icon="clock" action={<Button small onClick={() => (paused.value = false)}>Go on with updates</Button>}>
        <b>Updates are paused.</b> What you see is from {clock(lastBeat.value || now.value, true)}.
      </Banner>
    );
  }
  if (state === "offline") {
    return (
      <Banner tone="warn" icon="clock">
        <b>This browser is offline.</b> What you see is from {clock(lastBeat.value || now.value, true)}. Updates go on by themselves when the network is back.
      </Banner>
    );
  }
  if (state !== "stale") {
    return null;
  }
  const left = retryAt.value - now.value;
  return (
    <Banner tone="warn" icon="clock" action={<Button small onClick={reconnectNow}>Reconnect now</Button>}>
      {lastBeat.value ? (
        <>
          <b>Updates stopped {span(now.value - lastBeat.value)} ago.</b> What you see is from {clock(lastBeat.value, true)}.
        </>
      ) : (
        <b>Updates could not be started.</b>
      )}{" "}
      {left > 0 ? `Trying again in ${span(left)}.` : "Trying again now."}
    </Banner>
  );
}

function initials(name: string): string {
  const words = name.split(/[\s._-]+/).filter(Boolean);
  return ((words[0]?.[0] ?? "?") + (words.length > 1 ? (words[words.length - 1]?.[0] ?? "") : (words[0]?.[1] ?? ""))).toUpperCase();
}

function PersonMenu() {
  const who = me.value;
  if (!who) {
    return null;
  }
  const until = parse(who.expires_at);
  return (
    <Menu class="me" end button={<span aria-hidden="true">{initials(who.name)}</span>} label={`${initials(who.name)}, ${who.name}, ${who.roles.join(" and ") || "no role"}`}>
      {(close) => (
        <>
          <p class="popnote">
            <b>{who.name}</b>
            <span class="sub">
              {who.roles.join(" and ") || "no role"} in {who.org.title || who.org.name}
              {until !== null && `; signed in until ${moment(until)}`}
            </span>
          </p>
          <ul aria-label="Person">
            <li>
              <a href="/account" onClick={close}>
                Account
              </a>
            </li>
            <li>
              <button
                type="button"
                onClick={() => {
                  close();
                  keysShown.show();
                }}
              >
                Keyboard shortcuts <kbd>?</kbd>
              </button>
            </li>
            {who.kind === "session" && (
              <li class="rule">
                <button type="button" onClick={() => void signOut()}>
                  Sign out
                </button>
              </li>
            )}
          </ul>
        </>
      )}
    </Menu>
  );
}

function KeysDialog({ onClose }: { onClose: () => void }) {
  return (
    <Dialog narrow title="Keyboard shortcuts" lead="They are ignored while you type in a field." onClose={onClose} buttons={<Button onClick={onClose}>Close</Button>}>
      <div class="pad">
        <CheckBox label="Single-letter shortcuts are on" checked={keysOn.value} onChange={setKeysOn} />
        <dl class="facts gap12">
          {shortcuts.value.map((one) => (
            <div key={one.keys + one.does} class="factrow">
              <dt>
                {one.keys.split(" ").map((key) => (
                  <kbd key={key}>{key}</kbd>
                ))}
              </dt>
              <dd>{one.does}</dd>
            </div>
          ))}
        </dl>
      </div>
    </Dialog>
  );
}

const SETTINGS: readonly [href: string, label: string][] = [
  ["/settings/identity", "Identity"],
  ["/settings/tokens", "Tokens and agents"],
  ["/settings/members", "Members and grants"],
  ["/settings/checks", "Health checks"],
  ["/settings/webhooks", "Webhooks"],
  ["/settings/policies", "Policies and stops"],
];

const PLATFORM: readonly [href: string, label: string] = ["/settings/platform", "Platform"];

function RailLinks({ close }: { close?: () => void }) {
  const n = useGuard().data.value?.waiting ?? 0;
  const links: [href: string, label: string, current: boolean, n: string | null][] = [
    ["/clusters", "Clusters", /^\/(?:clusters|nodes)(?:\/|$)/.test(path.value) || path.value === "/", null],
    ["/repairs", "Approvals", path.value.startsWith("/repairs"), n ? count(n) : null],
    ["/events", "Events", path.value.startsWith("/events"), null],
    ["/settings/audit", "Audit", path.value.startsWith("/settings/audit"), null],
  ];
  return (
    <>
      {links.map(([href, label, current, number]) => (
        <a key={href} href={href} aria-current={current ? "page" : undefined} onClick={close}>
          {label}
          {number && (
            <span class="n">
              <span class="vh">, waiting: </span>
              {number}
            </span>
          )}
        </a>
      ))}
      <p class="railhead">Settings</p>
      {(me.value?.platform_admin ? [...SETTINGS, PLATFORM] : SETTINGS).map(([href, label]) => (
        <a key={href} href={href} aria-current={path.value.startsWith(href) ? "page" : undefined} onClick={close}>
          {label}
        </a>
      ))}
    </>
  );
}

export function Shell({ scope, children }: { scope: Scope; children: ComponentChildren }) {
  const keysOpen = useSignal(false);
  useEffect(() => {
    keysShown.show = () => {
      keysOpen.value = true;
    };
    const question = (event: KeyboardEvent) => {
      const field = event.target instanceof HTMLElement && /^(?:INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
      if (event.key === "?" && keysOn.value && !field && !document.querySelector("dialog[open]")) {
        keysOpen.value = true;
      }
    };
    document.addEventListener("keydown", question);
    return () => document.removeEventListener("keydown", question);
  }, []);
  return (
    <>
      <a class="skip" href="#main">
        Skip to content
      </a>
      <Patterns />
      <header class="top">
        <Menu class="btn quiet icon menu" label="Menu" button={<Icon name="menu" />}>
          {(close) => (
            <>
              <nav class="menunav" aria-label="Main, small">
                <RailLinks close={close} />
              </nav>
              {(me.value?.orgs.length ?? 0) > 1 && (
                <>
                  <h2 class="pophead">Organization</h2>
                  <ul aria-label="Organizations">
                    {me.value?.orgs.map((org) => (
                      <li key={org.id}>
                        <button type="button" aria-current={org.id === me.value?.org.id ? "true" : undefined} onClick={() => void switchOrg(org.id).then(close)}>
                          {org.title || org.name}
                          {org.id === me.value?.org.id && <Icon name="tick" />}
                        </button>
                      </li>
                    ))}
                  </ul>
                </>
              )}
              <h2 class="pophead">
                {me.value?.name}, {me.value?.roles.join(" and ") || "no role"}
              </h2>
              {me.value?.kind === "session" && (
                <ul aria-label="Person">
                  <li>
                    <a href="/account" onClick={close}>
                      Account
                    </a>
                  </li>
                  <li>
                    <button type="button" onClick={() => void signOut()}>
                      Sign out
                    </button>
                  </li>
                </ul>
              )}
            </>
          )}
        </Menu>
        <a class="brand" href="/clusters" aria-label="Muster, all clusters">
          <Brand />
          <span>Muster</span>
        </a>
        <div class="scope">
          <OrgSwitcher />
          {scope.clusterId && (
            <>
              <span class="sep" aria-hidden="true">
                /
              </span>
              <Menu
                class="scopebutton"
                label={`Cluster ${scope.clusterName ?? ""}, switch`}
                button={
                  <>
                    <b>{scope.clusterName ?? "…"}</b> <Icon name="down" />
                  </>
                }
              >
                {(close) => <ClusterChoices current={scope.clusterId ?? ""} close={close} />}
              </Menu>
            </>
          )}
        </div>
        <span class="grow" />
        <LiveMark />
        <Button kind="quiet" icon label={`Switch to ${theme() === "dark" ? "light" : "dark"} theme`} onClick={switchTheme}>
          <Icon name="sun" />
        </Button>
        <PersonMenu />
      </header>
      <div class="layout">
        <nav class="rail" aria-label="Main">
          <RailLinks />
          <p class="foot">
            Press <kbd>?</kbd> for keys
          </p>
        </nav>
        <main id="main" tabIndex={-1}>
          <StaleBanner />
          <GuardBanners />
          {children}
        </main>
      </div>
      {keysOpen.value && <KeysDialog onClose={() => (keysOpen.value = false)} />}
    </>
  );
}
