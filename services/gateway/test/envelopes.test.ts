import { createPublicKey, generateKeyPairSync, verify } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, expect, test } from "@jest/globals";
import type { AcceptedSession } from "relay-protocol/contract/responses.ts";
import { controlKeys } from "relay-window/redis/keys.ts";
import { temporaryFolder } from "../../../test/support/temporary-folder.ts";
import { until } from "../../../test/support/until.ts";
import { openAnotherWindow } from "../../../test/support/window-view.ts";
import { post, useGateway, useGatewayKit } from "./kit.ts";

const kit = useGatewayKit();
const gateway = useGateway(kit);
let bobGets: string[];

beforeAll(async () => {
  bobGets = await kit.online("agent://bob");
});

interface Manifest {
  readonly gateway_keys: { readonly key_id: string; readonly public_key: string }[];
  readonly canonical_signing_order: string[];
  readonly websocket: { readonly urls: string[] };
  readonly test_vectors: unknown[];
  readonly self_test: { readonly url: string };
}
const manifest = async (at = gateway) =>
  (await (await fetch(`${at.url}/.well-known/signing-manifest.json`)).json()) as Manifest;
const ask = (path: string, body: unknown, at = gateway) => post(at.url + path, body, { "x-api-key": kit.freshKey() });
const send = (at = gateway) =>
  ask("/v1/messages/send", { from: "agent://alice", to: "agent://bob", message: "Grüße" }, at);

/** What the next delivery to bob carries: `deliver <connection> <epoch> <agent> <session or -> <text>`. */
async function nextDelivery(delivered = bobGets): Promise<{ session: string; text: string }> {
  await until("a delivery", () => delivered.length > 0);
  const [, session, text] = /^deliver \S+ \S+ \S+ (\S+) (.*)$/.exec(delivered.shift() as string) as RegExpExecArray;
  return { session: session as string, text: text as string };
}

/** As a recipient would check it, from the manifest and node:crypto alone. */
function isSignedBy({ gateway_keys }: Manifest, text: string): boolean {
  const { key_id, sig } = JSON.parse(text) as { key_id: string; sig: string };
  const x = gateway_keys.find((key) => key.key_id === key_id)?.public_key;
  if (x === undefined) return false;
  const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" });
  const canonical = text.replace(`,"sig":"${sig}"}`, "}");
  return verify(null, Buffer.from(canonical), key, Buffer.from(sig, "base64url"));
}

test("a recipient can check a simple send with the manifest alone", async () => {
  const before = Date.now();
  const accepted = (await (await send()).json()) as { id: string };
  expect(accepted).toEqual({
    ok: true,
    accepted: true,
    id: expect.stringMatching(/^env_[0-9a-hjkmnp-tv-z]{26}$/),
    envelope_id: accepted.id,
    type: "message.send",
    target_delivery: { status: "online", can_deliver_realtime: true },
  });

  const { text } = await nextDelivery();
  const envelope = JSON.parse(text);
  expect(envelope).toMatchObject({
    id: accepted.id,
    type: "message.send",
    from: "agent://alice",
    to: "agent://bob",
    payload: { message: "Grüße" },
    key_id: expect.stringMatching(/^gateway-/),
  });
  expect(envelope.ts).toBeGreaterThanOrEqual(before);
  expect(Object.keys(envelope)).toEqual(["id", "type", "from", "to", "payload", "ts", "key_id", "sig"]);
  expect(isSignedBy(await manifest(), text)).toBe(true);
  expect(isSignedBy(await manifest(), text.replace("Grüße", "Gruesse"))).toBe(false);
});

