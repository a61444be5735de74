import { access } from "node:fs/promises";
import { dirname, join } from "node:path";
import { CREDENTIAL_LIMITS } from "relay-protocol/wire/limits.ts";
import { DEVELOPMENT_ISSUER, developmentIssuerFile } from "../local/dev-keys.ts";
import { type Options, oneAgentOf, UsageError } from "./command-line.ts";
import { issue, newAgentKeys } from "./issue.ts";
import { defaultIssuerFile, readIssuerFile } from "./issuer-file.ts";
import type { Outcome } from "./outcome.ts";
import { writePrivateFile } from "./private-file.ts";
import { ofCredential } from "./questions.ts";
import { readKeys } from "./store.ts";

const DAY_MS = 24 * 3_600_000;
const DEFAULT_DAYS = 30;
const MAX_DAYS = CREDENTIAL_LIMITS.maxLifeMs / DAY_MS;

/** `new`: issues a credential into a key file for the agent. The keys file is read only: nothing is listed. */
export async function issueFor(keysFile: string, options: Options): Promise<Outcome> {
  const agent = oneAgentOf(options);
  refuseTermsOfListedKeys(options);
  const days = daysOf(options.days);
  const issuer = await readIssuerFile(options["issuer-file"] ?? (await issuerFileBeside(keysFile)));
  const { keyFile, until } = issue(issuer, await readKeys(keysFile), { agent, days }, newAgentKeys(), Date.now());
  const file = options.out ?? join(dirname(keysFile), `${agent.slice("agent://".length)}.json`);
  await writePrivateFile(file, keyFile);
  const text = `${issuer.issuer} issued a credential for ${agent}, until ${new Date(until).toISOString()}.
Key, credential and the issuer's public record are in ${file}.
Give it to the agent and keep no copy. Nothing was listed.
`;
  return { text, change: ofCredential(agent, keyFile.key_id, keyFile.credential) };
}

/** The issuer of `new-issuer`. Without one, the issuer of `npm start`, if the keys file admits it. */
async function issuerFileBeside(keysFile: string): Promise<string> {
  const [own, development] = [defaultIssuerFile(keysFile), developmentIssuerFile(dirname(keysFile))];
  if ((await exists(own)) || !(await exists(development))) return own;
  const { issuers } = await readKeys(keysFile);
  return issuers.some(({ issuer }) => issuer === DEVELOPMENT_ISSUER) ? development : own;
}

async function exists(file: string): Promise<boolean> {
  return await access(file).then(
    () => true,
    () => false,
  );
}

/** They would be without effect, and who set them would believe otherwise. */
function refuseTermsOfListedKeys(options: Options): void {
  if (options["key-id"] !== undefined)
    throw new UsageError("--key-id is for --listed: a credential's key has its own.");
  if (options["expires-at"] !== undefined)
    throw new UsageError("--expires-at is for --listed: a credential has --days.");
}

function daysOf(text = String(DEFAULT_DAYS)): number {
  const days = /^\d{1,2}$/.test(text) ? Number(text) : 0;
  if (days < 1 || days > MAX_DAYS) throw new UsageError(`--days must be a whole number from 1 to ${MAX_DAYS}.`);
  return days;
}
