/* Why a repair does not start by itself: every reason that admission gave, in words. */
import { counted } from "../format";
import { moment, now, parse } from "../time";
import type { Repair, WhyNot } from "../types";

function reasonsOf(repair: Repair): readonly WhyNot[] {
  return repair.why_not ?? repair.plan?.limits.why_not ?? [];
}

/** "Not by itself: Automation is off: a person decides. And 2 more reasons." */
export function whyNotWords(repair: Repair): string {
  const [first, ...more] = reasonsOf(repair);
  return first ? `Not by itself: ${first.detail}${more.length > 0 ? ` And ${counted(more.length, "more reason")}.` : ""}` : "";
}

function trial(repair: Repair): string {
  const at = parse(repair.would_at);
  return at === null ? "" : `A policy on trial would have started it at ${moment(at, now.value)}.`;
}

/** One reason as a line; several behind a line that opens. */
export function WhyNotList({ repair, open = false }: { repair: Repair; open?: boolean }) {
  const reasons = reasonsOf(repair);
  const tried = trial(repair);
  const [only] = reasons;
  if (!only) {
    return tried ? <span class="sub">{tried}</span> : null;
  }
  if (reasons.length === 1 && !open) {
    return <span class="sub">Not by itself: {only.detail} {tried}</span>;
  }
  const list = (
    <ul class="plainlist">
      {reasons.map((one) => (
        <li key={one.code} class="sub">
          {one.detail}
        </li>
      ))}
      {tried && <li class="sub">{tried}</li>}
    </ul>
  );
  return open ? (
    list
  ) : (
    <details class="whynot">
      <summary>Not by itself: {counted(reasons.length, "reason")}</summary>
      {list}
    </details>
  );
}
