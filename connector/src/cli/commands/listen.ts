import { Connector } from "../../connector.ts";
import { AGENT_OPTIONS, deliveryAgeMs, readArguments, unexpectedWord } from "../arguments.ts";
import { reportConnection } from "../connection-reports.ts";
import { runForDelivery } from "../exec.ts";
import { EXIT, Failure, failureOf, usageError } from "../failure.ts";
import { inputLines } from "../files.ts";
import type { Command, Io } from "../io.ts";
import { deliveryLine, Reporter, writeLine } from "../io.ts";
import { readIdentity, requireKey } from "../key-file.ts";
import { readTrust } from "../records.ts";
import { RelayHttp } from "../relay-http.ts";
import { findHolder } from "../sharing/client.ts";
import { serveRequestLines } from "../sharing/requests.ts";
import { ControlServer } from "../sharing/server.ts";
import { type ControlPlace, controlPlace } from "../sharing/socket.ts";

export const listen: Command = {
  help: `relay listen: keep an agent online, and print what it receives.

  relay listen --key bob.json
  relay listen --key bob.json --exec 'jq -r .payload.message >> inbox.txt'
  relay listen --key bob.json --exec ./answer.sh --reply

Runs until it is stopped, and reconnects after restarts of the relay, network failures and sleep of this machine.
Other commands of this user for the agent (relay send, ask, approve, …) send through its control socket.

  --key FILE          the agent's key file; or RELAY_KEY_FILE
  --url URL           the relay; or RELAY_URL; default http://127.0.0.1:8080
  --exec COMMAND      run it by the shell for each delivery, one after the other
  --reply             send what the command prints to the sender: a JSON object as it is, else as {"message":…}
  --stdin             read control requests from standard input, one JSON object a line; ends at its end
  --trust FILE        public records of issuers (as relay issuer new prints them), of other agents' keys (as relay keygen does), or of
                      gateways (gateway_keys of the relay's signing manifest): whom to believe, whatever the relay says; beside
                      the trusted_issuers of the key file
  --require-verified  drop whatever is not verified as agent, nor as gateway by one of --trust
  --max-age SECONDS   drop what was signed longer ago; default 600, 0 = any age
  --take-over         start although the agent is online elsewhere, which ends that connection
  --json              JSON lines at a terminal too, and on stderr

Standard output has one JSON line for each delivery, or text when it is a terminal:
  {"event":"delivery","envelope":{…},"session_id":"ses_…","verified":"agent|relay_issuer|gateway|unverified","issuer":"acme",
   "sealed":false,"received_at_iso":"…"}
Everything else is reported on standard error. verified tells who vouches for the sender: agent (an issuer, or a key, that you
trust), relay_issuer (an issuer that only the relay names), gateway (a gateway of the relay), or unverified (nobody but the relay).
issuer names the issuer. What was sealed, to be read by this agent only, stands opened in the envelope's payload, with "sealed":true;
its sig is over what was sealed. What was not has "sealed":false.

The command of --exec gets the envelope as one line of JSON on standard input, and RELAY_FROM, RELAY_TYPE,
RELAY_ENVELOPE_ID, RELAY_SESSION_ID, RELAY_VERIFIED, RELAY_ISSUER, RELAY_SEALED (1 or empty), RELAY_AGENT, RELAY_URL. Quote them;
nothing of a delivery is part of the command. Its output goes to standard error, unless --reply is given. Replies have type
message.reply and the message's task, else its id, as task_id; they are not replied to, and are sealed where the message was.
Nothing is sent for a program that fails or prints nothing: it is reported here (exec_failed), and who asked sees a timeout. To tell of an
error, print it, such as {"error":"…"}, and end with 0.
When relay listen is stopped, a command that runs is sent SIGTERM, and killed after 5 s; none is run for deliveries that wait, and how many
those are is reported (exec_skipped). What a command leaves behind when it ends goes on; with --reply nobody reads what it prints then.

A credential in the key file is renewed by itself once the file has another: relay credential replaces it.

Control requests of --stdin, each answered with a line {"event":"accepted"|"reply"|"refused","ref":…}; ref is that of the request, or the number of its line:
  {"to":"agent://bob","payload":{"message":"hi"},"type":"message.send","task_id":"…","seal":true,"wait_online_ms":5000,"ref":"…"}
  {"to":"agent://bob","ask":{"message":"hi"},"timeout_ms":30000}, with "type", "seal" and "wait_online_ms", too;
    answered with "reply" and the members of a delivery
  {"to":"agent://bob","request":{"purpose":"…","ttl_minutes":60,"intro":"…","scope":"…","expected_frequency":"…"}}
  {"to":"agent://alice","approve":"ses_…"}
  {"to":"agent://alice","reject":"ses_…","reason":"…"}
  {"receipt":"ses_…"}, answered with {"event":"receipt","ref":…,"receipt":{…}}
wait_online_ms: how long to wait for the target to come online; it and timeout_ms are 0 to 3600000. The control socket takes the same lines from
programs of this user, and {"follow":true}, which is answered with the connection's state, and then with what comes over it.
`,
  run: async (args, io) => {
    const { values, positionals } = readArguments(args, {
      ...AGENT_OPTIONS,
      exec: { type: "string" },
      reply: { type: "boolean" },
      "take-over": { type: "boolean" },
      stdin: { type: "boolean" },
      trust: { type: "string", multiple: true },
      "require-verified": { type: "boolean" },
      "max-age": { type: "string" },
    });
    const { exec, json = false } = values;
    if (positionals[0] !== undefined) throw unexpectedWord("listen", "options only", positionals[0]);
    if (values.reply && exec === undefined) throw usageError("--reply needs --exec.");
    const reporter = new Reporter(io.stderr, json);
    const http = new RelayHttp(values.url, io);
    const signing = requireKey(await readIdentity(values.key, io.env, reporter));
    const trust = await readTrust(values.trust ?? [], signing.trust.issuers, io);
    const requireVerified = values["require-verified"];
    const takeOver = values["take-over"];
    const maxDeliveryAgeMs = deliveryAgeMs(values["max-age"]);
    const { url, httpUrl } = http;
    const options = { url, httpUrl, ...signing, trust, requireVerified, maxDeliveryAgeMs, takeOver };
    const connector = new Connector({ ...options, startTimeoutMs: Infinity });

    const variables = { RELAY_AGENT: signing.agent, RELAY_URL: http.url };
    const program = exec && { command: exec, replies: values.reply === true, variables, reporter };
    const place = controlPlace(signing.agent, http.websocketUrl, io, reporter);
    const controlServer = new ControlServer(connector, place);
    // At once, whatever still runs: who comes now finds none here, and sends by itself.
    const close = () => {
      controlServer.stop();
      void connector.close();
    };
    reportConnection(connector, http.websocketUrl, reporter, json);
    io.signal.addEventListener("abort", close);
    if (io.signal.aborted) close();
    const socket = await controlServer.start();
    let notRun = 0;
    let unreadable: unknown;
    try {
      void connector.start();
      const failed = (error: unknown) => {
        unreadable = error;
      };
      if (values.stdin) void serveInput(connector, io).catch(failed).finally(close);
      for await (const delivery of connector) {
        await writeLine(io.stdout, deliveryLine(delivery, io.stdout, json), io.signal);
        if (!program) continue;
        if (io.signal.aborted) notRun += 1;
        else await runForDelivery(delivery, program, io);
      }
      if (unreadable !== undefined) throw unreadable;
    } catch (error) {
      throw await endOf(error, place, socket);
    } finally {
      controlServer.stop();
      await connector.close();
      if (notRun > 0) reportNotRun(notRun, reporter);
    }
    return EXIT.ok;
  },
};

/**
 * What ended a listener, which has no outcome: no envelope is concerned. Where the agent is online elsewhere, which process of this
 * user it is, if it is one. @param socket of this process.
 */
async function endOf(error: unknown, place: ControlPlace, socket: string | undefined): Promise<Failure> {
  const { code, message, hint, retry } = failureOf(error);
  if (code !== "superseded_elsewhere") return new Failure(code, message, hint, { retry });
  const holder = await findHolder(place, socket).catch(() => undefined);
  holder?.client.close();
  const who = holder ? `It is process ${holder.pid} of this machine.` : "None of this user's processes here shares it.";
  return new Failure(code, `${message} ${who}`, hint, { retry });
}

/** What was received and printed when this was stopped, and given to no program. */
function reportNotRun(deliveries: number, reporter: Reporter): void {
  const text = `Stopped: no program was run for ${deliveries} of the deliveries that are printed.`;
  reporter.report("exec_skipped", text, { deliveries }, "yellow");
}

async function serveInput(connector: Connector, io: Io): Promise<void> {
  const { stdout, signal } = io;
  const write = (line: string) => writeLine(stdout, line, signal);
  await serveRequestLines(inputLines(io), write, connector, { bounded: (call) => call(signal) });
}
