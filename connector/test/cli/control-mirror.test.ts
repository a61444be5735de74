import { readdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { afterEach, expect, jest, test } from "@jest/globals";
import { until } from "../../../test/support/until.ts";
import { acceptedChannel, HANDSHAKE_MS } from "../../src/cli/control/channel.ts";
import { SharedConnection } from "../../src/cli/sharing/shared-connection.ts";
import { Connector } from "../../src/index.ts";
import { shared } from "../fixture.ts";
import { holdSignals } from "../times.ts";
import { besides, ControlSockets } from "./control-kit.ts";
import { CommandLine } from "./kit.ts";

const line = shared(new CommandLine("alice"));
const sockets = new ControlSockets(line);
const connections: SharedConnection[] = [];
let opened = 0;
afterEach(async () => {
  jest.restoreAllMocks();
  sockets.clear();
  opened = 0;
  for (const connection of connections.splice(0)) await connection.close();
});

/** What a `relay mcp` of alice's has as its connection. */
function sharing(): SharedConnection {
  const place = sockets.place();
  const open = (takeOver: boolean) => {
    opened += 1;
    return new Connector({ url: line.url, ...place.signing, takeOver });
  };
  const connection = new SharedConnection({ place, takeOver: false, mayFollow: true, shares: () => {}, open });
  connections.push(connection);
  return connection;
}

async function untilOnline(connection: SharedConnection): Promise<void> {
  await until("it is online", () => connection.state.status === "online");
  expect(connection.isShared).toBe(false);
}

test("A program that shows a process its own socket under another name keeps it from nothing", async () => {
  const path = await sockets.left();
  const connection = sharing();
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
  await connection.start();
  await until("it has looked for another", () => turnedAway > 0);
  timeIsOver();
  await untilOnline(connection);
  expect(mirrored).toBeGreaterThan(0);
  // It has not given way to itself.
  expect(opened).toBe(1);
});

test("A process that always finds another that wants the connection has the relay decide", async () => {
  const path = await sockets.left();
  const connection = sharing();
  let met = 0;
  await sockets.pretend(besides(path, "claims"), async (client) => {
    const channel = await acceptedChannel(client, sockets.place());
    met += 1;
    // Whoever follows is let go; whoever gives way goes.
    channel?.once("data", () => channel.destroy());
  });
  await connection.start();
  await untilOnline(connection);
  expect(met).toBeGreaterThan(2);
});
