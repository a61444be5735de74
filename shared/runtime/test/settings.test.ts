import { describe, expect, test } from "@jest/globals";
import { relayHosts } from "../src/addresses.ts";
import { SettingsError, settingsReader } from "../src/settings.ts";
import { SETTINGS, type SettingName } from "../src/settings-catalogue.ts";

const faultsOf = (env: Record<string, string>, ...names: SettingName[]): string => {
  try {
    settingsReader(...names)(env);
  } catch (error) {
    expect(error).toBeInstanceOf(SettingsError);
    return (error as Error).message;
  }
  return "none";
};

describe("settings", () => {
  test("have the defaults of the protocol, unset or empty", () => {
    const names = (Object.keys(SETTINGS) as SettingName[]).filter((name) => !("required" in SETTINGS[name]));
    const expected = {
      port: 8080,
      host: "127.0.0.1",
      baseUrl: "http://127.0.0.1:8080",
      wsUrl: "ws://127.0.0.1:8080",
      alternateWsPath: "/relay",
      gatewayKeyFile: undefined,
      publicHosts: undefined,
      trustedProxyHops: 0,
      proofFreshnessMs: 10_800_000,
      proofIdentities: "shown",
      offlineAfterMs: 300_000,
      maxConnections: 50_000,
      httpConnections: 2000,
      connectionsPerAddress: 1000,
      unregisteredConnections: 5000,
      agentsPerIssuer: 10_000,
      agentsPerKey: 1000,
      envelopesPerSecond: 200,
      bytesPerSecond: 524_288,
      allowedOrigins: ["any"],
      partitions: 1,
      outboxBytes: 1_048_576,
      outboxTotal: 268_435_456,
      drainMs: 10_000,
      gatherMs: 0,
      publicRequestsPerMinute: 600,
      deployId: "local",
      metricsPort: undefined,
      adminPort: undefined,
      adminHost: "127.0.0.1",
      adminKeyFile: undefined,
      logLevel: "info",
      otelSdkDisabled: false,
      otelTracesSamplerArg: 1,
    };
    expect(settingsReader(...names)({})).toEqual(expected);
    expect(settingsReader(...names)(Object.fromEntries(names.map((name) => [name, ""])))).toEqual(expected);
  });

  test("are read under short names, with the types that their rules give", () => {
    const read = settingsReader("PORT", "REDIS_URL", "RELAY_PUBLIC_HOSTS", "METRICS_PORT", "LOG_LEVEL");
    const settings = read({
      PORT: "0",
      REDIS_URL: "unix:///run/redis.sock",
      RELAY_PUBLIC_HOSTS: "relay.example, www.relay.example:8443",
      METRICS_PORT: "9100",
      LOG_LEVEL: "warn",
    });
    const port: number = settings.port;
    const redisUrl: string = settings.redisUrl;
    expect({ ...settings, port, redisUrl }).toEqual({
      port: 0,
      redisUrl: "unix:///run/redis.sock",
      publicHosts: ["relay.example", "www.relay.example:8443"],
      metricsPort: 9100,
      logLevel: "warn",
    });
  });

  test.each(["[::1]:8205", "[::1]", "[2001:db8::1]:443", "relay.example:443", "127.0.0.1:80"])(
    "take %s as a public host, whose relay is dialled by it",
    (host) => {
      const { publicHosts } = settingsReader("RELAY_PUBLIC_HOSTS")({ RELAY_PUBLIC_HOSTS: `relay.example, ${host}` });
      expect(publicHosts).toEqual(["relay.example", host]);
      const hosts = relayHosts({ baseUrl: "http://127.0.0.1", wsUrl: "ws://127.0.0.1", publicHosts });
      expect(hosts.has(new URL(`wss://${host}`).host)).toBe(true);
    },
  );

  test("give the base URLs from host and port, and the websocket's from the base URL", () => {
    const read = settingsReader("RELAY_BASE_URL", "RELAY_WS_URL");
    expect(read({ HOST: "::1", PORT: "81" })).toEqual({ baseUrl: "http://[::1]:81", wsUrl: "ws://[::1]:81" });
    expect(read({ RELAY_BASE_URL: "https://relay.example" }).wsUrl).toBe("wss://relay.example");
  });

  test("refuse one port for two servers", () => {
    const faults = (port: string, metricsPort: string) =>
      faultsOf({ PORT: port, METRICS_PORT: metricsPort }, "PORT", "METRICS_PORT");
    expect(faults("9090", "9090")).toMatch(/METRICS_PORT .*PORT/);
    expect(faults("8080", "9090")).toBe("none");
    expect(faultsOf({ METRICS_PORT: "8080" }, "METRICS_PORT")).toMatch(/METRICS_PORT/);
  });

  test("refuse an admin port that another server has, or without a key", () => {
    const faults = (env: Record<string, string>) =>
      faultsOf({ PORT: "8080", METRICS_PORT: "9090", RELAY_ADMIN_KEY_FILE: "key", ...env }, "PORT", "ADMIN_PORT");
    expect(faults({ ADMIN_PORT: "8080" })).toMatch(/ADMIN_PORT must differ from PORT$/m);
    expect(faults({ ADMIN_PORT: "9090" })).toMatch(/ADMIN_PORT must differ from METRICS_PORT/);
    expect(faults({ ADMIN_PORT: "9092" })).toBe("none");
    expect(faults({ ADMIN_PORT: "9092", RELAY_ADMIN_KEY_FILE: "" })).toMatch(/ADMIN_PORT needs RELAY_ADMIN_KEY_FILE/);
  });

  test.each<[SettingName, ...string[]]>([
    ["PORT", "-1", "65536", "08", "1e3", " 80", "0x50", "80.0", "٨٠", "99999999999999999999"],
    ["HOST", "a b", "http://x", "[::1]", "a:80", ":::", "fe80::1%eth0", "1.2.3.256"],
    ["REDIS_URL", "localhost:6379", "http://x", "redis://", "unix://", "unix://relative.sock"],
    ["REDIS_URL", "redis://x/one", "redis://x/0?db=1", "redis://x#0", "redis://:%zz@x", "redis://%ff:p@x"],
    ["REDIS_URL", "redis-cluster://", "redis-cluster://x,", "redis-cluster://x:1,:2", "redis-cluster://u:p@x,u:p@y"],
    ["REDIS_URL", "redis-cluster://x/0", "redis-cluster://x/", "redis-cluster://x?y=1", "redis-cluster://x:1,y:65536"],
    ["REDIS_URL", "redis-cluster://:%zz@x", "valkey-cluster://x", "unix-cluster:///x.sock", "redis://x:1,y:2"],
    [
      "RELAY_BASE_URL",
      "relay.example",
      "ftp://x",
      "http://x/",
      "http://x?y",
      "http://x#y",
      "http://x?",
      "http://x#",
      "http://u:p@x",
      "http://u:8080/p@x",
      "http://:p@x",
      "HTTP://x",
    ],
    ["RELAY_WS_URL", "http://x", "ws://x/", "WS://x"],
    [
      "RELAY_ALTERNATE_WS_PATH",
      "relay",
      "/",
      "/ws",
      "/health",
      "/api/feedback",
      "/sessions/x",
      "/a//b",
      "/../x",
      "/a?b",
    ],
    ["RELAY_PUBLIC_HOSTS", "a,,b", "https://x", "a b", "*.example", "x/", "u@x", "x:", "x:65536", "x:080", "1.2.3.256"],
    // Other spellings of hosts that it takes.
    [
      "RELAY_PUBLIC_HOSTS",
      "Relay.example",
      "127.1",
      "::1",
      "[0:0:0:0:0:0:0:1]",
      "[2001:DB8::1]",
      "[::ffff:1.2.3.4]:80",
    ],
    ["RELAY_TRUSTED_PROXY_HOPS", "yes", "11"],
    ["RELAY_PROOF_FRESHNESS_MS", "0"],
    ["RELAY_PROOF_IDENTITIES", "Hidden", "none"],
    ["RELAY_OFFLINE_AFTER_MS", "45000", "2147483648"],
    ["RELAY_MAX_CONNECTIONS", "0"],
    ["RELAY_HTTP_CONNECTIONS", "-1"],
    ["RELAY_CONNECTIONS_PER_ADDRESS", "-1"],
    ["RELAY_UNREGISTERED_CONNECTIONS", "many"],
    ["RELAY_ENVELOPES_PER_SECOND", "1.5"],
    ["RELAY_BYTES_PER_SECOND", "1e6"],
    ["RELAY_ALLOWED_ORIGINS", "app.example", "https://app.example/", "*"],
    ["RELAY_PARTITIONS", "0", "25"],
    ["RELAY_GATHER_MS", "-1", "0.5", "11"],
    ["RELAY_OUTBOX_BYTES", "32767"],
    ["RELAY_DRAIN_MS", "10s"],
    ["RELAY_PUBLIC_REQUESTS_PER_MINUTE", "-1"],
    [
      "RELAY_CONTACT",
      "relay@example.org",
      "http://relay.example",
      "https://",
      "https:relay",
      "https://u:p@x",
      "mailto:",
    ],
    ["RELAY_CONTACT", "mailto:nobody", "mailto:a@b c", "https://x/\nExpires: never", "https://x/<b>", "javascript:0"],
    ["RELAY_CONTACT", `https://x/${"x".repeat(200)}`, "tel:112"],
    ["RELAY_DEPLOY_ID", "a b", "x".repeat(129)],
    ["METRICS_PORT", "0", "none"],
    ["ADMIN_PORT", "0", "none"],
    ["ADMIN_HOST", "a b"],
    ["LOG_LEVEL", "INFO", "verbose"],
  ])("refuse a faulty %s by its rule", (name, ...texts) => {
    for (const text of texts) {
      expect([text, faultsOf({ [name]: text }, name)]).toEqual([
        text,
        expect.stringMatching(new RegExp(`^[^\\n]+\\n  ${name} [^\\n]+$`)),
      ]);
    }
  });

  test.each(["https://relay.example/contact?x=1", "mailto:relay@example.org", "mailto:a@b?subject=relay"])(
    "take %s as a contact",
    (contact) => {
      expect(settingsReader("RELAY_CONTACT")({ RELAY_CONTACT: contact })).toEqual({ contact });
    },
  );

  test.each([
    "redis-cluster://x",
    "redis-cluster://x:6379,[::1]:6380",
    "rediss-cluster://user:p%40ss,word@redis-0.redis:6379,redis-1.redis:6379",
  ])("take %s as a Redis Cluster", (url) => {
    expect(settingsReader("REDIS_URL")({ REDIS_URL: url })).toEqual({ redisUrl: url });
  });

  test("refuse a Redis Cluster with one partition, where both are read", () => {
    const names = ["REDIS_URL", "RELAY_PARTITIONS"] as const;
    const settings = (REDIS_URL: string, RELAY_PARTITIONS: string) => ({ REDIS_URL, RELAY_PARTITIONS });
    for (const url of ["redis-cluster://x:1,y:2", "rediss-cluster://x"]) {
      for (const count of ["", "1"])
        expect(faultsOf(settings(url, count), ...names)).toMatch(/\n {2}RELAY_PARTITIONS /);
      expect(faultsOf(settings(url, "2"), ...names)).toBe("none");
      expect(faultsOf(settings(url, "1"), "RELAY_PARTITIONS")).toBe("none");
    }
    expect(faultsOf(settings("redis://x", "1"), ...names)).toBe("none");
    expect(faultsOf({ REDIS_URL: "x" }, ...names)).not.toContain("RELAY_PARTITIONS");
  });

  test("list every fault in one message, and no value", () => {
    const env = { PORT: "SECRET-port", REDIS_URL: "SECRET:password@redis", LOG_LEVEL: "SECRET-level" };
    const message = faultsOf(env, "PORT", "REDIS_URL", "LOG_LEVEL", "RELAY_KEYS_FILE");
    expect(
      message
        .split("\n  ")
        .slice(1)
        .map((fault) => fault.split(" ")[0]),
    ).toEqual(["PORT", "REDIS_URL", "LOG_LEVEL", "RELAY_KEYS_FILE"]);
    expect(message).not.toContain("SECRET");
  });

  test("blame a faulty source once, not what is made from it", () => {
    const message = faultsOf({ PORT: "x" }, "PORT", "RELAY_BASE_URL", "RELAY_WS_URL");
    expect(message.split("\n  ").slice(1)).toEqual([expect.stringMatching(/^PORT .*65535/)]);
  });

  test("all have a description", () => {
    for (const setting of Object.values(SETTINGS)) expect(setting.description).toMatch(/\.$/);
  });
});
