import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { Redis } from "ioredis";
import { SCRIPT_NAMES, SCRIPTS, type ScriptName } from "relay-window/redis/scripts.ts";
import { type AclUser, accessTo, KEY_OF_KIND, matches, REDIS_USERS, readUsersAcl } from "../support/deployed-users.ts";
import { GuardedRedis } from "../support/guarded-redis.ts";
import type { RedisUser } from "../support/test-redis.ts";
import { watchLeaks } from "../support/until.ts";

/** How who may open a window finds, opens and follows it. */
const OPENING = ["begin_window", "open_window", "raise_window", "read_window"] as const;

/** What each user runs; what it sends besides. */
const WORK: Readonly<
  Record<RedisUser, { readonly scripts: readonly ScriptName[]; readonly sends: readonly string[] }>
> = {
  gateway: {
    scripts: [
      ...OPENING,
      ...([
        "accept",
        "accept_messages",
        "add_feedback",
        "announce_gateway_key",
        "bind_claim",
        "count_presence",
        "count_sessions",
      ] as const),
      ...(["flush_counters", "read_credentials", "read_gateway_keys", "read_presence", "read_session"] as const),
      ...(["record_promotions", "use_limit"] as const),
    ],
    sends: ["hget", "hgetall", "hmget"],
  },
  "ws-connector": {
    scripts: [
      ...OPENING,
      ...([
        "accept",
        "accept_messages",
        "restore_routes",
        "count_presence",
        "count_sessions",
        "decide_session",
        "disconnect",
      ] as const),
      ...([
        "lease_connections",
        "lease_shares",
        "list_agents",
        "mark_congestion",
        "prune_presence",
        "record_promotions",
        "release",
      ] as const),
      "read_agents",
      "renew_lease",
      "reserve_decision",
      "write_heartbeats",
    ],
    sends: ["hget", "hgetall", "hmget", "spublish", "ssubscribe", "sunsubscribe"],
  },
  "ops-reporting": {
    scripts: [
      "count_presence",
      "flush_counters",
      "read_gateway_keys",
      "read_journeys",
      "read_target",
      "read_window",
      "snapshot",
      "snapshot_control",
      "use_limit",
    ],
    sends: ["hget", "hgetall", "hmget"],
  },
  "window-reset": { scripts: OPENING, sends: ["hmget", "scan", "unlink"] },
};
/** What every connection of the relay sends. */
const LINK = ["client|setname", "cluster|info", "cluster|slots", "eval", "evalsha", "info", "script|load"];
const NO_PASSWORD = "default";
/** Two commands Redis refuses whoever asks, unless it is set up to allow them. */
const REFUSAL = /\bNOPERM |^ERR (DEBUG|MODULE) command not allowed/;

const users = new Map((await readUsersAcl()).map((user) => [user.name, user]));
const redis = new GuardedRedis();
const clients = new Map<string, Redis>();
const noLeaks = watchLeaks();
let admin: Redis;

beforeAll(async () => {
  await redis.start();
  admin = connected(redis.adminAddress);
  for (const user of REDIS_USERS) clients.set(user, connected(redis.urlFor(user)));
  clients.set(NO_PASSWORD, connected(redis.url));
});
afterAll(async () => {
  for (const client of [admin, ...clients.values()]) client.disconnect();
  await redis.stop();
  await noLeaks();
});

