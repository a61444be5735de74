import { randomBytes } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { beforeAll, expect, test } from "@jest/globals";
import type { ServiceName, Surface } from "relay-protocol/contract/surface.ts";
import { SURFACES } from "relay-protocol/contract/surfaces.ts";
import { makeEd25519Key, makeHmacKey } from "../../deploy/keys/make.ts";
import { envelope, newAgent, newIssuer, sealed } from "../examples/receipts.ts";
import { AdminClient, Secrets } from "../support/admin.ts";
import type { AgentSocket, Frame } from "../support/agent.ts";
import { GuardedRelay } from "../support/guarded-redis.ts";
import { HttpClient } from "../support/http.ts";
import { OtlpReceiver } from "../support/otlp-receiver.ts";
import { connectorIn, madePackages } from "../support/packages.ts";
import { SERVICES, Services } from "../support/relay.ts";
import { everythingDuring, everythingIn, RedisMonitor } from "../support/test-redis.ts";
import { until } from "../support/until.ts";
import { given, giveUpCalls, use } from "../support/use-relay.ts";

/** The three services as processes over Redis as it is deployed: everything is sent once, with a mark of its own in each place. */

/** What clients send with a mark of its own in each place, so that it is found wherever it comes to lie. */

/** In letters that no normalising of labels changes. */
const mark = (name: string) => `mark${name}${randomBytes(6).toString("hex")}`;
/** What an envelope says: it passes through Redis on its way to the target, and stays nowhere. */
const SAID = {
  type: `message.mark_${randomBytes(6).toString("hex")}`,
  payload: mark("payload"),
  message: mark("message"),
  task_id: mark("task"),
  purpose: mark("purpose"),
  intro: mark("intro"),
  scope: mark("scope"),
  expected_frequency: mark("frequency"),
  reason: mark("reason"),
};
/** What no other process than the one that was told ever learns; of what is sealed that is the recipient's. */
const TOLD = {
  sealed: mark("sealed"),
  label: mark("label"),
  capability: mark("capability"),
  feedback: mark("feedback"),
  feedbackCategory: mark("category"),
  feedbackSurface: mark("surface"),
  userAgent: mark("agent"),
  address: "203.0.113.77",
  idempotencyKey: mark("idempotency"),
  wrongApiKey: `rk_${mark("key")}`,
  query: mark("query"),
  /** It begins as a key does, so no answer names it. */
  unknownField: `rk_${mark("field")}`,
  keysFileSecret: mark("secret"),
};
/** An unknown field that may be named in the answer to who sent it, and nowhere else. */
const NAMED_FIELD = "marknamemark";

const BASE_URL = "https://relay.example";
const CLIENT = { "user-agent": TOLD.userAgent, "x-forwarded-for": TOLD.address };

const relay = use(new GuardedRelay("alice-hmac", "bob-hmac"));
giveUpCalls();
const http = new HttpClient(CLIENT);
/** Agents that register with a credential: an address may show that, as the certificate that it is. */
const CAROL = "acme.carol";
const acme = given(() => newIssuer("acme", "agent://acme.*"));
const [carol, dan] = [given(() => newAgent(acme, `agent://${CAROL}`)), given(() => newAgent(acme, "agent://acme.dan"))];
const auditFile = () => `${relay.keysFile}.audit`;
const collector = given(async () => {
  const receiver = await new OtlpReceiver().start();
  relay.defer(() => receiver.stop());
  return receiver;
});
const admin = given(() => AdminClient.make(`${relay.keysFile}.admin`));
const added = makeHmacKey({ id: "added", agents: ["agent://added"] });
const gatewayKey = makeEd25519Key({ id: "unused", agents: [] });
const connector = given(async () => await connectorIn(await madePackages()));
const services = given(async () => {
  const keyFile = `${relay.keysFile}.pem`;
  await writeFile(keyFile, gatewayKey.privateKeyPem, { mode: 0o600 });
  await relay.writeKeys(keysFile());
  const talkative = {
    LOG_LEVEL: "trace",
    RELAY_BASE_URL: BASE_URL,
    RELAY_TRUSTED_PROXY_HOPS: "1",
    RELAY_GATEWAY_KEY_FILE: keyFile,
    RELAY_PACKAGES_DIR: await madePackages(),
    RELAY_AUDIT_FILE: auditFile(),
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    ...admin.settings,
  };
  return await Services.start((name, settings) => relay.startProcess(name, { ...talkative, ...settings }));
});
const redis = given(() => relay.view().client);
const [alice, bob] = [given(() => connect()), given(() => connect())];
const scans: string[] = [];
const passed: string[] = [];
/** By the admin listener. */
const told: string[] = [];
const answersToSenders: string[] = [];
const signatures: Record<string, string> = {};
let ciphertext: string;
let sessionId: string;

