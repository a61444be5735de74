import { setTimeout as delay } from "node:timers/promises";
import { type Draft, signedPart } from "../../canonical.ts";
import { Clock } from "../../clock.ts";
import { knownRetry, RelayError, type Retry } from "../../errors.ts";
import { type HelloFrame, membersOf, textOf } from "../../frames.ts";
import { isNotYetKnown } from "../../late-key.ts";
import { MANIFEST } from "../../limits.ts";
import { unreachable } from "../../network-errors.ts";
import { parseJson } from "../../parse-json.ts";
import { proxyFor, shownProxy, targetOf } from "../../platform/proxy.ts";
import { saidText, shownText } from "../../said-text.ts";
import { Signer } from "../../signer.ts";
import { Socket } from "../../socket.ts";
import type { Envelope } from "../../types.ts";
import { outdatedWarning } from "../../version.ts";
import { AGENT_OPTIONS, readArguments } from "../arguments.ts";
import { reportWarning } from "../connection-reports.ts";
import { EXIT, Failure, failureOf, hintOf } from "../failure.ts";
import type { Command, Options } from "../io.ts";
import { type Io, jsonLine, Reporter, styled, writeLine } from "../io.ts";
import { readIdentity, requireKey, type SigningAgent } from "../key-file.ts";
import { type Answer, RelayHttp } from "../relay-http.ts";
import { connectionTransport } from "../transport.ts";

const OPTIONS = {
  ...AGENT_OPTIONS,
  register: { type: "boolean", help: "also register the agent for a moment" },
} as const satisfies Options;

export const check: Command = {
  usage: "[options]",
  options: OPTIONS,
  examples: ["relay check --key alice.json", "relay check --key alice.json --url https://relay.example --register"],
  run: async (args, io) => {
    const { values } = readArguments(args, OPTIONS);
    const { key, url, register, json = false } = values;
    const http = new RelayHttp(url, io);
    const report = new Report(json, io);
    const reporter = new Reporter(io.stderr, json);
    const credentials = await report.step(
      "key",
      async () => {
        return requireKey(await readIdentity(key, io.env, reporter));
      },
      ({ agent, key: { alg, keyId } }) => `${alg} key ${keyId} of ${agent}`,
    );
    const proxies = proxiesOf(http);
    if (proxies) await report.step("proxy", async () => proxies);
    const relay = await report.step("relay", () => checkReachable(http));
    const other = relay && (await otherAddress(http).catch(() => undefined));
    if (other) await report.step("address", async () => other);
    if (relay) await report.step("ready", () => checkReady(http));
    if (relay && credentials) await report.step("presence", () => checkPresence(credentials.agent, http));
    const hello =
      relay &&
      (await report.step(
        "websocket",
        () => checkWebsocket(http),
        () => `${http.websocketUrl} sent hello`,
      ));
    const warning = hello && outdatedWarning(hello.connectorVersion);
    if (warning) reportWarning(warning, reporter);
    if (hello) await report.step("clock", async () => checkClock(hello));
    const signs =
      credentials && hello && (await report.step("signature", () => checkSignature(credentials, http, hello)));
    if (register && signs) {
      await report.step("register", async () => {
        await (await connectionTransport({ credentials, http, takeOver: false }, io)).close();
        return `${credentials.agent} was online for a moment`;
      });
    }
    return await report.end();
  },
};

interface Step {
  readonly step: string;
  readonly ok: boolean;
  /** Of a failure. */
  readonly code?: string;
  readonly message: string;
  readonly hint?: string;
  readonly retry?: Retry | undefined;
}

/** Prints each step as it is done, and keeps the first failure. */
class Report {
  readonly #json: boolean;
  readonly #io: Io;
  readonly #steps: Step[] = [];
  #failure: Failure | undefined;

  constructor(json: boolean, io: Io) {
    this.#json = json;
    this.#io = io;
  }

  /** @param describe the text of a result. @returns undefined when the step failed. */
  async step<T>(step: string, run: () => Promise<T>, describe: (result: T) => string = String): Promise<T | undefined> {
    try {
      const result = await run();
      await this.#add({ step, ok: true, message: describe(result) });
      return result;
    } catch (error) {
      const failure = failureOf(error);
      this.#failure ??= failure;
      const { code, message, hint, retry } = failure;
      await this.#add({ step, ok: false, code, message, hint, retry });
      return undefined;
    }
  }

