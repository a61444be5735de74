import { afterEach, describe, expect, jest, test } from "@jest/globals";
import { until } from "../../../test/support/until.ts";
import { SILENT_MS } from "../../src/cli/reporter.ts";
import { shared } from "../fixture.ts";
import { next } from "../kit.ts";
import { LONG_MS, Waits } from "../times.ts";
import { BOB, HELLO } from "./control-kit.ts";
import { expectFailure } from "./failing.ts";
import { CommandLine } from "./kit.ts";

const line = shared(new CommandLine("alice", "bob-hmac"));

const as = (name: string) => ["--key", line.keyFile(name)];
const bob = () => line.stage.online("bob-hmac", line.url);

const LIMIT = "relay:{*}:limit:address:check_online:*";
afterEach(async () => {
  jest.restoreAllMocks();
  const { client } = line.stage.relay.view();
  for (const limit of await client.keys(LIMIT)) await client.del(limit);
});

/** As if this address had asked check-online as often as it may, for so many ms. */
async function reachLimit(ms: number): Promise<void> {
  const { client } = line.stage.relay.view();
  await line.run(["status", "agent://alice"]);
  const [limit] = (await client.keys(LIMIT)) as [string];
  await client.set(limit, 1_000_000, "PX", ms);
}

test("relay send waits until the end of the relay's limit for its address, and takes no agent meanwhile", async () => {
  const alice = await line.stage.online("alice", line.url);
  await reachLimit(1500);
  await expectFailure(line, ["send", "--json", ...as("alice"), BOB, HELLO], 6, "superseded_elsewhere");
  expect(alice.state.status).toBe("online");
});

describe("relay send", () => {
  test("waits for the target with --wait-online, and sends nothing when it does not come", async () => {
    const late = line.begin(["send", ...as("alice"), BOB, HELLO, "--wait-online", "60"]);
    const receiver = await bob();
    const { payload } = await next(receiver);
    expect(payload).toEqual({ message: "Hello, Bob." });
    expect(await late.end()).toBe(0);
  });

  test("with --wait-online waits until the target can be delivered to, and then says what both connectors say", async () => {
    const proxy = await line.stage.proxy(line.url);
    const { presence } = proxy;
    let asked = 0;
    const congested = async () => {
      asked += 1;
      return JSON.stringify({ ok: true, status: "online", can_deliver_realtime: false });
    };
    const waits = new Waits();
    const expectVain = async (args: string[], env = {}) => {
      const askedBefore = asked;
      const vain = [...args, "--json", "--url", proxy.url, BOB, HELLO, "--wait-online", "3000"];
      const failing = expectFailure(line, vain, 5, "target_not_online", env);
      await until("it asks again after an answer", () => asked > askedBefore + 1);
      waits.endBetween(2_900_000, 3_000_000);
      await failing;
    };
    proxy.presence = async (path) => await (path.endsWith("alice") ? presence(path) : congested());
    const { apiKey } = line.stage.agent("alice");
    const overHttp = { RELAY_API_KEY: apiKey, RELAY_AGENT: "agent://alice" };
    for (const command of ["send", "ask"]) await expectVain([command, ...as("alice")]);
    await expectVain(["send"], overHttp);
    expect(proxy.sent.filter(({ type }) => type === "message.send")).toEqual([]);
    await expectFailure(line, ["send", "--json", ...as("alice"), BOB, HELLO, "--wait-online", "0"], 2, "usage");
  });
});

describe("relay send, where the relay's limit for its address is reached, which others may share,", () => {
  test("waits until the end of its own time, and takes no agent meanwhile", async () => {
    const alice = await line.stage.online("alice", line.url);
    await reachLimit(60_000);
    const waits = new Waits();
    const failing = expectFailure(line, ["send", "--json", ...as("alice"), BOB, HELLO], 4, "rate_limited");
    await waits.begun(50_000, LONG_MS);
    await waits.end(15_000);
    await failing;
    expect(alice.state.status).toBe("online");
  });

  test("waits no longer than --wait-online allows, and says that it waits", async () => {
    await reachLimit(60_000);
    const env = { RELAY_API_KEY: line.stage.agent("alice").apiKey, RELAY_AGENT: "agent://alice" };
    const waits = new Waits();
    const sending = line.begin(["send", "--json", "agent://nobody", HELLO, "--wait-online", "1"], env);
    await waits.end(SILENT_MS);
    expect(await sending.end()).toBe(5);
    expect(sending.reports).toMatchObject([
      { event: "waiting" },
      { event: "error", code: "timeout", outcome: "refused" },
    ]);
  });
});
