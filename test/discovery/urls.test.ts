import { beforeAll, describe, expect, test } from "@jest/globals";
import type { Surface } from "relay-protocol/contract/surface.ts";
import { SURFACES } from "relay-protocol/contract/surfaces.ts";
import { ERRORS } from "relay-protocol/wire/errors.ts";
import { HttpClient } from "../support/http.ts";
import { madePackages } from "../support/packages.ts";
import { given, useRelay } from "../support/use-relay.ts";
import { type Found, inJson, inText } from "./urls.ts";

/** Every address of its own that the relay prints leads somewhere, or is said to be a template. */

const relay = useRelay("alice", "bob");
let folder: string;
beforeAll(async () => {
  folder = await madePackages();
}, 60_000);
const BASES = {
  "with packages": given(() => relay.startWhole({ RELAY_PACKAGES_DIR: folder })),
  "without packages": given(() => relay.startWhole()),
};

/** What can be read as a text. The program of llms.txt is left out: it is run by its own tests. */
const NOT_READ: readonly Surface[] = [SURFACES.newestConnector, SURFACES.agentProgram];
const READS = (Object.values(SURFACES) as Surface[]).filter(
  (surface) => surface.method === "GET" && !surface.path.includes("{") && !NOT_READ.includes(surface),
);
const QUERIES = ["", "?target_agent_id=agent://bob", "?from=agent://alice&target_agent_id=agent://bob"];

describe.each(Object.entries(BASES))("A relay %s", (_name, pod) => {
  const paths = READS.flatMap(({ path, aliases, group, query }) => {
    if (group === "guides") return QUERIES.map((one) => path + one);
    return [path, ...aliases].map((one) => (query === null ? one : `${one}?agent_id=agent://bob`));
  });

  test.each(paths)("prints no address in %s that leads nowhere", async (path) => {
    const answer = await fetch(pod.url + path);
    const text = await answer.text();
    expect(answer.status).toBe(200);
    const isJson = /\bjson\b/.test(answer.headers.get("content-type") as string);
    const found = isJson ? inJson(JSON.parse(text), pod.url) : inText(text, pod.url);
    expect(await leadingNowhere(found, pod.url)).toEqual([]);
  });
});

/** What was asked of a relay, and the status that it gave: many documents print the same addresses. */
const asked = new Map<string, number>();

async function statusOf(url: URL, method: string): Promise<number> {
  const request = `${method} ${url}`;
  const known = asked.get(request);
  if (known !== undefined) return known;
  const answer = await fetch(url, { method, redirect: "manual" });
  await answer.arrayBuffer();
  asked.set(request, answer.status);
  return answer.status;
}

/** Those that are neither answered nor said to be templates. */
async function leadingNowhere(found: readonly Found[], base: string): Promise<string[]> {
  const faults: string[] = [];
  for (const { url, method } of found.filter((one) => !one.isTemplate)) {
    if (/[{}]/.test(url)) faults.push(`${url} is not said to be a template`);
    else if ([404, 405].includes(await statusOf(new URL(url, base), method))) faults.push(`${method} ${url}`);
  }
  return faults;
}

describe("What the relay says in answer", () => {
  const pod = BASES["without packages"];
  const http = new HttpClient();
  const ask = async (path: string, body: object) =>
    await http.post(pod.url + path, { from: "agent://alice", to: "agent://bob", ...body }, relay.credentials("alice"));
  const addressesOf = (said: unknown) => inJson(said, pod.url);

  test("to an accepted send, for a target that is not there, and in the ack of a websocket", async () => {
    const message = await ask(SURFACES.sendMessage.path, { message: "hi" });
    const socket = await relay.connect(pod);
    await socket.ask(relay.envelope("alice", "agent.register"));
    const ack = await socket.ask(relay.envelope("alice", "message.send", { to: "agent://bob" }));
    for (const said of [message.body, ack]) {
      expect(addressesOf(said)).not.toEqual([]);
      expect(await leadingNowhere(addressesOf(said), pod.url)).toEqual([]);
    }
    expect(await leadingNowhere(socket.frames.flatMap(addressesOf), pod.url)).toEqual([]);
  });

  test("to an accepted session request, and all that its links say", async () => {
    const { body } = await ask(SURFACES.requestSession.path, { purpose: "talk" });
    const links = addressesOf(body);
    expect(links.map(({ url }) => url)).toContain(`${pod.url}/sessions/${body.session_id}`);
    expect(await leadingNowhere(links, pod.url)).toEqual([]);
    for (const { url } of links.filter(({ method }) => method === "GET")) {
      const { body: linked } = await http.get(url);
      expect([url, await leadingNowhere(addressesOf(linked), pod.url)]).toEqual([url, []]);
    }
  });

  test.each(Object.entries(ERRORS))("with %s", async (_code, { title, hint }) => {
    expect(await leadingNowhere(addressesOf({ title, hint }), pod.url)).toEqual([]);
  });

  test("to a check of an agent, whatever its presence", async () => {
    await relay.online(pod, "bob");
    for (const name of ["bob", "nobody"]) {
      const { body } = await http.get(`${pod.url}${SURFACES.checkOnline.path}?agent_id=agent://${name}`);
      expect(addressesOf(body)).not.toEqual([]);
      expect(await leadingNowhere(addressesOf(body), pod.url)).toEqual([]);
    }
  });

  test("of its problems with a type that no client can take for an address", async () => {
    const { body } = await http.get(`${pod.url}/nowhere`);
    expect(body.type).toMatch(/^urn:/);
  });

  test("of its websockets leads to websockets", async () => {
    const { body } = await http.get(pod.url + SURFACES.relayManifest.path);
    const { body: asyncapi } = await http.get(pod.url + SURFACES.asyncapi.path);
    const { host, pathname = "" } = asyncapi.servers.relay;
    const paths: string[] = asyncapi.channels.websocket.parameters.path.enum;
    const urls = [...body.websocket.urls, ...paths.map((path) => `ws://${host}${pathname}${path}`)];
    for (const url of urls) expect([url, (await http.get(url.replace(/^ws/, "http"))).status]).toEqual([url, 426]);
  });
});

test("An address that leads nowhere is found, and so is a template that is not said to be one", async () => {
  const base = BASES["without packages"].url;
  const document = {
    link: `${base}/nowhere`,
    text: "see /api/nowhere.",
    send: "/v1/messages/send",
    one: "/sessions/{id}",
  };
  expect(await leadingNowhere(inJson(document, base), base)).toHaveLength(4);
  expect(await leadingNowhere(inText(Object.values(document).join("\n"), base), base)).toHaveLength(4);
  const said = { method: "POST", path: "/v1/messages/send", link_templates: { one: "/sessions/{id}" } };
  expect(await leadingNowhere(inJson(said, base), base)).toEqual([]);
});
