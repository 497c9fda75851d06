/* Which view belongs to which address, who may see it, and where the focus goes when it changes. */
import type { ComponentType } from "preact";
import { useEffect } from "preact/hooks";
import { signedOut, suspendedSeen } from "./api";
import { lazy } from "./lazy";
import { startLive } from "./live";
import { bindKeys } from "./keys";
import { match, navigate, path } from "./router";
import { loadMe, me, meError } from "./session";
import { ErrorNote, Skeleton } from "./ui/states";
import { ClustersPage } from "./views/clusters";
import { ClusterPage } from "./views/cluster";
import { SignInPage } from "./views/sign-in";
import { MissingPage } from "./views/missing";

export interface ViewProps {
  /** what the address holds in place of :id and the like */
  params: Record<string, string>;
}

type View = ComponentType<ViewProps>;

const NodePage = lazy<ViewProps>("This node", async () => (await import("./views/node")).NodePage);
const ApprovalsPage = lazy<ViewProps>("Approvals", async () => (await import("./views/approvals")).ApprovalsPage);
const RepairPage = lazy<ViewProps>("This repair", async () => (await import("./views/repair")).RepairPage);
const EventsPage = lazy<ViewProps>("Events", async () => (await import("./views/events")).EventsPage);
const IncidentPage = lazy<ViewProps>("This incident", async () => (await import("./views/incident")).IncidentPage);
const NewClusterPage = lazy<ViewProps>("This form", async () => (await import("./views/new-cluster")).NewClusterPage);
const AuditPage = lazy<ViewProps>("The audit log", async () => (await import("./views/audit")).AuditPage);
const WebhooksPage = lazy<ViewProps>("Webhooks", async () => (await import("./views/webhooks")).WebhooksPage);
const TokensPage = lazy<ViewProps>("Tokens", async () => (await import("./views/tokens")).TokensPage);
const IdentityPage = lazy<ViewProps>("Identity providers", async () => (await import("./views/identity")).IdentityPage);
const NewIssuerPage = lazy<ViewProps>("This form", async () => (await import("./views/identity")).NewIssuerPage);
const IssuerPage = lazy<ViewProps>("This identity provider", async () => (await import("./views/issuer")).IssuerPage);
const MembersPage = lazy<ViewProps>("Members", async () => (await import("./views/members")).MembersPage);
const SerialsPage = lazy<ViewProps>("Serials", async () => (await import("./views/serials")).SerialsPage);
const PartPage = lazy<ViewProps>("This part", async () => (await import("./views/serials")).PartPage);
const MachinePage = lazy<ViewProps>("This machine", async () => (await import("./views/serials")).MachinePage);
const HealthChecksPage = lazy<ViewProps>("The health checks", async () => (await import("./views/health-checks")).HealthChecksPage);
const OwnChecksPage = lazy<ViewProps>("The own checks", async () => (await import("./views/own-checks")).OwnChecksPage);
const HealthCheckPage = lazy<ViewProps>("This check", async () => (await import("./views/health-check")).HealthCheckPage);
const PlatformPage = lazy<ViewProps>("Platform", async () => (await import("./views/platform")).PlatformPage);
const SuspendedPage = lazy<Record<string, never>>("This page", async () => (await import("./views/suspended")).SuspendedPage);
const PoliciesPage = lazy<ViewProps>("Policies", async () => (await import("./views/policies")).PoliciesPage);
const StopsPage = lazy<ViewProps>("Stops and breakers", async () => (await import("./views/policies")).StopsPage);
const PolicyPage = lazy<ViewProps>("This policy", async () => (await import("./views/policy")).PolicyPage);
const NewPolicyPage = lazy<ViewProps>("This form", async () => (await import("./views/policy")).NewPolicyPage);
const DevicePage = lazy<ViewProps>("This page", async () => (await import("./views/device")).DevicePage);
const AccountPage = lazy<ViewProps>("Account", async () => (await import("./views/account")).AccountPage);

const ROUTES: readonly [pattern: string, view: View][] = [
  ["/", ClustersPage],
  ["/clusters", ClustersPage],
  ["/clusters/new", NewClusterPage],
  ["/clusters/:cluster", ClusterPage],
  ["/clusters/:cluster/:tab", ClusterPage],
  ["/clusters/:cluster/nodes/:node", NodePage],
  ["/nodes/:node", NodePage],
  ["/nodes/:node/machine", MachinePage],
  ["/devices/:device", PartPage],
  ["/serials", SerialsPage],
  ["/repairs", ApprovalsPage],
  ["/repairs/:repair", RepairPage],
  ["/events", EventsPage],
  ["/incidents/:incident", IncidentPage],
  ["/settings/audit", AuditPage],
  ["/settings/identity", IdentityPage],
  ["/settings/identity/new", NewIssuerPage],
  ["/settings/identity/:issuer", IssuerPage],
  ["/settings/tokens", TokensPage],
  ["/settings/tokens/:tab", TokensPage],
  ["/settings/webhooks", WebhooksPage],
  ["/settings/webhooks/:webhook", WebhooksPage],
  ["/settings/members", MembersPage],
  ["/settings/members/:tab", MembersPage],
  ["/settings/checks", HealthChecksPage],
  ["/settings/checks/own", OwnChecksPage],
  ["/settings/checks/:check", HealthCheckPage],
  ["/settings/platform", PlatformPage],
  ["/settings/policies", PoliciesPage],
  ["/settings/policies/new", NewPolicyPage],
  ["/settings/policies/stops", StopsPage],
  ["/settings/policies/:policy", PolicyPage],
  ["/account", AccountPage],
  ["/device", DevicePage],
];

function Current() {
  for (const [pattern, View] of ROUTES) {
    const params = match(pattern, path.value);
    if (params) {
      return <View params={params} />;
    }
  }
  return <MissingPage />;
}

/** A new address moves the focus to its heading, once it is there; the first load leaves it alone. */
function useFocusOnHeading(): void {
  useEffect(() => {
    let first = true;
    return path.subscribe(() => {
      if (first) {
        first = false;
        return;
      }
      let tries = 0;
      const look = () => {
        const heading = document.querySelector<HTMLElement>("main h1");
        if (heading) {
          heading.focus({ preventScroll: true });
        } else if (tries++ < 120) {
          requestAnimationFrame(look);
        }
      };
      requestAnimationFrame(look);
    });
  }, []);
}

let live = false;

export function App() {
  useFocusOnHeading();
  useEffect(() => {
    if (path.value !== "/sign-in") {
      void loadMe();
    }
    return bindKeys([
      { keys: "g c", does: "Go to all clusters", run: () => navigate("/clusters") },
      { keys: "g a", does: "Go to approvals", run: () => navigate("/repairs") },
      { keys: "g u", does: "Go to the audit log", run: () => navigate("/settings/audit") },
    ]);
  }, []);
  useEffect(() => {
    if (me.value && !live) {
      live = true;
      startLive();
    }
  }, [me.value]);

  useEffect(() => {
    if (suspendedSeen.value > 0 && me.peek() && !me.peek()?.suspended) {
      void loadMe();
    }
  }, [suspendedSeen.value]);

  if (path.value === "/sign-in" || signedOut.value) {
    return <SignInPage />;
  }
  if (!me.value) {
    return (
      <main id="main" class="alone">
        {meError.value ? <ErrorNote error={meError.value} what="The console" retry={() => void loadMe()} /> : <Skeleton rows={4} label="the console" />}
      </main>
    );
  }
  if (me.value.suspended && !(me.value.platform_admin && path.value === "/settings/platform")) {
    return <SuspendedPage />;
  }
  return <Current key={me.value.org.id} />;
}
