/* Stopping repairs at a place, allowing them again, and closing a breaker: what it holds, and why. */
import { useSignal } from "@preact/signals";
import { counted } from "../format";
import { refresh, useQuery } from "../store";
import type { GuardItem } from "../repair-types";
import type { Cluster, List, NodeDetail, Repair } from "../types";
import { Field } from "../ui/controls";
import { Time } from "../ui/page";
import { ConsequenceList, type Consequence } from "../ui/records";
import { breakers, guardAnswered, guardAsked, guardLacks, guardPath, placeOf, renewGuard, stops, useGuard, type GuardVerb, type Held, type Place } from "./guard-words";
import { CANCELLABLE, RUNNING } from "./repair-words";
import { VerbForm } from "./verb-form";

/** The name of what the address names by its id. */
function usePlace(reach: Place["reach"], id: string | null): Place {
  const cluster = useQuery<Cluster>(reach === "cluster" ? `/clusters/${id}` : null).data.value;
  const node = useQuery<NodeDetail>(reach === "node" ? `/nodes/${id}` : null).data.value;
  return placeOf(reach, id, cluster?.name ?? node?.name ?? null);
}

function openRepairs(place: Place): string | null {
  switch (place.reach) {
    case "cluster":
      return `/clusters/${place.id}/repairs?open=true&limit=200`;
    case "node":
      return `/repairs?open=true&limit=200&node_id=${place.id}`;
    case "org":
      return "/repairs?open=true&limit=200";
    default:
      return null;
  }
}

function stopTouches(open: Repair[] | null): Consequence[] {
  const begun = open?.filter((one) => RUNNING.includes(one.state) && !CANCELLABLE.includes(one.state)).length ?? 0;
  const held = open?.filter((one) => RUNNING.includes(one.state) && CANCELLABLE.includes(one.state)).length ?? 0;
  return [
    { subject: "What waits", weight: "warn", fact: "Nothing begins from now on, automatic or approved", detail: open ? `${counted(open.filter((one) => one.state === "proposed").length, "proposal")} stay for people.` : "An order that an agent has not fetched is withdrawn." },
    { subject: "What runs", weight: begun ? "warn" : "good", fact: open === null ? "What an agent has begun goes on" : begun ? `${counted(begun, "repair")} ${begun === 1 ? "has" : "have"} begun and ${begun === 1 ? "goes" : "go"} on` : "No repair has begun its act", ...(held ? { detail: `${counted(held, "approved repair")} ${held === 1 ? "waits" : "wait"} until the stop is lifted.` } : {}) },
    { subject: "Until", weight: "neutral", fact: "Until a person allows repairs again", detail: "What was proposed meanwhile does not start by itself then." },
  ];
}

function allowTouches(held: Held | undefined, others: Held[]): Consequence[] {
  return [
    held
      ? { subject: "The stop", weight: "neutral", fact: `By ${held.by}${held.why ? `: “${held.why}”` : ""}`, detail: <>set <Time iso={held.at} form="ago" /></> }
      : { subject: "The stop", weight: "neutral", fact: "No stop is set here now" },
    { subject: "Replay", weight: "good", fact: "Nothing that waited is replayed", detail: "What was proposed during the stop stays for people to decide." },
    ...(others.length > 0 ? [{ subject: "Still held", weight: "warn" as const, fact: `Repairs stay stopped for ${others.map((one) => one.name).join(" and ")}` }] : []),
  ];
}

function resetTouches(held: Held | undefined): Consequence[] {
  return [
    held
      ? { subject: "Why it opened", weight: "bad", fact: held.why.replace(/\.$/, ""), detail: <>opened <Time iso={held.at} form="ago" /></> }
      : { subject: "Why it opened", weight: "neutral", fact: "It is not open now" },
    { subject: "Replay", weight: "good", fact: "Nothing is replayed", detail: "Proposals from before the reset stay for people; only faults that come after it may start a repair by themselves." },
    { subject: "Next time", weight: "neutral", fact: "It counts from zero and opens again by the same rule" },
  ];
}

const WORDS: Record<GuardVerb, { title: (name: string) => string; lead: string; verb: string; lack: string; placeholder: string }> = {
  stop: { title: (name) => `Stop repairs of ${name}`, lead: "It holds within two seconds, also while the database cannot be reached.", verb: "Stop repairs", lack: "Say why: others will want to know when it may end.", placeholder: "A training run ends tonight" },
  allow: { title: (name) => `Allow repairs of ${name} again`, lead: "Repairs start again by policy and by approval.", verb: "Allow repairs", lack: "", placeholder: "The run has ended" },
  reset: { title: (name) => `Reset the breaker of ${name}`, lead: "Only a person closes a breaker, and says why it is safe.", verb: "Reset breaker", lack: "Say why it is safe now.", placeholder: "The switch is replaced, the nodes are back" },
};

function GuardForm({ verb, place }: { verb: GuardVerb; place: Place }) {
  const comment = useSignal("");
  const guard = useGuard().data.value;
  const open = useQuery<List<Repair>>(verb === "stop" ? openRepairs(place) : null).data.value?.items ?? null;
  const here = (found: Held[]) => found.find((one) => one.reach === place.reach && one.id === place.id);
  const wider = stops(guard).filter((one) => one.reach === "platform" || (one.reach === "org" && place.reach !== "org")).filter((one) => one.reach !== place.reach);
  const words = WORDS[verb];
  const needed = verb !== "allow" && comment.value.trim() === "";
  const items = verb === "stop" ? stopTouches(open) : verb === "allow" ? allowTouches(here(stops(guard)), wider) : resetTouches(here(breakers(guard)));
  return (
    <VerbForm<GuardItem>
      title={words.title(place.name)}
      lead={words.lead}
      path={guardPath(verb, place)}
      body={() => (comment.value.trim() ? { comment: comment.value.trim() } : {})}
      verb={words.verb}
      disabled={guardLacks(verb, place.reach) ?? (needed ? words.lack : null)}
      binds="It stands in the events and the audit log with your name."
      done={() => {
        renewGuard();
        for (const prefix of ["/repairs", "/clusters/", "/nodes/"]) {
          refresh(prefix);
        }
        guardAnswered();
      }}
      onClose={guardAnswered}
      fields={["comment"]}
    >
      {(error) => (
        <>
          <ConsequenceList label="What it touches" items={items} />
          <Field label={verb === "allow" ? "Comment" : "Reason"} name="comment" multiline required={verb !== "allow"} value={comment.value} onInput={(value) => (comment.value = value)} placeholder={words.placeholder} error={error?.field("comment")} />
        </>
      )}
    </VerbForm>
  );
}

function AtPlace({ verb, reach, id }: { verb: GuardVerb; reach: Place["reach"]; id: string | null }) {
  return <GuardForm verb={verb} place={usePlace(reach, id)} />;
}

export function GuardDialogs() {
  const asked = guardAsked();
  return asked && <AtPlace key={`${asked.verb} ${asked.reach} ${asked.id}`} {...asked} />;
}
