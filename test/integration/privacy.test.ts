import { expect, test } from "@jest/globals";
import type { Frame } from "../support/agent.ts";
import { HttpClient } from "../support/http.ts";
import { everythingIn } from "../support/redis-dump.ts";
import { until } from "../support/until.ts";
import { given, giveUpCalls, useRelay } from "../support/use-relay.ts";

/** Words that stand in secrets only, each in its own kind of place. */
const MARKS = {
  payload: "markpayloadmark",
  feedback: "markfeedbackmark",
  purpose: "markpurposemark",
  userAgent: "markagentmark",
  unknownField: "rk_markfieldmark",
  wrongKey: "rk_markwrongkeymark",
  query: "markquerymark",
  forwarded: "203.0.113.77",
};
/** Named in the answer to who sent it, and nowhere else. */
const NAMED_FIELD = "marknamemark";
/** Clients come from the address below, so the links in answers must not hold it. */
const BASE = { RELAY_BASE_URL: "https://relay.example" };
const CLIENT_ADDRESS = "127.0.0.1";
const relay = useRelay("alice-hmac", "bob");
giveUpCalls();
const http = new HttpClient({ "user-agent": MARKS.userAgent, "x-forwarded-for": MARKS.forwarded });
const pod = given(() => relay.startWsConnector());
const gateway = given(() => relay.startGateway(BASE));
const reporting = given(() => relay.startOpsReporting(BASE));
const view = given(() => relay.view());
const alice = given(() => relay.online(pod, "alice-hmac"));
const bob = given(() => relay.online(pod, "bob"));

test("no secret and no address is in Redis, in a log line or in an answer, whatever was sent", async () => {
  const answersToSenders = http.answers.length;
  await sendOverWebsocket();
  await sendThroughGateway();
  await sendBroken();
  for (const path of ["/api/ops/traffic-daily", "/api/ops/traffic-summary", "/health", "/ready"]) {
    await http.get(reporting.url + path);
  }
  await until("the views are written", async () => (await everythingIn(view.client)).includes("trafficDaily"));
  await relay.redis.pause();
  const report = () => http.get(`${reporting.url}/api/ops/traffic-daily`);
  await until("reports are refused", async () => (await report()).status === 503);
  expect(await alice.ask(secretMessage())).toMatchObject({ code: "unavailable" });
  await relay.redis.resume();
  await until("Redis answers", async () => (await http.get(`${reporting.url}/ready`)).status === 200);

  const signatures = [...alice.deliveries, ...bob.deliveries].map(({ envelope }) => envelope.sig as string);
  expect(signatures.length).toBeGreaterThan(5);
  const secrets = [
    ...Object.values(MARKS),
    ...relay.keys.apiKeys.values(),
    ...signatures,
    ...(relay.keys.file as { signing_keys: Frame[] }).signing_keys.flatMap(({ secret }) => secret ?? []),
    CLIENT_ADDRESS,
  ];
  const errors = alice.frames.filter(({ frame }) => frame === "error");
  const places = {
    redis: await everythingIn(view.client),
    log: relay.log.filter((line) => JSON.parse(line).msg !== "listening").join("\n"),
    answers: http.answers.slice(answersToSenders).join("\n"),
    errorFrames: JSON.stringify(errors),
  };
  for (const [place, text] of Object.entries(places)) {
    expect({ place, isNamed: text.includes(NAMED_FIELD) }).toEqual({
      place,
      isNamed: place.match(/answers|Frames/) !== null,
    });
    expect({ place, found: secrets.filter((secret) => text.includes(secret)) }).toEqual({ place, found: [] });
  }
  expect(errors.length).toBeGreaterThan(3);
  expect(relay.log.length).toBeGreaterThan(5);
});

