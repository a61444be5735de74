import { setTimeout as delay } from "node:timers/promises";
import type { ApiKeyRecord, IssuerRecord, KeysFile, SigningKeyRecord } from "relay-protocol/contract/keys-file.ts";
import { SURFACES, WEBSOCKET_PATH } from "relay-protocol/contract/surfaces.ts";
import { AgentHolders, isValidAt, thumbprintOf, validityOf } from "relay-protocol/signing/credentials.ts";
import { ANY_AGENT, CREDENTIAL_KEY_PREFIX, CREDENTIAL_PROBLEMS } from "relay-protocol/wire/credential.ts";
import { ERRORS } from "relay-protocol/wire/errors.ts";
import { CREDENTIAL_LIMITS } from "relay-protocol/wire/limits.ts";
import { z } from "zod";
import type { Wait } from "./command-line.ts";
import { type Claims, unsignedToken } from "./issue.ts";
import { issuerNamed } from "./issuers.ts";
import { newOkpKey } from "./make.ts";

const FIRST_LOOK_MS = 250;
/** Thirty looks a minute: a gateway takes 60 failed API keys of an address, and a connector 60 connections. */
const LAST_LOOK_MS = 2000;

/** By who is asked, a gateway or a connector: whether it shows that the change is in force. Undefined where none answers. */
export type Shown = Readonly<Partial<Record<"gateway" | "connector", boolean | undefined>>>;

/** A change of the keys file, as a relay shows it. */
export interface Change {
  /** What a relay does from then on, and with what: `accept` the key, `refuse` what an issuer signed. */
  readonly verb: "accept" | "refuse";
  readonly what: string;
  /** Without `ask` nothing shows it. */
  readonly ask?: ((wait: Wait) => Promise<Shown>) | undefined;
  /** Where the change itself cannot be seen: what was seen in its place, in a sentence. */
  readonly seen?: string;
}

/** The keys file is changed, and a relay that runs does not have the change in time, or another address was named in its place. */
export class NotInForceError extends Error {}

/**
 * Waits until a change is in force at the relay that is asked. @returns what is in force, in a sentence.
 * @throws {NotInForceError} after the wait, and at once for a redirect.
 */
export async function untilInForce({ verb, what, ask, seen }: Change, wait: Wait): Promise<string> {
  const { url, waitMs } = wait;
  const does = `${verb}s ${what}`;
  if (ask === undefined || waitMs === 0)
    return `A relay that reads this file ${does} within 5 seconds; none was asked.\n`;
  const deadline = performance.now() + waitMs;
  let shown: Shown = {};
  for (let lookAgainMs = FIRST_LOOK_MS; ; lookAgainMs = Math.min(2 * lookAgainMs, LAST_LOOK_MS)) {
    shown = merged(shown, await ask(wait));
    const leftMs = deadline - performance.now();
    const isLate = leftMs <= 0;
    const answers = Object.values(shown);
    if (answers.every((answer) => answer === undefined)) {
      return `No relay answers at ${url}. Name another address with --url; if that has the websocket alone, set RELAY_HTTP_URL. A relay that reads this file ${does} within 5 seconds, or from its start on.\n`;
    }
    // A connector at another address never answers at this one: by the end of the wait the gateway's word is enough.
    if (answers.every((answer) => answer === true || (isLate && answer === undefined))) {
      if (seen !== undefined) return `The relay at ${url} should ${verb} ${what} by now. ${seen}\n`;
      return `The relay at ${url} ${does}: ${whoOf(shown)} Others load the change within 5 seconds.\n`;
    }
    if (isLate) break;
    await delay(Math.min(lookAgainMs, leftMs));
  }
  throw new NotInForceError(
    `The keys file is changed, but the relay at ${url} does not show after ${waitMs / 1000} s that it ${does}: ${whoOf(shown)} Name another relay with --url or RELAY_URL; under compose run docker compose run --rm keys; else see its log, whether degraded in its /ready has keys_file, and which file it reads (RELAY_KEYS_FILE).`,
  );
}

