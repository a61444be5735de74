import { chmod, link, mkdir, readdir, unlink, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { afterEach, describe, expect, test } from "@jest/globals";
import { until } from "../../../test/support/until.ts";
import { SharedConnection } from "../../src/cli/sharing/shared-connection.ts";
import { Connector } from "../../src/index.ts";
import { shared } from "../fixture.ts";
import { jsonLines } from "../kit.ts";
import { asker, BOB, ControlSockets, HELLO } from "./control-kit.ts";
import { CommandLine } from "./kit.ts";
import type { Environment, Running } from "./shell.ts";

const line = shared(new CommandLine("alice", "bob-hmac"));
const sockets = new ControlSockets(line);
afterEach(() => sockets.clear());

const asAlice = () => ["--json", "--key", line.keyFile("alice")];

async function send(env: Environment = {}) {
  const { code, stdout, stderr } = await line.run(["send", ...asAlice(), BOB, HELLO], { env });
  return { code, result: jsonLines(stdout)[0], reports: jsonLines(stderr) };
}

/** A `relay listen` of alice whose agent is online. */
async function listen(env: Environment): Promise<Running> {
  const listener = line.begin(["listen", ...asAlice()], env);
  await listener.reported("online");
  return listener;
}

function unshared(reports: readonly { code?: string }[]): number {
  return reports.filter(({ code }) => code === "not_shared").length;
}

describe("A control socket that a killed process left", () => {
  test("is removed by the next process that opens one, of whatever agent; those of processes that run are not", async () => {
    const killed = await line.listen("alice");
    const left = await sockets.of(killed);
    const folder = dirname(left);
    await killed.end("SIGKILL");
    expect(await readdir(folder)).toContain(basename(left));
    // Of a process that runs and is about to listen: it refuses connections as the other does.
    const about = `${"0".repeat(24)}-${process.pid}-000000`;
    await writeFile(join(folder, about), "");

    await line.listen("bob-hmac");
    const names = await readdir(folder);
    expect(names).not.toContain(basename(left));
    expect(names).toContain(about);
    await line.listen("alice");
    expect((await send()).result).toMatchObject({ via: "listener" });
  });

  test("is not what somebody else put into the folder, which keeps nobody from starting", async () => {
    const folder = dirname(await sockets.of(await line.listen("alice")));
    await mkdir(join(folder, `${"a".repeat(24)}-${2 ** 22}-000000`));
    await line.listen("bob-hmac");
  });

  test("stays while something listens there, as a process of another namespace does", async () => {
    const killed = await line.listen("alice");
    const left = await sockets.of(killed);
    await killed.end("SIGKILL");
    const elsewhere = left.replace(`-${killed.child.pid}-`, `-${2 ** 22}-`);
    await sockets.pretend(elsewhere, (client) => client.destroy());
    await line.listen("bob-hmac");
    expect(await readdir(dirname(left))).toContain(basename(elsewhere));
  });
});

describe("A folder that somebody fills with names of sockets", () => {
  const MANY = 1500;

  test("costs a process that starts a bounded look, and one that makes its socket anew none", async () => {
    const path = await sockets.of(await line.listen("alice"));
    let looks = 0;
    const other = await sockets.pretend(join(dirname(path), "other"), (client) => {
      looks += 1;
      client.destroy();
    });
    for (let n = 0; n < MANY; n += 1)
      await link(other, join(dirname(path), `${"0".repeat(24)}-999999999-${String(n).padStart(6, "0")}`));
    await unlink(path);
    const isAnother = (name: string) => name.startsWith(basename(path).slice(0, -6)) && name !== basename(path);
    await until("there is another", async () => (await readdir(dirname(path))).some(isAnother), 20_000);
    expect(looks).toBe(0);
    await line.listen("bob-hmac");
    expect(looks).toBeGreaterThan(0);
    expect(looks).toBeLessThan(MANY / 2);
  });
});

describe("The control socket of a process", () => {
  test("has a name that nobody can take before it", async () => {
    const paths: string[] = [];
    for (const _ of [1, 2]) {
      const listener = await line.listen("alice");
      paths.push((await sockets.of(listener)).replace(`-${listener.child.pid}-`, ""));
      await listener.end("SIGTERM");
    }
    expect(new Set(paths).size).toBe(2);
  });

  test.each([
    ["removed", async () => {}],
    ["replaced", async (path: string) => void (await sockets.pretend(path, (client) => client.destroy()))],
  ])("is made anew when its file is %s, and nobody who has the connection through it loses it", async (_, replace) => {
    const listener = await line.listen("alice");
    const path = await sockets.of(listener);
    const witness = asker(await sockets.dial(path));
    await unlink(path);
    await replace(path);
    const isAnother = (name: string) => name.includes(`-${listener.child.pid}-`) && name !== basename(path);
    await until("there is another", async () => (await readdir(dirname(path))).some(isAnother), 20_000);
    expect((await send()).result).toMatchObject({ via: "listener" });
    expect(await witness({ receipt: "ses_1" })).toMatchObject({ ref: 1 });
  });

  test("that cannot be had is told of once, with what helps, and the agent is online without", async () => {
    const deep = line.file("d".repeat(100));
    await mkdir(deep, { recursive: true });
    const listener = await listen({ XDG_RUNTIME_DIR: deep });
    expect(unshared(listener.reports)).toBe(1);
    expect(listener.stderr).toContain("XDG_RUNTIME_DIR");
  });
});

describe("A folder of control sockets that is not private", () => {
  test("is used by nobody: each process says so once, and how to mend it", async () => {
    const folder = dirname(await sockets.of(await line.listen("bob-hmac")));
    await chmod(folder, 0o755);
    const listener = await line.listen("alice");
    const [model, sent] = [line.begin(["mcp", ...asAlice()]), await send()];
    await model.reported("closed");
    await chmod(folder, 0o700);
    expect(sent).toMatchObject({ code: 6, reports: [{ code: "not_shared" }, { code: "superseded_elsewhere" }] });
    for (const { reports, stderr } of [listener, model]) {
      expect(unshared(reports)).toBe(1);
      expect(stderr).toContain(`chmod 700 ${folder}`);
    }
  });

  test("ends no server that was refused meanwhile: it looks for the one that has the connection again", async () => {
    const folder = dirname(await sockets.of(await line.listen("alice")));
    await chmod(folder, 0o755);
    const looks: string[] = [];
    const place = { ...sockets.place(), warn: (text: string) => void looks.push(text) };
    const { signing } = place;
    const own: Connector[] = [];
    const open = (takeOver: boolean) => {
      own.push(new Connector({ url: line.url, ...signing, takeOver }));
      return own.at(-1) as Connector;
    };
    const second = new SharedConnection({ place, takeOver: false, mayFollow: true, shares: () => {}, open });
    const states: string[] = [];
    second.on("state", ({ status }) => states.push(status));
    await second.start();
    // Two looks come before it is refused, and the making of its own socket; another one comes at once after it.
    await until("it was refused, and has looked", () => own[0]?.state.status === "closed" && looks.length >= 4);
    await chmod(folder, 0o700);
    await until("it shares", () => second.state.status === "online", 20_000);
    expect(states).not.toContain("closed");
    expect(own).toHaveLength(1);
    await second.close();
  });

  test("nor a folder: it is said, too", async () => {
    const elsewhere = line.file("elsewhere");
    await mkdir(elsewhere, { recursive: true });
    await writeFile(join(elsewhere, `agent-relay-${process.getuid?.()}`), "");
    expect(unshared((await listen({ XDG_RUNTIME_DIR: elsewhere })).reports)).toBe(1);
    expect(unshared((await send({ XDG_RUNTIME_DIR: elsewhere })).reports)).toBe(1);
  });
});

describe("With a build of OpenSSL", () => {
  /** Node's own, without some suites: as builds for FIPS 140 have no ChaCha20. */
  const without = (suites: string): Environment => {
    const program = `import tls from "node:tls"; import { syncBuiltinESMExports } from "node:module";
      for (const name of ["createSecureContext", "createServer"]) {
        const original = tls[name];
        tls[name] = (options, ...more) => {
          const left = options.ciphers?.split(":").filter((suite) => !/${suites}/.test(suite)).join(":");
          return original({ ...options, ...(options.ciphers && { ciphers: left || "none" }) }, ...more);
        };
      }
      syncBuiltinESMExports();`;
    return { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(program)}` };
  };

  test("that has no ChaCha20 processes share a connection, with those of another build, too", async () => {
    const env = without("CHACHA20");
    await listen(env);
    for (const build of [env, {}]) expect((await send(build)).result).toMatchObject({ via: "listener" });
  });

  test("that has no suite for it they share none, and say so", async () => {
    const env = without("PSK");
    expect(unshared((await listen(env)).reports)).toBe(1);
    const { code, reports } = await send(env);
    expect([code, reports.at(-1)]).toMatchObject([6, { code: "superseded_elsewhere" }]);
  });
});
