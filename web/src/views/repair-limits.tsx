/* The first line of a cluster's repairs: the breaker, how many run, what automation may do, and the stop. */
import { count, counted } from "../format";
import { useQuery } from "../store";
import type { PolicyEffective, PolicySettings } from "../repair-types";
import type { Overview, Repair } from "../types";
import { Button } from "../ui/controls";
import { Icon } from "../ui/icons";
import { askGuard, breakers, holding, stops, useGuard } from "./guard-words";
import { RUNNING } from "./repair-words";

/** The newest plan says how many repairs start by themselves; it was counted when the plan was made. */
function newestPlan(repairs: Repair[]) {
  return repairs.map((repair) => repair.plan).filter((plan) => plan !== null).sort((a, b) => b.made_at.localeCompare(a.made_at))[0] ?? null;
}

export function policyHref(effective: PolicyEffective, clusterId: string): string {
  return effective.policy_id ? `/settings/policies/${effective.policy_id}` : `/settings/policies/new?cluster=${clusterId}`;
}

/** "2 faults start by themselves", "People decide on every repair". */
export function automationWords(settings: PolicySettings): string {
  const n = settings.automatic.length;
  const trial = settings.dry_run ? ", on trial: nothing starts" : "";
  if (settings.mode === "automatic") {
    return `Faults start a repair by themselves${settings.confirm.length ? `, ${count(settings.confirm.length)} kinds ask` : ""}${trial}`;
  }
  return n > 0 ? `${counted(n, "kind")} of fault ${n === 1 ? "starts" : "start"} a repair by ${n === 1 ? "itself" : "themselves"}${trial}` : `People decide on every repair${trial}`;
}

export const REACH_WORDS = { default: "the default", org: "the organization's policy", cluster: "this cluster's policy", node: "the node's policy" } as const;

function Out({ overview, settings, open }: { overview: Overview | null; settings: PolicySettings | null; open: boolean }) {
  const rollup = overview?.rollup;
  const out = rollup && rollup.nodes > 0 ? (rollup.states.unhealthy + rollup.states.repairing) / rollup.nodes : null;
  const share = out === null ? "" : out === 0 ? "no node is out" : `${out < 0.1 ? (out * 100).toFixed(1) : Math.round(out * 100)} % of nodes out`;
  const trips = settings ? `opens at ${settings.breaker_percent} % in ${settings.breaker_seconds / 60} min` : "";
  return (
    <li>
      <Icon name={open ? "warn" : "tick"} tone={open ? "bad" : "good"} />
      {open ? "Breaker open" : "Breaker closed"}
      {(share || trips) && `: ${[share, trips].filter(Boolean).join(", ")}`}
    </li>
  );
}

export function Limits({ clusterId, open, overview }: { clusterId: string; open: Repair[]; overview: Overview | null }) {
  const guard = useGuard().data.value;
  const effective = useQuery<PolicyEffective>(`/clusters/${clusterId}/policy`, { everyMs: 60_000 }).data.value;
  const running = open.filter((repair) => RUNNING.includes(repair.state) || repair.state === "unknown").length;
  const most = newestPlan(open)?.limits.max_running ?? null;
  const full = most !== null && running >= most;
  const stopped = holding(stops(guard), clusterId);
  const here = stopped.find((one) => one.reach === "cluster");
  const off = stopped.length > 0;
  const acts = effective !== null && !effective.settings.dry_run && (effective.settings.mode === "automatic" || effective.settings.automatic.length > 0);
  return (
    <div class="statusrow">
      <ul class="status1" aria-label="Limits">
        <Out overview={overview} settings={effective?.settings ?? null} open={holding(breakers(guard), clusterId).length > 0} />
        <li>
          <Icon name={full ? "warn" : "tick"} tone={full ? "warn" : "good"} />
          {most === 0 ? "So many nodes are out that no repair starts by itself" : most === null ? (running === 0 ? "No repair runs" : `${counted(running, "repair")} ${running === 1 ? "runs" : "run"}`) : `${count(running)} of at most ${count(most)} repairs at once`}
        </li>
        <li>
          <Icon name={off ? "warn" : acts ? "tick" : "minus"} tone={off ? "warn" : acts ? "good" : undefined} />
          {off ? "Repairs are stopped" : effective ? automationWords(effective.settings) : "…"}
          {effective && (
            <>
              ,{" "}
              <a class="under" href={policyHref(effective, clusterId)}>
                {REACH_WORDS[effective.reach]}
                {effective.version > 0 ? ` ${effective.version}` : ""}
              </a>
            </>
          )}
        </li>
      </ul>
      {here ? (
        <Button small onClick={() => askGuard("allow", { reach: "cluster", id: clusterId })}>
          Allow repairs…
        </Button>
      ) : (
        <Button small onClick={() => askGuard("stop", { reach: "cluster", id: clusterId })}>
          Stop repairs…
        </Button>
      )}
    </div>
  );
}
