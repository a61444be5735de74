import { setTimeout as delay } from "node:timers/promises";
import { AGENT_OPTIONS, readArguments, wholeNumber } from "../arguments.ts";
import type { Command } from "../command.ts";
import { EXIT } from "../exit-codes.ts";
import { usage } from "../failure.ts";
import { sayOnce } from "../one-shot.ts";
import type { Receipt } from "../orders.ts";
import type { Voice } from "../output.ts";
import type { RelayHttp } from "../relay-http.ts";

const LOOK_AGAIN_MS = 1000;

/** Minutes. Source: docs/protocol.md, "Envelopes". */
const TTL = { least: 5, most: 1440 } as const;

export const command: Command = {
  help: `relay request <to> --purpose TEXT: ask an agent for a session.

  relay request agent://bob --purpose "weekly report" --ttl 120 --wait

  --purpose TEXT    what the session is for, 1 to 500 characters
  --ttl MINUTES     how long the target may take to decide, 5 to 1440; 60 when left out
  --intro TEXT      who you are
  --scope TEXT      what it covers
  --frequency TEXT  how often you expect to write
  --wait            wait for the decision: exit code 0 when approved, 3 when rejected or expired
  --take-over       ask although the agent is online elsewhere, which ends that connection
  --key FILE        the agent's key file; or RELAY_KEY_FILE
  --url URL         the relay; or RELAY_URL; http://127.0.0.1:8080 when left out
  --json            the result as one line of JSON

It goes out as relay send does; see there. A session is an agreement to talk, never a payment or a promise of work.
`,
  run: async (args, io) => {
    const { values, positionals } = readArguments(args, {
      ...AGENT_OPTIONS,
      purpose: { type: "string" },
      ttl: { type: "string" },
      intro: { type: "string" },
      scope: { type: "string" },
      frequency: { type: "string" },
      wait: { type: "boolean" },
      "take-over": { type: "boolean" },
    });
    const [to, ...others] = positionals;
    const { purpose, intro, scope, frequency } = values;
    if (to === undefined || others.length > 0) throw usage("request takes one word, the target.");
    if (purpose === undefined) throw usage("Say what the session is for: --purpose TEXT.");
    const ttl_minutes = wholeNumber("ttl", values.ttl, TTL.least, TTL.most);
    const order = { to, request: { purpose, ttl_minutes, intro, scope, expected_frequency: frequency } };
    const decided = (receipt: Receipt, http: RelayHttp, voice: Voice) => decision(receipt, http, voice, io.signal);
    return await sayOnce(
      values,
      { isForGateway: true, order: async () => order, ...(values.wait && { after: decided }) },
      io,
    );
  },
};

/** The relay knows the decision whichever way the request went out, and whoever received the target's answer. */
async function decision({ session_id }: Receipt, http: RelayHttp, voice: Voice, signal: AbortSignal): Promise<number> {
  for (;;) {
    const { status } = await http.get(`/sessions/${encodeURIComponent(session_id ?? "")}`);
    if (status === "approved" || status === "rejected" || status === "expired") {
      voice.say("decision", `The session is ${status}.`, { session_id, session_status: status }, "bold");
      return status === "approved" ? EXIT.ok : EXIT.refused;
    }
    await delay(LOOK_AGAIN_MS, undefined, { signal }).catch(() => {});
  }
}
