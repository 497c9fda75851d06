/* What holds repairs back, above every page: open breakers and stops that people set. */
import { counted } from "../format";
import { lazy } from "../lazy";
import { askGuard, breakers, guardAsked, stops, useGuard, type Held } from "../views/guard-words";
import { Button } from "./controls";
import { Time } from "./page";
import { Banner } from "./states";

const GuardDialogs = lazy<object>("This dialog", async () => (await import("../views/guard-dialogs")).GuardDialogs);

const LISTED = 3;

function names(found: Held[]): string {
  const all = found.slice(0, LISTED).map((one) => one.name);
  return found.length > LISTED ? `${all.join(", ")} and ${found.length - LISTED} more` : all.join(", ");
}

const full = (text: string) => (text && !/[.!?]$/.test(text) ? `${text}.` : text);

function BreakerBanner({ found }: { found: Held[] }) {
  const one = found.length === 1 ? found[0] : null;
  return (
    <Banner
      tone="bad"
      icon="pulse"
      action={
        one ? (
          <Button small onClick={() => askGuard("reset", one)}>
            Reset breaker…
          </Button>
        ) : (
          <a class="btn sm" href="/settings/policies/stops">
            See the breakers
          </a>
        )
      }
    >
      <b>{one ? `The breaker of ${one.name} is open: no repair starts by itself there.` : `${counted(found.length, "breaker")} are open: no repair starts by itself in ${names(found)}.`}</b>{" "}
      {one && (
        <>
          {full(one.why)} Opened <Time iso={one.at} form="ago" />; people's approvals go on.
        </>
      )}
    </Banner>
  );
}

function StopBanner({ found }: { found: Held[] }) {
  const one = found.length === 1 ? found[0] : null;
  return (
    <Banner
      tone="warn"
      icon="stop"
      action={
        one ? (
          <Button small onClick={() => askGuard("allow", one)}>
            Allow repairs…
          </Button>
        ) : (
          <a class="btn sm" href="/settings/policies/stops">
            See the stops
          </a>
        )
      }
    >
      <b>{one ? `Repairs of ${one.name} are stopped.` : `Repairs are stopped in ${counted(found.length, "place")}: ${names(found)}.`}</b>{" "}
      {one && (
        <>
          By {one.by}, <Time iso={one.at} form="ago" />
          {one.why ? `: “${one.why.replace(/\.$/, "")}”.` : "."} Nothing begins, automatic or approved.
        </>
      )}
    </Banner>
  );
}

export function GuardBanners() {
  const guard = useGuard().data.value;
  const open = breakers(guard);
  const stopped = stops(guard);
  return (
    <>
      {open.length > 0 && <BreakerBanner found={open} />}
      {stopped.length > 0 && <StopBanner found={stopped} />}
      {guardAsked() && <GuardDialogs />}
    </>
  );
}
