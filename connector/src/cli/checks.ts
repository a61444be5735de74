import { setTimeout as delay } from "node:timers/promises";
import type { Draft } from "../canonical.ts";
import { Clock } from "../clock.ts";
import type { HelloFrame } from "../frames.ts";
import { Signer } from "../signer.ts";
import { Socket } from "../socket.ts";
import { Failure } from "./failure.ts";
import type { Signatory } from "./key-file.ts";
import type { Answer, RelayHttp } from "./relay-http.ts";

/** The steps of `relay check`. Each resolves with what it found, in words, or rejects with a Failure. */

const HELLO_WITHIN_MS = 10_000;
const REMARKABLE_MS = 5000;
/** A new key is in force within 5 s: until then the relay may not know it yet. Source: docs/protocol.md, "Keys". */
const NEW_KEY = { withinMs: 5000, askAgainMs: 250 } as const;

/** What `hello` told. */
export interface Greeting {
  /** Follows the relay's clock. */
  readonly clock: Clock;
  /** How far this machine's clock is ahead, in milliseconds. */
  readonly aheadMs: number;
  readonly maxClockSkewMs: number;
}

export async function checkReachable(http: RelayHttp): Promise<string> {
  const { status } = await http.ask("/health");
  if (status === 200) return `a relay answers at ${http.baseUrl}`;
  throw new Failure("unreachable", `What answers at ${http.baseUrl} is no healthy relay (${status}).`, "Check --url.");
}

/** An edge may keep the probe to itself. */
export async function checkReady(http: RelayHttp): Promise<string> {
  const { status } = await http.ask("/ready");
  if (status === 200) return "it can do its work";
  if (status === 404) return "it does not say so here, and need not";
  throw new Failure(
    "unavailable",
    "The relay is up, but cannot reach its Redis.",
    "Its operator must see to it; try again later.",
  );
}

/** Connects, waits for `hello`, and goes away again; nothing is registered. */
export async function greet(http: RelayHttp): Promise<Greeting> {
  const openedAt = Date.now();
  const hello = await hear(http.websocketUrl);
  const clock = new Clock();
  if (hello.serverTime !== undefined) clock.measure(hello.serverTime, openedAt);
  return { clock, aheadMs: Date.now() - clock.now(), maxClockSkewMs: hello.maxClockSkewMs };
}

async function hear(url: string): Promise<HelloFrame> {
  const { promise, resolve, reject } = Promise.withResolvers<HelloFrame>();
  const fail = (why: string) =>
    reject(
      new Failure(
        "unreachable",
        `The websocket at ${url} ${why}.`,
        "A proxy on the way must pass websocket upgrades; the relay refuses them when it is full.",
      ),
    );
  const socket = new Socket(url, {
    frame: (frame) => frame.frame === "hello" && resolve(frame),
    closed: (code) => fail(`does not open (${code})`),
  });
  const timer = setTimeout(() => fail("does not say hello within 10 s"), HELLO_WITHIN_MS);
  try {
    socket.open();
    return await promise;
  } finally {
    clearTimeout(timer);
    await socket.close();
  }
}

export function checkClock({ aheadMs, maxClockSkewMs }: Greeting): string {
  const seconds = (Math.abs(aheadMs) / 1000).toFixed(1);
  const words = `this machine's clock is ${seconds} s ${aheadMs < 0 ? "behind" : "ahead of"} the relay's`;
  if (Math.abs(aheadMs) < REMARKABLE_MS) return words;
  const hint = "Set this machine's clock (NTP). This package corrects for it; other programs that sign here do not.";
  if (Math.abs(aheadMs) <= maxClockSkewMs) return `${words}, which is allowed. ${hint}`;
  throw new Failure("clock_skew", `${words}: more than ${maxClockSkewMs / 1000} s.`, hint);
}

/** Has the relay check a signed heartbeat, which changes nothing there. */
export async function checkSignature({ agent, key }: Signatory, http: RelayHttp, { clock }: Greeting): Promise<string> {
  const signer = new Signer(key, clock);
  await signer.start();
  const draft: Draft = { id: crypto.randomUUID(), type: "agent.heartbeat", from: agent, payload: {} };
  const { text } = await signer.sign(signer.draft(draft));
  http.succeeded(await selfTest(text, http));
  return `the relay knows the key ${key.keyId}, its signature fits, and it may act for ${agent}`;
}

async function selfTest(text: string, http: RelayHttp): Promise<Answer> {
  const giveUpAt = performance.now() + NEW_KEY.withinMs;
  let answer = await http.post("/api/self-test", text);
  while (answer.body.code === "unknown_key" && performance.now() < giveUpAt) {
    await delay(NEW_KEY.askAgainMs);
    answer = await http.post("/api/self-test", text);
  }
  return answer;
}
