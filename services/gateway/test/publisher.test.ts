import { describe, expect, test } from "@jest/globals";
import type { AcceptanceItem } from "relay-window/acceptance/acceptance.ts";
import type { Acceptor } from "relay-window/acceptance/acceptor.ts";
import type { GatewayKey } from "../src/api/gateway-key.ts";
import { EnvelopePublisher, newEnvelopeId } from "../src/api/publisher.ts";
import { codeOf, post, useGateway, useGatewayKit } from "./kit.ts";

const message = { from: "agent://alice", to: "agent://bob", message: "a secret errand" };
/** Of several partitions, where there are some. */
const TARGETS = Array.from({ length: 8 }, (_, n) => `agent://target-${n}`);
const session = { from: "agent://alice", to: "agent://bob", purpose: "to talk", ttl_minutes: 7 };

describe.each([1, 4])("over %d partitions", (partitions) => {
  const kit = useGatewayKit(partitions);
  const gateway = useGateway(kit);
  const other = useGateway(kit);

  const send = (apiKey: string, key: string, body: unknown = message, at = gateway) =>
    post(`${at.url}/v1/messages/send`, body, { "x-api-key": apiKey, "idempotency-key": key });
  const request = (apiKey: string, key: string, body: unknown = session, at = gateway) =>
    post(`${at.url}/v1/sessions/request`, body, { "x-api-key": apiKey, "idempotency-key": key });

  test.each([
    ["send", send],
    ["session request", request],
  ])("a repeated %s gets the first answer again, byte for byte, and sends nothing", async (_name, ask) => {
    const delivered = await kit.online("agent://bob");
    const apiKey = kit.freshKey();
    const first = await ask(apiKey, "k1");
    const text = await first.text();
    expect([first.status, first.headers.get("idempotent-replayed")]).toEqual([202, null]);
    const published = (await kit.snapshot()).counters.get("published_envelopes");

    for (const at of [gateway, other]) {
      const again = await ask(apiKey, "k1", undefined, at);
      expect([again.status, again.headers.get("idempotent-replayed")]).toEqual([202, "true"]);
      expect(await again.text()).toBe(text);
    }
    expect((await kit.snapshot()).counters.get("published_envelopes")).toBe(published);
    expect(delivered).toHaveLength(1);
  });

  test("the same Idempotency-Key with another body is refused", async () => {
    const apiKey = kit.freshKey();
    expect((await send(apiKey, "k")).status).toBe(202);
    for (const change of [{ message: "another" }, ...TARGETS.map((to) => ({ to }))]) {
      expect(await codeOf(send(apiKey, "k", { ...message, ...change }, other))).toBe("422 idempotency_key_reused");
    }
  });

  test("of different bodies at once over two gateways, each for another target, one is sent", async () => {
    const apiKey = kit.freshKey();
    const answers = await Promise.all(
      TARGETS.map((to, n) => send(apiKey, "at-once", { ...message, to }, n % 2 === 0 ? gateway : other)),
    );
    const refused = answers.filter(({ status }) => status !== 202);
    expect(refused).toHaveLength(TARGETS.length - 1);
    for (const answer of refused) expect(await codeOf(answer)).toMatch(/^4(09 idempotency_in_progress|22 .*reused)$/);
  });

  test("the same body in another order of members is the same body", async () => {
    const apiKey = kit.freshKey();
    const { from, to } = message;
    await send(apiKey, "k");
    const again = await send(apiKey, "k", { message: message.message, to, from });
    expect(again.headers.get("idempotent-replayed")).toBe("true");
  });

  test("an Idempotency-Key is its API key's and its endpoint's own", async () => {
    const apiKey = kit.freshKey();
    const answers = [await send(apiKey, "k"), await request(apiKey, "k"), await send(kit.freshKey(), "k")];
    expect(answers.map(({ status, headers }) => [status, headers.get("idempotent-replayed")])).toEqual(
      Array(3).fill([202, null]),
    );
  });

  test("of many at once over two gateways one is sent; the others wait or get its answer", async () => {
    const apiKey = kit.freshKey();
    const before = (await kit.snapshot()).counters.get("simple_send_accepted") ?? 0;
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, n) => send(apiKey, "at-once", message, n % 2 === 0 ? gateway : other)),
    );
    expect((await kit.snapshot()).counters.get("simple_send_accepted")).toBe(before + 1);

    const accepted = answers.filter(({ status }) => status === 202);
    const ids = await Promise.all(accepted.map(async (answer) => ((await answer.json()) as { id: string }).id));
    expect(new Set(ids).size).toBe(1);
    const refused = answers.filter(({ status }) => status !== 202);
    for (const answer of refused) {
      expect(answer.headers.get("retry-after")).toBe("1");
      expect(await codeOf(answer)).toBe("409 idempotency_in_progress");
    }
  });

  test("nobody who reads Redis can tell what was sent, by whom, or under which key", async () => {
    const apiKey = kit.freshKey();
    await send(apiKey, "a-telling-key");
    const { link } = await kit.link();
    const names = (await link.command("KEYS", "*")) as string[];
    const claims = names.filter((name) => /^relay:\{\w+\}:idempotency/.test(name));
    const kept = await Promise.all(
      claims.map((name) => link.command(name.includes("-body:") ? "GET" : "HGETALL", name)),
    );
    const text = JSON.stringify([names, kept]);
    expect(claims.length).toBeGreaterThan(0);
    for (const secret of ["a-telling-key", "secret errand", apiKey]) {
      expect(text).not.toContain(secret);
      expect(kit.log.join("")).not.toContain(secret);
    }
  });
});

test("while the first is in progress another with its key is refused, and one with another key is not", async () => {
  const items: AcceptanceItem[] = [];
  const publisher = new EnvelopePublisher({
    gatewayKey: { keyId: "gateway-test", sign: () => ({ text: "" }) } as unknown as GatewayKey,
    acceptor: {
      needsPreparation: () => false,
      accept: (item: AcceptanceItem) => items.push(item),
    } as unknown as Acceptor,
    contact: undefined,
  });
  const publish = (idempotencyKey: string) =>
    publisher.publish(
      {
        surface: "sendMessage",
        apiKey: { id: "alice", mayAct: () => true },
        apiKeyText: "rk_text",
        body: { from: "agent://alice", to: "agent://bob" },
        idempotencyKey,
      },
      { kind: "message", type: "message.send", payload: {} },
    );

  const first = publish("k");
  await expect(publish("k")).rejects.toMatchObject({ code: "idempotency_in_progress" });
  void publish("other");
  expect(items).toHaveLength(2);
  items[0]?.done({ outcome: "unavailable" });
  await expect(first).rejects.toMatchObject({ code: "unavailable" });
  void publish("k");
  expect(items).toHaveLength(3);
});

test("envelope ids have env_ and 26 characters of Crockford base32, and no two are alike", () => {
  const ids = Array.from({ length: 1000 }, newEnvelopeId);
  for (const id of ids) expect(id).toMatch(/^env_[0-9a-hjkmnp-tv-z]{26}$/);
  expect(new Set(ids).size).toBe(ids.length);
});
