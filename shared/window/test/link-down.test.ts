import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import type { RedisDownKind } from "relay-protocol/contract/responses.ts";
import { createLogger } from "relay-runtime/logging.ts";
import { FakeRedis, RedisProxy } from "../../../test/support/redis-proxy.ts";
import { fillTo, unlimited } from "../../../test/support/test-redis.ts";
import { until } from "../../../test/support/until.ts";
import { CommandTimeoutError } from "../src/redis/client.ts";
import { LinkState, mostTelling, retryDelayMs } from "../src/redis/link-state.ts";
import { RedisLink } from "../src/redis/redis-link.ts";
import { ProcessWindow } from "../src/window/process-window.ts";
import { LOGGER, redisBench } from "./kit.ts";

const bench = redisBench();
const NOT_USABLE = { code: "unavailable", retryAfterMs: 1000 };
const SECRET = "a-secret-password";

/** Connections after which a link that gives each up at once must have paused for long. */
const CONNECTIONS = 5;

/** The least that the four pauses between them add up to. Each timer may be a millisecond early. */
const LEAST_PAUSES_MS = 750 - 4;

/** The first pause is shorter, and no other one is. */
const FIRST_PAUSE_MS = 100;

let log: { readonly level: string; readonly link?: string; readonly kind?: string; readonly msg: string }[];
let logText: string;

beforeEach(() => {
  log = [];
  logText = "";
});

// Tests change its users and its configuration.
afterEach(() => bench.redis.stop());

const logger = createLogger(
  { service: "test", level: "debug" },
  {
    write: (line) => {
      logText += line;
      log.push(JSON.parse(line));
    },
  },
);

/** A link that is on its way up, or not. */
function linkTo(url: string): RedisLink {
  const link = new RedisLink({ url, name: "watched", logger });
  bench.later(() => link.stop());
  void link.start();
  return link;
}

async function proxy(): Promise<RedisProxy> {
  const started = await new RedisProxy(bench.redis.url).start();
  bench.later(() => started.stop());
  return started;
}

async function fake(answers: ConstructorParameters<typeof FakeRedis>[0]): Promise<FakeRedis> {
  const started = await new FakeRedis(answers).start();
  bench.later(() => started.stop());
  return started;
}

const warnings = () => log.filter(({ level }) => level === "warn");

/** Of all warnings but those that the link is up again. */
const kindsLogged = () =>
  warnings()
    .filter(({ msg }) => msg !== "redis link is up")
    .map(({ kind }) => kind);

/** The kinds that were told, each once a change of state. On a busy machine a silence may come between as a change of its own. */
function kindsTold(): unknown[] {
  const kinds = kindsLogged();
  for (const [n, kind] of kinds.entries()) expect(kind).not.toBe(kinds[n - 1]);
  return [...new Set(kinds.filter((kind) => kind !== "timeout"))];
}

const connections = async () =>
  Number(/total_connections_received:(\d+)/.exec(await bench.client.info("stats"))?.[1] ?? 0);

/** Resolves when the server has seen so many connections; with the time between the first and the last. */
async function pausesAt({ connectedAt }: FakeRedis): Promise<number> {
  await until("it was tried again and again", () => connectedAt.length >= CONNECTIONS);
  return (connectedAt[CONNECTIONS - 1] as number) - (connectedAt[0] as number);
}

