import { PRESENCE_LIMITS, SESSION_LIMITS } from "relay-protocol/wire/limits.ts";
import { createLogger } from "relay-runtime/logging.ts";
import type { Acceptance, AcceptanceItem } from "relay-window/acceptance/acceptance.ts";
import { Acceptor } from "relay-window/acceptance/acceptor.ts";
import { principalOf } from "relay-window/limits/principals.ts";
import { KnownEpochs } from "relay-window/presence/held-routes.ts";
import { redisAt } from "relay-window/redis/connect.ts";
import type { RedisCalls } from "relay-window/redis/redis-calls.ts";
import { ProcessWindow } from "relay-window/window/process-window.ts";
import { PAYLOAD } from "./dialects.ts";

/** Of a pod, all that is between a verified envelope and Redis; nothing of its websockets and signatures. */

/** Where pods find Redis, and in how many partitions. */
export interface Place {
  readonly url: string;
  readonly partitions: number;
}

const LOGGER = createLogger({ service: "bench", level: "error" });
const KEY_ID = "load";
const PRINCIPAL = principalOf({ keyId: KEY_ID });
/** As long as that of HMAC. */
const SIG = "A".repeat(43);
const PAYLOAD_TEXT = JSON.stringify(PAYLOAD);
const RUN = `${Date.now().toString(36)}-${process.pid}`;

let serial = 0;

export interface PodAcceptance {
  readonly calls: RedisCalls;
  readonly acceptor: Acceptor;
}

/** Resolves when it is in the window that is open; the first of all opens one. */
export async function openPod({ url, partitions }: Place, pod: string): Promise<PodAcceptance> {
  const calls = redisAt({ url, name: "ws-connector", logger: LOGGER });
  const window = new ProcessWindow({ link: calls, partitions, deployId: "bench", logger: LOGGER });
  const { offlineAfterMs } = PRESENCE_LIMITS;
  const { proofFreshnessMs } = SESSION_LIMITS;
  const known = { epochs: new KnownEpochs(partitions), agentsPerKey: 0, agentsPerIssuer: 0 };
  const acceptor = new Acceptor({
    link: calls,
    window,
    pod,
    ...known,
    offlineAfterMs,
    proofFreshnessMs,
    logger: LOGGER,
  });
  await calls.start();
  await window.known();
  await window.start();
  return { calls, acceptor };
}

/** An envelope as verification leaves it; nobody looks at its signature any more. */
export function verifiedMessage(from: string, to: string, done: (acceptance: Acceptance) => void): AcceptanceItem {
  const [id, ts] = [nextId(), Date.now()];
  const envelope = { id, type: "message.send" as const, from, to, payload: PAYLOAD, ts, key_id: KEY_ID };
  const text =
    `{"from":"${from}","id":"${id}","key_id":"${KEY_ID}","payload":${PAYLOAD_TEXT},"sig":"${SIG}",` +
    `"to":"${to}","ts":${ts},"type":"message.send"}`;
  return { envelope, kind: "message", text, origin: "websocket", principal: PRINCIPAL, connection: "load", done };
}

export function verifiedHeartbeat(from: string, done: (acceptance: Acceptance) => void): AcceptanceItem {
  const [id, ts] = [nextId(), Date.now()];
  const envelope = { id, type: "agent.heartbeat" as const, from, payload: {}, ts, key_id: KEY_ID };
  const text = JSON.stringify({ ...envelope, sig: SIG });
  return { envelope, kind: "heartbeat", text, origin: "websocket", principal: PRINCIPAL, connection: "load", done };
}

function nextId(): string {
  serial += 1;
  return `${RUN}-${serial}`;
}
