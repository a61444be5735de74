import { beforeAll, describe, expect, test } from "@jest/globals";
import { HttpClient } from "../support/http.ts";
import { until } from "../support/until.ts";
import { given } from "../support/use-relay.ts";
import { conformingRelay } from "./conforming.ts";
import {
  ACCEPTED_ENVELOPE,
  ACCEPTED_SESSION,
  FEEDBACK_ACK,
  FEEDBACK_PATHS,
  type Promised,
  RATE_LIMITED,
  READS,
} from "./spec-tables.ts";

const relay = conformingRelay("alice", "bob");
const http = new HttpClient();
const REQUEST = { from: "agent://alice", to: "agent://bob" };
let sessionId: string;
const pod = given(() => relay.startWhole());
beforeAll(() => relay.online(pod, "bob"));

const send = (path: string, body: object) => http.post(pod.url + path, body, relay.credentials("alice"));

/** The fields of `names` that `body` lacks. */
function missing(body: unknown, names: readonly string[]): string[] {
  return names.filter((name) => !has(body, name.split(".")));
}

function has(value: unknown, [step, ...rest]: readonly string[]): boolean {
  if (step === undefined) return true;
  const name = step.replace("[]", "");
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, name)) return false;
  const member = (value as Record<string, unknown>)[name];
  if (!step.endsWith("[]")) return has(member, rest);
  return Array.isArray(member) && member.length > 0 && member.every((element) => has(element, rest));
}

describe("the gateway", () => {
  test("answers a send and a session request 202 with every promised field", async () => {
    const sent = await send("/v1/messages/send", { ...REQUEST, message: "Hello." });
    expect([sent.status, missing(sent.body, ACCEPTED_ENVELOPE)]).toEqual([202, []]);
    const asked = await send("/v1/sessions/request", { ...REQUEST, purpose: "To talk.", ttl_minutes: 5 });
    expect([asked.status, missing(asked.body, ACCEPTED_SESSION)]).toEqual([202, []]);
    sessionId = asked.body.session_id;
  });

  test("finds the session that it answered with", async () => {
    const { status, body } = await http.get(`${pod.url}/sessions/${sessionId}`);
    expect([status, body.session_id]).toEqual([200, sessionId]);
  });

  test.each(FEEDBACK_PATHS)("takes feedback at %s", async (path) => {
    const { status, body } = await http.post(pod.url + path, { sentiment: "blocked", category: "connector_not_seen" });
    expect([status, missing(body, FEEDBACK_ACK)]).toEqual([202, []]);
    expect(body).toMatchObject({ ok: true, stored: "aggregate_only", raw_message_stored: false });
  });

  test("passes a well-signed envelope in the self-test, and gives a hint on others", async () => {
    const good = await http.post(`${pod.url}/api/self-test`, relay.envelope("alice", "agent.register"));
    expect([good.status, good.body.stage]).toEqual([200, "pass"]);
    const bad = await http.post(`${pod.url}/api/self-test`, relay.envelope("alice", "agent.register", { ts: 1 }));
    expect([bad.status, typeof bad.body.hint]).toEqual([400, "string"]);
  });

  test.each(["/v1/messages/send", "/v1/sessions/request"])(
    "refuses at %s with the contract's statuses",
    async (path) => {
      expect((await http.post(pod.url + path, REQUEST)).status).toBe(401);
      expect((await send(path, REQUEST)).status).toBe(400);
      let answer = await send(path, REQUEST);
      while (answer.status === 400) answer = await send(path, REQUEST);
      expect([answer.status, missing(answer.body, RATE_LIMITED)]).toEqual([429, []]);
      expect(Number(answer.headers.get("retry-after"))).toBe(answer.body.retry_after_seconds);
    },
  );

  test("asks check-online for an agent id", async () => {
    expect((await http.get(`${pod.url}/api/onboarding/check-online`)).status).toBe(400);
  });
});

/** A report may be half a second behind what was acknowledged. */
const READ_PATHS = READS.flatMap((row) => [row.path, ...(row.aliases ?? [])].map((path) => [path, row] as const));

describe("a read", () => {
  beforeAll(async () => {
    await until("the window has counted what was sent", async () => {
      const { body } = await http.get(`${pod.url}/api/ops/traffic-daily`);
      return body.totals.surface_views > 0 && body.recent_session_proofs.length > 0;
    });
  });

  test.each(READ_PATHS)("of %s answers 200 with every promised field", async (path, { media, fields }: Promised) => {
    const response = await fetch(pod.url + path);
    const text = await response.text();
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toMatch(new RegExp(`^${media ?? "application/json"}`));
    if (media === undefined) expect(missing(JSON.parse(text), fields)).toEqual([]);
    else expect(text.length).toBeGreaterThan(10);
  });

  test.each(READ_PATHS)("of %s is kept by no cache, unless it is for crawlers or stays the same", async (path) => {
    const { headers } = await fetch(pod.url + path);
    const isForCrawlers = path === "/robots.txt" || path === "/sitemap.xml";
    // Runtime metadata is no-store; these four are static, tell nothing of the running relay, and caches must ask again.
    const isStatic = /llms\.txt$|openapi\.json$|asyncapi\.json$|relay-manifest\.json$/.test(path);
    const expected = isForCrawlers ? /^public/ : isStatic ? /^no-cache$/ : /^no-store$/;
    expect(headers.get("cache-control")).toMatch(expected);
  });
});
