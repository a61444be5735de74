import { readFile } from "node:fs/promises";
import { describe, expect, test } from "@jest/globals";
import { CONNECTION_LIMITS, PRESENCE_LIMITS } from "relay-protocol/wire/limits.ts";
import { connectionBounds } from "relay-runtime/http/connections.ts";
import { settingsReader } from "relay-runtime/settings.ts";
import { parse } from "yaml";
import { type KubernetesObject, kubernetesFile, secondsOf } from "../support/sources.ts";

interface TargetRef {
  readonly group: string;
  readonly kind: string;
  readonly name: string;
}
interface ClientTraffic {
  readonly targetRefs: readonly TargetRef[];
  readonly clientIPDetection?: unknown;
  readonly proxyProtocol?: unknown;
  readonly timeout: { readonly http: Readonly<Record<string, string>> };
  readonly connection: { readonly connectionLimit: { readonly value: number } };
}
interface BackendTraffic {
  readonly targetRefs: readonly TargetRef[];
  readonly retry?: unknown;
  readonly requestBuffer?: unknown;
  readonly timeout: {
    readonly tcp: { readonly connectTimeout: string };
    readonly http: { readonly connectionIdleTimeout: string };
  };
  readonly circuitBreaker: Readonly<Record<string, number>>;
  readonly rateLimit: { readonly local: { readonly rules: readonly object[] } };
}
interface EnvoyProxy {
  readonly telemetry: { readonly accessLog: { readonly disable: boolean } };
  readonly logging: { readonly level: { readonly default: string } };
  readonly shutdown: { readonly minDrainDuration: string; readonly drainTimeout: string };
}
interface EdgePolicy {
  readonly ingress: readonly { readonly from: readonly object[]; readonly ports: readonly object[] }[];
}

const FOLDER = "components/envoy-gateway";
const client = await only<ClientTraffic>("client-traffic.yaml");
const policies = await kubernetesFile<BackendTraffic>(`${FOLDER}/backend-traffic.yaml`);
const proxy = await only<EnvoyProxy>("envoy-proxy.yaml");
const policy = await only<EdgePolicy>("network-policy.yaml");
const edge = await kubernetesFile<unknown>("base/edge.yaml");
const text = (path: string) => readFile(new URL(`../../deploy/${path}`, import.meta.url), "utf8");
const base = parse(await text("kubernetes/base/kustomization.yaml"));
const nginx = await text("docker/nginx.conf");
const { maxConnections, httpConnections, connectionsPerAddress } = settingsReader(
  "RELAY_MAX_CONNECTIONS",
  "RELAY_HTTP_CONNECTIONS",
  "RELAY_CONNECTIONS_PER_ADDRESS",
)({});

async function only<Spec>(file: string): Promise<KubernetesObject<Spec>> {
  const [found, ...others] = await kubernetesFile<Spec>(`${FOLDER}/${file}`);
  if (found === undefined || others.length > 0) throw new Error(`${file} has one object.`);
  return found;
}

function trafficTo(route: string): BackendTraffic {
  const found = policies.find(({ metadata }) => metadata.name === route);
  if (found === undefined) throw new Error(`There is no policy ${route}.`);
  return found.spec;
}

/** Seconds of a directive of compose's edge, where a pattern finds it. */
function secondsOfCompose(pattern: RegExp): number {
  const [, seconds] = pattern.exec(nginx) ?? [];
  return Number(seconds);
}

