import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { get, type IncomingMessage } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { ServiceError } from "relay-protocol/contract/refusals.ts";
import { z } from "zod";
import { freePort } from "../../../../test/support/free-port.ts";
import { temporaryFolder } from "../../../../test/support/temporary-folder.ts";
import { watchLeaks } from "../../../../test/support/until.ts";
import { AdminKey } from "../../src/admin/admin-key.ts";
import { AdminError, AdminServer, adminRoute } from "../../src/admin/admin-server.ts";
import { createLogger } from "../../src/logging.ts";

const KEY = "k".repeat(32);
const noLeaks = watchLeaks();
const log: string[] = [];
const logger = createLogger({ service: "test", level: "debug" }, { write: (line: string) => void log.push(line) });

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let server: AdminServer;
let url: string;
let refused = 0;

beforeAll(async () => {
  folder = await temporaryFolder();
  const path = join(folder.path, "admin.key");
  await writeFile(path, KEY, { mode: 0o600 });
  const port = await freePort();
  url = `http://127.0.0.1:${port}`;
  server = new AdminServer({
    ...{ host: "127.0.0.1", port, logger },
    key: new AdminKey({ path, logger }),
    routes: [
      adminRoute("GET", "/admin/echo", z.strictObject({ word: z.string() }), ({ word }) => ({ word })),
      adminRoute("POST", "/admin/do", z.strictObject({ what: z.string() }), ({ what }) => ({ what })),
      adminRoute("GET", "/admin/none", z.strictObject({}), () => {
        throw new AdminError("not_connected");
      }),
      adminRoute("GET", "/admin/away", z.strictObject({}), () => {
        throw new ServiceError("unavailable");
      }),
      adminRoute("GET", "/admin/broken", z.strictObject({}), () => {
        throw new Error("a secret of the relay's");
      }),
    ],
    refused: () => {
      refused += 1;
    },
  });
  await server.start();
});
afterAll(async () => {
  await server.stop();
  await folder[Symbol.asyncDispose]();
  await noLeaks();
});
beforeEach(() => {
  refused = 0;
});

const WITH_KEY = { authorization: `Bearer ${KEY}` };
async function ask(path: string, init: RequestInit = {}) {
  const response = await fetch(`${url}${path}`, { headers: WITH_KEY, ...init });
  const text = await response.text();
  return { status: response.status, headers: response.headers, text, body: text === "" ? undefined : JSON.parse(text) };
}
/** On a connection of its own. */
async function statusWithKey(path: string): Promise<number | undefined> {
  const request = get(`${url}${path}`, { agent: false, headers: WITH_KEY });
  const [response] = (await once(request, "response")) as [IncomingMessage];
  response.resume();
  await once(response, "end");
  return response.statusCode;
}
const post = (path: string, body: string, headers: Record<string, string> = {}) =>
  ask(path, { method: "POST", body, headers: { ...WITH_KEY, "content-type": "application/json", ...headers } });

describe("Without the key, or with another one,", () => {
  test("every request has the same answer, whatever path and method it asks for, and is counted", async () => {
    const answers = await Promise.all([
      ask("/admin/echo?word=x", { headers: {} }),
      ask("/admin/nothing", { headers: {} }),
      ask("/", { headers: { authorization: `Bearer ${"x".repeat(32)}` } }),
      post("/admin/do", '{"what":"x"}', { authorization: "" }),
      ask("/admin/do", { method: "OPTIONS", headers: { origin: "https://evil.example" } }),
    ]);
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
    for (const { status, headers, body } of answers) {
      expect([status, headers.get("www-authenticate")]).toEqual([401, 'Bearer realm="agent-relay admin"']);
      expect(headers.get("content-type")).toMatch(/^application\/problem\+json/);
      expect([headers.get("cache-control"), headers.get("access-control-allow-origin")]).toEqual(["no-store", null]);
      expect(body).toMatchObject({ status: 401, code: "unauthorized", ok: false });
    }
    expect(refused).toBe(answers.length);
  });

  test("a request has its connection to itself, so that whoever has the key is answered beside any number of them", async () => {
    let isOver = false;
    const closed: (string | null)[] = [];
    const stranger = async () => {
      while (!isOver) {
        const answer = await ask("/", { headers: {} }).catch(() => undefined);
        if (answer !== undefined) closed.push(answer.headers.get("connection"));
      }
    };
    const strangers = Array.from({ length: 40 }, stranger);
    for (let n = 0; n < 20; n += 1) expect(await statusWithKey("/admin/echo?word=x")).toBe(200);
    isOver = true;
    await Promise.all(strangers);
    expect(new Set(closed)).toEqual(new Set(["close"]));
  });
});

describe("With the key", () => {
  test("a route answers what it is asked, uncached, and for no page", async () => {
    const { status, headers, body } = await ask("/admin/echo?word=x");
    expect([status, body, headers.get("cache-control")]).toEqual([200, { word: "x" }, "no-store"]);
    expect(headers.get("access-control-allow-origin")).toBeNull();
    expect((await post("/admin/do", '{"what":"y"}')).body).toEqual({ what: "y" });
    expect(refused).toBe(0);
  });

  test("what is wrong with a request is said in a problem document, without what was sent", async () => {
    const sent = "rk_what-was-sent";
    const refusals = [
      [await ask(`/admin/echo?${sent}=1`), 400, "invalid_request"],
      [await ask(`/admin/echo?word=${sent}&word=${sent}`), 400, "invalid_request"],
      [await post("/admin/do", `{"what":"${sent}`), 400, "malformed_json"],
      [await post("/admin/do", "{}", { "content-type": "text/plain" }), 415, "unsupported_media_type"],
      [await post("/admin/do", `{"what":"${"x".repeat(40_000)}"}`), 413, "body_too_large"],
      [await ask(`/admin/${sent}`), 404, "not_found"],
      [await ask("/admin/do"), 405, "method_not_allowed"],
      [await ask("/admin/none"), 404, "not_connected"],
      [await ask("/admin/away"), 503, "unavailable"],
    ] as const;
    for (const [answer, status, code] of refusals) {
      expect([answer.status, answer.body.code, answer.body.status]).toEqual([status, code, status]);
      expect(answer.headers.get("content-type")).toMatch(/^application\/problem\+json/);
      expect([answer.headers.get("cache-control"), answer.text.includes(sent)]).toEqual(["no-store", false]);
    }
    expect((await ask("/admin/do")).headers.get("allow")).toBe("POST");
  });

  test("a fault is told in the log, not to who asks, and no key is", async () => {
    const { status, text } = await ask("/admin/broken");
    expect([status, text.includes("secret")]).toEqual([500, false]);
    expect(log.join("")).toContain("admin request failed");
    expect(log.join("")).not.toContain(KEY);
  });
});
