import type { Agents, Counts, Noisiest } from "./answers.ts";

type Row = readonly (string | number)[];

/** What each command prints without `--json`. */
export function countsText({ window, agents, unavailable_partitions: missing, pods }: Counts): string {
  const { online, stale, offline } = agents;
  const without = missing.length === 0 ? "" : ` (without partitions ${missing.join(", ")}, which are out of reach)`;
  return [
    `window ${window.id} since ${window.since}\n`,
    `agents ${online} online, ${stale} stale, ${offline} offline${without}\n\n`,
    table(
      ["POD", "CONNECTIONS", "REGISTERED", "AGENTS", "OUTBOX BYTES"],
      pods.map((pod) => [pod.id, pod.connections, pod.registered_connections, pod.agents, pod.outbox_bytes]),
    ),
  ].join("");
}

export function agentsText({ kind, id, total, truncated, complete, agents }: Agents): string {
  const shown = truncated ? `, of which these ${agents.length} were seen last` : "";
  const known = complete ? "" : " that are known here";
  const rows = agents.map(({ agent, presence, congested, last_seen, online_since }) => [
    agent,
    congested ? `${presence}, congested` : presence,
    last_seen ?? "-",
    online_since ?? "-",
  ]);
  return `${kind} ${id}: ${total} ${total === 1 ? "agent" : "agents"}${known}${shown}\n\n${table(["AGENT", "PRESENCE", "LAST SEEN", "ONLINE SINCE"], rows)}`;
}

export function noisiestText({ pods, span_seconds, by_envelopes, by_bytes, refusals }: Noisiest): string {
  const senders = (list: Noisiest["by_bytes"]) =>
    table(
      ["KIND", "ID", "ENVELOPES", "BYTES"],
      list.map(({ kind, id, envelopes, bytes }) => [kind, id, envelopes, bytes]),
    );
  return [
    `Sent to ${pods.join(", ")} in ${span_seconds} s, by envelopes\n${senders(by_envelopes)}`,
    `by bytes\n${senders(by_bytes)}`,
    `Refused since ${refusals.since}\n${table(
      ["KIND", "ID", "TIMES"],
      refusals.by_sender.map(({ kind, id, times }) => [kind, id, times]),
    )}`,
    `by code, strangers included\n${table(
      ["CODE", "TIMES"],
      refusals.by_code.map(({ code, times }) => [code, times]),
    )}`,
  ].join("\n");
}

function table(head: Row, rows: readonly Row[]): string {
  const all = [head, ...rows].map((row) => row.map(String));
  const widths = head.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  return all
    .map((row) => `${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  ")}`.trimEnd())
    .map((line) => `${line}\n`)
    .join("");
}
