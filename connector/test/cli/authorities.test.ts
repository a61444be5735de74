import { once } from "node:events";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, describe, expect, jest, test } from "@jest/globals";
import { until } from "../../../test/support/until.ts";
import { shared } from "../fixture.ts";
import { jsonLines } from "../kit.ts";
import { McpStage } from "../mcp/kit.ts";
import { SELF_SIGNED } from "../self-signed.ts";

const server = createServer(SELF_SIGNED);
let url: string;

beforeAll(async () => {
  await once(server.listen(0, "127.0.0.1"), "listening");
  url = `https://localhost:${(server.address() as AddressInfo).port}`;
});
afterEach(() => void jest.restoreAllMocks());
afterAll(async () => {
  server.closeAllConnections();
  await new Promise((closed) => server.close(closed));
});
const stage = shared(new McpStage("alice"));

/** The environment of this process, which Node read when it began, has this value. */
function setAuthorities(file: string | undefined): void {
  const { NODE_EXTRA_CA_CERTS: _, ...env } = process.env;
  jest.replaceProperty(process, "env", file === undefined ? env : { ...env, NODE_EXTRA_CA_CERTS: file });
}

const UNSET = "its certificate is self-signed. NODE_EXTRA_CA_CERTS is not set in this process's environment.";
const TOLD = {
  code: "unreachable",
  message: expect.stringContaining(UNSET),
  hint: expect.stringContaining("in the env member of the MCP configuration"),
};
/** Of a report, whose text has both. */
const REPORTED = expect.stringMatching(/is not set in this process's environment\..* in the env member of/);

describe("Where nobody vouches for the relay's certificate, NODE_EXTRA_CA_CERTS is told to be missing, and where to set it,", () => {
  test("by relay check", async () => {
    setAuthorities(undefined);
    const check = await stage.begin("alice", url, [], "check");
    expect(await check.end()).not.toBe(0);
    const [{ steps }] = jsonLines(check.stdout);
    expect(steps).toContainEqual(expect.objectContaining({ step: "relay", ...TOLD }));
  });

  test("by relay listen, once", async () => {
    setAuthorities(undefined);
    const listen = await stage.begin("alice", url, [], "listen");
    expect(await listen.end()).not.toBe(0);
    expect(listen.reports).toMatchObject([{ event: "error", message: TOLD.message, hint: TOLD.hint }]);
  });

  test("by relay mcp, to its client once and to each call of a model", async () => {
    setAuthorities(undefined);
    const host = await stage.host("alice", url);
    await until("the start has ended", () => host.events.includes("closed"));
    expect(jsonLines(host.log)).toMatchObject([{ event: "closed", message: REPORTED }]);
    const { code: reason, ...told } = TOLD;
    expect((await host.call("my_status")).connection).toMatchObject({ status: "closed", reason, ...told });
    expect(await host.error("send_message", { to: "agent://bob", message: "hi" })).toMatchObject(TOLD);
    expect(await host.error("check_presence", { agent_id: "agent://bob" })).toMatchObject(TOLD);
  });
});

test.each([
  ["does not exist", "nowhere/other.pem", "cannot be read (ENOENT)"],
  ["is another's", fileURLToPath(import.meta.url), "does not vouch for that certificate"],
])("Where the file of NODE_EXTRA_CA_CERTS %s, that is told with its name", async (_, file, why) => {
  setAuthorities(file);
  const listen = await stage.begin("alice", url, [], "listen");
  await listen.end();
  expect(listen.reports.at(-1).message).toContain(`${file}, which NODE_EXTRA_CA_CERTS names, ${why}`);
});
