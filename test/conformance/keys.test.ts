import { describe, expect, test } from "@jest/globals";
import { makeEd25519Key, makeHmacKey } from "../../deploy/keys/make.ts";
import { type AgentKey, type AgentSocket, ed25519Key, hmacKey, signed } from "../support/agent.ts";
import { until } from "../support/until.ts";
import { given } from "../support/use-relay.ts";
import { conformingRelay } from "./conforming.ts";

const IN_FORCE_WITHIN_MS = 5000;
const NAMES = ["replaced", "replaced-hmac", "revoked", "expiring", "narrowed", "both1", "both2", "early", "kept"];
const relay = conformingRelay("alice", ...NAMES);

interface SigningKey {
  readonly key_id: string;
  readonly agents: readonly string[];
}
type KeysFile = { readonly api_keys: readonly object[]; readonly signing_keys: readonly SigningKey[] };
const whole = relay.keys.file as KeysFile;

/** The keys file with the key of one agent as `change` makes it; null takes it out. */
function withKey(file: KeysFile, name: string, change: (key: SigningKey) => SigningKey | null): KeysFile {
  const isIts = ({ key_id }: SigningKey) => key_id === relay.keys.agents.get(name)?.keyId;
  const signing_keys = file.signing_keys.flatMap((key) => (isIts(key) ? (change(key) ?? []) : key));
  return { ...file, signing_keys };
}

/** Another key under the id of an agent's key. */
function newEd25519Key(name: string): { record: SigningKey; key: AgentKey; from: string } {
  const { id, from } = idsOf(name);
  const { record, privateKey } = makeEd25519Key({ id, agents: [from] });
  return { record, key: ed25519Key(id, privateKey), from };
}

function newHmacKey(name: string): { record: SigningKey; key: AgentKey; from: string } {
  const { id, from } = idsOf(name);
  const { record, secret } = makeHmacKey({ id, agents: [from] });
  return { record, key: hmacKey(id, secret), from };
}

function idsOf(name: string): { id: string; from: string } {
  return { id: relay.keys.agents.get(name)?.keyId as string, from: `agent://${name}` };
}

const pod = given(() => relay.startWsConnectors());
const alice = given(() => relay.online(pod, "alice"));

async function untilStale(name: string): Promise<void> {
  await until(`${name} is stale`, async () => {
    const ack = await alice.ask(relay.envelope("alice", "message.send", { to: `agent://${name}` }));
    return ack.target_delivery.status === "stale";
  });
}

/** Asks until a register of the agent is accepted, or refused with `code`; heartbeats keep the refusals apart. */
async function untilInForce(name: string, code?: string): Promise<void> {
  const socket = await relay.online(pod, "kept");
  const isInForce = async () => {
    await socket.ask(relay.envelope("kept", "agent.heartbeat"));
    return (await socket.ask(relay.envelope(name, "agent.register"))).code === code;
  };
  await until("the keys file is in force", isInForce, IN_FORCE_WITHIN_MS);
}

async function expectOnline(socket: AgentSocket, name: string): Promise<void> {
  const envelope = relay.envelope("alice", "message.send", { to: `agent://${name}` });
  expect((await alice.ask(envelope)).target_delivery.status).toBe("online");
  await socket.delivered(envelope.id);
  expect(await socket.ask(relay.envelope(name, "agent.heartbeat"))).toMatchObject({ accepted: true });
}

describe("when the keys file changes", () => {
  test("a connection is closed with 4403 within 5 s when no key allows any of its agents; others stay", async () => {
    const revoked = await relay.online(pod, "revoked");
    const narrowed = await relay.online(pod, "narrowed");
    const both = await relay.online(pod, "both1");
    await both.ask(relay.envelope("both2", "agent.register"));
    const kept = await relay.online(pod, "kept");

    const without = withKey(
      withKey(whole, "revoked", () => null),
      "both1",
      () => null,
    );
    await relay.writeKeys(withKey(without, "narrowed", (key) => ({ ...key, agents: ["agent://other"] })));
    expect(await revoked.untilClosed(IN_FORCE_WITHIN_MS)).toBe(4403);
    expect(await narrowed.untilClosed(IN_FORCE_WITHIN_MS)).toBe(4403);
    for (const name of ["revoked", "narrowed", "both1"]) await untilStale(name);

    await expectOnline(kept, "kept");
    await expectOnline(both, "both2");
    expect(await both.ask(relay.envelope("both1", "message.send", { to: "agent://kept" }))).toMatchObject({
      code: "unknown_key",
    });
    const narrow = relay.envelope("narrowed", "agent.register");
    expect(await kept.ask(narrow)).toMatchObject({ code: "key_not_allowed" });
  });

  test("another public key or secret under the same id revokes the former one within 5 s", async () => {
    const replaced = newEd25519Key("replaced");
    const secret = newHmacKey("replaced-hmac");
    const alone = await relay.online(pod, "replaced");
    const shared = await relay.online(pod, "kept");
    await shared.ask(relay.envelope("replaced-hmac", "agent.register"));

    await relay.writeKeys(
      withKey(
        withKey(whole, "replaced", () => replaced.record),
        "replaced-hmac",
        () => secret.record,
      ),
    );
    expect(await alone.untilClosed(IN_FORCE_WITHIN_MS)).toBe(4403);
    for (const name of ["replaced", "replaced-hmac"]) {
      // Connections are on any of the pods, and each pod reads the file by itself.
      const isRefused = async () =>
        (await shared.ask(relay.envelope(name, "agent.heartbeat"))).code === "bad_signature";
      await until("the former key is refused", isRefused, IN_FORCE_WITHIN_MS);
      await untilStale(name);
    }
    await expectOnline(shared, "kept");
    for (const { key, from } of [replaced, secret]) {
      expect(await shared.ask(signed(key, { type: "agent.register", from }))).toMatchObject({ accepted: true });
    }
  });

  test("a key that comes in is in force within 5 s, without a restart", async () => {
    await relay.writeKeys(whole);
    await untilInForce("revoked");
  });

  test("to something that is no keys file, the running keys stay in force", async () => {
    const kept = await relay.online(pod, "kept");
    await relay.writeKeys({ signing_keys: "none" });
    const isNoticed = () => relay.log.some((line) => JSON.parse(line).problems !== undefined);
    await until("the pod has looked at the file", isNoticed);
    await expectOnline(kept, "kept");
    await relay.writeKeys(whole);
  });
});

test("A key is unknown before its time; when it expires, its connection is closed with 4403 within 5 s", async () => {
  const socket = await relay.online(pod, "expiring");
  const expires = Date.now() + 1500;
  const expiring = (key: SigningKey) => ({ ...key, expires_at: new Date(expires).toISOString() });
  const early = (key: SigningKey) => ({ ...key, not_before: new Date(Date.now() + 60_000).toISOString() });
  await relay.writeKeys(withKey(withKey(whole, "expiring", expiring), "early", early));

  expect(await socket.untilClosed(1500 + IN_FORCE_WITHIN_MS)).toBe(4403);
  expect(Date.now()).toBeGreaterThanOrEqual(expires);
  await untilStale("expiring");
  await untilInForce("early", "unknown_key");
  const again = await relay.connect(pod);
  expect(await again.ask(relay.envelope("expiring", "agent.register"))).toMatchObject({ code: "unknown_key" });
});