/** An answer holds until the next. */
function merged(before: Shown, now: Shown): Shown {
  const answers = Object.entries(now).map(([who, answer]) => [who, answer ?? before[who as keyof Shown]]);
  return Object.fromEntries(answers) as Shown;
}

const GATEWAY_HINT = " (RELAY_HTTP_URL names its address)";

function whoOf(shown: Shown): string {
  const named = (isSilent: boolean) =>
    Object.entries(shown).flatMap(([who, answer]) => ((answer === undefined) === isSilent ? [who] : []));
  const [asked, silent] = [named(false), named(true)];
  const none = silent.map((who) => `, and no ${who} answers there${who === "gateway" ? GATEWAY_HINT : ""}`).join("");
  return `${asked.map((who) => `one ${who}`).join(" and ")} ${asked.length > 1 ? "were" : "was"} asked${none}.`;
}

/**
 * What a relay is asked to see whether a change is in force. It judges a key, or a credential, before it looks at a signature: a register
 * without a valid one tells how it stands, and registers nobody. Source: docs/protocol.md#envelopes.
 */

const ANSWER_WITHIN_MS = 2000;
/** A relay that can read its keys file has what it says. */
const IN_FORCE_WITHIN_MS = 5000;

/** Of a signing key that was added, or removed. */
export function ofKey(record: SigningKeyRecord, verb: Change["verb"]): Change {
  const register = { from: oneOf(record.agents), alg: record.alg, key_id: record.key_id, payload: {} };
  return { verb, what: record.key_id, ask: isHeld(record) ? ofRegister(register, verb) : undefined };
}

/** Of an API key that was made: its text has to be known. A gateway judges the key before it finds the request empty. */
export function ofNewApiKey(record: ApiKeyRecord, apiKey: string): Change {
  const ask = async ({ url }: Wait) => {
    const init = { ...POST, headers: { ...POST.headers, "x-api-key": apiKey }, body: "{}" };
    const answer = await answerOf(`${url}${SURFACES.sendMessage.path}`, init);
    return { gateway: answer && answer.code === "invalid_request" };
  };
  return { verb: "accept", what: record.id, ask: isHeld(record) ? ask : undefined };
}

/** Of an API key that was revoked. Nobody has its text: all that shows is whether the gateway can read its keys file. */
export function ofRevokedApiKey(id: string): Change {
  const ask = async ({ url, waitMs }: Wait) => {
    if ((await answerOf(`${url}${SURFACES.ready.path}`)) === undefined) return { gateway: undefined };
    await delay(Math.min(waitMs, IN_FORCE_WITHIN_MS));
    const answer = await answerOf(`${url}${SURFACES.ready.path}`);
    if (answer === undefined) return { gateway: undefined };
    const { status, ready, degraded = [] } = answer;
    return { gateway: status === 200 && ready === true && !degraded.includes("keys_file") };
  };
  const seen = "Its gateway can read its keys file. Only a request with the key shows that it is this file: 401.";
  return { verb: "refuse", what: id, ask, seen };
}

/** Of a gateway's key that was revoked: no manifest lists it. */
export function ofRevokedGatewayKey(id: string): Change {
  const ask = async ({ url }: Wait) => {
    const listed = (await answerOf(`${url}${SURFACES.signingManifest.path}`))?.gateway_keys;
    return { gateway: listed?.every(({ key_id }) => key_id !== id) };
  };
  return { verb: "refuse", what: id, ask };
}

/** Of a credential that was issued. */
export function ofCredential(agent: string, keyId: string, credential: string): Change {
  const register = { from: agent, alg: "ed25519", key_id: keyId, payload: { credential } } as const;
  return { verb: "accept", what: "it", ask: ofRegister(register, "accept") };
}

