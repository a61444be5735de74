import { expect, test } from "@jest/globals";
import { relayHosts, relayName } from "../src/addresses.ts";

test("a relay has the hosts of its addresses, and those that its operator names, without a default port", () => {
  const hosts = relayHosts({
    baseUrl: "https://relay.example",
    wsUrl: "wss://ws.relay.example:8443",
    publicHosts: ["www.relay.example:443", "agents.example"],
  });
  expect([...hosts].sort()).toEqual(["agents.example", "relay.example", "ws.relay.example:8443", "www.relay.example"]);
});

test("on a loopback address it has all names of the machine", () => {
  expect([...relayHosts({ baseUrl: "http://127.0.0.1:8080", wsUrl: "ws://localhost:8080" })].sort()).toEqual([
    "127.0.0.1:8080",
    "[::1]:8080",
    "localhost:8080",
  ]);
});

test.each([
  [
    "RELAY_PUBLIC_HOSTS",
    { baseUrl: "http://127.0.0.1:8080", wsUrl: "ws://127.0.0.1:8080", publicHosts: ["relay.example"] },
  ],
  ["RELAY_WS_URL", { baseUrl: "http://localhost:8080", wsUrl: "wss://relay.example" }],
  ["RELAY_BASE_URL", { baseUrl: "https://relay.example", wsUrl: "ws://[::1]:8080" }],
])("a relay that is named by %s alone has no name of the machine that it runs on", (_, addresses) => {
  expect([...relayHosts(addresses)]).toEqual(["relay.example"]);
});

test("of the names of the machine it has those that its operator names, and no others", () => {
  const hosts = relayHosts({
    baseUrl: "http://127.0.0.1:8080",
    wsUrl: "ws://127.0.0.1:8080",
    publicHosts: ["relay.example", "localhost:8080"],
  });
  expect([...hosts].sort()).toEqual(["localhost:8080", "relay.example"]);
});

test("documents tell the name of the websocket's address, or where that does not count one that does", () => {
  const publicHosts = ["relay.example"];
  expect(relayName({ baseUrl: "https://base.example", wsUrl: "wss://ws.example:444" })).toBe("ws.example:444");
  expect(relayName({ baseUrl: "http://localhost", wsUrl: "ws://localhost:8080" })).toBe("localhost:8080");
  expect(relayName({ baseUrl: "http://localhost", wsUrl: "ws://localhost", publicHosts })).toBe("relay.example");
});
