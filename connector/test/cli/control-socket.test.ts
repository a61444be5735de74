import { chmod, link, mkdir, readdir, rm, unlink, writeFile } from "node:fs/promises";
import { Server } from "node:net";
import { basename, join } from "node:path";
import { afterEach, describe, expect, jest, test } from "@jest/globals";
import { until } from "../../../test/support/until.ts";
import { SharedConnection } from "../../src/cli/sharing/shared-connection.ts";
import { Connector } from "../../src/index.ts";
import { shared } from "../fixture.ts";
import { jsonLines } from "../kit.ts";
import { holdIntervals } from "../times.ts";
import { asker, BOB, ControlSockets, HELLO } from "./control-kit.ts";
import { CommandLine } from "./kit.ts";

const line = shared(new CommandLine("alice", "bob-hmac"));
const sockets = new ControlSockets(line);
afterEach(() => {
  jest.useRealTimers();
  sockets.clear();
});

/** More than any system gives a process. */
const NO_PROCESS = 2 ** 22;

const asAlice = () => ["--json", "--key", line.keyFile("alice")];

async function send() {
  const { code, stdout, stderr } = await line.run(["send", ...asAlice(), BOB, HELLO]);
  return { code, result: jsonLines(stdout)[0], reports: jsonLines(stderr) };
}

/** Resolves when a process has made its socket anew, for which it looks every two seconds of its clock. */
async function untilMadeAnew(path: string): Promise<void> {
  const prefix = basename(path).slice(0, -6);
  const isAnother = (name: string) => name.startsWith(prefix) && name !== basename(path);
  await until("there is another", async () => {
    jest.advanceTimersByTime(2000);
    return (await readdir(sockets.folder)).some(isAnother);
  });
}

function unshared(reports: readonly { code?: string }[]): number {
  return reports.filter(({ code }) => code === "not_shared").length;
}

const ofProcess = (pid: number) => join(sockets.folder, `${"0".repeat(24)}-${pid}-000000`);

describe("A control socket that a killed process left", () => {
  test("is removed by the next process that opens one, of whatever agent; those of processes that run are not", async () => {
    await line.listen("alice");
    const left = await sockets.leave(ofProcess(NO_PROCESS));
    // Of a process that is about to listen: it refuses connections as the other does.
    const about = await sockets.leave(ofProcess(process.ppid));
    await line.listen("bob-hmac");
    const names = await readdir(sockets.folder);
    expect(names).not.toContain(basename(left));
    expect(names).toContain(basename(about));
    expect((await send()).result).toMatchObject({ via: "listener" });
  });

  test("is not what somebody else put into the folder, which keeps nobody from starting", async () => {
    await line.listen("alice");
    await mkdir(join(sockets.folder, `${"a".repeat(24)}-${NO_PROCESS}-000000`));
    await line.listen("bob-hmac");
  });

  test("stays while something listens there, as a process of another namespace does", async () => {
    await line.listen("alice");
    const elsewhere = (await sockets.of()).replace(`-${process.pid}-`, `-${NO_PROCESS}-`);
    await sockets.pretend(elsewhere, (client) => client.destroy());
    await line.listen("bob-hmac");
    expect(await readdir(sockets.folder)).toContain(basename(elsewhere));
  });
});

describe("A folder that somebody fills with names of sockets", () => {
  const MANY = 1500;

  test("costs a process that starts a bounded look, and one that makes its socket anew none", async () => {
    holdIntervals();
    await line.listen("alice");
    const path = await sockets.of();
    let looks = 0;
    const other = await sockets.pretend(join(sockets.folder, "other"), (client) => {
      looks += 1;
      client.destroy();
    });
    for (let n = 0; n < MANY; n += 1)
      await link(other, join(sockets.folder, `${"0".repeat(24)}-999999999-${String(n).padStart(6, "0")}`));
    await unlink(path);
    await untilMadeAnew(path);
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
      paths.push(await sockets.of());
      await listener.stop();
    }
    expect(new Set(paths).size).toBe(2);
  });

  test.each([
    ["removed", async () => {}],
    ["replaced", async (path: string) => void (await sockets.pretend(path, (client) => client.destroy()))],
  ])("is made anew when its file is %s, and nobody who has the connection through it loses it", async (_, replace) => {
    holdIntervals();
    await line.listen("alice");
    const path = await sockets.of();
    const witness = asker(await sockets.dial(path));
    await unlink(path);
    await replace(path);
    await untilMadeAnew(path);
    expect((await send()).result).toMatchObject({ via: "listener" });
    expect(await witness({ receipt: "ses_1" })).toMatchObject({ ref: 1 });
  });

  test("that cannot be had is told of once, with what helps, and the agent is online without", async () => {
    jest.spyOn(Server.prototype, "listen").mockImplementationOnce(function (this: Server) {
      process.nextTick(() => this.emit("error", Object.assign(new Error(), { code: "EPERM" })));
      return this;
    });
    const listener = await line.listen("alice");
    expect(unshared(listener.reports)).toBe(1);
    expect(listener.stderr).toContain("a file system that takes sockets");
  });
});

describe("A folder of control sockets that is not private", () => {
  test("is used by nobody: each process says so once, and how to mend it", async () => {
    await line.listen("bob-hmac");
    const { folder } = sockets;
    await chmod(folder, 0o755);
    const listener = await line.listen("alice");
    const [model, sent] = [line.begin(["mcp", ...asAlice()]), await send()];
    await model.reported("warning");
    await model.stop();
    await chmod(folder, 0o700);
    expect(sent).toMatchObject({ code: 6, reports: [{ code: "not_shared" }, { code: "superseded_elsewhere" }] });
    for (const { reports, stderr } of [listener, model]) {
      expect(unshared(reports)).toBe(1);
      expect(stderr).toContain(`chmod 700 ${folder}`);
    }
  });

  test("ends no server that was refused meanwhile: it looks for the one that has the connection again", async () => {
    await line.listen("alice");
    const { folder } = sockets;
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
    await until("it shares", () => second.state.status === "online");
    expect(states).not.toContain("closed");
    expect(own).toHaveLength(1);
    await second.close();
  });

  test("nor a folder: it is said, too", async () => {
    await rm(sockets.folder, { recursive: true });
    await writeFile(sockets.folder, "");
    const [listener, sent] = [await line.listen("alice"), await send()];
    await rm(sockets.folder);
    for (const { reports } of [listener, sent]) expect(unshared(reports)).toBe(1);
  });
});
