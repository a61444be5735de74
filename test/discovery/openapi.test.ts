import { beforeAll, describe, expect, test } from "@jest/globals";
import type { Surface } from "relay-protocol/contract/surface.ts";
import { SURFACES, type SurfaceId, surfaceLabelOf } from "relay-protocol/contract/surfaces.ts";
import { ERRORS } from "relay-protocol/wire/errors.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { given, useRelay } from "../support/use-relay.ts";
import { answerOf, OpenApi } from "./openapi.ts";
import { put, run } from "./programs.ts";

const relay = useRelay();
const pod = given(() => relay.startWhole());
let text: string;
// biome-ignore lint/suspicious/noExplicitAny: the document is what is tested.
let document: any;
let api: OpenApi;

beforeAll(async () => {
  // The relay closes a connection that is idle for 10 s, and most tests ask for nothing.
  text = await (await fetch(`${pod.url}/openapi.json`, { headers: { connection: "close" } })).text();
  document = JSON.parse(text);
  api = new OpenApi(document);
});

const CATALOGUE = Object.entries(SURFACES) as unknown as [SurfaceId, Surface][];
const PLACES = CATALOGUE.flatMap(([id, surface]) =>
  [surface.path, ...surface.aliases].map((path) => [surface.method, path, id, surface] as const),
);
const operationAt = (method: string, path: string) => api.operationAt(method, path);

/** The examples of one body, by value. */
function valuesOf(examples: object): unknown[] {
  return Object.values(examples).map((one) => api.resolved(one).value);
}

test("The document says what it is and where the relay is", () => {
  expect(document).toMatchObject({
    openapi: "3.1.0",
    info: { version: "1.0.0" },
    servers: [{ url: pod.url }],
    security: [],
  });
  expect(document.components.securitySchemes.apiKey).toMatchObject({ type: "apiKey", in: "header", name: "x-api-key" });
});

test("It holds every path and alias of the catalogue, and no other", () => {
  const operations = Object.entries<object>(document.paths).flatMap(([path, item]) =>
    Object.keys(item).map((method) => `${method.toUpperCase()} ${path}`),
  );
  expect(operations.sort()).toEqual(PLACES.map(([method, path]) => `${method} ${path}`).sort());
});

describe.each(PLACES)("%s %s", (method, path, id, surface) => {
  test("tells its id, tag, answer and every error of the catalogue", () => {
    const operation = operationAt(method, path);
    const isAlias = path !== surface.path;
    expect(isAlias ? operation["x-alias-of"] : operation.operationId).toBe(id);
    expect(operation.tags).toEqual([surface.group]);
    expect(operation.summary).toContain(surface.summary);
    expect(Object.keys(operation.responses[surface.status].content)).toEqual([surface.media]);
    if (id === "ready") return;
    for (const code of surface.errors) {
      const problem = operation.responses[String(ERRORS[code].httpStatus)].content["application/problem+json"];
      expect(problem.schema.allOf[1].properties.code.enum).toContain(code);
      expect(problem.examples[code]).toBeDefined();
    }
  });

  test("has one example of what is sent and one of the answer, by value and without stand-ins", () => {
    const { requestBody, responses } = operationAt(method, path);
    for (const part of [requestBody, responses[surface.status]].filter((one) => one !== undefined)) {
      const [{ examples }] = Object.values<{ examples: object }>(part.content) as [{ examples: object }];
      expect(valuesOf(examples)).toEqual([expect.anything()]);
      expect(JSON.stringify(examples)).not.toMatch(/"<\w+>"/);
    }
  });

  test("refers to its parameters and answers, and is deprecated where it is a legacy alias", () => {
    const { parameters = [], responses, deprecated } = document.paths[path][method.toLowerCase()];
    for (const part of [...parameters, ...Object.values(responses)]) expect(Object.keys(part)).toEqual(["$ref"]);
    expect(deprecated).toBe(["/api/feedback", "/api/feedback/summary"].includes(path) ? true : undefined);
  });

  test("asks for an API key where one is needed, and only there", () => {
    expect(operationAt(method, path).security).toEqual(surface.apiKey ? [{ apiKey: [] }] : undefined);
  });

  test("has examples that its schemas take", () => {
    const { requestBody, responses, parameters = [] } = operationAt(method, path);
    const contents = [requestBody, ...Object.values(responses)].flatMap((part) => Object.values(part?.content ?? {}));
    for (const { schema, examples = {} } of contents as { schema: object; examples?: Record<string, object> }[]) {
      for (const value of valuesOf(examples)) expect(api.faultsOf(schema, value)).toEqual([]);
    }
    for (const { schema, example } of parameters) {
      if (example !== undefined) expect(api.faultsOf(schema, example)).toEqual([]);
    }
  });
});

test.each(CATALOGUE.filter(([, { request }]) => request !== null))(
  "Request examples of %s are what the relay itself takes",
  (_id, { method, path, request }) => {
    const examples = Object.values<{ value: unknown }>(
      operationAt(method, path).requestBody.content["application/json"].examples,
    );
    for (const { value } of examples) expect(request?.safeParse(value).error).toBeUndefined();
  },
);

