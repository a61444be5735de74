import { readFile } from "node:fs/promises";
import { beforeAll, describe, expect, test } from "@jest/globals";
import type { Surface } from "relay-protocol/contract/surface.ts";
import { SURFACES, type SurfaceId } from "relay-protocol/contract/surfaces.ts";
import { type AgentKey, signed } from "../support/agent.ts";
import { rowsBetween } from "../support/documents.ts";
import { registerWith, TestIssuer } from "../support/issuer.ts";
import { connectorIn, madePackages } from "../support/packages.ts";
import { given, useRelay } from "../support/use-relay.ts";
import { type Answer, answerOf, membersOf, OpenApi } from "./openapi.ts";

/** Each request runs as openapi.json prints it, once it has what the marks beside it name, and nothing else. */

const protocol = await readFile(new URL("../../docs/protocol.md", import.meta.url), "utf8");
const relay = useRelay("alice", "bob");
const acme = new TestIssuer("acme");
const pod = given(async () => {
  await relay.writeKeys({ ...relay.keys.file, issuers: [acme.record(["agent://acme.*"])] });
  return await relay.startWhole();
});
let folder: string;
beforeAll(async () => {
  folder = await madePackages();
}, 60_000);
const withPackages = given(() => relay.startWhole({ RELAY_PACKAGES_DIR: folder }));
let api: OpenApi;
beforeAll(async () => {
  api = new OpenApi(await (await fetch(`${pod.url}/openapi.json`)).json());
});

interface Printed {
  readonly server: string;
  readonly path: string;
  readonly inPath: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, string>>;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: { readonly [name: string]: unknown } | undefined;
  readonly needs: readonly string[];
}

// biome-ignore lint/suspicious/noExplicitAny: what the document says has no type.
type Part = any;

/** What each mark lets a caller put in place of what is printed, or wait for. */
const SUPPLY: Readonly<Record<string, (printed: Printed) => Promise<Printed>>> = {
  api_key: async (printed) => ({ ...printed, headers: { ...printed.headers, ...relay.credentials("alice") } }),
  fresh_signature: async (printed) => {
    const { ts: _ts, key_id: _id, sig: _sig, ...rest } = printed.body as Record<string, unknown>;
    return { ...printed, body: signed(relay.keys.agents.get("alice") as AgentKey, rest) };
  },
  known_credential: async (printed) => {
    const socket = await relay.connect(pod);
    await socket.ask(registerWith(await acme.agent("agent://acme.bob"), new URL(pod.url).host));
    return { ...printed, inPath: { name: "acme.bob" } };
  },
  known_session: async (printed) => {
    const request = await supplied(printedAt("post", SURFACES.requestSession.path)[0] as Printed);
    const { session_id } = (await send(request)).body as { session_id: string };
    return { ...printed, inPath: { session_id } };
  },
  package: async (printed) => {
    const { file } = await connectorIn(folder);
    return { ...printed, server: withPackages.url, inPath: { file } };
  },
  target_online: async (printed) => {
    await relay.online(pod, "bob");
    return printed;
  },
};

async function supplied(printed: Printed, needs = printed.needs): Promise<Printed> {
  return await needs.reduce(
    async (before, need) => await (SUPPLY[need] as (one: Printed) => Promise<Printed>)(await before),
    Promise.resolve(printed),
  );
}

/** The requests of an operation, as printed. */
function printedAt(method: string, path: string): Printed[] {
  const { parameters = [], requestBody, "x-needs": ofOperation = [] } = api.operationAt(method, path);
  const named = (where: string): Record<string, string> =>
    Object.fromEntries(
      parameters.flatMap((one: Part) => (one.in === where && "example" in one ? [[one.name, one.example]] : [])),
    );
  const ofParameters = parameters.flatMap((one: Part) => one["x-needs"] ?? []);
  const bodies: Part[] = requestBody
    ? Object.values(requestBody.content["application/json"].examples)
    : [{ value: undefined }];
  return bodies.map(({ value, "x-needs": ofBody = [] }) => ({
    server: api.document.servers[0].url,
    path,
    inPath: named("path"),
    query: named("query"),
    method: method.toUpperCase(),
    headers: { ...named("header"), ...(value && { "content-type": "application/json" }) },
    body: value,
    needs: [...new Set<string>([...ofParameters, ...ofBody, ...ofOperation])],
  }));
}

const statusOf = (responses: object) => Object.keys(responses).find((status) => status.startsWith("2")) as string;
/** A recorded answer is of another moment: what it may have, its schema says. */
function writtenExamples(responses: Part): Part[] {
  const [{ examples }] = Object.values<Part>(responses[statusOf(responses)].content) as [Part];
  return Object.entries(examples).flatMap(([name, example]) => (name === "recorded" ? [] : [example]));
}

async function send({ server, path, inPath, query, method, headers, body }: Printed): Promise<Answer> {
  const url = server + path.replace(/\{(\w+)\}/g, (_, name) => inPath[name] as string);
  const search = new URLSearchParams(query).toString();
  return await answerOf(search === "" ? url : `${url}?${search}`, {
    method,
    headers,
    ...(body && { body: JSON.stringify(body) }),
  });
}

const CATALOGUE = Object.entries(SURFACES) as unknown as [SurfaceId, Surface][];
const PLACES = CATALOGUE.flatMap(([, { method, path, aliases }]) =>
  [path, ...aliases].map((at) => [method, at] as const),
);

describe.each(PLACES)("%s %s", (method, path) => {
  test("runs as it is printed, with what its marks name, and gives the answer it stands for", async () => {
    const { responses, security } = api.operationAt(method, path);
    const status = statusOf(responses);
    for (const printed of printedAt(method, path)) {
      expect(printed.needs.includes("api_key")).toBe(security !== undefined);
      const answer = await send(await supplied(printed));
      expect([answer.status, answer.headers.get("idempotent-replayed")]).toEqual([Number(status), null]);
      const [{ schema }] = Object.values<Part>(responses[status].content) as [Part];
      expect(api.faultsOf(schema, answer.body)).toEqual([]);
    }
  });

  test("does not run without what its marks name", async () => {
    const { responses } = api.operationAt(method, path);
    for (const printed of printedAt(method, path)) {
      for (const need of printed.needs) {
        const others = printed.needs.filter((one) => one !== need);
        const { status } = await send(await supplied(printed, others));
        expect([need, status]).not.toEqual([need, Number(statusOf(responses))]);
      }
    }
  });

  test("has in each answer that was written the members that the real one has", async () => {
    const { responses } = api.operationAt(method, path);
    for (const example of writtenExamples(responses)) {
      for (const printed of printedAt(method, path)) {
        const needs = [...new Set([...printed.needs, ...(example["x-needs"] ?? [])])];
        const answer = (await send(await supplied(printed, needs))).body;
        expect(membersOf(answer)).toEqual(membersOf(example.value));
      }
    }
  });
});

test("Every mark is one that the document explains, and that these tests supply", () => {
  const { needs } = api.document["x-examples"];
  const marks = [...JSON.stringify(api.document).matchAll(/"x-needs":(\[[^\]]*\])/g)].flatMap(([, list]) =>
    JSON.parse(list as string),
  );
  expect([...new Set(marks)].sort()).toEqual(Object.keys(needs).sort());
  expect(Object.keys(SUPPLY).sort()).toEqual(Object.keys(needs).sort());
  expect(rowsBetween(protocol, "needs").map(([mark]) => mark?.replaceAll("`", ""))).toEqual(Object.keys(needs));
});
