import { AGENT_SCHEME } from "../agent-id.ts";
import { membersOf } from "../frames.ts";
import type { HttpAnswer } from "../http-client.ts";
import { parseJson } from "../parse-json.ts";
import { type Credential, readCredential } from "./read-credential.ts";

/** Asks the relay for what stands at a path. */
export type Ask = (path: string, signal: AbortSignal) => Promise<HttpAnswer>;

/** A question for a credential: of the agent's key, or of any key of it. */
export interface CredentialQuery {
  readonly agent: string;
  readonly keyId?: string | undefined;
}

/**
 * Asks a relay for a credential; undefined when it has none. Rejects when there is no answer, or none to this question.
 * Source: docs/protocol.md#credentials.
 */
export async function askForCredential(
  { agent, keyId }: CredentialQuery,
  ask: Ask,
  signal: AbortSignal,
): Promise<Credential | undefined> {
  const name = encodeURIComponent(agent.slice(AGENT_SCHEME.length));
  const query = keyId === undefined ? "" : `?key_id=${encodeURIComponent(keyId)}`;
  const { status, text } = await ask(`/v1/agents/${name}/credential${query}`, signal);
  if (status === 404) return undefined;
  if (status !== 200) throw new Error("no answer");
  const credential = await readCredential(membersOf(parseJson(text)).credential);
  const isAnswer = credential?.agent === agent && (keyId ?? credential.keyId) === credential.keyId;
  if (!isAnswer) throw new Error("not an answer to the question");
  return credential;
}
