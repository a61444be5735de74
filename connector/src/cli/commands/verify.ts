import type { CredentialFacts } from "../../credentials/contract.ts";
import { Issuers } from "../../credentials/issuers.ts";
import type { ReceiptFacts, ReceiptProblem } from "../../receipts/contract.ts";
import { verifyReceipt } from "../../receipts/verify-receipt.ts";
import { readArguments } from "../arguments.ts";
import type { Command } from "../command.ts";
import { CREDENTIAL_REASONS } from "../credential-reasons.ts";
import { EXIT } from "../exit-codes.ts";
import { Failure, usageError } from "../failure.ts";
import { readText } from "../files.ts";
import { jsonLine, writeLine } from "../output.ts";
import { readIssuerRecords } from "../records.ts";

export const verify: Command = {
  help: `relay verify RECEIPT --issuer FILE: check the receipt of a session. Offline.

  relay verify receipt.json --issuer acme.json --issuer globex.json

RECEIPT is what relay receipt printed; - for standard input.

  --issuer FILE  the public record of an issuer that you believe; once for each, mostly one for each of the two agents
  --json         one line of JSON

Exit code: 0 when the receipt is valid, whatever was decided; 8 when it is not.

A receipt shows that both keys signed, and that the issuers vouched for them at the times that the envelopes name. It does not show
when they signed, that a relay accepted it, or that there is no other decision. A credential that was revoked since is named: its
key may have been in other hands already.
`,
  run: async (args, io) => {
    const { values, positionals } = readArguments(args, { issuer: { type: "string", multiple: true } });
    const [file, ...more] = positionals;
    if (file === undefined || more.length > 0) throw usageError("verify takes one word: the receipt's file, or -.");
    if (values.issuer === undefined) throw usageError("Name whom you believe: --issuer FILE.");
    const issuers = await Issuers.from(await readIssuerRecords(values.issuer, io));
    const verdict = await verifyReceipt(await readText(file, io), issuers);
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
  return [decided, ...revoked.map(revokedText)];
}

function revokedText({ agent, issuer }: CredentialFacts): string {
  return `Revoked since: the credential of ${agent}, by ${issuer}. Its key may have been in other hands already.`;
}

function invalid(problem: ReceiptProblem): Failure {
  return new Failure("invalid_receipt", `The receipt is not valid: ${problem.code}, ${why(problem)}.`, "");
}

function why(problem: ReceiptProblem): string {
  if (problem.code === "credential")
    return `the key of the ${problem.part} is not vouched for: ${problem.reason}, ${CREDENTIAL_REASONS[problem.reason]}`;
  if (problem.code === "signature") return `the ${problem.part} is not signed by the key that it names`;
  return WHY[problem.code];
}

const WHY: Readonly<Record<Exclude<ReceiptProblem["code"], "credential" | "signature">, string>> = {
  malformed: "it does not have the form of a receipt",
  parties: "the decision is not from the request's target to its requester",
  digest: "the decision is on another request",
  session: "the decision names another session than the one that the request opens",
  time: "the decision was made before the request, or after its end",
};