describe("users.acl", () => {
  test("knows the four users, and whoever has no password", () => {
    expect([...users.keys()].sort()).toEqual([NO_PASSWORD, ...REDIS_USERS].sort());
  });

  test("covers every key that the relay uses: a service writes it, a service reads it, and the reset may delete it", () => {
    const [reset] = rulesOf("window-reset").selectors;
    for (const [kind, key] of KEY_OF_KIND) {
      const access = ["gateway", "ws-connector", "ops-reporting"].map((user) => accessTo(rulesOf(user).rules, key));
      const covered = {
        writes: access.some(({ writes }) => writes),
        reads: access.some(({ reads }) => reads),
        deletes: accessTo(reset as AclUser["rules"], key).writes,
      };
      expect({ kind, ...covered }).toEqual({ kind, writes: true, reads: true, deletes: true });
    }
  });

  test("names no key that the relay does not use", () => {
    const patterns = [...users.values()].flatMap(({ rules }) => rules.keys.map(({ pattern }) => pattern));
    const unused = patterns.filter((pattern) => ![...KEY_OF_KIND.values()].some((key) => matches(pattern, key)));
    expect(unused).toEqual([]);
  });

  test.each(REDIS_USERS)(
    "allows %s the commands that its scripts call and its connections send, and no others",
    (user) => {
      const { rules, selectors } = rulesOf(user);
      const allowed = [rules, ...selectors].flatMap(({ commands }) => commands);
      const { scripts, sends } = WORK[user];
      const needed = new Set([...LINK, ...sends, ...scripts.flatMap(commandsOf)]);
      expect(allowed.toSorted()).toEqual([...needed].sort());
    },
  );

  test("lets somebody run every script", () => {
    const run = new Set(Object.values(WORK).flatMap(({ scripts }) => scripts));
    expect([...run].sort()).toEqual([...SCRIPT_NAMES].sort());
  });
});

describe("Redis with these users", () => {
  test.each([...REDIS_USERS, NO_PASSWORD])("refuses %s every other command there is", async (user) => {
    const { rules, selectors } = rulesOf(user);
    const allowed = new Set([rules, ...selectors].flatMap(({ commands }) => commands));
    const forbidden = (await everyCommand()).filter(({ name }) => !allowed.has(name));
    const dangerous = [
      "flushall",
      "flushdb",
      "config|set",
      "keys",
      "monitor",
      "debug",
      "save",
      "acl|setuser",
      "shutdown",
    ];
    expect(forbidden.map(({ name }) => name)).toEqual(expect.arrayContaining([...dangerous, "subscribe", "psync"]));
    for (const { name, args } of forbidden) {
      const [command = "", ...subcommand] = name.split("|");
      const said = await (clients.get(user) as Redis).call(command, ...subcommand, ...args).then(
        () => "done",
        ({ message }: Error) => message,
      );
      expect({ name, said }).toEqual({ name, said: expect.stringMatching(REFUSAL) });
    }
  });

  test("lets ops-reporting write its traffic, journeys and limit, and nothing else, not even by a script", async () => {
    const journeys = ["journey-versions", "journeys", "journeys-seen", "last-journey-version"];
    const writable = ["flushes", ...journeys, "limit", "surfaces", "traffic", "visitors"];
    expect(await writableKinds("ops-reporting")).toEqual(writable);
  });

  test("lets ops-reporting touch no limit but its own", async () => {
    const ofOthers = ["api-key:simpleSend:key", "failed-key:hash", "address:check_online:hash"];
    for (const key of ofOthers) {
      const call = (clients.get("ops-reporting") as Redis).call("INCRBY", `relay:{0}:limit:${key}`, "99");
      await expect(call).rejects.toThrow(/^NOPERM /);
    }
  });

  test("lets the gateway make no agent present", async () => {
    expect(await writableKinds("gateway")).not.toContain("presence");
  });

  test("keeps the connector away from what only the gateway and the reports have", async () => {
    const others = [
      "feedback",
      "flushes",
      "gateway-keys",
      "idempotency",
      "idempotency-body",
      "journeys",
      "limit",
      "traffic",
      "visitors",
    ];
    const kinds = await writableKinds("ws-connector");
    expect(kinds.filter((kind) => others.includes(kind))).toEqual([]);
    expect(kinds).toContain("route");
  });

  test("lets the reset delete, under the relay's prefix alone, and write the window alone", async () => {
    const reset = clients.get("window-reset") as Redis;
    await admin.mset("theirs", "1", "relay:{3}:of-an-older-version", "1");
    expect(await reset.unlink("relay:{3}:of-an-older-version")).toBe(1);
    await expect(reset.unlink("theirs")).rejects.toThrow(/^NOPERM/);
    expect(await writableKinds("window-reset")).toEqual(["salt", "window"]);
  });

  test("lets only connectors listen, only to pods, and only them and the gateway publish there", async () => {
    const channel = "relay:{7}:pod:pod_x";
    await expect(clients.get("ops-reporting")?.spublish(channel, "x")).rejects.toThrow(/^NOPERM/);
    for (const user of ["gateway", "ws-connector"]) {
      expect(await clients.get(user)?.spublish(channel, "x")).toBe(0);
      await expect(clients.get(user)?.spublish("relay:{7}:else", "x")).rejects.toThrow(/^NOPERM/);
    }
    await expect(clients.get("gateway")?.ssubscribe(channel)).rejects.toThrow(/^NOPERM/);
    await expect(clients.get("ws-connector")?.ssubscribe("relay:{7}:else")).rejects.toThrow(/^NOPERM/);
  });

  test("answers a health check without a password, and no script", async () => {
    expect(await clients.get(NO_PASSWORD)?.ping()).toBe("PONG");
    await expect(clients.get(NO_PASSWORD)?.eval("return 1", 0)).rejects.toThrow(/^NOPERM/);
  });
});

