import { setTimeout as delay } from "node:timers/promises";
import type { SigningKeyRecord } from "protocol/contract/keys-file.ts";
import { WEBSOCKET_PATH } from "protocol/contract/surfaces.ts";

const LOOK_AGAIN_MS = 250;
const ANSWER_WITHIN_MS = 2000;

/** The keys file has the key, and a relay that runs does not have it in time. */
export class NotInForceError extends Error {}

/**
 * Waits until the relay at an address has a key: the gateway and the connector that answer there, of each the one that is asked.
 * @param url http or https.
 * @returns false when no relay answers there. @throws {NotInForceError} after the wait.
 */
export async function untilInForce(record: SigningKeyRecord, url: string, waitMs: number): Promise<boolean> {
  const deadline = performance.now() + waitMs;
  for (;;) {
    const codes = await Promise.all([gatewayCode(record, url), connectorCode(record, url)]);
    if (codes.every((code) => code === undefined)) return false;
    if (codes.every(isKnown)) return true;
    if (performance.now() >= deadline) break;
    await delay(LOOK_AGAIN_MS);
  }
  throw new NotInForceError(
    `${record.key_id} stands in the keys file, but the relay at ${url} did not have it within ${waitMs / 1000} s. Name another relay with --url or RELAY_URL; under compose run docker compose run --rm keys; else see its log, and which keys file it reads (RELAY_KEYS_FILE).`,
  );
}

/** A relay that has the key goes on to the signature, which is none. Source: docs/protocol.md#errors. */
function isKnown(code: string | undefined): boolean {
  return code === "bad_signature";
}

/** The code with which the gateway refuses an envelope under the key; undefined when none answers. */
async function gatewayCode(record: SigningKeyRecord, url: string): Promise<string | undefined> {
  try {
    const signal = AbortSignal.timeout(ANSWER_WITHIN_MS);
    const headers = { "content-type": "application/json" };
    const answer = await fetch(`${url}/api/self-test`, { method: "POST", body: unsigned(record), headers, signal });
    return ((await answer.json()) as { code?: string }).code;
  } catch {
    return undefined;
  }
}

/** The same of the connector. */
async function connectorCode(record: SigningKeyRecord, url: string): Promise<string | undefined> {
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  const socket = new WebSocket(`${url.replace(/^http/, "ws")}${WEBSOCKET_PATH}`);
  const timer = setTimeout(() => resolve(undefined), ANSWER_WITHIN_MS);
  socket.addEventListener("message", ({ data }) => {
    const { frame, code } = JSON.parse(String(data)) as { frame: string; code?: string };
    if (frame === "hello") socket.send(unsigned(record));
    if (frame === "error") resolve(code);
  });
  socket.addEventListener("error", () => resolve(undefined));
  socket.addEventListener("close", () => resolve(undefined));
  return await promise.finally(() => {
    clearTimeout(timer);
    socket.close();
  });
}

/** A register of one of the key's agents, complete but for its signature: no relay accepts it. */
function unsigned({ key_id, alg, agents }: SigningKeyRecord): string {
  const from = (agents[0] as string).replace(/\*$/, "1");
  const sig = Buffer.alloc(alg === "ed25519" ? 64 : 32).toString("base64url");
  return JSON.stringify({
    id: crypto.randomUUID(),
    type: "agent.register",
    from,
    payload: {},
    ts: Date.now(),
    key_id,
    sig,
  });
}