test("a session request carries its terms, its lifetime always among them", async () => {
  const plain = { from: "agent://alice", to: "agent://bob", purpose: "to talk" };
  const answer = (await (await ask("/v1/sessions/request", plain)).json()) as { session_id: string };
  const delivery = await nextDelivery();
  expect(delivery.session).toBe(answer.session_id);
  expect(JSON.parse(delivery.text)).toMatchObject({
    type: "session.request",
    payload: { purpose: "to talk", ttl_minutes: 60 },
  });

  const terms = { purpose: "to talk", intro: "i", scope: "s", expected_frequency: "daily", ttl_minutes: 5 };
  await ask("/v1/sessions/request", { ...plain, ...terms });
  expect(JSON.parse((await nextDelivery()).text).payload).toEqual(terms);
});

test("an accepted session says what comes next, with links from the settings and not from Host", async () => {
  const body = { from: "agent://alice", to: "agent://bob", purpose: "to talk", ttl_minutes: 5 };
  const online = (await (await ask("/v1/sessions/request", body)).json()) as AcceptedSession;
  await nextDelivery();
  const about = `?from=agent://alice&target_agent_id=agent://bob&session_id=${online.session_id}`;
  const firstJob = `https://relay.example/api/public/marketplace-first-job-handoff${about}`;
  expect(online).toMatchObject({
    ok: true,
    accepted: true,
    session_id: expect.stringMatching(/^ses_/),
    target_delivery: { status: "online", can_deliver_realtime: true },
    next: {
      session: `https://relay.example/sessions/${online.session_id}`,
      monitor: {
        metric: "traffic.simple_session_request.accepted",
        url: "https://relay.example/api/ops/traffic-daily",
      },
      ecosystem_handoff: `https://relay.example/api/public/ecosystem-handoff${about}`,
      marketplace_first_job_handoff: firstJob,
      first_job_handoff_priority: { priority: "after_target_approves", handoff: firstJob },
      async_negotiation_fallback: { mode: "pending_until_session.approve_or_session.reject" },
      verified_deal_reputation_policy: { status: "roadmap_metadata_only", reputation_scores_exposed: false },
    },
  });

  const unseen = await (await ask("/v1/sessions/request", { ...body, to: "agent://nobody" })).json();
  expect(unseen).toMatchObject({
    accepted: true,
    target_delivery: { status: "not_seen", can_deliver_realtime: false },
    next: { first_job_handoff_priority: { priority: "after_target_comes_online" } },
  });
});

test("a 202 for a target that was not online says that nothing is kept, what to do and where to look; others do not", async () => {
  const check = "https://relay.example/api/onboarding/check-online?agent_id=agent://nobody";
  const message = { from: "agent://alice", message: "hi" };
  const session = { from: "agent://alice", purpose: "to talk" };
  const accepted = async (path: string, body: object) => (await (await ask(path, body)).json()) as AcceptedSession;

  const sent = await accepted("/v1/messages/send", { ...message, to: "agent://nobody" });
  expect(sent.next).toEqual({ kept: false, do: expect.stringContaining("new Idempotency-Key"), check });
  const requested = await accepted("/v1/sessions/request", { ...session, to: "agent://nobody" });
  expect(requested.next).toMatchObject({ kept: false, do: expect.stringContaining("pending"), check });

  expect(await accepted("/v1/messages/send", { ...message, to: "agent://bob" })).not.toHaveProperty("next");
  await nextDelivery();
  const { next } = await accepted("/v1/sessions/request", { ...session, to: "agent://bob" });
  await nextDelivery();
  expect(Object.keys(next)).not.toEqual(expect.arrayContaining(["kept"]));
});

test("the manifest names every live gateway's key and the websocket's addresses", async () => {
  const other = await kit.gateway({ RELAY_WS_URL: "wss://relay.example", RELAY_ALTERNATE_WS_PATH: "/side" });
  const [one, two] = [await manifest(), await manifest(other)];
  const keyIds = ({ gateway_keys }: Manifest) => gateway_keys.map(({ key_id }) => key_id).sort();
  expect(keyIds(one)).toEqual(keyIds(two));
  expect(keyIds(one)).toHaveLength(2);
  expect(two.websocket.urls).toEqual(["wss://relay.example/ws", "wss://relay.example/side"]);
  expect(two.canonical_signing_order).toEqual(["id", "type", "from", "to", "task_id", "payload", "ts", "key_id"]);
  expect(two.test_vectors).toHaveLength(2);
  expect(two.self_test.url).toBe("https://relay.example/api/self-test");
});

