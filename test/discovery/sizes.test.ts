import { gzipSync } from "node:zlib";
import { beforeAll, expect, test } from "@jest/globals";
import { madePackages } from "../support/packages.ts";
import { given, useRelay } from "../support/use-relay.ts";

/** Source: docs/protocol.md#discovery. With packages and a contact the documents are longest. */
const LLMS_BYTES = 12_288;
const OPENAPI_BYTES = 204_800;
const OPENAPI_GZIP_BYTES = 30_720;
const ASYNCAPI_BYTES = 61_440;
const ASYNCAPI_GZIP_BYTES = 12_288;

const relay = useRelay();
let folder: string;
beforeAll(async () => {
  folder = await madePackages();
}, 60_000);
const gateway = given(() =>
  relay.startGateway({
    RELAY_BASE_URL: "https://relay.agents.example",
    RELAY_WS_URL: "wss://relay.agents.example",
    RELAY_CONTACT: "mailto:operator@relay.agents.example",
    RELAY_PACKAGES_DIR: folder,
  }),
);

async function read(path: string): Promise<Buffer> {
  return Buffer.from(await (await fetch(gateway.url + path)).arrayBuffer());
}

test("llms.txt is at most 12 KB", async () => {
  expect((await read("/llms.txt")).length).toBeLessThanOrEqual(LLMS_BYTES);
});

test("openapi.json is at most 200 KB, and 30 KB compressed", async () => {
  const bytes = await read("/openapi.json");
  expect(bytes.length).toBeLessThanOrEqual(OPENAPI_BYTES);
  expect(gzipSync(bytes).length).toBeLessThanOrEqual(OPENAPI_GZIP_BYTES);
});

test("asyncapi.json is at most 60 KB, and 12 KB compressed", async () => {
  const bytes = await read("/asyncapi.json");
  expect(bytes.length).toBeLessThanOrEqual(ASYNCAPI_BYTES);
  expect(gzipSync(bytes).length).toBeLessThanOrEqual(ASYNCAPI_GZIP_BYTES);
});