/** Of keys that an issuer got, or lost. @param keys a file that has the issuer with them. */
export function ofIssuerKeys(
  keys: KeysFile,
  name: string,
  publicKeys: readonly string[],
  verb: Change["verb"],
): Change {
  const record = issuerNamed(keys.issuers, name);
  const agent = agentOf(keys, record);
  const key = record.keys.find((one) => publicKeys.includes(one.public_key) && isHeld(one));
  const what = `credentials of ${name}`;
  if (agent === undefined || key === undefined) return { verb, what };
  const iat = Math.max(Date.now(), ...record.revoked.map(({ issued_before }) => Date.parse(issued_before)));
  const ask = ofClaims(name, key.public_key, agent, Math.ceil(iat / 1000), verb);
  return { verb, what: `${what} under the key ${thumbprintOf(key.public_key, "Ed25519")}`, ask };
}

/** Of a revocation. @param before Unix ms. */
export function ofRevocation(keys: KeysFile, name: string, revoked: string, before: number): Change {
  const record = issuerNamed(keys.issuers, name);
  const agent = revoked === ANY_AGENT ? agentOf(keys, record) : revoked;
  const key = record.keys.find(isHeld);
  const iat = Math.ceil(before / 1000) - 1;
  const isAskable = agent !== undefined && key !== undefined && iat * 1000 + CREDENTIAL_LIMITS.maxLifeMs > Date.now();
  const ask = isAskable ? ofClaims(name, key.public_key, agent, iat, "refuse") : undefined;
  return { verb: "refuse", what: "them", ask };
}

/** A credential with these claims, which its issuer has not signed. */
function ofClaims(iss: string, publicKey: string, sub: string, iat: number, verb: Change["verb"]): Change["ask"] {
  const { publicJwk } = newOkpKey("Ed25519");
  const claims: Claims = { iss, sub, cnf: { jwk: publicJwk }, iat, exp: iat + CREDENTIAL_LIMITS.maxLifeMs / 1000 };
  const credential = `${unsignedToken(publicKey, claims)}.${NO_SIGNATURE.ed25519}`;
  const key_id = `${CREDENTIAL_KEY_PREFIX}${thumbprintOf(publicJwk.x, "Ed25519")}`;
  return ofRegister({ from: sub, alg: "ed25519", key_id, payload: { credential } }, verb);
}

/** An agent for which the issuer speaks; undefined where others speak for all that it could. */
function agentOf({ signing_keys, issuers }: KeysFile, { issuer, agents }: IssuerRecord): string | undefined {
  const holders = new AgentHolders(signing_keys, issuers);
  const candidates = agents.map((pattern) =>
    pattern === ANY_AGENT ? `agent://asked-${crypto.randomUUID()}` : oneOf([pattern]),
  );
  return candidates.find((agent) => holders.isOfIssuer(agent, issuer));
}

/** One that is not valid yet, or any more, is refused either way. */
function isHeld(record: Parameters<typeof validityOf>[0]): boolean {
  return isValidAt(validityOf(record), Date.now());
}

function oneOf([pattern]: readonly string[]): string {
  return (pattern as string).replace(/\*$/, "1");
}

interface Register {
  readonly from: string;
  readonly alg: SigningKeyRecord["alg"];
  readonly key_id: string;
  readonly payload: object;
}

function ofRegister(register: Register, verb: Change["verb"]): Change["ask"] {
  return async ({ url, websocketUrl = `${url.replace(/^http/, "ws")}${WEBSOCKET_PATH}` }) => {
    const isShown = (answer: Answer | undefined) => answer && isTaken(answer) === (verb === "accept");
    const [gateway, connector] = await Promise.all([
      gatewayAnswer(register, url),
      connectorAnswer(register, websocketUrl),
    ]);
    return { gateway: isShown(gateway), connector: isShown(connector) };
  };
}

