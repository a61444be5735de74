import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { createInterface } from "node:readline";
import { afterEach, describe, expect, jest, test } from "@jest/globals";
import type { ServiceName } from "relay-protocol/contract/surface.ts";
import { tryUpgrade } from "../support/agent.ts";
import { freePort } from "../support/free-port.ts";
import { scrape } from "../support/http.ts";
import { COMPILE_CACHE } from "../support/pod-process.ts";
import { SERVICES } from "../support/relay.ts";
import { until } from "../support/until.ts";
import { useRelay } from "../support/use-relay.ts";

/** So few that all connections are made before the first is closed for its silence. */
const FILES = 200;
const CROWD = 300;
/** Several times what it takes on a busy machine. */
const STARTED_WITHIN_MS = 60_000;
jest.setTimeout(2 * STARTED_WITHIN_MS);
const relay = useRelay("alice");
const started: Started[] = [];
const crowd: Socket[] = [];
afterEach(async () => {
  for (const socket of crowd.splice(0)) socket.destroy();
  await Promise.all(started.splice(0).map((one) => one.end()));
});

/** A process of a service, from its first line on. */
class Started {
  readonly lines: string[] = [];
  readonly errors: string[] = [];
  readonly #child: ChildProcess;
  readonly #exited: Promise<[number | null, NodeJS.Signals | null]>;

  constructor(service: ServiceName, settings: Record<string, string>, command: readonly string[]) {
    const env = { ...COMPILE_CACHE, PATH: process.env.PATH ?? "", ...relay.environmentOf(service, settings) };
    const [program = "", ...words] = [...command, `services/${service}/src/main.ts`];
    const child = spawn(program, words, { cwd: new URL("../../", import.meta.url), env });
    createInterface({ input: child.stdout }).on("line", (line) => this.lines.push(line));
    createInterface({ input: child.stderr }).on("line", (line) => this.errors.push(line));
    this.#child = child;
    this.#exited = once(child, "close") as Promise<[number | null, NodeJS.Signals | null]>;
    started.push(this);
  }

  /** Exit code, or the signal that ended it. */
  async exit(): Promise<number | NodeJS.Signals | null> {
    const [code, signal] = await this.#exited;
    return code ?? signal;
  }

  async listening(): Promise<{ readonly port: number; readonly url: string }> {
    const line = () => this.lines.map((text) => JSON.parse(text)).find(({ msg }) => msg === "started");
    await until("the service has started", () => line() !== undefined, STARTED_WITHIN_MS);
    const { port } = this.lines.map((text) => JSON.parse(text)).find(({ msg }) => msg === "listening");
    return { port, url: `http://127.0.0.1:${port}` };
  }

  async end(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#exited;
  }
}

const run = (service: ServiceName, settings: Record<string, string> = {}, nodeArguments: readonly string[] = []) =>
  new Started(service, settings, [process.execPath, ...nodeArguments]);

/** Node itself raises a soft limit as far as it may. */
const runWithFiles = (files: number, service: ServiceName, settings: Record<string, string> = {}) =>
  new Started(service, settings, ["/bin/sh", "-c", `ulimit -n ${files} && exec "$0" "$@"`, process.execPath]);

describe.each(SERVICES)("%s", (service) => {
  test("heeds a stop that comes while it still loads its modules", async () => {
    const hook = `import { registerHooks } from "node:module";
      registerHooks({ load(url, context, next) {
        if (url.endsWith("/run.ts")) process.kill(process.pid, "SIGTERM");
        return next(url, context);
      } });`;
    const one = run(service, {}, ["--import", `data:text/javascript,${encodeURIComponent(hook)}`]);
    expect(await one.exit()).toBe(0);
  });

  test("says in one line that its port is taken", async () => {
    const other = createServer().listen(0, "127.0.0.1");
    await once(other, "listening");
    const { port } = other.address() as AddressInfo;
    const one = run(service, { PORT: String(port) });
    expect(await one.exit()).toBe(1);
    other.close();
    expect(one.errors).toHaveLength(1);
    expect(one.errors[0]).toContain(String(port));
    expect(one.lines.join()).not.toContain("EADDRINUSE");
  });
});

describe("with few file descriptors", () => {
  test.each(SERVICES)(
    "%s says so, and goes on answering while more clients are connected than it has",
    async (service) => {
      const metricsPort = String(await freePort());
      const one = runWithFiles(FILES, service, { METRICS_PORT: metricsPort });
      const { port, url } = await one.listening();
      const [warning] = one.lines.map((line) => JSON.parse(line)).filter(({ level }) => level === "warn");
      expect(warning).toMatchObject({ openFiles: FILES });

      for (let n = 0; n < CROWD; n += 1) crowd.push(connect(port, "127.0.0.1").on("error", () => {}));
      await Promise.all(crowd.map((socket) => socket.connecting && once(socket, "connect")));
      expect((await fetch(`${url}/health`)).status).toBe(200);
      if (service === "ws-connector") expect((await tryUpgrade({ url }, "/ws")).status).toBe(101);

      const metrics = await scrape(`http://127.0.0.1:${metricsPort}/metrics`);
      expect(metrics.value("process_open_fds")).toBeLessThan(FILES);
      expect(metrics.value("relay_limits_total", { limit: "http_connections" })).toBeGreaterThan(0);
    },
  );

  test("a pod full of websockets refuses more in words, and answers its probes", async () => {
    const one = runWithFiles(FILES, "ws-connector");
    const { port, url } = await one.listening();
    let open = 0;
    for (; open < CROWD; open += 1) {
      const socket = connect(port, "127.0.0.1").on("error", () => {});
      crowd.push(socket);
      socket.write(
        "GET /ws HTTP/1.1\r\nHost: relay\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
          "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
      );
      const [answer] = await once(socket, "data");
      if (!answer.toString().startsWith("HTTP/1.1 101 ")) break;
    }
    expect(open).toBeGreaterThan(FILES / 3);
    expect(await tryUpgrade({ url }, "/ws")).toMatchObject({ status: 503, problem: { code: "over_capacity" } });
    expect((await fetch(`${url}/ready`)).status).toBe(200);
  });

  test("too few to serve anybody are refused as settings are", async () => {
    const one = runWithFiles(80, "gateway");
    expect(await one.exit()).toBe(78);
    expect(one.errors.join("\n")).toMatch(/ulimit -n\) must be at least \d+/);
  });
});
