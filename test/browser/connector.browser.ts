import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "@jest/globals";
import type { Browser, Page } from "playwright-core";
import type { PackageRecord } from "relay-protocol/contract/packages.ts";
import { next, record, Stage } from "../../connector/test/kit.ts";
import { BROWSER_OPENS_WITHIN_MS, openBrowser } from "../support/browser.ts";
import { HttpClient } from "../support/http.ts";
import { madePackages, packagesIn } from "../support/packages.ts";
import type { Pod } from "../support/relay.ts";
import { until } from "../support/until.ts";

const PAGE = `<!doctype html><title>agent</title><link rel="icon" href="data:,">`;

const stage = new Stage("browser", "hmac-browser-hmac", "node");
/** Where the relay hands out the module for browsers. */
let module: string;
let pages: Server;
let browser: Browser;
let page: Page;
let pod: Pod;
let faults: string[];

beforeAll(async () => {
  const folder = await madePackages();
  const { packages } = await packagesIn(folder);
  const { file } = packages.find(({ name }) => name === "connector") as PackageRecord;
  pages = createServer((_, res) => void res.setHeader("content-type", "text/html").end(PAGE)).listen(0, "127.0.0.1");
  await once(pages, "listening");
  await stage.start();
  pod = await stage.relay.startWhole({ RELAY_PACKAGES_DIR: folder });
  module = `${pod.url}/packages/${file}`;
  browser = await openBrowser(stage.relay);
}, BROWSER_OPENS_WITHIN_MS);
beforeEach(async () => {
  faults = [];
  page = await browser.newPage();
  page.on("pageerror", (error) => faults.push(error.message));
  page.on("console", (message) => faults.push(message.text()));
  // A page of another origin than the relay's.
  await page.goto(`http://127.0.0.1:${(pages.address() as AddressInfo).port}/`);
  await page.evaluate(`import(${JSON.stringify(module)}).then((sdk) => void (globalThis.sdk = sdk))`);
});
afterEach(async () => {
  await page.close();
  await stage.clear();
});
afterAll(async () => {
  await stage.stop();
  pages.closeAllConnections();
  pages.close();
});

/** Runs in the page, where `sdk` is the package and `given` what the test gives. */
async function inPage<T>(program: string, given: object = {}): Promise<T> {
  return await page.evaluate<T>(`(async (given) => { ${program} })(${JSON.stringify(given)})`);
}

const ONLINE = `
  globalThis.connector = new sdk.Connector(given);
  globalThis.states = [];
  connector.on("state", ({ status }) => states.push(status));
  await connector.start();`;
const NEXT = "const { value } = await connector[Symbol.asyncIterator]().next(); return value;";

function optionsOf(name: string, peer: string): object {
  const { agent, key } = stage.agent(name);
  const trusted = stage.agent(peer);
  return { url: pod.url, agent, key, trust: { [trusted.agent]: [trusted.trusted] } };
}

test.each(["browser", "hmac-browser-hmac"])(
  "a browser registers %s, signs with its own WebCrypto, and exchanges messages with a connector in Node",
  async (name) => {
    const { agent, trusted } = stage.agent(name);
    const node = await stage.online("node", pod.url, { trust: { [agent]: [trusted] } });
    await inPage(ONLINE, optionsOf(name, "node"));
    const sent = await inPage(`return await connector.send("agent://node", { text: "Grüße 😂" });`);
    expect(sent).toMatchObject({ delivery: { status: "online" }, duplicate: false });
    expect(await next(node)).toMatchObject({ from: agent, verified: "agent", payload: { text: "Grüße 😂" } });
    expect(await node.send(agent, { n: [1e21, null] })).toMatchObject({ delivery: { canDeliverRealtime: true } });
    expect(await inPage(NEXT)).toMatchObject({ from: "agent://node", verified: "agent", payload: { n: [1e21, null] } });
    await inPage("await connector.close();");
    expect(await inPage("return states;")).toEqual(["connecting", "online", "closed"]);
    expect(faults).toEqual([]);
  },
);

test("a browser verifies what a gateway made, by the signing manifest of another origin", async () => {
  const http = new HttpClient();
  const manifest = await http.get(`${pod.url}/.well-known/signing-manifest.json`);
  const gateways = manifest.body.gateway_keys.map(({ key_id }: { key_id: string }) => key_id);
  await inPage(ONLINE, { ...optionsOf("browser", "node"), trust: { gateways }, requireVerified: true });
  const body = { from: "agent://node", to: "agent://browser", message: "hi" };
  await http.post(`${pod.url}/v1/messages/send`, body, { "x-api-key": stage.agent("node").apiKey });
  expect(await inPage(NEXT)).toMatchObject({ verified: "gateway", payload: { message: "hi" } });
  expect(faults).toEqual([]);
});

test("a key that no script can read signs as well", async () => {
  const { agent, key } = stage.agent("browser");
  const { privateKey } = key as { privateKey: string };
  const seed = [...Buffer.from(privateKey, "base64url")];
  const given = { options: optionsOf("browser", "node"), seed, keyId: key.keyId };
  const node = await stage.online("node", pod.url);
  const { deliveries } = record(node);
  await inPage(
    `const der = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20, ...given.seed];
    const privateKey = await crypto.subtle.importKey("pkcs8", Uint8Array.from(der), "Ed25519", false, ["sign"]);
    const key = { keyId: given.keyId, alg: "ed25519", privateKey };
    const connector = new sdk.Connector({ ...given.options, key });
    await connector.start();
    await connector.send("agent://node", {});
    await connector.close();`,
    given,
  );
  await until("it is delivered", () => deliveries.some(({ from }) => from === agent));
});
