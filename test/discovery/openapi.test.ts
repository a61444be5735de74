import { ERRORS } from "@agent-relay/shared/contract/errors.ts";
import type { Surface } from "@agent-relay/shared/contract/surface.ts";
import { SURFACES, type SurfaceId } from "@agent-relay/shared/contract/surfaces.ts";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { type Pod, TestRelay } from "../support/relay.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { put, run } from "./programs.ts";

const relay = new TestRelay();
let pod: Pod;
let text: string;
// biome-ignore lint/suspicious/noExplicitAny: the document is what is tested.
let document: any;

beforeAll(async () => {
  await relay.start();
  pod = await relay.startGateway({ RELAY_BASE_URL: "https://relay.example" });
  text = await (await fetch(`${pod.url}/openapi.json`)).text();
  document = JSON.parse(text);
});
afterAll(() => relay.stop());

const CATALOGUE = Object.entries(SURFACES) as unknown as [SurfaceId, Surface][];
const PLACES = CATALOGUE.flatMap(([id, surface]) =>
  [surface.path, ...surface.aliases].map((path) => [surface.method, path, id, surface] as const),
);
const operationAt = (method: string, path: string) => document.paths[path][method.toLowerCase()];

test("The document says what it is and where the relay is", () => {
  expect(document).toMatchObject({
    openapi: "3.1.0",
    info: { version: "1.0.0" },
    servers: [{ url: "https://relay.example" }],
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

  test("asks for an API key where one is needed, and only there", () => {
    expect(operationAt(method, path).security).toEqual(surface.apiKey ? [{ apiKey: [] }] : undefined);
  });

  test("has examples that its schemas take", () => {
    const { requestBody, responses, parameters = [] } = operationAt(method, path);
    const contents = [requestBody, ...Object.values(responses)].flatMap((part) => Object.values(part?.content ?? {}));
    for (const { schema, examples } of contents as { schema: object; examples: Record<string, object> }[]) {
      expect(Object.keys(examples)).not.toEqual([]);
      for (const example of Object.values(examples)) expect(faultsOf(schema, exampleValue(example))).toEqual([]);
    }
    for (const { schema, example } of parameters) {
      if (example !== undefined) expect(faultsOf(schema, example)).toEqual([]);
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
    const examples = Object.values<{ value: unknown }>(
      operationAt(method, path).responses[status].content[media].examples,
    );
    for (const { value } of examples) expect(response.safeParse(value).error).toBeUndefined();
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

test("Redocly finds no error in it", async () => {
  await using folder = await temporaryFolder();
  const name = await put(folder.path, "openapi.json", text);
  const { totals } = JSON.parse(await run("redocly", ["lint", "--format", "json", name], folder.path));
  expect(totals.errors).toBe(0);
});

test("A client generated from it compiles, and knows requests and answers", async () => {
  await using folder = await temporaryFolder();
  const name = await put(folder.path, "openapi.json", text);
  await run("openapi-typescript", [name, "-o", "relay.ts"], folder.path);
  await put(folder.path, "tsconfig.json", JSON.stringify({ compilerOptions: COMPILER_OPTIONS, files: ["client.ts"] }));
  await put(folder.path, "client.ts", CLIENT);
  await run("tsc", [], folder.path);
  await put(folder.path, "client.ts", CLIENT.replace("purpose:", "purpoze:"));
  await expect(run("tsc", [], folder.path)).rejects.toMatchObject({ stdout: expect.stringContaining("purpoze") });
});

const COMPILER_OPTIONS = { strict: true, noEmit: true, module: "esnext", moduleResolution: "bundler", types: [] };

const CLIENT = `
import type { operations } from "./relay";
type Ask = operations["requestSession"];
export const body: Ask["requestBody"]["content"]["application/json"] = { from: "agent://alice", to: "agent://bob", purpose: "p" };
export const delivered = (answer: Ask["responses"][202]["content"]["application/json"]): boolean =>
  answer.target_delivery.can_deliver_realtime;
`;

const ajv = addFormats.default(new Ajv2020({ strict: false, allErrors: true }));

/** What is wrong with a value, by a schema of the document. */
function faultsOf(schema: object, value: unknown): unknown[] {
  const { schemas } = document.components;
  const validate = ajv.compile({ ...schema, components: { schemas } });
  validate(value);
  return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
}

/** An example's value; a reference goes to the components. */
function exampleValue(example: { readonly value?: unknown; readonly $ref?: string }): unknown {
  if (example.$ref === undefined) return example.value;
  return document.components.examples[example.$ref.split("/").at(-1) as string].value;
}
