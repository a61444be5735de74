import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "@jest/globals";
import { ServiceError } from "relay-protocol/contract/refusals.ts";
import { serviceOf, WEBSOCKET_PATH } from "relay-protocol/contract/surfaces.ts";
import { CONNECTION_LIMITS } from "relay-protocol/wire/limits.ts";
import { problemOf } from "relay-runtime/http/problem.ts";
import { settingsReader } from "relay-runtime/settings.ts";
import { EDGE_PATHS, METHODS } from "../support/edge-requests.ts";
import { runProgram } from "../support/pod-process.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const START = await readFile(new URL("../../deploy/docker/edge.sh", import.meta.url), "utf8");
const CONF = await readFile(new URL("../../deploy/docker/nginx.conf", import.meta.url), "utf8");

describe("the edge", () => {
  test.each(EDGE_PATHS)("takes %s to the service of the catalogue", (path) => {
    const expected = METHODS.map((method) => `${method} ${serviceOf(method, path)}`);
    expect(METHODS.map((method) => `${method} ${routeOf(method, path)}`)).toEqual(expected);
  });

  test("takes both websocket paths, whatever the method, to the connectors", () => {
    const { alternateWsPath } = settingsReader("RELAY_ALTERNATE_WS_PATH")({});
    for (const path of [WEBSOCKET_PATH, alternateWsPath]) {
      expect(METHODS.map((method) => routeOf(method, path))).toEqual(METHODS.map(() => "ws-connector"));
    }
  });

  test.each([
    ["unavailable", "while it reaches none of them", undefined],
    ["rate_limited", "beyond its limits of an address", CONNECTION_LIMITS.capacityRetryAfterMs],
  ] as const)("says `%s` as the services do %s", (code, _when, retryAfterMs) => {
    const expected = problemOf(new ServiceError(code, retryAfterMs === undefined ? {} : { retryAfterMs }));
    const [location] = new RegExp(`error_page [0-9 ]*${expected.status}[0-9 ]* = (@\\w+);`).exec(CONF)?.slice(1) ?? [];
    const [, answer = ""] = new RegExp(`location ${location} \\{([\\s\\S]*?)\\n {4}\\}`).exec(CONF) ?? [];
    const [, returned, text = ""] = /return (\d+) '([^']*)';/.exec(answer) ?? [];
    const [, type] = /default_type (\S+);/.exec(answer) ?? [];
    const fields = [...answer.matchAll(/add_header (\S+) (\S+) always;/g)].map(([, name, value]) => [name, value]);
    expect({ status: Number(returned), body: JSON.parse(text) }).toEqual({
      status: expected.status,
      body: expected.body,
    });
    expect({ "Content-Type": type, ...Object.fromEntries(fields) }).toEqual(expected.headers);
  });

  test("takes from one address as many websockets as a pod does, as many opened in a minute, and as many requests", () => {
    const { connectionsPerAddress } = settingsReader("RELAY_CONNECTIONS_PER_ADDRESS")({});
    const opens = connectionsPerAddress * CONNECTION_LIMITS.opensPerMinuteFactor;
    const [, websockets = ""] = /location ~ \^\/\(\?:ws\|relay\)\$ \{([\s\S]*?)\n {4}\}/.exec(CONF) ?? [];
    expect(websockets).toContain(`limit_conn websockets ${connectionsPerAddress};`);
    expect(websockets).toContain("limit_req zone=upgrades ");
    expect(CONF).toContain(`zone=upgrades:10m rate=${opens}r/m;`);
    expect(CONF).toMatch(new RegExp(`^ {4}limit_conn requests ${connectionsPerAddress};$`, "m"));
    for (const zone of CONF.matchAll(/limit_\w+_zone (\S+) /g)) expect(zone[1]).toBe("$client_network");
  });
});

describe("the start of the edge", () => {
  test.each([
    ["the first one", "nameserver 10.0.0.2\nnameserver 10.0.0.3\n", "10.0.0.2"],
    ["an IPv6 one", "nameserver fd00::2\n", "[fd00::2]"],
    ["one after those that nginx cannot use", "nameserver fe80::1%eth0\nnameserver\nnameserver 10.0.0.2", "10.0.0.2"],
    ["one of a file with CRLF", "search lan\r\nnameserver fd00::2\r\n", "[fd00::2]"],
  ])("has nginx ask a name server of resolv.conf: %s", async (_, resolvConf, server) => {
    expect(await start(resolvConf)).toEqual({ code: 0, stderr: "", resolver: `resolver ${server} valid=1s;\n` });
  });

  test.each([
    ["that is missing", undefined],
    ["without a name server", "search lan\n"],
    ["without one that nginx can use", "nameserver fe80::1%eth0\n"],
  ])("says in one line which name server nginx asks after a resolv.conf %s", async (_, resolvConf) => {
    expect(await start(resolvConf)).toEqual({
      code: 0,
      stderr: expect.stringMatching(/^edge: .*127\.0\.0\.1.*\n$/),
      resolver: "resolver 127.0.0.1 valid=1s;\n",
    });
  });
});

/** Runs edge.sh with files of its own, where every name resolves and nginx takes every configuration. */
async function start(resolvConf: string | undefined) {
  await using folder = await temporaryFolder();
  const at = (name: string) => join(folder.path, name);
  if (resolvConf !== undefined) await writeFile(at("resolv.conf"), resolvConf);
  await mkdir(at("bin"));
  for (const program of ["nginx", "getent"]) await writeFile(at(`bin/${program}`), "#!/bin/sh\n", { mode: 0o755 });
  const script = START.replaceAll(/\/tmp\/|\/etc\/(?=resolv)/g, at("/"));
  const env = { ...process.env, PATH: `${at("bin")}:${process.env.PATH}` };
  const { code, stderr } = await runProgram("sh", ["-c", script], { env });
  return { code, stderr, resolver: await readFile(at("edge-resolver.conf"), "utf8") };
}

/** The service that nginx hands a request to: the first regular expression that fits, else the prefix `/`. */
function routeOf(method: string, path: string): string | undefined {
  const locations = [...CONF.matchAll(/location (~ )?(\S+) \{\n([^}]*)/g)];
  const fitting =
    locations.find(([, isRegex, pattern = ""]) => isRegex !== undefined && new RegExp(pattern).test(path)) ??
    locations.find(([, isRegex, prefix]) => isRegex === undefined && prefix === "/");
  const body = fitting?.[3] ?? "";
  const [, variable = ""] = /proxy_pass http:\/\/\$(\w+):8080;/.exec(body) ?? [];
  const [, service] = new RegExp(`set \\$${variable} (\\S+);`).exec(body) ?? [];
  return service ?? mapped("request_method", variable, method);
}

/** What a `map` block makes of a value. */
function mapped(from: string, to: string, value: string): string | undefined {
  const [, block = ""] = new RegExp(`map \\$${from} \\$${to} \\{([^}]*)\\}`).exec(CONF) ?? [];
  const pairs = new Map([...block.matchAll(/(\S+) (\S+);/g)].map(([, key, service]) => [key, service]));
  return pairs.get(value) ?? pairs.get("default");
}
