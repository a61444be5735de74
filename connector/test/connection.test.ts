import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { expect, jest, test } from "@jest/globals";
import { WebSocketServer } from "ws";
import { Clock } from "../src/clock.ts";
import { Connection, type ConnectionEnd } from "../src/connection.ts";
import { Presence } from "../src/presence.ts";

test("A register that cannot be signed ends the connection for good, and says why", async () => {
  const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
  await once(server, "listening");
  server.on("connection", (client) => client.send('{"frame":"hello"}'));
  const fault = new TypeError("a fault");
  const clock = new Clock();
  const presence = new Presence({
    agent: "agent://alice",
    relay: "relay",
    acceptFrom: undefined,
    clock,
    beforeRegister: () => Promise.reject(fault),
    registrations: () => [],
    presented: () => {},
  });
  const end = Promise.withResolvers<ConnectionEnd>();
  const others = { greeted: jest.fn(), registered: jest.fn(), frame: jest.fn(), presenceRefused: jest.fn() };
  const url = `ws://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const connection = new Connection({
    url,
    usesProxy: false,
    clock,
    presence,
    events: { ...others, ended: (_, why) => end.resolve(why) },
  });
  connection.open();
  expect((await end.promise).error).toMatchObject({ code: "invalid_key", cause: fault });
  await connection.close();
  server.close();
});