describe("a link says once why it is down", () => {
  test("when the password is wrong, and logs neither password nor address", async () => {
    const { host } = await proxy();
    const before = await connections();
    const link = linkTo(`redis://somebody:${SECRET}@${host}`);
    await until("it was refused three times", async () => (await connections()) >= before + 3);
    await until("the reason is known", () => link.downKind === "auth");
    expect(kindsTold()).toEqual(["auth"]);
    expect(warnings()).toContainEqual(
      expect.objectContaining({ link: "watched", kind: "auth", reason: expect.stringContaining("WRONGPASS") }),
    );
    expect(logText).not.toContain(SECRET);
    expect(logText).not.toContain(host);
  });

  test("when Redis wants a password and is given none", async () => {
    await bench.client.config("SET", "requirepass", SECRET);
    const link = linkTo(bench.redis.url);
    await until("the reason is known", () => link.downKind === "auth");
    await bench.client.config("SET", "requirepass", "");
    await until("the link is up", () => link.up);
    expect(kindsTold()).toEqual(["auth"]);
  });

  test.each(["127.0.0.1", "localhost"])("when nothing listens at %s, and logs no address", async (host) => {
    const link = linkTo(`redis://${host}:1`);
    await until("the reason is known", () => link.downKind === "refused" && kindsTold().length > 0);
    expect(kindsTold()).toEqual(["refused"]);
    expect(warnings()).toContainEqual(expect.objectContaining({ kind: "refused", reason: "ECONNREFUSED" }));
    expect(logText).not.toContain(host);
  });

  test("when the server accepts and stays silent", async () => {
    await bench.redis.pause();
    const link = linkTo(bench.redis.url);
    await until("the reason is known", () => link.downKind === "timeout");
    expect(kindsLogged()).toEqual(["timeout"]);
    await bench.redis.resume();
  });

  test.each(["script|load", "info"])("when its user may not %s", async (command) => {
    await bench.client.call("ACL", "SETUSER", "default", `-${command}`);
    const link = linkTo(bench.redis.url);
    await until("the reason is known", () => link.downKind === "noperm");
    await expect(link.command("PING")).rejects.toMatchObject(NOT_USABLE);
    await bench.client.call("ACL", "SETUSER", "default", "+@all");
    await until("the link is up", () => link.up);
    expect(kindsTold()).toEqual(["noperm"]);
  });

  test("when its database does not exist, rather than going on in another", async () => {
    const { url } = await proxy();
    const link = linkTo(`${url}/99`);
    await until("the reason is known", () => link.downKind === "other");
    expect(link.up).toBe(false);
    expect(kindsTold()).toEqual(["other"]);
  });

  test("when a running Redis hangs, and when it dies", async () => {
    const link = linkTo(bench.redis.url);
    await until("the link is up", () => link.up);
    await bench.redis.pause();
    await until("the reason is known", () => link.downKind === "timeout");
    await bench.redis.resume();
    await until("the link is up", () => link.up);
    await bench.redis.kill();
    await until("the reason is known", () => link.downKind === "refused");
    expect(kindsLogged()[0]).toBe("timeout");
    expect(kindsTold()).toEqual(["refused"]);
    await bench.redis.start();
    await until("the link is up", () => link.up);
  });
});

describe("a link takes no commands", () => {
  test("from a Redis before 7.0", async () => {
    const old = await fake({ INFO: { bulk: "# Server\r\nredis_version:6.2.14\r\nmaxmemory_policy:noeviction\r\n" } });
    const link = linkTo(old.url);
    await until("the version was read", () => link.downKind === "version");
    await expect(link.command("PING")).rejects.toMatchObject(NOT_USABLE);
    expect(kindsTold()).toEqual(["version"]);
    expect(logText).toContain("6.2.14");
  });

  test("from a Redis that evicts keys, until it does not", async () => {
    await bench.client.config("SET", "maxmemory-policy", "allkeys-lru");
    const link = linkTo(bench.redis.url);
    await until("the policy was read", () => link.downKind === "eviction");
    await expect(link.command("PING")).rejects.toMatchObject(NOT_USABLE);
    expect(kindsTold()).toEqual(["eviction"]);
    expect(logText).toContain("allkeys-lru");
    await bench.client.config("SET", "maxmemory-policy", "noeviction");
    await until("the link is up", () => link.up);
  });
});

test("a policy that evicts, set while the link is up, takes it down as at the start", async () => {
  const link = linkTo(bench.redis.url);
  await until("the link is up", () => link.up);
  await bench.client.config("SET", "maxmemory-policy", "allkeys-lru");
  await until("the policy was read", () => link.downKind === "eviction");
  await bench.client.config("SET", "maxmemory-policy", "noeviction");
  await until("the link is up", () => link.up);
  expect(kindsTold()).toEqual(["eviction"]);
});

describe("a Redis that takes no writes is told from others", () => {
  test("a replica: the link goes down, also where Redis becomes one later", async () => {
    const link = linkTo(bench.redis.url);
    await until("the link is up", () => link.up);
    await bench.client.call("REPLICAOF", "127.0.0.1", "1");
    await expect(link.command("SET", "a", "b")).rejects.toMatchObject(NOT_USABLE);
    expect(link.downKind).toBe("readonly");
    const later = linkTo(bench.redis.url);
    await until("the role was read", () => later.downKind === "readonly");
    await bench.client.call("REPLICAOF", "NO", "ONE");
    await until("the links are up", () => link.up && later.up);
  });

  test("a full one: a service that starts is down for that, and comes up by itself when there is room", async () => {
    await fillTo(bench.client, 1.2);
    const link = linkTo(bench.redis.url);
    new ProcessWindow({ link, partitions: 1, deployId: "local", logger });
    await until("the reason is known", () => link.downKind === "full");
    await unlimited(bench.client);
    await until("the link is up", () => link.up);
  });

  test.each([
    ["loading", "-LOADING Redis is loading the dataset in memory"],
    ["disk", "-MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk."],
  ])("one that answers with the reason %s", async (kind, answer) => {
    const refusing = await fake({
      INFO: { bulk: "redis_version:7.0.0\r\nmaxmemory_policy:noeviction\r\n" },
      SCRIPT: { raw: answer },
    });
    const link = linkTo(refusing.url);
    await until("the reason is known", () => link.downKind === kind);
  });
});

