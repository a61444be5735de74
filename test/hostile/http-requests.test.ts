import { gzipSync } from "node:zlib";
import { beforeAll, describe, expect, test } from "@jest/globals";
import type { Surface } from "relay-protocol/contract/surface.ts";
import { SURFACES } from "relay-protocol/contract/surfaces.ts";
import { ERRORS } from "relay-protocol/wire/errors.ts";
import { fc } from "../support/fast-check.ts";
import { badJson, badValue } from "./support/envelopes.ts";
import { answersTo, type RawAnswer, request } from "./support/raw-http.ts";
import { type AttackedService, MARK, MARKED_NAME, relayUnderAttack } from "./support/under-attack.ts";

/** Each API key has thirty requests a minute on each endpoint. */
const NAMES = Array.from({ length: 12 }, (_, n) => `alice-${n}`);
const { relay, start } = relayUnderAttack(...NAMES);
const JSON_TYPE = "Content-Type: application/json";
const all: readonly Surface[] = Object.values(SURFACES);
const POSTS = all.filter(({ method }) => method === "POST");
let gateway: AttackedService;
let reports: AttackedService;

beforeAll(async () => {
  gateway = await start("gateway", { RELAY_PUBLIC_REQUESTS_PER_MINUTE: "0" });
  reports = await start("ops-reporting");
  for (const surface of all)
    for (const pod of servicesOf(surface)) await ask(pod, request(surface.method, pathOf(surface)));
  for (let n = 0; n < 10; n += 1) for (const surface of POSTS) await post(surface, "{}");
  await Promise.all([gateway.remember(), reports.remember()]);
});

function servicesOf({ service }: Surface): AttackedService[] {
  if (service === "each") return [gateway, reports];
  return service === "gateway" ? [gateway] : [reports];
}
const pathOf = (surface: Surface) => surface.path.replace(/\{\w+\}/g, `ses_00${"0".repeat(24)}`);

/** The one answer to one request, which ends its connection; nothing of what was sent is in it. */
async function ask({ port }: AttackedService, bytes: Uint8Array): Promise<RawAnswer> {
  const answers = await answersTo(port, bytes);
  expect(answers).toHaveLength(1);
  const [answer] = answers as [RawAnswer];
  expect(answer.head + answer.text).not.toContain(MARK);
  return answer;
}

let posted = 0;

/** A POST with an API key of its own sender. */
async function post(
  surface: Surface,
  body: string | Uint8Array,
  fields: readonly string[] = [JSON_TYPE],
): Promise<RawAnswer> {
  posted += 1;
  const key = relay.keys.apiKeys.get(NAMES[posted % NAMES.length] as string);
  return await ask(gateway, request("POST", surface.path, { fields: [...fields, `x-api-key: ${key}`], body }));
}

/** A good body of the sender whose key the next post has. */
function goodBody(surface: Surface): Record<string, unknown> {
  const name = NAMES[(posted + 1) % NAMES.length] as string;
  const ends = { from: `agent://${name}`, to: "agent://bob" };
  if (surface.path === "/v1/messages/send") return { ...ends, message: "hi", type: "message.send" };
  if (surface.path === "/v1/sessions/request") return { ...ends, purpose: "to talk", ttl_minutes: 5, intro: "i" };
  if (surface.path === "/api/self-test") return relay.envelope(name, "message.send", { to: "agent://bob" });
  return { surface: "llms.txt", sentiment: "positive", category: "other", message: "hi" };
}

/** The surface's own answer, or a refusal that the catalogue lists for it. */
function expectOfCatalogue(surface: Surface, { status, head, text }: RawAnswer): void {
  if (status === surface.status) return;
  const problem = JSON.parse(text);
  expect(surface.errors).toContain(problem.code);
  expectProblem({ status, head, text }, problem.code);
}

function expectProblem({ status, head, text }: RawAnswer, code: keyof typeof ERRORS): void {
  expect(head).toMatch(/^content-type: application\/problem\+json/im);
  expect(JSON.parse(text)).toMatchObject({ ok: false, code, status: ERRORS[code].httpStatus });
  expect(status).toBe(ERRORS[code].httpStatus);
}