test("a replaced key file signs what comes next without a restart; the key of before stays listed", async () => {
  await using folder = await temporaryFolder();
  const RELAY_GATEWAY_KEY_FILE = join(folder.path, "gateway.pem");
  await writeFile(RELAY_GATEWAY_KEY_FILE, gatewayPem());
  const rotating = await kit.gateway({ RELAY_GATEWAY_KEY_FILE });
  const signer = async () => {
    await send(rotating);
    return (JSON.parse((await nextDelivery()).text) as { key_id: string }).key_id;
  };
  const before = await signer();
  await writeFile(RELAY_GATEWAY_KEY_FILE, "no key");
  await until("the file is refused", () => kit.log.some((line) => line.includes("gateway key file cannot be used")));
  expect(await signer()).toBe(before);
  await writeFile(RELAY_GATEWAY_KEY_FILE, gatewayPem());
  await until("the new key is in use", async () => (await ownKey(rotating)) !== before);
  const now = await signer();
  expect(now).toBe(await ownKey(rotating));
  expect((await manifest(rotating)).gateway_keys.map(({ key_id }) => key_id)).toEqual(
    expect.arrayContaining([before, now]),
  );

  await kit.editKeys((keys) => ({ ...keys, revoked_gateway_keys: [now] }));
  await until("the revoked key is in use no more", async () => (await ownKey(rotating)) !== now);
  await until("a key that the gateway makes is in use", async () => (await ownKey(rotating)) !== undefined);
  expect([before, now]).not.toContain(await signer());
  expect(kit.log.some((line) => line.includes("has a key that the keys file revokes"))).toBe(true);
  await rotating.stop();
  await expect(kit.gateway({ RELAY_GATEWAY_KEY_FILE })).rejects.toThrow("RELAY_GATEWAY_KEY_FILE");
  await kit.editKeys(({ revoked_gateway_keys: _, ...keys }) => keys);
});

test("a revoked key is in no manifest, and the gateway that had made it signs with another one", async () => {
  const one = await kit.gateway();
  await send(one);
  const { key_id: revoked } = JSON.parse((await nextDelivery()).text) as { key_id: string };
  await kit.editKeys((keys) => ({ ...keys, revoked_gateway_keys: [revoked] }));
  for (const at of [one, gateway]) {
    await until("it is listed no more", async () =>
      (await manifest(at)).gateway_keys.every(({ key_id }) => key_id !== revoked),
    );
  }
  await until("it has another key", () => kit.log.some((line) => line.includes("gateway key revoked")));
  expect((await send(one)).status).toBe(202);
  const { text } = await nextDelivery();
  expect(isSignedBy(await manifest(), text)).toBe(true);
  await kit.editKeys(({ revoked_gateway_keys: _, ...keys }) => keys);
});

test("in a new window the key is listed before anything it signed is accepted", async () => {
  await kit.redis.restart();
  const { link } = await kit.link();
  const delivered = await kit.online("agent://bob");
  await until("the gateway is back", async () => (await fetch(`${gateway.url}/ready`)).status === 200);
  await link.command("DEL", controlKeys.gatewayKeys);
  await openAnotherWindow(link.client);

  expect((await send()).status).toBe(202);
  const { text } = await nextDelivery(delivered);
  const listed = (await link.command("HKEYS", controlKeys.gatewayKeys)) as string[];
  expect(listed).toContain((JSON.parse(text) as { key_id: string }).key_id);
});

/** A gateway lists its own key first. */
async function ownKey(at: typeof gateway): Promise<string | undefined> {
  return (await manifest(at)).gateway_keys[0]?.key_id;
}

function gatewayPem(): string {
  return generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" }) as string;
}
