import tls from "node:tls";
import { beforeEach, describe, expect, jest, test } from "@jest/globals";
import { shared } from "../fixture.ts";
import { jsonLines } from "../kit.ts";

/** Suites that this build of OpenSSL has not, in those who listen and in those who connect. */
const lacks = { listener: /^$/, client: /^$/ };

function without<T extends tls.SecureContextOptions>(suites: RegExp, options: T): T {
  const left = options.ciphers?.split(":").filter((suite) => !suites.test(suite));
  return { ...options, ...(left && { ciphers: left.join(":") || "none" }) };
}

jest.unstable_mockModule("node:tls", () => ({
  ...tls,
  createSecureContext: (options: tls.SecureContextOptions) => tls.createSecureContext(without(lacks.client, options)),
  createServer: (options: tls.TlsOptions, met: () => void) => tls.createServer(without(lacks.listener, options), met),
}));
const { CommandLine } = await import("./shell.ts");
const { BOB, HELLO } = await import("./control-kit.ts");

const line = shared(new CommandLine("alice", "bob-hmac"));

async function send() {
  const { code, stdout, stderr } = await line.run(["send", "--json", "--key", "alice.json", BOB, HELLO]);
  return { code, result: jsonLines(stdout)[0], reports: jsonLines(stderr) };
}

describe("With a build of OpenSSL", () => {
  beforeEach(() => {
    Object.assign(lacks, { listener: /^$/, client: /^$/ });
  });

  test("that has no ChaCha20 processes share a connection, with those of another build, too", async () => {
    lacks.listener = /CHACHA20/;
    await line.listen("alice");
    expect((await send()).result).toMatchObject({ via: "listener" });
    lacks.client = /CHACHA20/;
    expect((await send()).result).toMatchObject({ via: "listener" });
    lacks.listener = /^$/;
    expect((await send()).result).toMatchObject({ via: "listener" });
  });

  test("that has no suite for it they share none, and say so", async () => {
    lacks.client = /PSK/;
    const listener = await line.listen("alice");
    expect(listener.reports).toContainEqual(expect.objectContaining({ code: "not_shared" }));
    expect(await send()).toMatchObject({ code: 6, reports: [{ code: "superseded_elsewhere" }] });
  });
});