beforeAll(async () => {
  const monitor = await RedisMonitor.open(redis, ({ name, args }) => passed.push([name, ...args].join(" ")));
  relay.defer(() => monitor.close());
  const traffic = async () => {
    await sendOverWebsocket();
    await sendSealed();
    await sendThroughGateway();
    await sendBroken();
    told.push(...(await askAsOperator()));
  };
  scans.push(...(await everythingDuring(redis, traffic)));
  await sendIntoFaults();
  scans.push(await everythingIn(redis));
  answersToSenders.push(...http.answers);
}, 60_000);

test("what was said reached the other side, so that there was something to hide", () => {
  const delivered = JSON.stringify([...alice.deliveries, ...bob.deliveries]);
  expect(new Secrets(SAID).in(delivered)).toEqual(Object.keys(SAID));
});

test("Redis holds no secret in any key or value, whatever its type, while traffic runs and after it", () => {
  expect(scans.length).toBeGreaterThan(2);
  expect(scans.at(-1)).toContain("submitFeedback@");
  for (const scan of scans) expect(everySecret().in(scan)).toEqual([]);
});

test("Redis has none in its slow log, its list of clients, its figures or its own log", async () => {
  const commands = [
    ["SLOWLOG", "GET", "128"],
    ["ACL", "LOG"],
    ["CLIENT", "LIST"],
    ["INFO", "everything"],
  ] as const;
  const said = await Promise.all(commands.map(([name, ...args]) => redis.call(name, ...args)));
  expect(await redis.call("SLOWLOG", "LEN")).toBe(0);
  expect(everySecret().in(JSON.stringify(said) + relay.redis.output)).toEqual([]);
});

test("nothing but envelopes passes through Redis: no key, address, user agent, label or feedback, not even on the way", () => {
  const text = passed.join("\n");
  expect(new Secrets(SAID).in(text)).toEqual(Object.keys(SAID));
  expect(new Secrets({ ...TOLD, ...keySecrets() }).in(text)).toEqual([]);
});

test("what is sealed passes through Redis as its ciphertext alone", () => {
  const text = passed.join("\n");
  expect(text).toContain(ciphertext);
  expect(new Secrets({ sealed: TOLD.sealed }).in(text)).toEqual([]);
});

test("no report, page or document shows a secret", async () => {
  for (const service of SERVICES) {
    for (const path of readsOf(service)) {
      const response = await fetch(services.pod(service).url + path, { headers: CLIENT });
      const text = JSON.stringify([...response.headers]) + (await response.text());
      expect({ path, status: response.status, found: everySecret().in(text) }).toEqual({
        path,
        status: 200,
        found: [],
      });
    }
  }
});

test("no answer repeats what was sent, but for the name of an unknown field that can be no key", () => {
  const errors = [alice, bob].flatMap(({ frames }) => frames.filter(({ frame }) => frame === "error"));
  expect(errors.length).toBeGreaterThanOrEqual(6);
  for (const answers of [JSON.stringify(errors), answersToSenders.join("\n")]) {
    expect(everySecret().in(answers)).toEqual([]);
    expect(answers).toContain(NAMED_FIELD);
    expect(answers).not.toContain("127.0.0.1");
  }
  for (const scan of scans) expect(scan).not.toContain(NAMED_FIELD);
});