async function sendOverWebsocket(): Promise<void> {
  await alice.ask(secretMessage());
  const request = { to: "agent://bob", payload: { purpose: MARKS.purpose, intro: MARKS.payload } };
  const { session_id } = await alice.ask(relay.envelope("alice-hmac", "session.request", request));
  const rejection = { to: "agent://alice-hmac", payload: { session_id, reason: MARKS.payload } };
  await bob.ask(relay.envelope("bob", "session.reject", rejection));
  await alice.ask(relay.envelope("alice-hmac", "agent.register", { payload: { label: MARKS.payload } }));
  const absent = { to: "agent://absent", payload: { purpose: MARKS.purpose } };
  await alice.ask(relay.envelope("alice-hmac", "session.request", absent));

  await alice.ask(
    relay.envelope("alice-hmac", "message.send", { to: "agent://bob", [MARKS.unknownField]: 1, [NAMED_FIELD]: 1 }),
  );
  await alice.ask({ ...secretMessage(), type: MARKS.payload });
  await alice.ask({ ...secretMessage(), payload: { message: MARKS.payload, changed: true } });
  await alice.ask({ ...secretMessage(), ts: MARKS.payload });
  await alice.answerTo(`{"payload": "${MARKS.payload}`);
}

async function sendThroughGateway(): Promise<void> {
  const key = relay.credentials("alice-hmac");
  const body = { from: "agent://alice-hmac", to: "agent://bob" };
  const accepted = await Promise.all([
    http.post(`${gateway.url}/v1/messages/send`, { ...body, message: MARKS.payload }, key),
    http.post(
      `${gateway.url}/v1/messages/send`,
      { ...body, message: MARKS.payload },
      { ...key, "idempotency-key": "k" },
    ),
    http.post(`${gateway.url}/v1/sessions/request`, { ...body, purpose: MARKS.purpose, intro: MARKS.payload }, key),
    http.post(`${gateway.url}/v1/sessions/request`, { ...body, to: "agent://absent", purpose: MARKS.purpose }, key),
    http.post(`${gateway.url}/api/public/feedback`, { message: MARKS.feedback, surface: MARKS.feedback }),
    http.post(`${gateway.url}/api/feedback`, { category: MARKS.feedback, sentiment: MARKS.feedback }),
  ]);
  expect(accepted.map(({ status }) => status)).toEqual(accepted.map(() => 202));
  await bob.delivered(accepted[0]?.body.envelope_id);
  expect((await http.post(`${gateway.url}/api/self-test`, secretMessage())).status).toBe(200);
}

async function sendBroken(): Promise<void> {
  const key = relay.credentials("alice-hmac");
  const send = `${gateway.url}/v1/messages/send`;
  const body = { from: "agent://alice-hmac", to: "agent://bob", message: MARKS.payload };
  const refused = await Promise.all([
    http.post(send, body, { "x-api-key": MARKS.wrongKey }),
    http.post(send, { ...body, api_key: key["x-api-key"] }, key),
    http.post(send, { ...body, [MARKS.unknownField]: 1, [NAMED_FIELD]: 1 }, key),
    http.post(send, { ...body, from: MARKS.payload }, key),
    http.post(send, `{"message": "${MARKS.payload}`, key),
    http.post(send, body, { ...key, "content-type": `text/${MARKS.payload}` }),
    http.post(send, body, { ...key, "idempotency-key": `${MARKS.payload} with a space` }),
    http.post(`${gateway.url}/api/self-test`, { ...secretMessage(), payload: {} }),
    http.post(`${gateway.url}/api/self-test`, MARKS.payload),
    http.post(`${gateway.url}/api/public/feedback`, { [MARKS.unknownField]: MARKS.feedback }),
    http.get(`${gateway.url}/${MARKS.query}?${MARKS.query}=${MARKS.query}`),
    http.get(`${gateway.url}/sessions/${MARKS.query}`),
    http.get(`${gateway.url}/api/onboarding/check-online?agent_id=${MARKS.query}`),
  ]);
  expect(refused.every(({ status }) => status >= 400 && status < 500)).toBe(true);
  expect((await http.get(`${gateway.url}/api/onboarding/check-online?agent_id=agent://bob`)).status).toBe(200);
  expect((await http.get(`${gateway.url}/.well-known/signing-manifest.json`)).status).toBe(200);
}

function secretMessage(): Frame {
  return relay.envelope("alice-hmac", "message.send", { to: "agent://bob", payload: { message: MARKS.payload } });
}
