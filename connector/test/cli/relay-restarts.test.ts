import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { until } from "../../../test/support/until.ts";
import { LOOK_MS } from "../../src/cli/session-decision.ts";
import type { Connector } from "../../src/index.ts";
import { shared } from "../fixture.ts";
import { jsonLines, next, untilState } from "../kit.ts";
import { Waits } from "../times.ts";
import { ALICE, BOB, HELLO } from "./control-kit.ts";
import { CommandLine } from "./kit.ts";
import type { Running } from "./running.ts";

const line = shared(new CommandLine("alice", "bob-hmac"));
let bob: Connector;
let waits: Waits;
let isServed = true;

beforeEach(async () => {
  waits = new Waits();
  bob = await line.stage.online("bob-hmac", line.url);
  // He is told of each attempt to reconnect.
  bob.on("error", () => {});
});
afterEach(async () => {
  jest.restoreAllMocks();
  if (!isServed) await serve();
});

async function serve(): Promise<void> {
  await line.serve();
  isServed = true;
}

async function shut(): Promise<void> {
  isServed = false;
  await line.shut();
}

/** Bob has the request, and has not decided. */
async function requested(...more: string[]) {
  const command = line.begin([
    "request",
    "--json",
    "--key",
    line.keyFile("alice"),
    BOB,
    "--purpose",
    "talk",
    "--wait",
    ...more,
  ]);
  const { sessionId = "" } = await next(bob);
  await until("it waits", () => command.lines.length === 1);
  return { command, sessionId };
}

const errorOf = (command: Running) => command.reports.findLast(({ event }) => event === "error");

describe("relay request --wait, whose relay is restarted meanwhile,", () => {
  test.each(["connection", "listener"])("waits on, over a %s of its agent, and prints the decision", async (via) => {
    if (via === "listener") await line.listen("alice");
    const { command, sessionId } = await requested();
    expect(command.lines[0].via).toBe(via);
    await shut();
    await waits.end(LOOK_MS);
    await command.wrote("is not reachable");
    await serve();
    await untilState(bob, "online", 20_000);
    await bob.approve(sessionId, ALICE);
    await waits.end(LOOK_MS);
    expect(await command.end()).toBe(0);
    expect(command.lines[1]).toMatchObject({ session_id: sessionId, session_status: "approved" });
  });

  test("waits no longer than it was told, and says why it does not know", async () => {
    const { command } = await requested("--timeout", "3000");
    await shut();
    await waits.end(LOOK_MS);
    await command.wrote("is not reachable");
    const now = Date.now();
    jest.spyOn(Date, "now").mockReturnValue(now + 3_000_000);
    await waits.end(LOOK_MS);
    expect(await command.end()).toBe(5);
    expect(errorOf(command)).toMatchObject({ code: "timeout", message: expect.stringContaining("is not reachable") });
  });

  test("says that the session is lost where the relay has lost what it knew", async () => {
    const { command } = await requested();
    await shut();
    await waits.end(LOOK_MS);
    await command.wrote("is not reachable");
    await line.stage.relay.loseWindow();
    await serve();
    await waits.end(LOOK_MS);
    expect(await command.end()).toBe(3);
    const message = expect.stringContaining("does not have the session any more");
    expect(errorOf(command)).toMatchObject({ code: "unknown_session", message });
  });
});

test.each(["connection", "listener"])(
  "relay ask over a %s of its agent gets the reply that comes after a restart of the relay",
  async (via) => {
    const listener = via === "listener" ? await line.listen("alice") : undefined;
    const asking = line.begin(["ask", "--json", "--key", line.keyFile("alice"), BOB, HELLO, "--timeout", "60"]);
    const question = await next(bob);
    await shut();
    if (listener !== undefined) {
      await listener.reported("reconnecting");
      // What is to be sent while the relay is away ends after two seconds of that, which have passed for the question, too.
      const sending = line.run(["send", "--json", "--key", line.keyFile("alice"), BOB, HELLO]);
      // The command's, to say what it waits for, and that of the listener.
      await waits.end(2000, 2);
      const send = await sending;
      expect([send.code, jsonLines(send.stderr).at(-1)]).toMatchObject([4, { code: "unreachable" }]);
    }
    await serve();
    await untilState(bob, "online", 20_000);
    await question.reply({ celsius: 21 }, { waitOnline: 20_000 });
    expect([await asking.end(), asking.lines]).toMatchObject([0, [{ via, envelope: { payload: { celsius: 21 } } }]]);
  },
);
