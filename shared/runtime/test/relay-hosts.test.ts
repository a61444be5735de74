import { expect, test } from "@jest/globals";
import { relayHosts } from "../src/relay-hosts.ts";

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