/** What is read of a problem document, of an error frame or hello, of /ready and of the signing manifest. */
const Answer = z
  .object({
    code: z.string(),
    /** Of a problem document; that of a frame is its message. */
    detail: z.string(),
    message: z.string(),
    frame: z.string(),
    service: z.string(),
    ready: z.boolean(),
    degraded: z.array(z.string()),
    gateway_keys: z.array(z.object({ key_id: z.string() })),
  })
  .partial();
type Answer = z.infer<typeof Answer>;

/** @throws {Error} for what no relay says, and for a service without the path: another program may answer at that address. */
function answerIn(text: string): Answer {
  const answer = Answer.parse(JSON.parse(text));
  const { code = "", frame, service, gateway_keys } = answer;
  const isOfRelay = code !== "not_found" && Object.hasOwn(ERRORS, code);
  if (isOfRelay || frame === "hello" || service === "gateway" || gateway_keys !== undefined) return answer;
  throw new Error("No relay answers.");
}

/** Whether the signature alone is wrong; undefined for an answer that does not say. Source: docs/protocol.md#errors. */
function isTaken({ code, message, detail = message }: Answer): boolean | undefined {
  if (code === "bad_signature") return true;
  if (code === "unknown_key") return false;
  if (code !== "invalid_credential") return undefined;
  return !CREDENTIAL_PROBLEMS.some((problem) => detail?.startsWith(`${problem}:`));
}

const POST = { method: "POST", headers: { "content-type": "application/json" } };

async function gatewayAnswer(register: Register, url: string): Promise<Answer | undefined> {
  return await answerOf(`${url}${SURFACES.selfTest.path}`, { ...POST, body: textOf(register) });
}

/** Undefined when no relay answers. @throws {NotInForceError} for a redirect: an API key is for this address alone. */
async function answerOf(url: string, init?: RequestInit): Promise<(Answer & { readonly status: number }) | undefined> {
  try {
    const signal = AbortSignal.timeout(ANSWER_WITHIN_MS);
    const response = await fetch(url, { ...init, redirect: "manual", signal });
    if (response.status >= 300 && response.status < 400) throw new NotInForceError(redirected(url, response.status));
    return { ...answerIn(await response.text()), status: response.status };
  } catch (error) {
    if (error instanceof NotInForceError) throw error;
    return undefined;
  }
}

function redirected(url: string, status: number): string {
  return `The keys file is changed, but ${url} answers with a redirect (${status}), which is not followed. Name the address of the relay itself with --url; http:// often becomes https://.`;
}

/** Undefined when no relay answers. One that greets, and no more, does not tell. */
async function connectorAnswer(register: Register, websocketUrl: string): Promise<Answer | undefined> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const socket = new WebSocket(websocketUrl);
  const timer = setTimeout(resolve, ANSWER_WITHIN_MS);
  let answer: Answer | undefined;
  socket.addEventListener("message", ({ data }) => {
    try {
      answer = answerIn(String(data));
      if (answer.frame === "hello") socket.send(textOf(register));
      else resolve();
    } catch {
      resolve();
    }
  });
  socket.addEventListener("error", () => resolve());
  socket.addEventListener("close", () => resolve());
  await promise;
  clearTimeout(timer);
  socket.close();
  return answer;
}

/** base64url of zeros: no key has such a signature. */
const NO_SIGNATURE = { ed25519: "A".repeat(86), "hmac-sha256": "A".repeat(43) };

/** A register, complete but for its signature. */
function textOf({ from, alg, key_id, payload }: Register): string {
  const sig = NO_SIGNATURE[alg];
  return JSON.stringify({
    id: crypto.randomUUID(),
    type: "agent.register",
    from,
    payload,
    ts: Date.now(),
    key_id,
    sig,
  });
}

/** What a command of `npm run keys` prints, and what it has changed. */
export interface Outcome {
  /** Sentences, for people. */
  readonly text: string;
  /** What it made, for the standard input of a program or a file: a secret that is shown once. */
  readonly data?: string;
  readonly change: Change;
}