test("no metric shows a secret", async () => {
  for (const name of SERVICES) {
    const text = await (await fetch(services.metricsOf(name), { headers: CLIENT })).text();
    expect(text).toContain("relay_");
    expect(everySecret().in(text)).toEqual([]);
  }
});

test("nor does the operator's listener show one", () => {
  expect(told[0]).toContain('"status":200');
  for (const text of told) expect(everySecret().in(text)).toEqual([]);
});

test("no service logs a secret at the most talkative level, from its start through faults to its end", async () => {
  for (const name of SERVICES) {
    expect(await services.pod(name).end("SIGTERM")).toBe(0);
    const log = logOf(name);
    expect({ name, found: everySecret().in(log) }).toEqual({ name, found: [] });
    // A call, or the look at the link before it, met the Redis that hung.
    expect(log).toMatch(/redis did not carry out|redis link is down/);
  }
});

test("traces hold none, and tell of requests, acceptance and deliveries", async () => {
  const names = ["send", "accept", "deliver", "POST /v1/messages/send"];
  const missing = () => names.filter((name) => !collector.spans.some((span) => span.name === name));
  await until(`spans of ${names.join(", ")}`, () => missing().length === 0);
  expect(everySecret().in(collector.bodies.join("\n"))).toEqual([]);
});

test("the audit log holds none, and says who registered and who was refused", async () => {
  const text = await readFile(auditFile(), "utf8");
  expect(everySecret().in(text)).toEqual([]);
  const events = ["registered", "refused", "keys_changed", "window_entered", "admin_read", "admin_refused"];
  for (const event of events) expect(text).toContain(`"${event}"`);
});

async function sendOverWebsocket(): Promise<void> {
  const payload = { label: TOLD.label, capabilities: [TOLD.capability] };
  for (const [name, socket] of [
    ["alice-hmac", alice],
    ["bob-hmac", bob],
  ] as const) {
    expect(await socket.ask(signed(name, "agent.register", { payload }))).toMatchObject({ accepted: true });
  }
  const toBob = { to: "agent://bob-hmac", task_id: SAID.task_id };
  await alice.ask(signed("alice-hmac", SAID.type, { ...toBob, payload: { [SAID.payload]: SAID.payload } }));
  const { purpose, intro, scope, expected_frequency } = SAID;
  const terms = { ...toBob, payload: { purpose, intro, scope, expected_frequency } };
  sessionId = (await alice.ask(signed("alice-hmac", "session.request", terms))).session_id;
  const rejection = { to: "agent://alice-hmac", payload: { session_id: sessionId, reason: SAID.reason } };
  expect(await bob.ask(signed("bob-hmac", "session.reject", rejection))).toMatchObject({ session_status: "rejected" });
  await alice.ask(signed("alice-hmac", "session.request", { ...terms, to: "agent://absent" }));
}

/** From one agent with a credential to another. */
async function sendSealed(): Promise<void> {
  const [carolsSocket, dansSocket] = [await connect(), await connect()];
  for (const [agent, socket] of [
    [carol, carolsSocket],
    [dan, dansSocket],
  ] as const) {
    const payload = { credential: agent.token, relay: new URL(BASE_URL).host };
    const register = envelope(agent, agent, "agent.register", payload);
    signatures[register.id] = register.sig;
    expect(await socket.ask(register)).toMatchObject({ accepted: true });
  }
  const sent = await sealed(carol, dan, JSON.stringify({ [TOLD.sealed]: TOLD.sealed }));
  signatures[sent.id] = sent.sig;
  ciphertext = sent.payload.sealed.ct;
  expect(await carolsSocket.ask(sent)).toMatchObject({ target_delivery: { status: "online" } });
  expect((await dansSocket.delivered(sent.id)).envelope).toEqual(sent);
}

