import { randomUUID } from "node:crypto";
import { expect, test } from "@jest/globals";
import { SCRIPTS } from "window/redis/scripts.ts";
import { HttpClient } from "../support/http.ts";
import { until } from "../support/until.ts";
import { given, useRelay } from "../support/use-relay.ts";

const PARTITIONS = 4;
const SETTINGS = { RELAY_PARTITIONS: String(PARTITIONS) };
const relay = useRelay("alice", "bob-hmac");
const connector = given(() => relay.startWsConnector(SETTINGS));
const survivor = given(() => relay.startGateway(SETTINGS));
const view = given(() => relay.view(PARTITIONS));

const PARTIES = { from: "agent://alice", to: "agent://bob-hmac" };
const MESSAGE = { path: "/v1/messages/send", body: { ...PARTIES, message: "hello" } };
const SESSION = { path: "/v1/sessions/request", body: { ...PARTIES, purpose: "talk" } };
/** After which script the gateway dies, and by what it is seen that Redis carried that out. */
const BOUND = { script: "bind_claim", leaves: "relay:*:idempotency-body:*", replayed: null } as const;
const ACCEPTED = { script: "accept", leaves: "relay:*:idempotency:*", replayed: "true" } as const;

/** A gateway that is a process of its own, behind a proxy. */
async function mortalGateway() {
  const proxy = await relay.proxy();
  const REDIS_URL = proxy.urlFor(relay.urlFor("gateway"));
  const gateway = await relay.startProcess("gateway", { ...SETTINGS, REDIS_URL });
  await until("it is ready", async () => (await fetch(`${gateway.url}/ready`)).ok);
  return { gateway, proxy };
}

test.each([
  ["message", "bound its Idempotency-Key", MESSAGE, BOUND],
  ["message", "had it accepted", MESSAGE, ACCEPTED],
  ["session request", "bound its Idempotency-Key", SESSION, BOUND],
  ["session request", "had it accepted", SESSION, ACCEPTED],
])(
  "a %s of a gateway that was killed when it had %s is sent once, whoever is asked again",
  async (_, __, request, step) => {
    const { gateway, proxy } = await mortalGateway();
    const http = new HttpClient({ ...relay.credentials("alice"), "idempotency-key": randomUUID() });
    const ask = (url: string) => http.post(url + request.path, request.body);
    const left = async () => (await view.names(step.leaves)).length;
    const leftBefore = await left();
    const bob = await relay.online(connector, "bob-hmac");

    proxy.swallowAfter(SCRIPTS[step.script].sha);
    const lost = ask(gateway.url).then(
      ({ status }) => status,
      () => "no answer",
    );
    await until("Redis has carried it out", async () => (await left()) > leftBefore);
    await gateway.end("SIGKILL");
    expect(await lost).not.toBe(202);

    const answers = [await ask(survivor.url), await ask(survivor.url)];
    expect(answers.map(({ status }) => status)).toEqual([202, 202]);
    expect(answers.map(({ headers }) => headers.get("idempotent-replayed"))).toEqual([step.replayed, "true"]);
    expect(answers[0]?.body).toEqual(answers[1]?.body);
    const { envelope_id, target_delivery } = answers[0]?.body ?? {};
    expect(target_delivery).toMatchObject({ can_deliver_realtime: true });
    await bob.delivered(envelope_id);
    const next = await new HttpClient(relay.credentials("alice")).post(survivor.url + MESSAGE.path, MESSAGE.body);
    await bob.delivered(next.body.envelope_id);
    expect(bob.deliveries.map(({ envelope }) => envelope.id)).toEqual([envelope_id, next.body.envelope_id]);
  },
);
