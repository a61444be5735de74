import { afterEach, expect, jest, test } from "@jest/globals";
import { until } from "../../../test/support/until.ts";
import { shared } from "../fixture.ts";
import { jsonLines, next, untilState } from "../kit.ts";
import { Waits } from "../times.ts";
import { BOB, HELLO } from "./control-kit.ts";
import { CommandLine } from "./kit.ts";

const line = shared(new CommandLine("alice", "bob-hmac"));

afterEach(() => {
  jest.restoreAllMocks();
});

const as = (name: string) => ["--key", line.keyFile(name)];

/** Bob's program replies to every message. */
const bobReplies = () => line.listen("bob-hmac", "--reply", "--exec", 'echo "{\\"to\\":\\"$RELAY_FROM\\"}"');

test("relay ask prints the payload of the reply, and with --json who vouches for it", async () => {
  await bobReplies();
  const { code, stdout, stderr } = await line.run(["ask", ...as("alice"), BOB, HELLO]);
  expect([code, jsonLines(stdout), stderr]).toEqual([0, [{ to: "agent://alice" }], ""]);
  const json = await line.run(["ask", "--json", ...as("alice"), "bob-hmac", "--type", "message.note"], {
    stdin: HELLO,
  });
  expect(jsonLines(json.stdout)).toMatchObject([
    { ok: true, via: "connection", verified: "unverified", envelope: { from: BOB, payload: { to: "agent://alice" } } },
  ]);
});

test("relay ask goes through the relay listen of its agent, which prints everything but the reply", async () => {
  await bobReplies();
  const listener = await line.listen("alice");
  const { code, stdout } = await line.run(["ask", "--json", ...as("alice"), BOB, HELLO]);
  expect([code, jsonLines(stdout)]).toMatchObject([0, [{ via: "listener", envelope: { type: "message.reply" } }]]);
  await line.run(["send", ...as("alice"), BOB, HELLO]);
  await listener.prints(1);
  expect(listener.lines).toHaveLength(1);
});

test("relay ask ends with 5 when there is no reply in time, and at once when nobody received it", async () => {
  const bob = await line.stage.online("bob-hmac", line.url);
  const ask = (to: string, ...more: string[]) => line.run(["ask", "--json", ...as("alice"), to, HELLO, ...more]);
  const waits = new Waits();
  const asking = ask(BOB, "--timeout", "3000");
  expect(await next(bob)).toMatchObject({ payload: { message: "Hello, Bob." } });
  await waits.begun(2_900_000, 2_999_999);
  waits.endBetween(2_900_000, 3_000_000);
  const late = await asking;
  expect([late.code, late.stdout, jsonLines(late.stderr).at(-1)]).toMatchObject([5, "", { code: "timeout" }]);
  const nobody = await ask("agent://nobody");
  expect([nobody.code, jsonLines(nobody.stderr)]).toMatchObject([5, [{ code: "target_not_online", retry: "later" }]]);
  for (const more of [["--timeout", "0"], ["--timeout", "soon"], ["word"]])
    expect((await ask(BOB, ...more)).code).toBe(2);
});

test("relay ask through a relay listen whose relay is away says so, long before its time is over", async () => {
  const listener = await line.listen("alice");
  await line.shut();
  await listener.reported("reconnecting");
  const waits = new Waits();
  const asking = line.run(["ask", "--json", ...as("alice"), BOB, HELLO, "--timeout", "3600"]);
  // The command's, to say what it waits for, and that of the listener.
  await waits.end(2000, 2);
  const { code, stderr } = await asking;
  await line.serve();
  expect([code, jsonLines(stderr).at(-1)]).toMatchObject([4, { code: "unreachable", outcome: "refused" }]);
});

test("what relay ask waited for when it was interrupted is printed by its relay listen", async () => {
  const bob = await line.stage.online("bob-hmac", line.url);
  const listener = await line.listen("alice");
  const asking = line.begin(["ask", ...as("alice"), BOB, HELLO]);
  const question = await next(bob);
  expect(await asking.stop()).toBe(130);
  await until("the question is over", async () => {
    await question.reply({ late: true });
    return listener.lines.length > 0;
  });
  expect(listener.lines[0]).toMatchObject({ event: "delivery", envelope: { payload: { late: true } } });
});

test("a program in any language asks by a line, and is answered by the reply", async () => {
  await bobReplies();
  const listener = await line.listen("alice", "--stdin");
  const ask = (request: object) => listener.stdin.write(`${JSON.stringify(request)}\n`);
  ask({ to: BOB, ask: { n: 1 }, timeout_ms: 20_000, ref: "a" });
  await listener.prints(1);
  expect(listener.lines[0]).toMatchObject({
    event: "reply",
    ref: "a",
    verified: "unverified",
    envelope: { from: BOB },
  });
  ask({ to: "agent://nobody", ask: {} });
  await listener.prints(2);
  expect(listener.lines[1]).toMatchObject({ event: "refused", ref: 2, code: "target_not_online", outcome: "refused" });
  expect(listener.lines[1].hint).toMatch(/^(?!.*--).*wait_online_ms/);
  // A command that goes through it is told of its own option.
  const { code, stderr } = await line.run(["ask", ...as("alice"), "agent://nobody", HELLO, "--json"]);
  expect([code, jsonLines(stderr).at(-1)]).toMatchObject([5, { code: "target_not_online" }]);
  expect(jsonLines(stderr).at(-1).hint).toMatch(/^(?!.*wait_online_ms).*--wait-online/);
  for (const timeout_ms of ["soon", -5, 1e300]) ask({ to: BOB, ask: {}, timeout_ms });
  await listener.prints(5);
  const refused = listener.lines.slice(2).map(({ event, ref, code }) => ({ event, ref, code }));
  expect(refused).toEqual([3, 4, 5].map((ref) => ({ event: "refused", ref, code: "usage" })));
});

test("relay ask through a relay listen gets the reply that comes after a restart of the relay", async () => {
  const bob = await line.stage.online("bob-hmac", line.url);
  // He is told of each attempt to reconnect.
  bob.on("error", () => {});
  const waits = new Waits();
  const listener = await line.listen("alice");
  const asking = line.begin(["ask", "--json", ...as("alice"), BOB, HELLO, "--timeout", "60"]);
  const question = await next(bob);
  await line.shut();
  await listener.reported("reconnecting");
  // What is to be sent while the relay is away ends after two seconds of that, which have passed for the question, too.
  const sending = line.run(["send", "--json", ...as("alice"), BOB, HELLO]);
  // The command's, to say what it waits for, and that of the listener.
  await waits.end(2000, 2);
  const send = await sending;
  expect([send.code, jsonLines(send.stderr).at(-1)]).toMatchObject([4, { code: "unreachable" }]);
  await line.serve();
  await untilState(bob, "online", 20_000);
  await question.reply({ celsius: 21 }, { waitOnline: 20_000 });
  const answer = { via: "listener", envelope: { payload: { celsius: 21 } } };
  expect([await asking.end(), asking.lines]).toMatchObject([0, [answer]]);
});
