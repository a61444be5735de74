import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { Connectors } from "relay-protocol/contract/packages.ts";
import type { Surface } from "relay-protocol/contract/surface.ts";
import { SURFACES, type SurfaceId, serviceOf } from "relay-protocol/contract/surfaces.ts";
import { AgentSocket, ed25519Key, type Frame, signed } from "../../support/agent.ts";
import { seriesIn } from "../../support/http.ts";
import { until } from "../../support/until.ts";
import { ComposeStack, LASTING, logOf, readInside } from "./stack.ts";

/** Words that stand in secrets only. */
const MARKS = {
  payload: "markpayloadmark",
  userAgent: "markagentmark",
  query: "markquerymark",
  wrongKey: "rk_markwrongkeymark",
  forwarded: "203.0.113.77",
};
const METRICS = "9090/metrics";
const FAILED_KEYS_PER_MINUTE = 60;
const stack = new ComposeStack();
let agents: Frame;
let bob: AgentSocket;
let sessionId: string;
/** One package of the images. */
let handedOut: Connectors["packages"][number];
const signatures: string[] = [];

beforeAll(async () => {
  await stack.clone();
  await stack.deploy();
  agents = await stack.developmentAgents();
  bob = await AgentSocket.open(stack.websocketUrl);
  await bob.ask(envelopeOfBob("agent.register"));
  const answer = await request("POST", "/v1/sessions/request", bodies().requestSession);
  sessionId = ((await answer.json()) as Frame).session_id;
  const { packages } = Connectors.parse(await (await request("GET", "/connectors")).json());
  handedOut = packages[0] as typeof handedOut;
}, 300_000);
afterAll(() => stack.stop(), 60_000);

const targets = Object.entries(SURFACES).flatMap(([id, surface]: [string, Surface]) =>
  [surface.path, ...surface.aliases].map((path) => ({ id: id as SurfaceId, path, surface })),
);

describe("through the edge", () => {
  test.each(targets)("$surface.method $path is answered, and by the service of the catalogue", async (target) => {
    const { id, surface } = target;
    const service = serviceOf(surface.method, target.path);
    // No agent here has a credential: all keys are listed.
    const isAbsent = id === "readCredential";
    const status = isAbsent ? 404 : surface.status;
    const before = await answersOf(service, id, status);
    const path = target.path
      .replace("{session_id}", sessionId)
      .replace("{name}", "alice")
      .replace("/packages/{file}", handedOut.path);
    const query = id === "checkOnline" ? "?agent_id=agent://bob" : "";
    const answer = await request(surface.method, path + query, bodies()[id]);
    expect({ status: answer.status, type: answer.headers.get("content-type")?.split(";")[0] }).toEqual({
      status,
      type: isAbsent ? "application/problem+json" : id === "packageFile" ? handedOut.media : surface.media,
    });
    expect(await answersOf(service, id, status)).toBeGreaterThan(before);
  });

  test.each(["/ws", "/relay"])("a websocket opens at %s", async (path) => {
    const socket = await AgentSocket.open(stack.url.replace("http", "ws") + path);
    expect(socket.connectionId).toMatch(/^con_/);
    await socket.close();
  });

  test("what is unknown gets the problem document of a service", async () => {
    for (const [method, path] of [
      ["GET", `/nothing?${MARKS.query}`],
      ["POST", "/api/nothing"],
      ["GET", "/api/ops/nothing"],
      ["GET", "/api/public/nothing"],
      ["POST", "/api/public/nothing"],
      ["GET", "/ws/nothing"],
    ] as const) {
      const answer = await request(method, path, method === "POST" ? {} : undefined);
      expect([answer.status, answer.headers.get("content-type")]).toEqual([404, "application/problem+json"]);
      expect(await answer.json()).toMatchObject({ code: "not_found" });
    }
  });

  test("a forged X-Forwarded-For does not become the client's address", async () => {
    const guess = async (n: number) => {
      const headers = { "x-api-key": MARKS.wrongKey, "x-forwarded-for": `198.51.100.${n}` };
      return (await request("POST", "/v1/messages/send", {}, headers)).status;
    };
    const statuses = await Promise.all(Array.from({ length: FAILED_KEYS_PER_MINUTE + 5 }, (_, n) => guess(n)));
    expect(new Set(statuses)).toEqual(new Set([401, 429]));
  });

  test("while no gateway runs, the answer is `unavailable`; it comes back by itself", async () => {
    const gateway = await stack.container("gateway");
    await gateway.stop();
    const answer = await request("GET", `/ready?${MARKS.query}`);
    expect([answer.status, answer.headers.get("content-type")]).toEqual([503, "application/problem+json"]);
    expect(answer.headers.get("retry-after")).toBe("1");
    expect(await answer.json()).toMatchObject({ code: "unavailable", ok: false });
    expect((await request("GET", "/api/ops/traffic-daily")).status).toBe(200);
    expect(bob.closed).toBeUndefined();

    await gateway.start();
    await until("the gateway is back", async () => (await request("GET", "/ready")).status === 200);
  }, 60_000);
});

