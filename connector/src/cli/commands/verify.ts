import type { CredentialFacts } from "../../credentials/contract.ts";
import { Issuers } from "../../credentials/issuers.ts";
import { ANNOUNCED_DEFAULTS } from "../../limits.ts";
import type { ReceiptFacts, ReceiptProblem } from "../../receipts/contract.ts";
import { verifyReceipt } from "../../receipts/verify-receipt.ts";
import { readArguments } from "../arguments.ts";
import { EXIT, Failure, usageError } from "../failure.ts";
import { readText } from "../files.ts";
import type { Command } from "../io.ts";
import { jsonLine, writeLine } from "../io.ts";
import { BELIEVED, CREDENTIAL_REASONS, readBelieved } from "../records.ts";

export const verify: Command = {
  usage: "<receipt> (--issuer FILE | --key FILE) [options]",
  options: BELIEVED,
  examples: [
    "relay verify receipt.json --issuer acme.json --issuer globex.json",
    "relay verify receipt.json --key bob.json",
  ],
  run: async (args, io) => {
    const { values, positionals } = readArguments(args, BELIEVED);
    const [file, ...more] = positionals;
    if (file === undefined || more.length > 0) throw usageError("verify takes one word, the receipt's file or -.");
    const believed = await readBelieved(values, io);
    if (believed === undefined) throw usageError("Name the issuers that you believe with --issuer FILE or --key FILE.");
    const verdict = await verifyReceipt(await readText(file, io), await Issuers.from(believed));
    if (!verdict.valid) throw invalid(verdict.problem);
    const lines = values.json ? [jsonLine({ ok: true, ...membersOf(verdict.facts) })] : linesOf(verdict.facts);
    for (const line of lines) await writeLine(io.stdout, line);
    return EXIT.ok;
  },
};

function membersOf({ sessionId, requester, target, decision, requestedAt, decidedAt, revoked }: ReceiptFacts): object {
  return {
    session_id: sessionId,
    requester,
    target,
    decision,
    requested_at_iso: new Date(requestedAt).toISOString(),
    decided_at_iso: new Date(decidedAt).toISOString(),
    revoked: revoked.map(({ agent, issuer, issuedAt }) => ({
      agent_id: agent,
      issuer,
      issued_at_iso: new Date(issuedAt).toISOString(),
    })),
  };
}

function linesOf({ sessionId, requester, target, decision, requestedAt, decidedAt, revoked }: ReceiptFacts): string[] {
  const requested = `that ${requester} requested at ${new Date(requestedAt).toISOString()}`;
  const decided = `${target} ${decision} the session ${sessionId} ${requested}, at ${new Date(decidedAt).toISOString()}.`;
  return [decided, ...earlyText(requestedAt - decidedAt), ...revoked.map(revokedText)];
}

/** Two clocks dated them. */
function earlyText(byMs: number): string[] {
  if (byMs <= 0) return [];
  return [`The decision is dated ${byMs} ms before its request: no more than clocks may differ (${TOLERANCE}).`];
}

function revokedText({ agent, issuer }: CredentialFacts): string {
  return `Revoked since: the credential of ${agent}, by ${issuer}. Its key may have been in other hands already.`;
}

function invalid(problem: ReceiptProblem): Failure {
  return new Failure("invalid_receipt", `The receipt is not valid (${problem.code}): ${why(problem)}.`, "");
}

function why(problem: ReceiptProblem): string {
  if (problem.code === "credential")
    return `the key of the ${problem.part} is not vouched for: ${problem.reason}, ${CREDENTIAL_REASONS[problem.reason]}`;
  if (problem.code === "signature") return `the ${problem.part} is not signed by the key that it names`;
  if (problem.code === "time") return TIMES[problem.reason];
  return WHY[problem.code];
}

const TOLERANCE = `${ANNOUNCED_DEFAULTS.maxClockSkewMs / 1000} s`;
const TIMES: Readonly<Record<(ReceiptProblem & { code: "time" })["reason"], string>> = {
  before_request: `the decision is dated before its request, by more than clocks may differ (${TOLERANCE})`,
  after_end: "the decision is dated after the end of the request",
};

const WHY: Readonly<Record<Exclude<ReceiptProblem["code"], "credential" | "signature" | "time">, string>> = {
  malformed: "it does not have the form of a receipt",
  parties: "the decision is not from the request's target to its requester",
  digest: "the decision is on another request",
  session: "the decision names another session than the one that the request opens",
};
