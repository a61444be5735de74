import { Connector } from "../../connector.ts";
import { AGENT_OPTIONS, deliveryAgeMs, readArguments, TAKE_OVER, TRUST_OPTIONS, unexpectedWord } from "../arguments.ts";
import { reportConnection } from "../connection-reports.ts";
import { runForDelivery } from "../exec.ts";
import { EXIT, Failure, failureOf, usageError } from "../failure.ts";
import { inputLines } from "../files.ts";
import type { Command, Io, Options } from "../io.ts";
import { deliveryLine, Reporter, writeLine } from "../io.ts";
import { readIdentity, requireKey } from "../key-file.ts";
import { readTrust } from "../records.ts";
import { RelayHttp } from "../relay-http.ts";
import { findHolder } from "../sharing/client.ts";
import { serveRequestLines } from "../sharing/requests.ts";
import { ControlServer } from "../sharing/server.ts";
import { type ControlPlace, controlPlace } from "../sharing/socket.ts";

const OPTIONS = {
  ...AGENT_OPTIONS,
  exec: { type: "string", value: "COMMAND", help: "run this shell command for each delivery" },
  reply: { type: "boolean", help: "send what the command prints to the sender" },
  stdin: { type: "boolean", help: "read requests from standard input, as JSON lines" },
  ...TRUST_OPTIONS,
  ...TAKE_OVER,
} as const satisfies Options;

export const listen: Command = {
  usage: "[options]",
  options: OPTIONS,
  examples: ["relay listen --key bob.json", "relay listen --key bob.json --exec ./answer.sh --reply"],
  run: async (args, io) => {
    const { values, positionals } = readArguments(args, OPTIONS);
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
