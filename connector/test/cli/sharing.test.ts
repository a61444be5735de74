import { chmod, readdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { afterEach, describe, expect, jest, test } from "@jest/globals";
import type { TcpProxy } from "../../../test/support/redis-proxy.ts";
import { until } from "../../../test/support/until.ts";
import { acceptedChannel, HANDSHAKE_MS } from "../../src/cli/control/channel.ts";
import type { ControlPlace } from "../../src/cli/control/place.ts";
import { onState } from "../../src/cli/control/told-states.ts";
import { SharedConnection } from "../../src/cli/sharing/shared-connection.ts";
import { Emitter } from "../../src/emitter.ts";
import { Connector, type Delivery, RelayError } from "../../src/index.ts";
import type { ConnectorState } from "../../src/types.ts";
import { unlessAway } from "../../src/unless-away.ts";
import { shared } from "../fixture.ts";
import { errorOf, jsonLines, next } from "../kit.ts";
import { holdSignals, Waits } from "../times.ts";
import { ALICE, BOB, besides, ControlSockets, HELLO } from "./control-kit.ts";
import type { Running } from "./shell.ts";
import { CommandLine } from "./shell.ts";

/** Several processes of a user that use one connection of an agent. */

const line = shared(new CommandLine("alice", "bob-hmac"));
const sockets = new ControlSockets(line);
const ends: SharedConnection[] = [];
afterEach(async () => {
  jest.restoreAllMocks();
  sockets.clear();
  for (const connection of ends.splice(0)) await connection.close();
});

const as = (name: string) => ["--key", line.keyFile(name)];

/** What a `relay mcp` of alice's has as its connection, which connects to `line.url`. */
function sharing(place: ControlPlace = sockets.place()) {
  const own: Connector[] = [];
  const open = (takeOver: boolean) => {
    own.push(new Connector({ url: line.url, ...place.signing, takeOver }));
    return own.at(-1) as Connector;
  };
  const connection = new SharedConnection({ place, takeOver: false, mayFollow: true, shares: () => {}, open });
  const states: string[] = [];
  connection.on("state", ({ status }) => states.push(status));
  ends.push(connection);
  return { connection, own, states };
}

async function untilOnline({ connection }: ReturnType<typeof sharing>, isShared = false): Promise<void> {
  await until("it is online", () => connection.state.status === "online");
  expect(connection.isShared).toBe(isShared);
}

describe("relay send, beside a relay listen of its agent,", () => {
  test.each([
    ["alice", "agent://bob-hmac", "bob-hmac"],
    ["bob-hmac", "agent://alice", "alice"],
  ])("goes through that of %s, which stays online, and leaves no socket", async (name, to, receiving) => {
    const receiver = await line.stage.online(receiving, line.url);
    const listener = await line.listen(name);
    const { code, stdout } = await line.run(["send", "--json", ...as(name), to, HELLO]);
    expect([code, jsonLines(stdout)[0].via]).toEqual([0, "listener"]);
    expect(await next(receiver)).toMatchObject({ from: `agent://${name}`, payload: { message: "Hello, Bob." } });
    expect((await line.run(["send", ...as(name), "agent://BOB", HELLO])).code).toBe(2);
    expect(await listener.stop()).toBe(0);
    expect(await readdir(sockets.folder)).toEqual([]);
  });

  test("says within 3 s that the relay is away, and that nothing was sent", async () => {
    const listener = await line.listen("alice");
    await line.shut();
    await listener.reported("reconnecting");
    const waits = new Waits();
    const sending = [["--json"], []].map((json) => line.run(["send", ...json, ...as("alice"), BOB, HELLO]));
    // Each waits to say what it waits for, and the listener to say that there is no connection.
    await waits.end(2000, 4);
    const [asJson, asText] = await Promise.all(sending);
    expect(asJson).toMatchObject({ code: 4, stdout: "" });
    expect(jsonLines(asJson?.stderr ?? "").at(-1)).toMatchObject({ code: "unreachable", outcome: "refused" });
    expect(asText?.stderr).toContain("Outcome: refused.");
    await line.serve();
    await listener.reported("online", 2);
    expect((await line.run(["send", ...as("alice"), BOB, HELLO])).code).toBe(0);
  });

  test("says within 3 s what it waits for, whether as text or as JSON, and sends it when it can", async () => {
    const network = await line.stage.network(line.url);
    const at = ["--url", `http://${network.host}`, ...as("alice")];
    const listener = line.begin(["listen", "--json", ...at]);
    await listener.reported("online");
    network.hold();
    const waits = new Waits();
    const [asText, asJson] = [[], ["--json"]].map((json) => line.begin(["send", ...json, ...at, BOB, HELLO]));
    await waits.end(2000, 2);
    await Promise.all([asText?.wrote("Waiting for"), asJson?.reported("waiting")]);
    network.letGo();
    expect([await asText?.end(), await asJson?.end()]).toEqual([0, 0]);
    expect(asJson?.reports).toMatchObject([{ event: "waiting" }]);
  });

  test("as text says the outcome, too, where something was to be sent", async () => {
    await line.listen("alice");
    const bob = await line.stage.online("bob-hmac", line.url);
    const waits = new Waits();
    const asking = line.run(["ask", ...as("alice"), BOB, HELLO, "--timeout", "3000"]);
    await next(bob);
    await waits.begun(2_900_000, 2_999_999);
    waits.endBetween(2_900_000, 3_000_000);
    const unknown = await asking;
    const { stderr } = await line.run(["send", ...as("alice"), BOB, "hi"]);
    expect(unknown.stderr).toContain("Outcome: unknown.");
    expect(stderr).not.toContain("utcome");
  });

  test("ignores the control socket that a killed relay listen left behind", async () => {
    await sockets.leave(await sockets.left());
    const { code, stdout } = await line.run(["send", "--json", ...as("alice"), BOB, HELLO]);
    expect([code, jsonLines(stdout)[0].via]).toEqual([0, "connection"]);
  });
});

test("What went out before the relay went away has an unknown outcome", async () => {
  const away = { state: { status: "reconnecting" }, on: () => () => {} } as unknown as Connector;
  const rejected = unlessAway(away, 1, async (signal) => {
    await new Promise((aborted) => signal.addEventListener("abort", aborted));
    throw new RelayError("aborted", { outcome: "unknown" });
  });
  expect(await errorOf(rejected)).toMatchObject({ code: "unreachable", outcome: "unknown", retry: "never" });
});

describe("What was promised to a process whose agent another connection took over", () => {
  /** Messages are promised to alice's process, then another one takes her over, and all of that comes to the process at once. */
  async function takenOverBehind(network: TcpProxy, count: number): Promise<void> {
    const bob = await line.stage.online("bob-hmac", line.url);
    network.hold();
    for (let n = 0; n < count; n += 1) {
      expect(await bob.send(ALICE, { n })).toMatchObject({ delivery: { canDeliverRealtime: true } });
    }
    await line.stage.online("alice", line.url, { takeOver: true });
    network.letGo();
  }

  const numbersIn = (listener: Running) => listener.lines.map(({ envelope }) => envelope.payload.n);

  test("is printed by relay listen, and given to its program, before it ends", async () => {
    const network = await line.stage.network(line.url);
    const listener = await line.listen("alice", "--url", `http://${network.host}`, "--exec", "sed 's/.*/ran/' >> ran");
    await takenOverBehind(network, 3);
    expect(await listener.end()).toBe(6);
    expect(numbersIn(listener)).toEqual([0, 1, 2]);
    expect(await line.text("ran")).toBe("ran\nran\nran\n");
    expect(listener.reports.at(-1)).toMatchObject({ event: "error", code: "superseded" });
  });

  test("comes to a process that shares its connection, also", async () => {
    const network = await line.stage.network(line.url);
    await line.listen("alice", "--url", `http://${network.host}`);
    const follower = sharing(sockets.place(ALICE, `http://${network.host}`));
    const deliveries: Delivery[] = [];
    follower.connection.on("delivery", (delivery) => deliveries.push(delivery));
    await follower.connection.start();
    await untilOnline(follower, true);
    await takenOverBehind(network, 2);
    await until("it got them", () => deliveries.length === 2);
    expect(deliveries.map(({ payload }) => payload.n)).toEqual([0, 1]);
  });
});

describe("A process that shares its agent's connection", () => {
  test("looks for another that has it once the agent was taken over, and calls itself online no more", async () => {
    const own = sharing();
    await own.connection.start();
    await untilOnline(own);
    await line.stage.online("alice", line.url, { takeOver: true });
    await until("it looks for another", () => own.states.at(-1) === "connecting");
    await expect(own.connection.send(BOB, {})).rejects.toMatchObject({ code: "superseded" });
    expect(own.states).toEqual(["connecting", "connecting", "online", "connecting", "closed"]);
  });

  test("is not ended by a refusal: it looks for the one that has the connection again", async () => {
    await line.listen("alice");
    await chmod(sockets.folder, 0o755);
    const looks: string[] = [];
    const second = sharing({ ...sockets.place(), warn: (text: string) => void looks.push(text) });
    await second.connection.start();
    // Two looks come before it is refused, and the making of its own socket; another one comes at once after it.
    const hasLooked = () => second.own[0]?.state.status === "closed" && looks.length >= 4;
    await until("it was refused, and has looked", hasLooked);
    await chmod(sockets.folder, 0o700);
    await untilOnline(second, true);
    expect(second.states).not.toContain("closed");
    expect(second.own).toHaveLength(1);
  });

  test("is kept from nothing by a program that shows it its own socket under another name", async () => {
    const path = await sockets.left();
    const alone = sharing();
    const timeIsOver = holdSignals(HANDSHAKE_MS);
    let [turnedAway, mirrored] = [0, 0];
    await sockets.pretend(besides(path, "mirror"), async (client) => {
      const own = (await readdir(dirname(path))).find((name) => name.includes(`-${process.pid}-`));
      if (own === undefined) {
        turnedAway += 1;
        return client.destroy();
      }
      mirrored += 1;
      const back = sockets.connect(join(dirname(path), own));
      client.pipe(back).pipe(client);
      back.once("close", () => client.destroy());
    });
    await alone.connection.start();
    await until("it has looked for another", () => turnedAway > 0);
    timeIsOver();
    await untilOnline(alone);
    expect(mirrored).toBeGreaterThan(0);
    // It has not given way to itself.
    expect(alone.own).toHaveLength(1);
  });

  test("has the relay decide where it always finds another that wants the connection", async () => {
    const path = await sockets.left();
    const alone = sharing();
    let met = 0;
    await sockets.pretend(besides(path, "claims"), async (client) => {
      const channel = await acceptedChannel(client, sockets.place());
      met += 1;
      // Whoever follows is let go; whoever gives way goes.
      channel?.once("data", () => channel.destroy());
    });
    await alone.connection.start();
    await untilOnline(alone);
    expect(met).toBeGreaterThan(2);
  });
});

describe("A connection of which others are told", () => {
  const LOST = { status: "reconnecting", reason: "lost", retryInMs: 1, closeCode: 1006 } as const;

  /** What is told of these states and errors, in their order. */
  function told(...events: readonly (ConnectorState | RelayError)[]): (readonly [status: string, code?: string])[] {
    const [emitter, states] = [new Emitter(), [] as (readonly [string, string?])[]];
    const is: { state: ConnectorState } = { state: { status: "connecting" } };
    const connector = Object.assign(is, { on: emitter.on.bind(emitter) }) as unknown as Connector;
    onState(connector, (state) => states.push("error" in state ? [state.status, state.error?.code] : [state.status]));
    for (const event of events) {
      if (event instanceof RelayError) emitter.emit("error", event);
      else {
        is.state = event;
        emitter.emit("state", event);
      }
    }
    return states;
  }

  test("that is lost again and again tells what answers over HTTP in place of the relay, until it is online", () => {
    const states = told(new RelayError("not_a_relay"), LOST, { status: "online" }, LOST);
    expect(states).toEqual([["reconnecting", "not_a_relay"], ["online"], ["reconnecting"]]);
  });

  test("that reaches no relay tells why as soon as that is known", () => {
    const states = told({ ...LOST, reason: "unreachable" }, new RelayError("unreachable"));
    expect(states).toEqual([["reconnecting"], ["reconnecting", "unreachable"]]);
  });
});
