/* Who changed a policy, when and how: its rows of the audit log. And its end. */
import { useSignal } from "@preact/signals";
import { request } from "../api";
import { navigate } from "../router";
import { may } from "../session";
import { refresh, useQuery } from "../store";
import type { AuditRow } from "../identity-types";
import type { Policy, PolicySettings } from "../repair-types";
import type { List } from "../types";
import { Button } from "../ui/controls";
import { Section, Time } from "../ui/page";
import { Loaded } from "../ui/states";
import { lacks } from "./asked";
import { changesOf, DEFAULT_SETTINGS } from "./policy-table";
import { VerbForm } from "./verb-form";

function settingsOf(state: Record<string, unknown> | null): PolicySettings {
  return { ...DEFAULT_SETTINGS, ...((state?.settings ?? {}) as Partial<PolicySettings>) };
}

function Version({ row }: { row: AuditRow }) {
  const changes = changesOf(settingsOf(row.before), settingsOf(row.after));
  const version = typeof row.after?.version === "number" ? `Version ${row.after.version}` : row.after ? "Written" : "Deleted";
  return (
    <li>
      <b>{version}</b> by {row.actor}, <Time iso={row.at} form="ago" />
      {row.after && (
        <span class="sub">{changes.length === 0 ? (row.before ? "nothing differs" : "all defaults") : changes.map((one) => `${one.label}: ${row.before ? `${one.from} → ` : ""}${one.to}`).join("; ")}</span>
      )}
    </li>
  );
}

export function Versions({ policy }: { policy: Policy }) {
  const rows = useQuery<List<AuditRow>>(may("audit.read") ? `/audit?target=${policy.id}&limit=50` : null, { events: (type) => type.startsWith("policy.") });
  return (
    <Section title="Versions" hint="newest first" end={may("audit.read") && <a href={`/settings/audit?target=${policy.id}`}>In the audit log</a>}>
      {may("audit.read") ? (
        <Loaded query={rows} what="The versions" rows={3}>
          {(list) => (
            <ul class="rows versions">
              {list.items.filter((row) => row.outcome === "done" && row.action?.startsWith("policy.")).map((row) => (
                <Version key={row.seq} row={row} />
              ))}
            </ul>
          )}
        </Loaded>
      ) : (
        <p class="t2">
          Version {policy.version} by {policy.updated_by}, <Time iso={policy.updated_at} form="ago" />. The earlier ones stand in the audit log, which needs the permission audit.read.
        </p>
      )}
    </Section>
  );
}

export function DeletePolicy({ policy, name }: { policy: Policy; name: string }) {
  const open = useSignal(false);
  return (
    <div class="sec">
      <Button disabled={lacks("cluster.write")} onClick={() => (open.value = true)}>
        Delete this policy…
      </Button>
      {open.value && (
        <VerbForm<null>
          title={`Delete the policy of ${name}`}
          lead={policy.node_id ? "The policy of the cluster or of the organization counts for the node again." : policy.cluster_id ? "The organization's policy counts again, or the default: people decide." : "Clusters without a policy of their own go by the default: people decide."}
          path={`/policies/${policy.id}`}
          send={async () => {
            await request("DELETE", `/policies/${policy.id}`, { ifMatch: `"${policy.version}"` });
            return true;
          }}
          verb="Delete the policy"
          binds="Its versions stay in the audit log. Approvals that have not begun are asked for again."
          done={() => {
            for (const prefix of ["/policies", "/clusters/", "/nodes/"]) {
              refresh(prefix);
            }
            navigate("/settings/policies");
          }}
          onClose={() => (open.value = false)}
        >
          {() => <p class="t2">Repairs that it has started go on.</p>}
        </VerbForm>
      )}
    </div>
  );
}