function rulesOf(user: string): AclUser {
  return users.get(user) as AclUser;
}

function connected(url: string): Redis {
  const client = new Redis(url, { replyMapping: "legacy", enableReadyCheck: false, disableClientInfo: true });
  client.on("error", () => {});
  return client;
}

function commandsOf(script: ScriptName): string[] {
  return [...SCRIPTS[script].lua.matchAll(/call\('([A-Z]+)'/g)].map(([, command = ""]) => command.toLowerCase());
}

/** A call inside a script of the user's own, past every script of the relay. */
async function scripted(user: string, key: string, command: string, ...args: string[]): Promise<unknown> {
  const body = `return redis.call('${command}', KEYS[1], unpack(ARGV))`;
  return await (clients.get(user) as Redis).eval(body, 1, key, ...args);
}

/** The kinds of keys that a user can change by any write that it is allowed. */
async function writableKinds(user: string): Promise<string[]> {
  const { commands } = rulesOf(user).rules;
  const writes = { set: ["1"], hset: ["f", "1"], hincrby: ["f", "1"], zadd: ["1", "m"], pfadd: ["m"], sadd: ["m"] };
  const kinds = new Set<string>();
  for (const [command, args] of Object.entries(writes).filter(([name]) => commands.includes(name))) {
    for (const [kind, key] of KEY_OF_KIND) {
      await admin.del(key);
      await scripted(user, key, command.toUpperCase(), ...args).catch(() => {});
      if ((await admin.exists(key)) === 1) kinds.add(kind);
    }
  }
  return [...kinds].sort();
}

type CommandInfo = [name: string, arity: number, flags: string[], ...rest: unknown[]];
const SUBCOMMANDS = 9;

/** Every command and subcommand of this Redis with as many arguments as it takes, but those that precede a login. */
async function everyCommand(): Promise<{ readonly name: string; readonly args: string[] }[]> {
  const commands = (await admin.call("COMMAND")) as CommandInfo[];
  return commands
    .flatMap((command) => {
      const subcommands = command[SUBCOMMANDS] as CommandInfo[];
      return subcommands.length > 0 ? subcommands : [command];
    })
    .filter(([, , flags]) => !flags.includes("no_auth"))
    .map(([name, arity]) => {
      const words = name.split("|").length;
      return { name, args: Array.from({ length: Math.max(0, Math.abs(arity) - words) }, () => "relay:{0}:x") };
    });
}