async function sendThroughGateway(): Promise<void> {
  const gateway = services.pod("gateway").url;
  const headers = { ...relay.credentials("alice-hmac"), "idempotency-key": TOLD.idempotencyKey };
  const { purpose, intro, scope } = SAID;
  const body = { from: "agent://alice-hmac", to: "agent://bob-hmac" };
  const feedback = { message: TOLD.feedback, category: TOLD.feedbackCategory, surface: TOLD.feedbackSurface };
  const answers = await Promise.all([
    http.post(`${gateway}/v1/messages/send`, { ...body, message: SAID.message }, headers),
    http.post(`${gateway}/v1/sessions/request`, { ...body, purpose, intro, scope }, headers),
    http.post(`${gateway}/api/public/feedback`, feedback),
  ]);
  expect(answers.map(({ status }) => status)).toEqual([202, 202, 202]);
  await bob.delivered(answers[0]?.body.envelope_id);
  const { envelope } = await bob.delivered(answers[1]?.body.envelope_id);
  signatures.gateway = envelope.sig;
}

/** What is refused is where values like to end up in a log. */
async function sendBroken(): Promise<void> {
  const gateway = services.pod("gateway").url;
  const body = { from: "agent://alice-hmac", to: "agent://bob-hmac", message: SAID.message };
  const message = () => signed("alice-hmac", "message.send", { to: "agent://bob-hmac" });
  await alice.ask({ ...message(), [TOLD.unknownField]: 1, [NAMED_FIELD]: 1 });
  await alice.ask({ ...message(), payload: SAID });
  await alice.ask({ ...message(), type: SAID.payload });
  await alice.ask({ ...message(), ts: SAID.payload });
  await alice.answerTo(`{"payload": "${SAID.payload}`);
  const key = relay.credentials("alice-hmac");
  const send = (changed: object, fields: Record<string, string> = key) =>
    http.post(`${gateway}/v1/messages/send`, { ...body, ...changed }, fields);
  const answers = await Promise.all([
    send({}, { "x-api-key": TOLD.wrongApiKey }),
    send({ [TOLD.unknownField]: 1, [NAMED_FIELD]: 1 }),
    send({ api_key: key["x-api-key"] }),
    send({ from: SAID.payload }),
    send({}, { ...key, "content-type": `text/${SAID.payload}` }),
    send({}, { ...key, "idempotency-key": `${TOLD.idempotencyKey} with a space` }),
    http.post(`${gateway}/v1/messages/send`, `{"message": "${SAID.message}`, key),
    http.post(`${gateway}/api/self-test`, { ...message(), payload: SAID }),
    http.post(`${gateway}/api/self-test`, SAID.payload),
    http.post(`${gateway}/api/public/feedback`, { [TOLD.unknownField]: TOLD.feedback }),
    http.get(`${gateway}/sessions/${TOLD.query}`),
    http.get(`${gateway}/api/onboarding/check-online?agent_id=${TOLD.query}`),
    ...SERVICES.map((name) => http.get(`${services.pod(name).url}/${TOLD.query}?${TOLD.query}=${TOLD.query}`)),
  ]);
  expect(answers.every(({ status }) => status >= 400 && status < 500)).toBe(true);
}

