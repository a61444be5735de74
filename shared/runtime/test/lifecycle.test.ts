import { EventEmitter } from "node:events";
import { describe, expect, jest, test } from "@jest/globals";
import { type ProcessLike, runService, type Service, StartError } from "../src/lifecycle.ts";
import { createLogger } from "../src/logging.ts";
import { SettingsError, settingsReader } from "../src/settings.ts";

class FakeProcess extends EventEmitter implements ProcessLike {
  readonly env = {};
  readonly printed: string[] = [];
  readonly stderr = { write: (text: string) => this.printed.push(text) };
  readonly #exit = Promise.withResolvers<number>();
  readonly exited = this.#exit.promise;
  readonly exit = jest.fn((code: number) => this.#exit.resolve(code));
}

const run = async (service: Partial<Service>) => {
  const host = new FakeProcess();
  const log: string[] = [];
  const logger = createLogger({ service: "test", level: "info" }, { write: (line) => log.push(line) });
  const whole: Service = { start: async () => {}, stop: async () => {}, ...service };
  await runService(host, () => ({ service: whole, logger }));
  return { host, log };
};

describe("a service process", () => {
  test("prints what is wrong with its settings and exits with 78", async () => {
    const host = new FakeProcess();
    const read = settingsReader("REDIS_URL");
    await runService(host, (env) => {
      read(env);
      throw new Error("not reached");
    });
    expect(await host.exited).toBe(78);
    expect(host.printed.join("")).toContain("REDIS_URL");
  });

  test("does the same with a setting that only its start finds invalid", async () => {
    const { host, log } = await run({
      start: () => Promise.reject(new SettingsError(["RELAY_PACKAGES_DIR is empty"])),
    });
    expect(await host.exited).toBe(78);
    expect(host.printed.join("")).toContain("RELAY_PACKAGES_DIR is empty");
    expect(log).toEqual([]);
  });

  test.each(["SIGTERM", "SIGINT"])("stops once on %s and exits with 0", async (signal) => {
    const stop = jest.fn(async () => {});
    const { host } = await run({ stop });
    expect(host.exit).not.toHaveBeenCalled();
    host.emit(signal);
    expect(await host.exited).toBe(0);
    expect(stop).toHaveBeenCalledTimes(1);
  });

  test.each([
    ["SIGTERM", 143],
    ["SIGINT", 130],
  ])("exits on a second signal, %s, but takes one that comes twice at once for the same", async (signal, code) => {
    const clock = jest.spyOn(performance, "now").mockReturnValue(5000);
    const stop = jest.fn(() => new Promise<void>(() => {}));
    const { host } = await run({ stop });
    host.emit("SIGTERM");
    host.emit(signal);
    expect(host.exit).not.toHaveBeenCalled();
    clock.mockReturnValue(6001);
    host.emit(signal);
    expect(await host.exited).toBe(code);
    expect(stop).toHaveBeenCalledTimes(1);
    clock.mockRestore();
  });

  test("logs a failed start and exits with 1", async () => {
    const { host, log } = await run({ start: () => Promise.reject(new Error("port taken")) });
    expect(await host.exited).toBe(1);
    expect(log.join("")).toContain("port taken");
  });

  test("prints in one line why it cannot listen, and exits with 1", async () => {
    const taken = Object.assign(new Error("listen EADDRINUSE"), { code: "EADDRINUSE" });
    const { host, log } = await run({ start: () => Promise.reject(new StartError("The port is in use.", taken)) });
    expect(await host.exited).toBe(1);
    expect(host.printed).toEqual(["The port is in use.\n"]);
    expect(log).toEqual([]);
  });

  test("exits with 0 when a signal cuts its start short", async () => {
    const starting = Promise.withResolvers<void>();
    const host = new FakeProcess();
    const logger = createLogger({ service: "test", level: "silent" });
    const stop = async () => starting.reject(new Error("stopped while starting"));
    const running = runService(host, () => ({ service: { start: () => starting.promise, stop }, logger }));
    host.emit("SIGTERM");
    await running;
    expect(await host.exited).toBe(0);
    expect(host.exit).toHaveBeenCalledTimes(1);
  });

  test("exits with 1 when its stop fails", async () => {
    const { host } = await run({ stop: () => Promise.reject(new Error("stuck")) });
    host.emit("SIGTERM");
    expect(await host.exited).toBe(1);
  });

  test.each(["unhandledRejection", "uncaughtException"])("crashes loudly on %s", async (event) => {
    const { host, log } = await run({});
    host.emit(event, Object.assign(new Error("nobody caught this"), { body: "SECRET" }));
    expect(await host.exited).toBe(1);
    expect(log.join("")).toContain("nobody caught this");
    expect(log.join("")).not.toContain("SECRET");
  });
});