test.each(CATALOGUE)(
  "The answer examples of %s are what the relay itself would give",
  (_id, { method, path, response, status, media }) => {
    const { examples } = operationAt(method, path).responses[status].content[media];
    for (const value of valuesOf(examples)) expect(response.safeParse(value).error).toBeUndefined();
  },
);

test("Waits, rates and replays are told in headers", () => {
  for (const path of ["/v1/messages/send", "/v1/sessions/request"]) {
    const { responses, parameters } = operationAt("POST", path);
    expect(Object.keys(responses[202].headers)).toEqual(["RateLimit", "RateLimit-Policy", "Idempotent-Replayed"]);
    expect(Object.keys(responses[429].headers)).toContain("Retry-After");
    expect(Object.keys(responses[503].headers)).toContain("Retry-After");
    expect(parameters).toContainEqual(
      expect.objectContaining({ name: "Idempotency-Key", in: "header", required: false }),
    );
  }
});

test("No two requests share an Idempotency-Key by being printed with one", () => {
  const { schema, ...parameter } = document.components.parameters["header.Idempotency-Key"];
  for (const part of [schema, parameter]) expect(Object.keys(part).join()).not.toMatch(/example|default/);
});

test("A 304 and an ETag are told of the documents that answer so, and of no other", async () => {
  for (const { method, path, responses, parameters = [] } of api
    .operations()
    .filter(({ method }) => method === "get")) {
    const url = pod.url + path.replace(/\{\w+\}/, "none");
    const etag = (await answerOf(url)).headers.get("etag");
    const again = await answerOf(url, { headers: { "if-none-match": etag ?? "*" } });
    const { 304: notModified, 200: whole } = operationAt(method, path).responses;
    const tells = {
      status: Object.hasOwn(responses, 304),
      etag: [whole, notModified].every((one) => one?.headers?.ETag !== undefined),
      request: parameters.some((one: object) => api.resolved(one).name === "If-None-Match"),
    };
    const answers = again.status === 304;
    expect([path, tells]).toEqual([path, { status: answers, etag: answers, request: answers }]);
    expect([path, etag !== null]).toEqual([path, answers]);
  }
});

test("The labels of feedback that are counted stand in its schema, and any other is taken too", () => {
  const { category, sentiment, surface } = document.components.schemas.FeedbackRequest.properties;
  expect(category.anyOf[0].enum).toContain("spam_offer_or_abuse");
  expect(sentiment.anyOf[0].enum).toEqual(["helpful", "blocked", "neutral"]);
  for (const label of surface.anyOf[0].enum) expect(surfaceLabelOf(label)).toBe(label);
  for (const { operationId, "x-alias-of": main } of api.operations()) {
    expect(surface.anyOf[0].enum).toContain(main ?? operationId);
  }
  for (const schema of [category, sentiment, surface]) expect(api.faultsOf(schema, "of my own")).toEqual([]);
  const { value } =
    document.paths["/api/public/feedback"].post.requestBody.content["application/json"].examples.blocked;
  expect(surface.anyOf[0].enum).toContain(value.surface);
  expect(category.anyOf[0].enum).toContain(value.category);
  expect(sentiment.anyOf[0].enum).toContain(value.sentiment);
});

test("Redocly finds no error in it", async () => {
  await using folder = await temporaryFolder();
  const name = await put(folder.path, "openapi.json", text);
  const { totals } = JSON.parse(await run("redocly", ["lint", "--format", "json", name], folder.path));
  expect(totals.errors).toBe(0);
});

test("A client generated from it compiles, and knows requests and answers", async () => {
  await using folder = await temporaryFolder();
  // Nobody listens there: what a saved document says does not depend on whether its relay is in reach.
  const name = await put(folder.path, "openapi.json", text.replaceAll(pod.url, "http://127.0.0.1:1"));
  await run("openapi-typescript", [name, "-o", "relay.ts"], folder.path);
  await put(folder.path, "tsconfig.json", JSON.stringify({ compilerOptions: COMPILER_OPTIONS, files: ["client.ts"] }));
  await put(folder.path, "client.ts", CLIENT);
  await run("tsc", [], folder.path);
  await put(folder.path, "client.ts", CLIENT.replace("purpose:", "purpoze:"));
  await expect(run("tsc", [], folder.path)).rejects.toMatchObject({ stdout: expect.stringContaining("purpoze") });
}, 60_000);

const COMPILER_OPTIONS = { strict: true, noEmit: true, module: "esnext", moduleResolution: "bundler", types: [] };

const CLIENT = `
import type { operations } from "./relay";
type Ask = operations["requestSession"];
export const body: Ask["requestBody"]["content"]["application/json"] = { from: "agent://alice", to: "agent://bob", purpose: "p" };
export const delivered = (answer: Ask["responses"][202]["content"]["application/json"]): boolean =>
  answer.target_delivery.can_deliver_realtime;
`;
