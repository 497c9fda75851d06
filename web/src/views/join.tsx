/* The first node: a fresh join token in the command that uses it, and what the server has seen so far. */
import { useEffect } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { ApiError, post } from "../api";
import { may, me } from "../session";
import { useQuery } from "../store";
import { moment, now, parse, span } from "../time";
import type { JoinToken, List } from "../types";
import { Button, Command } from "../ui/controls";
import { CheckLines, type CheckLineItem } from "../ui/records";
import { Empty, ErrorNote, Note, Skeleton } from "../ui/states";

/** The whole command that joins a node to the cluster of the token. */
export function commandFor(token: string): string {
  /* the address goes into the file, since the service needs it too */
  return [
    `mkdir -p /etc/muster && echo 'server_url = ${location.origin}' > /etc/muster/agent.conf`,
    `muster-agent enroll --join_token ${token} && systemctl enable --now muster-agent`,
  ].join("\n");
}

/** Tokens that others made; their secret is not shown again, but that they exist says something. */
function Seen({ clusterId, token }: { clusterId: string; token: JoinToken | null }) {
  const tokens = useQuery<List<JoinToken>>(`/clusters/${clusterId}/join-tokens`, { everyMs: 10_000 });
  const open = tokens.data.value?.items.filter((one) => one.uses_left > 0 && (parse(one.expires_at) ?? 0) > now.value) ?? [];
  const mine = open.find((one) => one.id === token?.id);
  const items: CheckLineItem[] = [
    { name: "This server", weight: "good", value: `reachable from this browser at ${location.host}` },
    location.protocol === "https:"
      ? { name: "Encryption", weight: "good", value: "TLS; the agent checks the certificate" }
      : { name: "Encryption", weight: "warn", value: "none: plain http works for nodes on this machine only", fix: "Other nodes need the server's https address." },
    {
      name: "Tokens",
      weight: token && tokens.data.value && !mine ? "warn" : "neutral",
      value: token && tokens.data.value && !mine ? "the one above has been used or revoked" : open.length === 0 ? "none open" : `${open.length} open, the last one until ${moment(Math.max(...open.map((one) => parse(one.expires_at) ?? 0)))}`,
    },
    { name: "Nodes", weight: "neutral", value: "none yet; this page changes by itself" },
  ];
  return <CheckLines label="What this server has seen" items={items} />;
}

export function JoinFirstNode({ clusterId }: { clusterId: string }) {
  const token = useSignal<JoinToken | null>(null);
  const error = useSignal<ApiError | null>(null);
  const allowed = may("token.write");
  const make = async () => {
    error.value = null;
    try {
      token.value = await post<JoinToken>(`/clusters/${clusterId}/join-tokens`, {});
    } catch (cause) {
      error.value = cause instanceof ApiError ? cause : new ApiError(0, "console", "The console failed", String(cause), null);
    }
  };
  useEffect(() => {
    if (allowed) {
      void make();
    }
  }, [clusterId]);
  const left = token.value ? (parse(token.value.expires_at) ?? 0) - now.value : 0;
  if (!allowed) {
    return (
      <Empty title="No node has joined yet">
        <Note tone="neutral" icon="lock" title="You may not make a join token.">
          <p class="t2">It needs the permission token.write. Somebody with the role admin in {me.value?.org.title || me.value?.org.name} can give it, or join the first node.</p>
        </Note>
      </Empty>
    );
  }
  return (
    <Empty title="Join the first node">
      {error.value ? (
        <ErrorNote error={error.value} what="The join token" retry={() => void make()} />
      ) : token.value === null ? (
        <Skeleton rows={2} label="the join token" />
      ) : left > 0 ? (
        <>
          <p>
            Run this as root on a GPU node that has muster-agent and its service. The token works for {span(left)} more, {token.value.uses_left === 1 ? "once" : `${token.value.uses_left} times`}, and only for this cluster.
          </p>
          <Command text={commandFor(token.value.token)} label="The command that joins a node" />
        </>
      ) : (
        <p>The token has expired. Make a new one; nothing else has changed.</p>
      )}
      <p class="row8 gap16">
        <Button onClick={() => void make()}>New token</Button>
      </p>
      <Seen clusterId={clusterId} token={token.value} />
    </Empty>
  );
}