describe.each(POSTS.map((surface) => [surface.path, surface] as const))("POST %s", (_path, surface) => {
  test("answers any JSON as the catalogue has it", async () => {
    const property = fc.asyncProperty(fc.oneof(fc.json({ stringUnit: "binary" }), badJson), async (text) => {
      expectOfCatalogue(surface, await post(surface, text));
    });
    await fc.assert(property, { numRuns: 60 });
  });

  test("answers a body with any field made another as the catalogue has it", async () => {
    const fields = fc.constantFrom(...Object.keys(goodBody(surface)), "constructor", "toJSON", MARKED_NAME, "api_key");
    const property = fc.asyncProperty(fields, badValue, async (field, value) => {
      expectOfCatalogue(surface, await post(surface, JSON.stringify({ ...goodBody(surface), [field]: value })));
    });
    await fc.assert(property, { numRuns: 60 });
  });

  test("answers a body with any field spelled as JSON should not be, as the catalogue has it", async () => {
    const fields = fc.constantFrom(...Object.keys(goodBody(surface)), "__proto__", MARKED_NAME);
    const property = fc.asyncProperty(fields, badJson, async (field, text) => {
      const members = Object.entries(goodBody(surface)).map(([name, value]) => `"${name}":${JSON.stringify(value)}`);
      expectOfCatalogue(surface, await post(surface, `{${members.join(",")},"${field}":${text}}`));
    });
    await fc.assert(property, { numRuns: 40 });
  });

  test("answers any bytes as the catalogue has it", async () => {
    const property = fc.asyncProperty(fc.uint8Array({ maxLength: 200 }), async (bytes) => {
      expectOfCatalogue(surface, await post(surface, bytes));
    });
    await fc.assert(property, { numRuns: 30 });
  });

  test("never unpacks a body: a bomb, a broken one and a good one are refused alike", async () => {
    const bomb = gzipSync(Buffer.alloc(30_000_000));
    for (const body of [bomb.subarray(0, 30_000), bomb.subarray(0, 100), gzipSync(JSON.stringify(goodBody(surface)))]) {
      for (const coding of ["gzip", "x-gzip", "GZIP", "deflate", "br", "zstd", "gzip, gzip", "identity, gzip", MARK]) {
        const answer = await ask(
          gateway,
          request("POST", surface.path, { body, fields: [JSON_TYPE, `Content-Encoding: ${coding}`] }),
        );
        expectProblem(answer, surface.apiKey ? "missing_api_key" : "unsupported_media_type");
      }
    }
    const answer = await post(surface, bomb.subarray(0, 30_000), [JSON_TYPE, "Content-Encoding: gzip"]);
    expectProblem(answer, "unsupported_media_type");
  });
});

describe("a path that climbs, repeats, hides or ends oddly", () => {
  const odd = (path: string) => [
    ...[`/.${path}`, `/x/..${path}`, `/%2e%2e${path}`, `/..%2f..${path}`, `/%2e${path}`, `//${path}`, `/${path}/`],
    ...[`${path}/`, `${path}/.`, `${path}%00`, `${path}%2f`, `${path};${MARK}`, `${path}%20`, `${path}.json`],
    ...[path.replaceAll("/", "%2f"), path.replaceAll("/", "//"), `${path}\\..\\`, `${path}#${MARK}`],
    ...[`${path}/../../../../etc/passwd`, `${path}/..%5c..%5cetc`, `${path}\u00a0`, `/${MARK}${path}`, `*`],
  ];

  test("leads nowhere on any surface: 404, or 400 where it is no target", async () => {
    for (const surface of all) {
      const [pod] = servicesOf(surface) as [AttackedService];
      for (const path of pathOf(surface) === "/" ? [] : odd(pathOf(surface))) {
        const answer = await ask(pod, request(surface.method, path));
        expect([path, [400, 404].includes(answer.status)]).toEqual([path, true]);
        expect(answer.head).toMatch(/^content-type: application\/problem\+json/im);
      }
    }
  });

  test("is a session that nobody knows where it stands for one", async () => {
    for (const id of [
      "%2e%2e",
      "..%2f..%2fhealth",
      "%00",
      "%zz",
      "%c0%af",
      "*",
      "{0}",
      ":",
      MARK,
      "x".repeat(8000),
      "%0d%0aX:%20y",
    ]) {
      expectProblem(await ask(gateway, request("GET", `/sessions/${id}`)), "unknown_session");
    }
  });
});

