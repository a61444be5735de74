import { setTimeout as delay } from "node:timers/promises";
import { type Draft, signedPart } from "../canonical.ts";
import { Clock } from "../clock.ts";
import { knownRetry, RelayError } from "../errors.ts";
import { type HelloFrame, textOf } from "../frames.ts";
import { isNotYetKnown } from "../late-key.ts";
import { unreachable } from "../network-errors.ts";
import { parseJson } from "../parse-json.ts";
import { Signer } from "../signer.ts";
import { Socket } from "../socket.ts";
import type { Envelope } from "../types.ts";
import { Failure, hintOf } from "./failure.ts";
import type { SigningAgent } from "./key-file.ts";
import type { Answer, RelayHttp } from "./relay-http.ts";

/** The steps of `relay check`. Each resolves with a text about what it found, or rejects with a Failure. */

const HELLO_WITHIN_MS = 10_000;
const NOTABLE_SKEW_MS = 5000;
/** The relay reads its keys file again within 5 s of a change. Source: docs/protocol.md#keys. */
export const NEW_KEY = { withinMs: 5000, retryMs: 250 } as const;

/** What `hello` says about the relay's clock. */
export interface HelloInfo {
  /** The relay's clock. */
  readonly clock: Clock;
  /** How far this machine's clock is ahead, in milliseconds. */
  readonly aheadMs: number;
  readonly maxClockSkewMs: number;
  /** Of the connector that the relay hands out. */
  readonly connectorVersion: string | undefined;
}

/** Connects, waits for `hello`, and disconnects; nothing is registered. */
export async function checkWebsocket(http: RelayHttp): Promise<HelloInfo> {
  const askedAt = performance.now();
  const hello = await receiveHello(http.websocketUrl);
  const clock = new Clock();
  if (hello.serverTime !== undefined) clock.measure(hello.serverTime, performance.now() - askedAt);
  const { maxClockSkewMs, connectorVersion } = hello;
  return { clock, aheadMs: Date.now() - clock.now(), maxClockSkewMs, connectorVersion };
}

async function receiveHello(url: string): Promise<HelloFrame> {
  const { promise, resolve, reject } = Promise.withResolvers<HelloFrame>();
  const fail = (why: string) =>
    reject(
      new Failure(
        "unreachable",
        `The websocket at ${url} ${why}.`,
        "A proxy in between must pass websocket upgrades; the relay refuses them when its connection limit is reached.",
      ),
    );
  const socket = new Socket(url, true, {
    frame: (frame) => frame.frame === "hello" && resolve(frame),
    closed: (code, failure) => {
      if (failure === undefined) fail(`cannot be opened (${code})`);
      else reject(unreachable(url, failure));
    },
  });
  const timer = setTimeout(() => fail("sent no hello within 10 s"), HELLO_WITHIN_MS);
  try {
    socket.open();
    return await promise;
  } finally {
    clearTimeout(timer);
    await socket.close();
  }
}

export function checkClock({ aheadMs, maxClockSkewMs }: HelloInfo): string {
  const seconds = (Math.abs(aheadMs) / 1000).toFixed(1);
  const text = `this machine's clock is ${seconds} s ${aheadMs < 0 ? "behind" : "ahead of"} the relay's`;
  if (Math.abs(aheadMs) < NOTABLE_SKEW_MS) return text;
  const hint = "Set this machine's clock (NTP). This package corrects for it; other programs that sign here do not.";
  if (Math.abs(aheadMs) <= maxClockSkewMs) return `${text}, which is allowed. ${hint}`;
  throw new Failure("clock_skew", `${text}: more than ${maxClockSkewMs / 1000} s.`, hint);
}

/** Has the relay check a signed heartbeat, or a register with the credential; it has no effect there. Source: docs/protocol.md#self-test. */
export async function checkSignature(
  { agent, key, credential }: SigningAgent,
  http: RelayHttp,
  { clock }: HelloInfo,
): Promise<string> {
  const signer = new Signer(key, clock);
  await signer.start();
  const presented = credential && { credential: (await credential()).credential };
  const type = presented ? "agent.register" : "agent.heartbeat";
  const draft: Draft = { id: crypto.randomUUID(), type, from: agent, payload: { relay: http.host, ...presented } };
  const { text } = await signer.sign(signer.draft(draft));
  const answer = await selfTest(text, http);
  if (answer.body.code === "bad_signature") throw await badSignature(text, answer);
  if (answer.body.code === "unknown_key") throw unknownKey(agent, answer);
  http.requireSuccess(answer);
  const known = presented ? `the relay accepts the credential of ${key.keyId}` : `the relay knows the key ${key.keyId}`;
  return `${known}, its signature is valid, and it may act for ${agent}`;
}

/** What is wrong: the key, when the relay checked the text that was signed here, else that text. */
async function badSignature(text: string, { body }: Answer): Promise<Failure> {
  const signed = new TextEncoder().encode(signedPart(parseJson(text) as Envelope));
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", signed));
  const hex = Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
  const hint =
    body.canonical_sha256 === hex
      ? "The relay checked the same text: the private key in the key file is not that of its key_id."
      : "The relay checked another text than was signed here: a proxy in between changes requests, or the versions differ.";
  return new Failure("bad_signature", "The signature does not match the envelope.", hint, {
    retry: knownRetry(body.retry),
  });
}

/** The relay's hint is for programs that make the self-test themselves. */
function unknownKey(agent: string, { body }: Answer): Failure {
  const said = new RelayError("unknown_key", { retry: knownRetry(body.retry) });
  return new Failure(said.code, `The relay does not know the key of ${agent}.`, hintOf(said), said);
}

async function selfTest(text: string, http: RelayHttp): Promise<Answer> {
  const askedAt = performance.now();
  const isTimeLeft = () => performance.now() - askedAt < NEW_KEY.withinMs;
  let answer = await http.post("/api/self-test", text);
  while (isNotYetKnown(answer.body.code, textOf(answer.body.detail)) && isTimeLeft()) {
    await delay(NEW_KEY.retryMs);
    answer = await http.post("/api/self-test", text);
  }
  return answer;
}