/** A keys file that does not validate, one that is no JSON, one with another key, and a Redis that hangs. */
async function sendIntoFaults(): Promise<void> {
  const secret = TOLD.keysFileSecret;
  const logged = (text: string) =>
    until(text, () => logOf("gateway").includes(text) && logOf("ws-connector").includes(text));
  await relay.writeKeys({ signing_keys: [{ key_id: secret, alg: "hmac-sha256", secret, agents: [secret] }] });
  await logged('"problems"');
  await writeFile(relay.keysFile, `{"signing_keys": [{"secret": "${secret}`);
  await logged("not JSON");
  await relay.writeKeys(keysFile(added.record));
  await logged("new keys loaded");

  await relay.redis.pause();
  const body = { from: "agent://alice-hmac", to: "agent://bob-hmac", message: SAID.message };
  const message = signed("alice-hmac", "message.send", { to: "agent://bob-hmac", payload: { lost: SAID.payload } });
  const [answer, ...answers] = await Promise.all([
    alice.ask(message),
    http.post(`${services.pod("gateway").url}/v1/messages/send`, body, relay.credentials("alice-hmac")),
    http.post(`${services.pod("gateway").url}/api/public/feedback`, { message: TOLD.feedback }),
    http.get(`${services.pod("gateway").url}/api/onboarding/online-agents`),
    http.get(`${services.pod("ops-reporting").url}/api/ops/traffic-daily`),
  ]);
  expect(answer).toMatchObject({ code: "unavailable" });
  expect(answers.map(({ status }) => status)).toEqual([503, 503, 503, 503]);
  await relay.redis.resume();
  for (const name of SERVICES) {
    await until(`${name} is ready`, async () => (await http.get(`${services.pod(name).url}/ready`)).status === 200);
  }
}

/** All that a service logged so far. */
function logOf(name: ServiceName): string {
  return services.pod(name).log.join("\n");
}

function everySecret(): Secrets {
  return new Secrets({ ...SAID, ...TOLD, ...keySecrets(), ...signatures, ciphertext });
}

/** Keys, and what opens Redis. */
function keySecrets(): Record<string, string> {
  const { signing_keys } = relay.keys.file as { signing_keys: { key_id: string; secret: string }[] };
  return {
    ...Object.fromEntries(relay.keys.apiKeys),
    ...Object.fromEntries(signing_keys.map(({ key_id, secret }) => [key_id, secret])),
    ...Object.fromEntries(relay.redis.passwords.map((password, index) => [`redis password ${index}`, password])),
    addedKey: added.secret,
    adminKey: admin.key,
    gatewayKey: gatewayKey.privateKey,
    gatewayKeyPem: gatewayKey.privateKeyPem.split("\n")[1] as string,
  };
}

function signed(name: string, type: string, fields: Frame): Frame {
  const envelope = relay.envelope(name, type, fields);
  signatures[envelope.id] = envelope.sig;
  return envelope;
}

function keysFile(...more: object[]): object {
  const { signing_keys } = relay.keys.file as { signing_keys: object[] };
  return { ...relay.keys.file, signing_keys: [...signing_keys, ...more], issuers: [acme.record] };
}

async function connect(): Promise<AgentSocket> {
  return await relay.connect(services.pod("ws-connector"), `/ws?${TOLD.query}=1`, CLIENT);
}

/** Every read of a service, as a client asks for it. */
function readsOf(service: ServiceName): string[] {
  const reads = Object.values<Surface>(SURFACES).filter(
    (surface) => surface.method === "GET" && (surface.service === service || surface.service === "each"),
  );
  const query = (surface: Surface) => (surface.path.includes("check-online") ? "?agent_id=agent://bob-hmac" : "");
  const path = (surface: Surface) =>
    surface.path.replace("{session_id}", sessionId).replace("{file}", connector.file).replace("{name}", CAROL);
  return reads.map((surface) => path(surface) + query(surface));
}

/** With the operator's key, and without it. @returns the answers. */
async function askAsOperator(): Promise<string[]> {
  const told: string[] = [];
  const paths = ["counts", "noisiest", "agents?issuer=acme", `agents?key=${TOLD.query}`, TOLD.query];
  for (const path of paths) told.push(JSON.stringify(await admin.get(`/admin/${path}`)));
  told.push(JSON.stringify(await admin.disconnect(TOLD.query)));
  const stranger = await fetch(`${admin.url}/${TOLD.query}`, {
    headers: { authorization: `Bearer ${TOLD.wrongApiKey}` },
  });
  return [...told, await stranger.text()];
}