const FORGED = [
  ...["Host", "X-Forwarded-Host", "X-Host", "X-Forwarded-Server", "X-Original-URL", "X-Rewrite-URL", "Referer"],
  ...["X-Forwarded-For", "X-Real-IP", "True-Client-IP", "CF-Connecting-IP", "Forwarded", "Via", "User-Agent"],
  ...["X-Forwarded-Proto", "X-Forwarded-Prefix", "X-HTTP-Method-Override", "Origin", "Cookie", "Authorization"],
  ...["__proto__", "constructor", "toString", "hasOwnProperty", "x-api-key", "idempotency-key", "Accept", "Range"],
].map((name) => `${name}: ${MARK}.example`);

test("No surface believes or repeats anything that a client's header fields say", async () => {
  for (const surface of all.filter(({ method }) => method === "GET")) {
    for (const pod of servicesOf(surface)) {
      const forged = `GET ${pathOf(surface)} HTTP/1.1\r\nConnection: close\r\n${FORGED.join("\r\n")}\r\n\r\n`;
      const [plain, answer] = [await ask(pod, request("GET", pathOf(surface))), await ask(pod, Buffer.from(forged))];
      expect([surface.path, answer.status]).toEqual([surface.path, plain.status]);
    }
  }
});

test("A target in absolute form is the same surface, whatever host it names", async () => {
  for (const pod of [gateway, reports]) {
    for (const host of ["relay", `${MARK}.example`, `user:${MARK}@x`, "169.254.169.254", "[::1]:99"]) {
      expect((await ask(pod, request("GET", `http://${host}/health`))).status).toBe(200);
      expect((await ask(pod, request("GET", `HTTPS://${host}/nowhere`))).status).toBe(404);
    }
    for (const target of [
      `file:///etc/passwd`,
      `ftp://x/health`,
      `//${MARK}/health`,
      "http:///health",
      "javascript:x",
    ]) {
      expect([target, [400, 404].includes((await ask(pod, request("GET", target))).status)]).toEqual([target, true]);
    }
  }
});

test("Any query is answered as the catalogue has it, and never repeated", async () => {
  const reads = all.filter(({ method, query }) => method === "GET" && query !== null);
  const pieces = fc.oneof(
    fc.constantFrom(
      "agent_id",
      "target_agent_id",
      "=",
      "&",
      "agent://",
      "%00",
      "%zz",
      "%F0%9F",
      "[]",
      "__proto__",
      MARKED_NAME,
    ),
    fc.string({ maxLength: 10 }).map(encodeURIComponent),
  );
  const property = fc.asyncProperty(
    fc.constantFrom(...reads),
    fc.array(pieces, { maxLength: 12 }),
    async (surface, query) => {
      const [pod] = servicesOf(surface) as [AttackedService];
      expectOfCatalogue(surface, await ask(pod, request("GET", `${surface.path}?${query.join("")}`)));
    },
  );
  await fc.assert(property, { numRuns: 150 });
});

test("Methods that a path does not take are refused, those included that no surface takes", async () => {
  const methods = [
    "PUT",
    "DELETE",
    "PATCH",
    "TRACE",
    "PROPFIND",
    "MKCOL",
    "SEARCH",
    "QUERY",
    "PURGE",
    "M-SEARCH",
    "LINK",
  ];
  for (const pod of [gateway, reports]) {
    for (const method of methods) {
      expectProblem(await ask(pod, request(method, "/health", { body: MARK })), "method_not_allowed");
      expectProblem(await ask(pod, request(method, "/nowhere", { body: MARK })), "not_found");
    }
  }
});
