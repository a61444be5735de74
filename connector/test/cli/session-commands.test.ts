import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { until } from "../../../test/support/until.ts";
import { LOOK_MS } from "../../src/cli/session-decision.ts";
import { shared } from "../fixture.ts";
import { jsonLines } from "../kit.ts";
import { Waits } from "../times.ts";
import { BOB } from "./control-kit.ts";
import { expectFailure } from "./failing.ts";
import { CommandLine } from "./kit.ts";

const line = shared(new CommandLine("alice", "bob-hmac"));

let waits: Waits;
beforeEach(() => {
  waits = new Waits();
});
afterEach(() => {
  jest.restoreAllMocks();
});

const as = (name: string) => ["--key", line.keyFile(name)];

describe("relay request, approve and reject", () => {
  test("negotiate a session from three command lines, while both agents listen", async () => {
    const listener = await line.listen("bob-hmac");
    await line.listen("alice");
    const request = line.begin(["request", ...as("alice"), BOB, "--purpose", "talk", "--ttl", "5", "--wait", "--json"]);
    await listener.prints(1);
    const { session_id: session, envelope } = listener.lines[0];
    expect(envelope.payload).toEqual({ purpose: "talk", ttl_minutes: 5 });
    await expectFailure(line, ["approve", "--json", ...as("alice"), session], 3, "not_your_session");
    const approval = await line.run(["approve", "--json", ...as("bob-hmac"), session]);
    expect(approval.code).toBe(0);
    expect(jsonLines(approval.stdout)).toMatchObject([
      { session_id: session, session_status: "approved", target_delivery: { can_deliver_realtime: true } },
    ]);
    await waits.end(LOOK_MS);
    expect(await request.end()).toBe(0);
    const late = await line.run(["reject", ...as("bob-hmac"), session]);
    expect(late).toMatchObject({ code: 3, stderr: expect.stringContaining("It is approved since 20") });
    expect(await line.run(["status", session])).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(`${session}  approved`),
    });
  });

  test("end with 3 when the session was rejected", async () => {
    await line.listen("bob-hmac");
    const request = line.begin(["request", ...as("alice"), BOB, "--purpose", "talk", "--wait", "--json"]);
    await until("it is pending", () => request.stdout.includes("ses_"));
    const session = /ses_[0-9a-z]{26}/.exec(request.stdout)?.[0] as string;
    expect((await line.run(["reject", ...as("bob-hmac"), session, "--reason", "no time"])).code).toBe(0);
    await waits.end(LOOK_MS);
    expect(await request.end()).toBe(3);
    expect(request.lines[1]).toEqual({ ok: true, session_id: session, session_status: "rejected", reason: "no time" });
    expect(request.reports.filter(({ event }) => event !== "waiting")).toEqual([]);
  });

  test("approve nothing that the target did not receive, which would count for nothing; it can be rejected", async () => {
    const request = await line.run(["request", ...as("alice"), BOB, "--purpose", "talk", "--json"]);
    const session = jsonLines(request.stdout)[0].session_id;
    await expectFailure(line, ["approve", "--json", ...as("bob-hmac"), session], 3, "request_not_received");
    const rejected = await line.run(["reject", "--json", ...as("bob-hmac"), session]);
    expect(jsonLines(rejected.stdout)).toMatchObject([{ session_status: "rejected" }]);
    const again = await expectFailure(line, ["reject", "--json", ...as("bob-hmac"), session], 3, "session_closed");
    expect(again).toContain("It is rejected since");
  });

  test("are waited for as long as it was told, where nobody decides", async () => {
    await line.listen("bob-hmac");
    const words = ["request", ...as("alice"), BOB, "--purpose", "talk", "--wait", "--timeout", "1", "--json"];
    const { code, stderr } = await line.run(words);
    expect([code, jsonLines(stderr).at(-1)?.code]).toEqual([5, "timeout"]);
  });

  test("wait for no decision on what nobody received", async () => {
    const words = ["request", ...as("alice"), BOB, "--purpose", "talk", "--wait", "--json"];
    const { code, stdout, stderr } = await line.run(words);
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