test("no container logs a key, a payload, a signature or an address, whatever was sent", async () => {
  await request("POST", "/v1/messages/send", `{"message":"${MARKS.payload}`);
  await request("POST", "/v1/messages/send", { ...bodies().sendMessage, [MARKS.payload]: 1 });
  await bob.ask(envelopeOfBob("message.send", { to: "agent://absent", payload: { message: MARKS.payload } }));
  await bob.answerTo(`{"payload":"${MARKS.payload}`);
  const redis = await stack.container("redis");
  await redis.kill();
  expect(await bob.ask(envelopeOfBob("message.send", { to: "agent://bob" }))).toMatchObject({ code: "unavailable" });
  expect((await request("POST", "/v1/messages/send", bodies().sendMessage)).status).toBe(503);
  await redis.start();

  const { alice, bob: bobKey, api_key } = agents;
  const secrets = [...Object.values(MARKS), ...signatures, api_key, alice.private_key, bobKey.private_key];
  const addresses = await addressesOfClients();
  expect([signatures.length > 3, addresses.length]).toEqual([true, 2]);
  for (const container of await stack.containers()) {
    const log = await logOf(container);
    const { Name } = await container.inspect();
    const found = [...secrets, ...addresses].filter((secret) => log.includes(secret));
    expect({ Name, found }).toEqual({ Name, found: [] });
  }
  for (const service of LASTING.filter((name) => name !== "edge")) {
    expect(await logOf(await stack.container(service))).not.toBe("");
  }
}, 60_000);

/** How the edge sees the tests, and the services the edge. */
async function addressesOfClients(): Promise<string[]> {
  const { NetworkSettings } = await (await stack.container("edge")).inspect();
  return Object.values(NetworkSettings.Networks).flatMap(({ Gateway, IPAddress }) => [Gateway, IPAddress]);
}

/** How often a service has answered a surface so. */
async function answersOf(service: "gateway" | "ops-reporting", surface: string, status: number): Promise<number> {
  const text = await readInside(await stack.container(service), METRICS);
  return seriesIn(text).value("relay_http_requests_total", { surface, status: String(status) }) ?? 0;
}

function bodies(): Partial<Record<SurfaceId, object>> {
  const { from, to } = { from: agents.alice.agent_id, to: agents.bob.agent_id };
  const { private_key, key_id } = agents.alice;
  const selfTest = signed(ed25519Key(key_id, private_key), { type: "message.send", from, to });
  return {
    sendMessage: { from, to, message: MARKS.payload },
    requestSession: { from, to, purpose: MARKS.payload },
    submitFeedback: { message: MARKS.payload },
    selfTest: noted(selfTest),
  };
}

function envelopeOfBob(type: string, fields: { readonly [name: string]: unknown } = {}): Frame {
  const { agent_id, key_id, private_key } = agents.bob;
  return noted(signed(ed25519Key(key_id, private_key), { type, from: agent_id, ...fields }));
}

function noted(envelope: Frame): Frame {
  signatures.push(envelope.sig);
  return envelope;
}

async function request(
  method: string,
  path: string,
  body?: object | string,
  headers: Record<string, string> = {},
): Promise<Response> {
  const apiKey = agents.api_key;
  return await fetch(stack.url + path, {
    method,
    headers: {
      "user-agent": MARKS.userAgent,
      "x-forwarded-for": MARKS.forwarded,
      ...(body === undefined ? {} : { "content-type": "application/json", "x-api-key": apiKey }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
}