describe("Envoy Gateway as the edge", () => {
  test("has a policy for the Gateway and one for each of its routes", () => {
    expect(client.spec.targetRefs.map(({ kind, name }) => [kind, name])).toEqual([["Gateway", "relay"]]);
    const targets = policies.map(({ metadata, spec }) => [metadata.name, spec.targetRefs]);
    const routes = edge.filter(({ kind }) => kind === "HTTPRoute").map(({ metadata }) => metadata.name);
    const group = "gateway.networking.k8s.io";
    expect(targets).toEqual(routes.map((name) => [name, [{ group, kind: "HTTPRoute", name }]]));
  });

  test("logs no request, and of itself errors alone", () => {
    expect(proxy.spec.telemetry.accessLog).toEqual({ disable: true });
    expect(proxy.spec.logging.level).toEqual({ default: "error" });
  });

  test("is the one proxy whose word about a client's address is taken", () => {
    const [shared] = base.configMapGenerator.filter(({ name }: { name: string }) => name === "relay-config");
    expect(shared.literals).toContain("RELAY_TRUSTED_PROXY_HOPS=1");
    expect(client.spec.clientIPDetection).toBeUndefined();
    expect(client.spec.proxyProtocol).toBeUndefined();
  });

  test("alone reaches the services: the Envoys of this Gateway, none of another", () => {
    const owner = "gateway.envoyproxy.io/owning-gateway";
    expect(policy.spec.ingress).toEqual([
      {
        from: [
          {
            namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "envoy-gateway-system" } },
            podSelector: { matchLabels: { [`${owner}-namespace`]: base.namespace, [`${owner}-name`]: "relay" } },
          },
        ],
        ports: [{ protocol: "TCP", port: 8080 }],
      },
    ]);
  });

  test.each([
    ["relay-websockets", connectionsPerAddress * CONNECTION_LIMITS.opensPerMinuteFactor, "Minute"],
    ["relay", connectionsPerAddress, "Second"],
  ] as const)("counts what begins of %s by address, whichever the version of IP", (route, requests, unit) => {
    const rules = ["0.0.0.0/0", "::/0"].map((value) => ({
      clientSelectors: [{ sourceCIDR: { type: "Distinct", value } }],
      limit: { requests, unit },
    }));
    expect(trafficTo(route).rateLimit).toEqual({ local: { rules } });
  });

  test("takes as many websockets as a pod, and hands on all that it takes", () => {
    expect(client.spec.connection.connectionLimit.value).toBe(maxConnections);
    expect(new Set(Object.values(trafficTo("relay-websockets").circuitBreaker))).toEqual(new Set([maxConnections]));
  });

  test("has as many requests under way as a service takes connections", () => {
    expect(new Set(Object.values(trafficTo("relay").circuitBreaker))).toEqual(new Set([httpConnections]));
  });

  test("keeps a websocket open through two heartbeats that fail to come, as compose's edge does", () => {
    const seconds = secondsOf(client.spec.timeout.http.streamIdleTimeout);
    expect(seconds * 1000).toBeGreaterThan(2 * PRESENCE_LIMITS.staleAfterMs);
    expect(seconds * 1000).toBeGreaterThan(2 * CONNECTION_LIMITS.pingIntervalMs);
    expect(seconds).toBe(secondsOfCompose(/location ~ \^\/\(\?:ws\|relay\)\$ \{[^}]*proxy_read_timeout (\d+)s;/));
  });

  test("waits for a request and for a pod as long as compose's edge does", () => {
    const { requestReceivedTimeout } = client.spec.timeout.http;
    expect(secondsOf(requestReceivedTimeout)).toBe(secondsOfCompose(/client_body_timeout (\d+)s;/));
    for (const { spec } of policies) {
      expect(secondsOf(spec.timeout.tcp.connectTimeout)).toBe(secondsOfCompose(/proxy_connect_timeout (\d+)s;/));
    }
  });

  test("gives up an idle connection to a service before the service does", () => {
    const settings = { httpConnections, connectionsPerAddress, trustedProxyHops: 1 };
    for (const { spec } of policies) {
      const seconds = secondsOf(spec.timeout.http.connectionIdleTimeout);
      expect(seconds * 1000).toBeLessThan(connectionBounds(settings).idleMs);
    }
  });

  test("gathers no body and sends no request twice", () => {
    for (const { spec } of policies) {
      expect(spec.requestBuffer).toBeUndefined();
      expect(spec.retry).toBeUndefined();
    }
  });

  test("ends its websockets soon after it is stopped, since they never end by themselves", () => {
    const { minDrainDuration, drainTimeout } = proxy.spec.shutdown;
    expect(secondsOf(minDrainDuration)).toBeGreaterThanOrEqual(5);
    expect(secondsOf(drainTimeout)).toBeGreaterThan(secondsOf(minDrainDuration));
    expect(secondsOf(drainTimeout)).toBeLessThanOrEqual(30);
  });
});
