import { once } from "node:events";
import { readFile } from "node:fs/promises";
import http from "node:http";
import { beforeAll, describe, expect, test } from "@jest/globals";
import type { Surface } from "relay-protocol/contract/surface.ts";
import { SURFACES } from "relay-protocol/contract/surfaces.ts";
import { rowsBetween } from "../support/documents.ts";
import { madePackages } from "../support/packages.ts";
import { given, useRelay } from "../support/use-relay.ts";

/** Source: docs/protocol.md#discovery. With packages and a contact the documents are longest. */
const KB = 1024;
const LLMS_BYTES = 12 * KB;
const OPENAPI_BYTES = 260 * KB;
const OPENAPI_COMPRESSED_BYTES = 36 * KB;
const ASYNCAPI_BYTES = 60 * KB;
const ASYNCAPI_COMPRESSED_BYTES = 12 * KB;
const SESSION_REQUEST_GUIDE_BYTES = 8 * KB;
const GUIDE_BYTES = 6 * KB;
/** How far the table may be from what is measured. */
const TOLERANCE = 0.1;

const protocol = await readFile(new URL("../../docs/protocol.md", import.meta.url), "utf8");
const ROWS = rowsBetween(protocol, "sizes");

const relay = useRelay("bob");
let folder: string;
beforeAll(async () => {
  folder = await madePackages();
}, 60_000);
const pod = given(() =>
  relay.startWhole({
    RELAY_BASE_URL: "https://relay.agents.example",
    RELAY_WS_URL: "wss://relay.agents.example",
    RELAY_CONTACT: "mailto:operator@relay.agents.example",
    RELAY_PACKAGES_DIR: folder,
  }),
);

/** Bytes of a document on the wire; fetch would decode it. */
async function bytesOf(path: string, encoding = "identity"): Promise<number> {
  const request = http.request(pod.url + path, { headers: { "accept-encoding": encoding }, agent: false }).end();
  const [answer] = (await once(request, "response")) as [http.IncomingMessage];
  const length = Buffer.concat(await answer.toArray()).length;
  expect([path, answer.statusCode, answer.headers["content-encoding"] ?? "identity"]).toEqual([path, 200, encoding]);
  return length;
}

test("llms.txt is at most 12 KB", async () => {
  expect(await bytesOf(SURFACES.instructions.path)).toBeLessThanOrEqual(LLMS_BYTES);
});

test("openapi.json is at most 260 KB, and 36 KB compressed", async () => {
  const { path } = SURFACES.openapi;
  expect(await bytesOf(path)).toBeLessThanOrEqual(OPENAPI_BYTES);
  for (const encoding of ["gzip", "br"]) {
    expect(await bytesOf(path, encoding)).toBeLessThanOrEqual(OPENAPI_COMPRESSED_BYTES);
  }
});

describe.each((Object.values(SURFACES) as Surface[]).filter(({ group }) => group === "guides"))("$path", ({ path }) => {
  const most = path === SURFACES.sessionRequestGuide.path ? SESSION_REQUEST_GUIDE_BYTES : GUIDE_BYTES;
  const session = "ses_00000000000000000000000000";
  const longest = `agent://${"b".repeat(63)}`;

  test.each([
    "",
    "?target_agent_id=agent://bob",
    `?from=agent://alice&target_agent_id=agent://bob&session_id=${session}`,
    `?from=agent://${"a".repeat(63)}&target_agent_id=${longest}&session_id=${session}`,
  ])(`is at most ${most / KB} KB with the query %j`, async (query) => {
    expect(await bytesOf(path + query)).toBeLessThanOrEqual(most);
    await relay.online(pod, "bob");
    expect(await bytesOf(path + query)).toBeLessThanOrEqual(most);
  });
});

test("The table of sizes is within a tenth of what is served", async () => {
  const measured = await Promise.all(
    ROWS.map(async ([cell = ""]) => {
      const path = cell.replaceAll("`", "");
      return [path, ...(await Promise.all(["identity", "gzip", "br"].map((encoding) => bytesOf(path, encoding))))];
    }),
  );
  const isClose = (told: number, bytes: number) => Math.abs(told - bytes) <= bytes * TOLERANCE;
  const wrong = measured.filter((row, n) =>
    row.some((bytes, m) => m > 0 && !isClose(Number(ROWS[n]?.[m]), Number(bytes))),
  );
  // What is printed when it fails is what belongs into the table.
  expect(wrong.map(([path, ...bytes]) => `| \`${path}\` | ${bytes.join(" | ")} |`)).toEqual([]);
});

test("The table has every JSON document of discovery and every guide", () => {
  const documents = (Object.values(SURFACES) as Surface[]).filter(
    ({ group, media, path }) =>
      (group === "discovery" && media === "application/json") || group === "guides" || path === "/llms.txt",
  );
  const told = ROWS.map(([cell = ""]) => cell.replaceAll("`", "").replace(/\?.*/, ""));
  expect(told).toEqual(expect.arrayContaining(documents.map(({ path }) => path)));
});

test("asyncapi.json is at most 60 KB, and 12 KB compressed", async () => {
  const { path } = SURFACES.asyncapi;
  expect(await bytesOf(path)).toBeLessThanOrEqual(ASYNCAPI_BYTES);
  for (const encoding of ["gzip", "br"]) {
    expect(await bytesOf(path, encoding)).toBeLessThanOrEqual(ASYNCAPI_COMPRESSED_BYTES);
  }
});
