import { setTimeout as wait } from "node:timers/promises";
import type { KeysFile } from "relay-protocol/contract/keys-file.ts";
import { AgentHolders } from "relay-protocol/signing/credentials.ts";
import { ANY_AGENT } from "relay-protocol/wire/credential.ts";
import { AGENT_ID_PATTERN } from "relay-protocol/wire/ids.ts";
import { CREDENTIAL_LIMITS } from "relay-protocol/wire/limits.ts";
import { type Options, UsageError } from "./command-line.ts";
import { issuerNamed, withRevocation } from "./issuer-records.ts";
import type { Outcome } from "./outcome.ts";
import { ofRevocation } from "./questions.ts";
import { editKeys } from "./store.ts";

/** `revoke --agent`: the credentials that an issuer signed for an agent, or for any, before a time. */
export async function revokeIssued(keysFile: string, options: Options): Promise<Outcome> {
  const agent = agentOf(options);
  const now = Date.now();
  const beforeMs = timeOf(options["issued-before"], now);
  const before = new Date(beforeMs).toISOString();
  let issuer = "";
  const keys = await editKeys(keysFile, (keys) => {
    issuer = issuerOf(keys, agent, options.issuer);
    return { ...keys, issuers: withRevocation(keys.issuers, issuer, { agent, issued_before: before }, now) };
  });
  // From then on a relay takes a credential that is dated as the revocation asks; it is less than a second.
  await wait(Math.max(0, beforeMs - CREDENTIAL_LIMITS.maxAheadMs - Date.now()));
  const whose = agent === ANY_AGENT ? `all agents of ${issuer}` : `${agent} of ${issuer}`;
  const text = `Revoked credentials for ${whose}, as far as they were issued before ${before}.
${beforeMs > now ? NEXT : ""}`;
  return { text, change: ofRevocation(keys, issuer, agent, beforeMs) };
}

function agentOf({ agent = [] }: Options): string {
  const [id = "", ...more] = agent;
  if (more.length === 0 && (id === ANY_AGENT || AGENT_ID_PATTERN.test(id))) return id;
  throw new UsageError("--agent takes one agent id, or '*' for all agents of the issuer.");
}

const AHEAD_SECONDS = CREDENTIAL_LIMITS.maxAheadMs / 1000;

const NEXT = `That covers issuers whose clocks are up to ${AHEAD_SECONDS} seconds ahead, as a relay takes their credentials. To issue anew:
npm run keys -- new, at once, which dates the credential accordingly; with other tools wait ${AHEAD_SECONDS + 1} seconds.
`;

/** What a relay takes at this time, `iat` ahead of it by as much as may be, in whole seconds, is all revoked. Unix ms. */
function timeOf(text: string | undefined, now: number): number {
  if (text === "now") return (Math.floor((now + CREDENTIAL_LIMITS.maxAheadMs) / 1000) + 1) * 1000;
  const time = Date.parse(text ?? "");
  if (time <= now) return time;
  throw new UsageError("--issued-before is required: now, or a time that is past, such as 2026-11-01T00:00:00Z.");
}

/** Only who speaks for an agent has credentials to revoke: under another name the right ones would stay in force. */
function issuerOf({ signing_keys, issuers }: KeysFile, agent: string, name: string | undefined): string {
  const holders = new AgentHolders(signing_keys, issuers);
  const named = name === undefined ? issuers : [issuerNamed(issuers, name)];
  const candidates = named.filter(({ issuer }) => agent === ANY_AGENT || holders.isOfIssuer(agent, issuer));
  const [only, ...more] = candidates;
  if (only === undefined) throw new Error(`${name ?? "No issuer"} speaks for ${agent}; list shows who does.`);
  if (more.length > 0) throw new UsageError("--issuer is required: there is more than one.");
  return only.issuer;
}
