import { readFileSync } from "node:fs";
import { describe, expect, test } from "@jest/globals";
import type { IIngress } from "kubernetes-models/networking.k8s.io/v1";
import { CONNECTION_LIMITS, PRESENCE_LIMITS } from "protocol/contract/limits.ts";
import type { Surface } from "protocol/contract/surface.ts";
import { SURFACES, serviceOf, WEBSOCKET_PATH } from "protocol/contract/surfaces.ts";
import { readWsConnectorSettings } from "ws-connector/settings.ts";
import { environmentOf } from "./environment.ts";
import { type Manifest, mainContainer, named, OVERLAYS, render } from "./manifests.ts";

const REQUESTS = Object.values<Surface>(SURFACES).flatMap(({ method, path, aliases }) =>
  [path, ...aliases].map((each) => ({ method, path: each.replace("{session_id}", "ses_0123") })),
);
const COMPOSE_EDGE = readFileSync(new URL("../../../deploy/docker/nginx.conf", import.meta.url), "utf8");
const sum = (numbers: readonly number[]) => numbers.reduce((total, number) => total + number, 0);
const UNKNOWN = ["/api/public/no-such", "/api/ops/no-such", "/api/opsx", "/api/diagnostics/x", "/ws/x", "/relayed"];

const overlays = await Promise.all(OVERLAYS.map(async (overlay) => ({ overlay, objects: await render(overlay) })));

/** The service behind a path: an exact match first, then the longest prefix of whole segments. */
function backendOf(ingress: IIngress, path: string): string | undefined {
  const [rule, ...others] = ingress.spec?.rules ?? [];
  expect(others).toEqual([]);
  const paths = rule?.http?.paths ?? [];
  const exact = paths.find((each) => each.pathType === "Exact" && each.path === path);
  const prefixes = paths
    .filter(({ pathType, path: prefix = "" }) => pathType === "Prefix" && isBelow(path, prefix))
    .sort((a, b) => (b.path ?? "").length - (a.path ?? "").length);
  return (exact ?? prefixes[0])?.backend.service?.name;
}

function isBelow(path: string, prefix: string): boolean {
  return prefix === "/" || path === prefix || path.startsWith(`${prefix}/`);
}

function environmentOfService(objects: readonly Manifest[], name: string): Record<string, string> {
  return environmentOf(objects, mainContainer(named(objects, "Deployment", name)));
}

describe.each(overlays)("The edge of the $overlay overlay", ({ objects }) => {
  const ingress = named(objects, "Ingress", "relay");

  test.each(REQUESTS)("leads $method $path to the service that answers it", ({ method, path }) => {
    expect(backendOf(ingress, path)).toBe(serviceOf(method, path));
  });

  test.each(UNKNOWN)("leads GET %s, which nobody knows, to the service that says so", (path) => {
    expect(backendOf(ingress, path)).toBe(serviceOf("GET", path));
  });

  test("leads both websocket paths to the connector", () => {
    const { alternateWsPath } = readWsConnectorSettings(environmentOfService(objects, "ws-connector"));
    expect(backendOf(ingress, WEBSOCKET_PATH)).toBe("ws-connector");
    expect(backendOf(ingress, alternateWsPath)).toBe("ws-connector");
  });

  test("leads to ports that the Services have", () => {
    for (const { backend } of ingress.spec?.rules?.[0]?.http?.paths ?? []) {
      const service = named(objects, "Service", backend.service?.name ?? "");
      const port = service.spec?.ports?.find(({ name }) => name === backend.service?.port?.name);
      expect(port).toMatchObject({ name: "http", port: 8080 });
    }
  });

  test("keeps a websocket open through two heartbeats that fail to come", () => {
    const annotations = ingress.metadata?.annotations ?? {};
    for (const direction of ["read", "send"]) {
      const seconds = Number(annotations[`nginx.ingress.kubernetes.io/proxy-${direction}-timeout`]);
      expect(seconds * 1000).toBeGreaterThan(2 * PRESENCE_LIMITS.staleAfterMs);
      expect(seconds * 1000).toBeGreaterThan(2 * CONNECTION_LIMITS.pingIntervalMs);
    }
    expect(ingress.spec?.ingressClassName).toBe("nginx");
  });

  test("allows one address as many connections as compose's edge, and a bounded rate of requests", () => {
    const annotations = ingress.metadata?.annotations ?? {};
    const most = [...COMPOSE_EDGE.matchAll(/limit_conn \w+ (\d+);/g)].map(([, connections]) => Number(connections));
    expect(most).toEqual([1000, 1000]);
    expect(Number(annotations["nginx.ingress.kubernetes.io/limit-connections"])).toBe(sum(most));
    expect(Number(annotations["nginx.ingress.kubernetes.io/limit-rps"])).toBeGreaterThan(0);
  });

  test("is the one proxy whose word about the client's address is taken", () => {
    for (const service of ["gateway", "ws-connector", "ops-reporting"]) {
      expect(environmentOfService(objects, service).RELAY_TRUSTED_PROXY_HOPS).toBe("1");
    }
  });
});

test("In production the edge speaks TLS under the host that the relay names in its links", () => {
  const objects = overlays.find(({ overlay }) => overlay === "production")?.objects ?? [];
  const { spec } = named(objects, "Ingress", "relay");
  const { protocol, host } = new URL(environmentOfService(objects, "gateway").RELAY_BASE_URL ?? "");
  expect(protocol).toBe("https:");
  expect(spec?.rules?.map((rule) => rule.host)).toEqual([host]);
  expect(spec?.tls).toEqual([{ secretName: "relay-tls", hosts: [host] }]);
});

test("On a machine of one's own the edge answers under any host, so that a forwarded port does", () => {
  const objects = overlays.find(({ overlay }) => overlay === "local")?.objects ?? [];
  const { spec } = named(objects, "Ingress", "relay");
  expect(spec?.rules?.map((rule) => rule.host)).toEqual([undefined]);
  expect(spec?.tls).toBeUndefined();
});