describe("a command that its user may not send", () => {
  test("takes a link down that was up, with the reason, until it may", async () => {
    const link = linkTo(bench.redis.url);
    await until("the link is up", () => link.up);
    await bench.client.call("ACL", "SETUSER", "default", "-set");
    await expect(link.command("SET", "a", "b")).rejects.toMatchObject(NOT_USABLE);
    expect(link.downKind).toBe("noperm");
    await bench.client.call("ACL", "SETUSER", "default", "+set");
    await until("the link is up", () => link.up);
  });

  test("makes pauses grow when only calls find it out, not the set-up", async () => {
    await bench.client.call("ACL", "SETUSER", "default", "-set");
    const link = linkTo(bench.redis.url);
    const started = performance.now();
    for (let n = 0; n < CONNECTIONS; n += 1) {
      await until("the link is up", () => link.up);
      await expect(link.command("SET", "a", "b")).rejects.toMatchObject(NOT_USABLE);
    }
    expect(performance.now() - started).toBeGreaterThanOrEqual(LEAST_PAUSES_MS);
  });
});

describe("pauses between attempts", () => {
  test("grow while the set-up fails, however often a connection was made", async () => {
    const refusing = await fake({
      INFO: { bulk: "redis_version:7.0.0\r\nmaxmemory_policy:noeviction\r\n" },
      SCRIPT: { raw: "-NOPERM User default has no permissions to run the 'script|load' command" },
    });
    linkTo(refusing.url);
    expect(await pausesAt(refusing)).toBeGreaterThanOrEqual(LEAST_PAUSES_MS);
    expect(kindsTold()).toEqual(["noperm"]);
  });

  test("stay short while time alone helps, and reach five seconds while it cannot be used", () => {
    const longest = (kind: RedisDownKind) =>
      Math.max(...Array.from({ length: 40 }, (_, n) => retryDelayMs(n + 1, kind)));
    for (const kind of ["refused", "timeout", "loading", "full"] as const)
      expect(longest(kind)).toBeLessThanOrEqual(550);
    expect(longest("auth")).toBeLessThanOrEqual(5000);
    for (let attempt = 8; attempt < 40; attempt += 1) expect(retryDelayMs(attempt, "auth")).toBeGreaterThan(2400);
  });

  test("begin anew once the link was up", async () => {
    await bench.client.call("ACL", "SETUSER", "default", "-script|load");
    const before = await connections();
    const link = linkTo(bench.redis.url);
    await until("it was refused four times", async () => (await connections()) >= before + 4);
    await bench.client.call("ACL", "SETUSER", "default", "+@all");
    await until("the link is up", () => link.up);
    const pauses = jest.spyOn(LinkState.prototype, "nextDelayMs");
    link.reconnect(new Error("given up by the test"));
    await until("the link is up again", () => link.up);
    expect(pauses.mock.results[0]?.value).toBeLessThan(FIRST_PAUSE_MS);
  });
});

test("a command that Redis does not know is logged without its arguments", async () => {
  const link = linkTo(bench.redis.url);
  await until("the link is up", () => link.up);
  await expect(link.command("NOSUCHCOMMAND", SECRET)).rejects.toMatchObject(NOT_USABLE);
  expect(logText).toContain("unknown command");
  expect(logText).not.toContain(SECRET);
});

const refused = (text: string) => Object.assign(new Error(text), { name: "ReplyError" });

test("What Redis refused for its settings is not hidden by a silence, and ends with another answer", () => {
  const state = new LinkState("test", LOGGER);
  const kindAfter = (cause: Error) => {
    state.goDown(cause);
    return state.down?.kind;
  };
  expect(kindAfter(refused("WRONGPASS invalid username-password pair"))).toBe("auth");
  expect(kindAfter(new CommandTimeoutError())).toBe("auth");
  expect(kindAfter(refused("LOADING Redis is loading the dataset in memory"))).toBe("loading");
  expect(kindAfter(new CommandTimeoutError())).toBe("timeout");
});

test("Whoever is told of a link that is down is told when it is up again, and of none that was never down", () => {
  const lines: string[] = [];
  const logger = createLogger({ service: "test", level: "warn" }, { write: (line) => void lines.push(line) });
  const state = new LinkState("test", logger);
  const told = () => lines.splice(0).map((line) => JSON.parse(line).msg);
  state.goUp();
  expect(told()).toEqual([]);
  state.goDown(new CommandTimeoutError());
  state.goDown(new CommandTimeoutError());
  expect(told()).toEqual(["redis link is down"]);
  state.goUp();
  expect(told()).toEqual(["redis link is up"]);
});

test("Of several links that are down the reason is told that somebody has to end, then what a server said, then a silence", () => {
  expect(mostTelling(["refused", null, "timeout", "loading", "auth"])).toBe("auth");
  expect(mostTelling([null, "refused", "slots"])).toBe("slots");
  expect(mostTelling(["timeout", "refused"])).toBe("timeout");
  expect(mostTelling([null, null])).toBeNull();
});
