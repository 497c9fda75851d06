/* Stops and breakers in words: where they hold, who set them, and by which address they are changed. */
import { query as address, setQuery } from "../router";
import { may, me } from "../session";
import { query, useQuery, type Query } from "../store";
import type { Guard, GuardItem } from "../repair-types";
import { rolesWith } from "./roles";

export type Reach = "platform" | "org" | "cluster" | "node";

/** A place at which repairs can be stopped. */
export interface Place {
  reach: Reach;
  /** of the cluster or node */
  id: string | null;
  /** as in a sentence: "fra-h100-a", "the whole installation" */
  name: string;
}

export interface Held extends Place {
  at: string;
  by: string;
  why: string;
}

const GUARD = "/guard";

/** What holds repairs back in this org, and how many wait: read once for the rail, the banner and all pages. */
export function useGuard(): Query<Guard> {
  return useQuery<Guard>(GUARD, { events: (type) => /^(?:repairs?|breaker)\./.test(type), everyMs: 60_000 });
}

export function renewGuard(): void {
  void query<Guard>(GUARD).read();
}

export function placeOf(reach: string, id: string | null, name: string | null): Place {
  if (reach === "platform") {
    return { reach, id: null, name: "the whole installation" };
  }
  if (reach === "org") {
    return { reach, id: null, name: `all of ${me.value?.org.title || me.value?.org.name || "this organization"}` };
  }
  return { reach: reach === "node" ? "node" : "cluster", id, name: name ?? `a ${reach}` };
}

const RANK: Record<Reach, number> = { platform: 0, org: 1, cluster: 2, node: 3 };

function sorted(found: Held[]): Held[] {
  return found.sort((a, b) => RANK[a.reach] - RANK[b.reach] || a.name.localeCompare(b.name));
}

function held(item: GuardItem, at: string, by: string, why: string): Held {
  return { ...placeOf(item.reach, item.target_id, item.name), at, by, why };
}

/** Stops that people set, the widest first. */
export function stops(guard: Guard | null): Held[] {
  const whole = guard?.platform;
  return sorted([
    ...(whole?.stopped_at ? [{ ...placeOf("platform", null, null), at: whole.stopped_at, by: whole.stopped_by, why: whole.stop_comment }] : []),
    ...(guard?.items ?? []).flatMap((item) => (item.stopped_at ? [held(item, item.stopped_at, item.stopped_by, item.stop_comment)] : [])),
  ]);
}

/** Breakers that rules opened, the widest first. */
export function breakers(guard: Guard | null): Held[] {
  const whole = guard?.platform;
  return sorted([
    ...(whole?.opened_at ? [{ ...placeOf("platform", null, null), at: whole.opened_at, by: "muster", why: whole.open_reason }] : []),
    ...(guard?.items ?? []).flatMap((item) => (item.opened_at ? [held(item, item.opened_at, "muster", item.open_reason)] : [])),
  ]);
}

/** Those that hold repairs of a node: its own, of its cluster, of the org and of the installation. */
export function holding(found: Held[], clusterId: string | null, nodeId: string | null = null): Held[] {
  return found.filter((one) => one.reach === "platform" || one.reach === "org" || (one.reach === "cluster" ? one.id === clusterId : one.id === nodeId));
}

export type GuardVerb = "stop" | "allow" | "reset";

/** The address of a verb at a place, below /api/v1. */
export function guardPath(verb: GuardVerb, place: Pick<Place, "reach" | "id">): string {
  const at = { platform: "/platform", org: "", cluster: `/clusters/${place.id}`, node: `/nodes/${place.id}` }[place.reach];
  return `${at}/${{ stop: "stop-repairs", allow: "allow-repairs", reset: "breaker/reset" }[verb]}`;
}

/** Why this person may not do it, or null. */
export function guardLacks(verb: GuardVerb, reach: Reach): string | null {
  if (reach === "platform") {
    return me.value?.platform_admin ? null : "Only an administrator of the whole installation may do that.";
  }
  const permission = verb === "reset" ? "cluster.write" : "repair.decide";
  return may(permission) ? null : `It needs the permission ${permission}: the role ${rolesWith(permission)}.`;
}

/** The dialogs of stops and breakers are named by the address, on whatever page: ?guard=stop&of=cluster:ID. */
export function askGuard(verb: GuardVerb, place: Pick<Place, "reach" | "id">): void {
  setQuery({ guard: verb, of: place.id ? `${place.reach}:${place.id}` : place.reach }, {});
}

export function guardAsked(): { verb: GuardVerb; reach: Reach; id: string | null } | null {
  const verb = address.value.get("guard");
  const [reach = "", id = null] = (address.value.get("of") ?? "").split(":");
  if ((verb !== "stop" && verb !== "allow" && verb !== "reset") || !(reach in RANK) || ((reach === "cluster" || reach === "node") && !id)) {
    return null;
  }
  return { verb, reach: reach as Reach, id };
}

export function guardAnswered(): void {
  setQuery({ guard: null, of: null });
}