  async end(): Promise<number> {
    const { stdout } = this.#io;
    if (this.#json) await writeLine(stdout, jsonLine({ ok: this.#failure === undefined, steps: this.#steps }));
    else if (this.#failure === undefined) await writeLine(stdout, "No problem found.");
    return this.#failure?.exitCode ?? EXIT.ok;
  }

  async #add(step: Step): Promise<void> {
    this.#steps.push(step);
    if (this.#json) return;
    const { stdout } = this.#io;
    const mark = step.ok ? styled("green", "ok   ") : styled("red", "error");
    await writeLine(stdout, [mark, ` ${step.step.padEnd(11)} ${step.message}`]);
    if (step.hint) await writeLine(stdout, `${" ".repeat(18)}${step.hint}`);
  }
}

/** The steps of `relay check`. Each resolves with a text about what it found, or rejects with a Failure. */

const HELLO_WITHIN_MS = 10_000;
const NOTABLE_SKEW_MS = 5000;
/** The relay reads its keys file again within 5 s of a change. Source: docs/protocol.md#keys. */
export const NEW_KEY = { withinMs: 5000, retryMs: 250 } as const;

/** What `hello` says about the relay's clock. */
interface HelloInfo {
  /** The relay's clock. */
  readonly clock: Clock;
  /** How far this machine's clock is ahead, in milliseconds. */
  readonly aheadMs: number;
  readonly maxClockSkewMs: number;
  /** Of the connector that the relay hands out. */
  readonly connectorVersion: string | undefined;
}

/** Connects, waits for `hello`, and disconnects; nothing is registered. */
async function checkWebsocket(http: RelayHttp): Promise<HelloInfo> {
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
        "A proxy in between must pass websocket upgrades. The relay also refuses them when it has too many connections.",
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

function checkClock({ aheadMs, maxClockSkewMs }: HelloInfo): string {
  const seconds = (Math.abs(aheadMs) / 1000).toFixed(1);
  const text = `this machine's clock is ${seconds} s ${aheadMs < 0 ? "behind" : "ahead of"} the relay's`;
  if (Math.abs(aheadMs) < NOTABLE_SKEW_MS) return text;
  const hint =
    "Set this machine's clock (NTP). This package corrects for it, but other programs that sign here do not.";
  if (Math.abs(aheadMs) <= maxClockSkewMs) return `${text}, which is allowed. ${hint}`;
  throw new Failure("clock_skew", `${text}. The relay allows ${maxClockSkewMs / 1000} s.`, hint);
}

/** Has the relay check a signed heartbeat, or a register with the credential; it has no effect there. Source: docs/protocol.md#self-test. */
async function checkSignature(
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
      ? "The relay checked the same text, so the private key in the key file does not belong to its key_id."
      : "The relay checked another text than was signed here. A proxy may change requests, or the versions differ.";
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

/** The steps of `relay check` about what can be reached: the relay, its Redis, and what it knows of the agent. As those in checks.ts. */

/** What a relay that is ready does without. Source: docs/protocol.md#http. */
const DEGRADATIONS: ReadonlyMap<unknown, string> = new Map([
  ["redis_memory", "its Redis is short of memory, and takes no new sessions and agents"],
  [
    "control_slot",
    "what its Redis Cluster has of the whole window is out of reach, and no service that starts is ready",
  ],
  ["keys_file", "it cannot use its keys file, and goes on with the keys that it read before"],
]);

/** Which proxy leads to each address of the relay. Without one, or with one that cannot be used, undefined. */
function proxiesOf({ baseUrl, websocketUrl }: RelayHttp): string | undefined {
  const targets = [baseUrl, websocketUrl].map((address) => targetOf(new URL(address)));
  try {
    const ways = targets.flatMap((target) => {
      const proxy = proxyFor(target, process.env);
      return proxy ? [`connections to ${target.place} go through ${shownProxy(proxy)}`] : [];
    });
    return ways.length === 0 ? undefined : [...new Set(ways)].join("; ");
  } catch {
    return undefined;
  }
}

/** What the relay's documents say of its address, where that is another one than was dialled. Undefined where they cannot be read. */
async function otherAddress(http: RelayHttp): Promise<string | undefined> {
  const { body } = await http.request(MANIFEST.path);
  const named = textOf(membersOf(body.self_test).url);
  const isOther = named && URL.canParse(named) && !new URL(named).href.startsWith(new URL(`${http.baseUrl}/`).href);
  if (!isOther) return undefined;
  const base = shownText(named.replace(/\/api\/self-test$/, ""));
  return `its documents name ${base}. If clients cannot use that address, the operator should set RELAY_BASE_URL=${http.baseUrl}`;
}

async function checkReachable(http: RelayHttp): Promise<string> {
  await http.get("/health");
  return `the relay answers at ${http.baseUrl}`;
}

/** An edge proxy may hide this probe: 404. What is out of reach is no failure here: `checkPresence` tells whether the agent is concerned. */
async function checkReady(http: RelayHttp): Promise<string> {
  const { status, body } = await http.request("/ready");
  if (status === 200) return ["it is ready", ...lacksOf(body)].join("; ");
  if (status === 404) return "it does not expose its readiness here";
  throw new Failure(
    "unavailable",
    "The relay is up, but not ready.",
    `Try again later, or tell its operator. ${saidText(body.next_action) ?? ""}`.trim(),
    { retry: knownRetry(body.retry) },
  );
}

/** Asks for the agent's presence, which lies where all lies that concerns the agent: on a cluster, another partition may answer. */
async function checkPresence(agent: string, http: RelayHttp): Promise<string> {
  try {
    const { status } = await http.presence(agent);
    return `the relay reaches what it knows of ${agent}: ${saidText(status) ?? "no status"}`;
  } catch (error) {
    if (!(error instanceof Failure) || error.code !== "unavailable") throw error;
    throw new Failure(error.code, error.message, `Tell the relay's operator. ${error.hint}`.trim(), error);
  }
}

/** What a ready relay says that it lacks, in words. */
function lacksOf({ degraded, unavailable_partitions: partitions }: Answer["body"]): string[] {
  const kinds = Array.isArray(degraded) ? degraded : [];
  const lost = Array.isArray(partitions) ? partitions.filter((p) => Number.isSafeInteger(p)) : [];
  const others = kinds.flatMap((kind) => DEGRADATIONS.get(kind) ?? []);
  if (lost.length === 0) return others;
  return [`out of reach: partition ${lost.join(", ")}, whose agents are unavailable while others go on`, ...others];
}
