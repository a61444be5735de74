import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { until } from "../../../test/support/until.ts";
import { LOOK_MS } from "../../src/cli/commands/request.ts";
import { shared } from "../fixture.ts";
import { jsonLines, next, untilState } from "../kit.ts";
import { Waits } from "../times.ts";
import type { Running } from "./shell.ts";
import { ALICE, BOB, CommandLine, expectFailure } from "./shell.ts";

const line = shared(new CommandLine("alice", "bob-hmac"));

let waits: Waits;
beforeEach(() => {
  waits = new Waits();
});
afterEach(() => {
  jest.restoreAllMocks();
  jest.useRealTimers();
});

const as = (name: string) => ["--key", line.keyFile(name)];
const request = (...more: string[]) => ["request", "--json", ...as("alice"), BOB, "--purpose", "talk", ...more];

describe("relay request, approve and reject", () => {
  test("negotiate a session from three command lines, while both agents listen", async () => {
    const listener = await line.listen("bob-hmac");
    await line.listen("alice");
    const asked = line.begin(request("--ttl", "5", "--wait"));
    await listener.prints(1);
    const { session_id: session, envelope } = listener.lines[0];
    expect(envelope.payload).toEqual({ purpose: "talk", ttl_minutes: 5 });
    await expectFailure(line, ["approve", "--json", ...as("alice"), session], 3, "not_your_session");
    const approval = await line.run(["approve", "--json", ...as("bob-hmac"), session]);
    expect(approval.code).toBe(0);
    expect(jsonLines(approval.stdout)).toMatchObject([
      { session_id: session, session_status: "approved", target_delivery: { can_deliver_realtime: true } },
    ]);
    waits.endBetween(LOOK_MS, LOOK_MS);
    expect(await asked.end()).toBe(0);
    const late = await line.run(["reject", ...as("bob-hmac"), session]);
    expect(late).toMatchObject({ code: 3, stderr: expect.stringContaining("It is approved since 20") });
    expect(await line.run(["status", session])).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(`${session}  approved`),
    });
  });

  test("end with 3 when the session was rejected", async () => {
    await line.listen("bob-hmac");
    const asked = line.begin(request("--wait"));
    await until("it is pending", () => asked.stdout.includes("ses_"));
    const session = /ses_[0-9a-z]{26}/.exec(asked.stdout)?.[0] as string;
    expect((await line.run(["reject", ...as("bob-hmac"), session, "--reason", "no time"])).code).toBe(0);
    waits.endBetween(LOOK_MS, LOOK_MS);
    expect(await asked.end()).toBe(3);
    expect(asked.lines[1]).toEqual({ ok: true, session_id: session, session_status: "rejected", reason: "no time" });
    expect(asked.reports.filter(({ event }) => event !== "waiting")).toEqual([]);
  });

  test("approve nothing that the target did not receive, which would count for nothing; it can be rejected", async () => {
    const asked = await line.run(request());
    const session = jsonLines(asked.stdout)[0].session_id;
    await expectFailure(line, ["approve", "--json", ...as("bob-hmac"), session], 3, "request_not_received");
    const rejected = await line.run(["reject", "--json", ...as("bob-hmac"), session]);
    expect(jsonLines(rejected.stdout)).toMatchObject([{ session_status: "rejected" }]);
    const again = await expectFailure(line, ["reject", "--json", ...as("bob-hmac"), session], 3, "session_closed");
    expect(again).toContain("It is rejected since");
  });

  test("are waited for as long as it was told, where nobody decides", async () => {
    await line.listen("bob-hmac");
    const { code, stderr } = await line.run(request("--wait", "--timeout", "1"));
    expect([code, jsonLines(stderr).at(-1)?.code]).toEqual([5, "timeout"]);
  });

  test("wait for no decision on what nobody received", async () => {
    const { code, stdout, stderr } = await line.run(request("--wait"));
    expect(jsonLines(stdout)).toMatchObject([{ target_delivery: { can_deliver_realtime: false } }]);
    expect([code, jsonLines(stderr).at(-1)]).toMatchObject([5, { code: "target_not_online", retry: "later" }]);
  });

  test("name a session that nobody knows", async () => {
    await expectFailure(
      line,
      ["approve", "--json", ...as("bob-hmac"), "ses_00000000000000000000000000"],
      3,
      "unknown_session",
    );
  });
});

describe("relay request --wait, whose relay is restarted meanwhile,", () => {
  let isServed = true;
  afterEach(async () => {
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
    const bob = await line.stage.online("bob-hmac", line.url);
    // He is told of each attempt to reconnect.
    bob.on("error", () => {});
    const command = line.begin(request("--wait", ...more));
    const { sessionId = "" } = await next(bob);
    await until("it waits", () => command.lines.length === 1);
    return { bob, command, sessionId };
  }

  /** The relay is away, and the command has noticed. */
  async function away(command: Running): Promise<void> {
    await shut();
    waits.endBetween(LOOK_MS, LOOK_MS);
    await command.wrote("is not reachable");
  }

  const errorOf = (command: Running) => command.reports.findLast(({ event }) => event === "error");

  test("waits on, and prints the decision", async () => {
    const { bob, command, sessionId } = await requested();
    await away(command);
    await serve();
    await untilState(bob, "online", 20_000);
    await bob.approve(sessionId, ALICE);
    waits.endBetween(LOOK_MS, LOOK_MS);
    expect(await command.end()).toBe(0);
    expect(command.lines[1]).toMatchObject({ session_id: sessionId, session_status: "approved" });
  });

  test("waits no longer than it was told, and says why it does not know", async () => {
    const { command } = await requested("--timeout", "3000");
    await away(command);
    const now = Date.now();
    jest.spyOn(Date, "now").mockReturnValue(now + 3_000_000);
    waits.endBetween(LOOK_MS, LOOK_MS);
    expect(await command.end()).toBe(5);
    expect(errorOf(command)).toMatchObject({ code: "timeout", message: expect.stringContaining("is not reachable") });
  });

  test("says that the session is lost where the relay has lost what it knew", async () => {
    const { command } = await requested();
    await away(command);
    await line.stage.relay.loseWindow();
    await serve();
    waits.endBetween(LOOK_MS, LOOK_MS);
    expect(await command.end()).toBe(3);
    expect(errorOf(command)).toMatchObject({ code: "unknown_session", retry: "never" });
  });
});
