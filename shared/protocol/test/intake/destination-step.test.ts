import { describe, expect, test } from "@jest/globals";
import { isRefusal } from "../../src/intake/refusal.ts";
import { checkBeforeSignature } from "../../src/intake/steps.ts";
import { KEYS, NOW, signed } from "./support.ts";

const CONNECTION = { id: "con_1" };
const PUBLIC = ["relay.example", "www.relay.example:8443"];
const LOCAL = ["127.0.0.1:8080", "localhost:8080", "[::1]:8080"];
const PRESENCES = ["agent.register", "agent.heartbeat"];

/** "passed", or why it was refused. */
function verdict(type: string, payload: object, hosts: Iterable<string>, connection?: typeof CONNECTION): string {
  const keys = { ...KEYS, hosts: hosts instanceof Set ? hosts : new Set(hosts) };
  const result = checkBeforeSignature(JSON.stringify(signed({ type, payload: { ...payload } })), keys, NOW, connection);
  return isRefusal(result) ? result.code : "passed";
}

describe.each(PRESENCES)("An %s under a listed key", (type) => {
  const named = (relay: string, hosts = PUBLIC) => verdict(type, { relay }, hosts, CONNECTION);

  test.each(["relay.example", "www.relay.example:8443", "RELAY.example.", "relay.example:8082", "relay.example:443"])(
    "that was sent to %s is for a relay of that name, at whichever port",
    (relay) => {
      expect(named(relay)).toBe("passed");
    },
  );

  test.each([
    "evil.example",
    "relay.example.evil.example",
    "evil.example:8443",
    "8.8.8.8",
    "172.32.0.1",
    "10.evil.example",
    "[2001:db8::1]:8080",
    "a b",
    "",
    "wss://evil.example/ws",
    "wss://relay.example",
    "relay.example/path",
    "evil.example@relay.example",
    "relay.example\\evil",
    "localhost?evil.example",
    "localhost#evil.example",
    "localhost\n",
    "[::ffff:8.8.8.8]",
    "[::ffff:11.0.0.1]",
    "[::ffff:172.32.0.1]",
  ])("that was sent to '%s' is for another relay", (relay) => {
    expect(named(relay)).toBe("wrong_relay");
  });

  test.each([
    ...["localhost:8080", "127.0.0.1:9", "[::1]:8080", "0.0.0.0:8080", "172.17.0.2", "192.168.1.7:8080", "100.64.0.1"],
    ...["[fd00::1]", "[fe80::1]", "ws-connector:8082", "gateway.relay.svc:8080", "gateway.relay.svc.cluster.local"],
    ...["host.docker.internal:8080", "devbox.lan", "devbox.localdomain"],
    ...["[::ffff:127.0.0.1]:8080", "[::ffff:10.0.0.1]", "[::ffff:0.0.0.0]", "[::ffff:169.254.1.1]"],
    ...["[::ffff:192.168.1.7]", "[::ffff:172.31.0.1]", "[::ffff:100.127.0.1]"],
  ])("that was sent to %s may be for any relay of that network", (relay) => {
    expect(named(relay)).toBe("passed");
  });

  test("may have been sent to any name of a relay that was told no public one", () => {
    expect(named("tunnel.example", LOCAL)).toBe("passed");
  });

  test("is for the connection that it names", () => {
    expect(verdict(type, { connection_id: "con_1" }, LOCAL, CONNECTION)).toBe("passed");
    expect(verdict(type, { connection_id: "con_2" }, LOCAL, CONNECTION)).toBe("wrong_connection");
  });

  test("is judged without a connection by the relay that it names alone", () => {
    expect(verdict(type, { connection_id: "con_2", relay: "relay.example" }, PUBLIC)).toBe("passed");
    expect(verdict(type, { connection_id: "con_2", relay: "evil.example" }, PUBLIC)).toBe("wrong_relay");
  });

  test("that names neither goes anywhere, as ever", () => {
    expect(verdict(type, {}, PUBLIC, CONNECTION)).toBe("passed");
  });

  test.each([null, 7, true, ["con_2"], { cpu: 3 }])(
    "names no connection by %j, which is no string",
    (connection_id) => {
      expect(verdict(type, { connection_id }, PUBLIC, CONNECTION)).toBe("passed");
    },
  );
});

test.each([null, 7, true, ["evil.example"], { cpu: 3 }])(
  "A heartbeat names no relay by %j, which is no string",
  (relay) => {
    expect(verdict("agent.heartbeat", { relay }, PUBLIC, CONNECTION)).toBe("passed");
  },
);

test("A message may have members of these names for its recipient", () => {
  const payload = { relay: "evil.example", connection_id: "con_2" };
  expect(verdict("message.send", payload, PUBLIC, CONNECTION)).toBe("passed");
});

test("The names of a relay are read once, however many heartbeats it judges by them", () => {
  let reads = 0;
  class Hosts extends Set<string> {
    override [Symbol.iterator]() {
      reads += 1;
      return super[Symbol.iterator]();
    }
  }
  const hosts = new Hosts(PUBLIC);
  for (let n = 0; n < 5; n += 1) expect(verdict("agent.heartbeat", { relay: "relay.example:1" }, hosts)).toBe("passed");
  expect(reads).toBe(1);
});

test("A refusal says which names the relay has, and what its operator can do for the one that was dialled", () => {
  const text = JSON.stringify(signed({ type: "agent.register", payload: { relay: "evil.example" } }));
  expect(checkBeforeSignature(text, { ...KEYS, hosts: new Set(PUBLIC) }, NOW, CONNECTION)).toMatchObject({
    hint: expect.stringMatching(
      /operator add the host that you dialled to RELAY_PUBLIC_HOSTS\. This relay is relay\.example or www\.relay\.example:8443\.$/,
    ),
  });
});
