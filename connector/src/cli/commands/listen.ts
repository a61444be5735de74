import { Connector } from "../../connector.ts";
import { AGENT_OPTIONS, readArguments } from "../arguments.ts";
import type { Command } from "../command.ts";
import { execute } from "../exec.ts";
import { EXIT } from "../exit-codes.ts";
import { usage } from "../failure.ts";
import { readIdentity, signatory } from "../identity.ts";
import { deliveryLine, narrate } from "../listening.ts";
import { OrderDesk } from "../order-desk.ts";
import { serveOrders } from "../order-lines.ts";
import { Voice, writeLine } from "../output.ts";
import { RelayHttp } from "../relay-http.ts";
import { readTrust } from "../trust.ts";

export const command: Command = {
  help: `relay listen: hold an agent online, and print what it receives.

  relay listen --key bob.json
  relay listen --key bob.json --exec 'jq -r .payload.message >> inbox.txt'
  relay listen --key bob.json --exec ./answer.sh --reply

Runs until it is stopped, and comes back by itself after restarts of the relay, lost networks and the sleep of this machine.
Other commands of the same user (relay send, approve, …) then speak through it.

  --key FILE          the agent's key file; or RELAY_KEY_FILE
  --url URL           the relay; or RELAY_URL; http://127.0.0.1:8080 when left out
  --exec COMMAND      run it by the shell for each delivery, one after the other
  --reply             send what the command prints to the sender: a JSON object as it is, else as {"message":…}
  --stdin             take orders from standard input, one JSON object a line; ends when that ends
  --trust FILE        public records of other agents (as relay keygen prints them), to check their signatures here too
  --require-verified  drop what is signed neither by a gateway nor with a key of --trust
  --json              JSON lines at a terminal too, and on stderr

Standard output has one JSON line for each delivery, words for people when it is a terminal:
  {"event":"delivery","envelope":{…},"session_id":"ses_…","verified":"agent|gateway|unverified","received_at_iso":"…"}
Everything else is said on stderr. verified says who vouches: a key of --trust, a gateway, or only the relay.

The command of --exec gets the envelope as one line of JSON on standard input, and RELAY_FROM, RELAY_TYPE,
RELAY_ENVELOPE_ID, RELAY_SESSION_ID, RELAY_VERIFIED, RELAY_AGENT, RELAY_URL. Quote them; what others wrote is never part of the command.
What it prints goes to stderr, unless --reply is given. Replies have type message.reply, and are not replied to.

Orders of --stdin, each answered with a line {"event":"accepted"|"refused","ref":…}; ref is yours, or the line's number:
  {"to":"agent://bob","payload":{"message":"hi"},"type":"message.send","task_id":"…","ref":"…"}
  {"to":"agent://bob","request":{"purpose":"…","ttl_minutes":60}}
  {"to":"agent://alice","approve":"ses_…"}
  {"to":"agent://alice","reject":"ses_…","reason":"…"}
`,
  run: async (args, io) => {
    const { values, positionals } = readArguments(args, {
      ...AGENT_OPTIONS,
      exec: { type: "string" },
      reply: { type: "boolean" },
      stdin: { type: "boolean" },
      trust: { type: "string", multiple: true },
      "require-verified": { type: "boolean" },
    });
    const { exec, json = false } = values;
    if (positionals.length > 0) throw usage("listen takes options only.");
    if (values.reply && exec === undefined) throw usage("--reply needs --exec.");
    const voice = new Voice(io.stderr, json);
    const http = new RelayHttp(values.url, io);
    const who = signatory(await readIdentity(values.key, io.env, voice));
    const trust = await readTrust(values.trust ?? []);
    const requireVerified = values["require-verified"];
    const connector = new Connector({ url: http.url, ...who, trust, requireVerified });

    const variables = { RELAY_AGENT: who.agent, RELAY_URL: http.url };
    const program = exec && { command: exec, replies: values.reply === true, connector, variables, voice };
    const close = () => void connector.close();
    const desk = new OrderDesk(connector, http.websocketUrl, io);
    narrate(connector, http.websocketUrl, voice, json);
    io.signal.addEventListener("abort", close);
    if (io.signal.aborted) close();
    await desk.start();
    try {
      void connector.start();
      if (values.stdin) void serveOrders(io.stdin, io.stdout, connector, io.signal).finally(close);
      for await (const delivery of connector) {
        await writeLine(io.stdout, deliveryLine(delivery, io.stdout, json), io.signal);
        if (program) await execute(delivery, program, io);
      }
    } finally {
      desk.stop();
      await connector.close();
    }
    return EXIT.ok;
  },
};
