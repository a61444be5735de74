import { afterEach, beforeEach, expect, test } from "@jest/globals";
import type { TcpProxy } from "../../../test/support/tcp-proxy.ts";
import { until } from "../../../test/support/until.ts";
import { SharedConnection } from "../../src/cli/sharing/shared-connection.ts";
import { Connector, type Delivery } from "../../src/index.ts";
import { shared } from "../fixture.ts";
import { ALICE, ControlSockets } from "./control-kit.ts";
import { CommandLine } from "./kit.ts";
import type { Running } from "./running.ts";

const line = shared(new CommandLine("alice", "bob-hmac"));
const sockets = new ControlSockets(line);
const followers: SharedConnection[] = [];
let network: TcpProxy;
beforeEach(async () => {
  network = await line.stage.network(line.url);
});
afterEach(async () => {
  sockets.clear();
  for (const follower of followers.splice(0)) await follower.close();
});

/** Messages are promised to alice's process, then another one takes her over, and all of that comes to the process at once. */
async function takeOverBehind(count: number): Promise<void> {
  const bob = await line.stage.online("bob-hmac", line.url);
  network.hold();
  for (let n = 0; n < count; n += 1) {
    expect(await bob.send(ALICE, { n })).toMatchObject({ delivery: { canDeliverRealtime: true } });
  }
  await line.stage.online("alice", line.url, { takeOver: true });
  network.letGo();
}

/** A `relay listen` of alice's, behind the network. */
const listen = (...args: string[]) => line.listen("alice", "--url", `http://${network.host}`, ...args);

const numbersIn = (listener: Running) => listener.lines.map(({ envelope }) => envelope.payload.n);

test("relay listen prints what was promised to it before it ends since another connection took its agent over", async () => {
  const listener = await listen();
  await takeOverBehind(3);
  expect(await listener.end()).toBe(6);
  expect(numbersIn(listener)).toEqual([0, 1, 2]);
  expect(listener.reports.at(-1)).toMatchObject({ event: "error", code: "superseded" });
});

test("relay listen --exec runs its program for each of them, too", async () => {
  const listener = await listen("--exec", "sed 's/.*/ran/' >> ran");
  await takeOverBehind(2);
  expect(await listener.end()).toBe(6);
  expect(numbersIn(listener)).toEqual([0, 1]);
  expect(await line.text("ran")).toBe("ran\nran\n");
});

test("a process that shares the connection of a relay listen gets them, too", async () => {
  await listen();
  const place = sockets.place(ALICE, `http://${network.host}`);
  const open = (takeOver: boolean) => new Connector({ url: line.url, ...place.signing, takeOver });
  const follower = new SharedConnection({ place, takeOver: false, mayFollow: true, shares: () => {}, open });
  followers.push(follower);
  const deliveries: Delivery[] = [];
  follower.on("delivery", (delivery) => deliveries.push(delivery));
  await follower.start();
  await until("it shares the connection", () => follower.isShared && follower.state.status === "online");
  await takeOverBehind(2);
  await until("it got them", () => deliveries.length === 2);
  expect(deliveries.map(({ payload }) => payload.n)).toEqual([0, 1]);
});

test("a process whose agent was taken over looks for another that shares it, and calls itself online no more", async () => {
  const place = sockets.place(ALICE, line.url);
  const open = (takeOver: boolean) => new Connector({ url: line.url, ...place.signing, takeOver });
  const own = new SharedConnection({ place, takeOver: false, mayFollow: true, shares: () => {}, open });
  followers.push(own);
  const states: string[] = [];
  own.on("state", ({ status }) => states.push(status));
  await own.start();
  await until("it is online", () => own.state.status === "online");
  await line.stage.online("alice", line.url, { takeOver: true });
  await until("it looks for another", () => states.at(-1) === "connecting");
  await expect(own.send("agent://bob-hmac", {})).rejects.toMatchObject({ code: "superseded" });
  expect(states).toEqual(["connecting", "connecting", "online", "connecting", "closed"]);
});
