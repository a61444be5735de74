import type { ErrorCode, RelayError } from "./errors.ts";
import { membersOf } from "./frames.ts";
import type { HttpClient } from "./http-client.ts";
import { SELF_TEST_ANSWER } from "./limits.ts";
import { parseJson } from "./parse-json.ts";
import { problemIn } from "./problem.ts";

const OF_KEY: ReadonlySet<ErrorCode> = new Set([
  "unknown_key",
  "bad_signature",
  "key_not_allowed",
  "invalid_credential",
  "wrong_relay",
]);

/**
 * Why the relay does not take the key that an envelope is signed with, without any effect there; undefined where it does, and where
 * nobody says it. Never rejects. Source: docs/protocol.md#self-test.
 */
export async function keyRefusal(
  http: HttpClient,
  envelope: string,
  signal: AbortSignal,
): Promise<RelayError | undefined> {
  const request = { method: "POST", headers: { "content-type": "application/json" }, body: envelope };
  try {
    const { text } = await http.ask("/api/self-test", SELF_TEST_ANSWER, signal, request);
    const said = problemIn(membersOf(parseJson(text)));
    return OF_KEY.has(said.code) ? said : undefined;
  } catch {
    return undefined;
  }
}
