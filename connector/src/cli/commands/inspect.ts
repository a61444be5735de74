import type { CredentialReason } from "../../credentials/contract.ts";
import { Issuers } from "../../credentials/issuers.ts";
import type { Credential } from "../../credentials/read-credential.ts";
import { readArguments } from "../arguments.ts";
import { EXIT, usageError } from "../failure.ts";
import type { Command } from "../io.ts";
import { jsonLine, type Line, type Styled, styled, writeLine } from "../io.ts";
import { BELIEVED, CREDENTIAL_REASONS, readBelieved, readToken } from "../records.ts";

/** `unchecked`: no issuer was named to check it with. */
type Verdict = "holds" | "unchecked" | CredentialReason;

export const inspect: Command = {
  usage: "<credential> [options]",
  options: BELIEVED,
  examples: ["relay inspect bob.credential --issuer acme.json", "relay inspect bob.json --key alice.json"],
  run: async (args, io) => {
    const { values, positionals } = readArguments(args, BELIEVED);
    const [word, ...more] = positionals;
    if (word === undefined || more.length > 0) throw usageError("inspect takes one word, a credential or its file.");
    const credential = await readToken(word, io);
    const verdict = await verdictOn(credential, await readBelieved(values, io));
    const lines = values.json ? [jsonLine(membersOf(credential, verdict))] : linesOf(credential, verdict);
    for (const line of lines) await writeLine(io.stdout, line);
    return verdict === "holds" || verdict === "unchecked" ? EXIT.ok : EXIT.key;
  },
};

async function verdictOn(credential: Credential, records: readonly unknown[] | undefined): Promise<Verdict> {
  const now = Date.now();
  if (records === undefined) return credential.expiresAt <= now ? "expired" : "unchecked";
  const issuers = await Issuers.from(records);
  const problem = await issuers.problemAt(credential, now);
  return problem ?? (issuers.isRevoked(credential) ? "revoked" : "holds");
}

function membersOf(credential: Credential, verdict: Verdict): object {
  const { issuer, issuerKey, agent, keyId, publicKey, sealingKey, audience } = credential;
  const reason = verdict !== "holds" && verdict !== "unchecked" && { reason: verdict };
  return {
    ok: !reason,
    holds: verdict === "unchecked" ? null : verdict === "holds",
    ...reason,
    issuer,
    issuer_key: issuerKey,
    agent_id: agent,
    key_id: keyId,
    public_key: publicKey,
    sealing_public_key: sealingKey,
    issued_at_iso: isoOf(credential.issuedAt),
    not_before_iso: isoOf(credential.notBefore),
    expires_at_iso: isoOf(credential.expiresAt),
    relays: audience,
  };
}

function linesOf(credential: Credential, verdict: Verdict): Line[] {
  const { issuer, issuerKey, agent, keyId, sealingKey, audience, issuedAt, notBefore, expiresAt } = credential;
  const rows = [
    ["agent", agent],
    ["key", keyId],
    ["issuer", `${issuer}, by its key ${issuerKey}`],
    ["issued", isoOf(issuedAt)],
    ...(notBefore === issuedAt ? [] : [["not before", isoOf(notBefore)]]),
    ["expires", isoOf(expiresAt)],
    ["relays", audience?.join(", ") ?? "any"],
    ["sealed", sealingKey === undefined ? "has no key for sealed payloads" : "payloads can be sealed to it"],
  ];
  const table = rows.map(([name = "", value]) => `${name.padEnd(10)}  ${value}`);
  return [...table, ["".padEnd(12), verdictText(verdict)]];
}

function verdictText(verdict: Verdict): string | Styled {
  if (verdict === "holds")
    return styled("green", "It holds now, unless it was revoked after its issuer's record was copied.");
  if (verdict === "unchecked")
    return "Its signature was not checked. Name its issuer with --issuer, or a key file that trusts the issuer with --key.";
  return styled("red", `It does not hold (${verdict}): ${CREDENTIAL_REASONS[verdict]}.`);
}

function isoOf(time: number): string {
  return new Date(time).toISOString();
}
