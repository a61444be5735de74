import { describe, expect, test } from "@jest/globals";
import type { Surface } from "relay-protocol/contract/surface.ts";
import { SURFACES, serviceOf, WEBSOCKET_PATH } from "relay-protocol/contract/surfaces.ts";
import { readWsConnectorSettings } from "ws-connector/settings.ts";
import { isBelow } from "../../support/http.ts";
import { environmentOf } from "./environment.ts";
import { mainContainer, named, render } from "./manifests.ts";

const REQUESTS = Object.values<Surface>(SURFACES).flatMap(({ method, path, aliases }) =>
  [path, ...aliases].map((each) => ({ method, path: each.replace("{session_id}", "ses_0123") })),
);
const UNKNOWN = ["/api/public/no-such", "/api/ops/no-such", "/api/opsx", "/api/diagnostics/x", "/ws/x", "/relayed"];

const objects = await render("ingress");
const { metadata, spec } = named(objects, "Ingress", "relay");
const [rule, ...otherRules] = spec?.rules ?? [];
const paths = rule?.http?.paths ?? [];

/** The service behind a path: an exact match first, then the longest prefix of whole segments. */
function backendOf(path: string): string | undefined {
  const exact = paths.find((each) => each.pathType === "Exact" && each.path === path);
  const prefixes = paths
    .filter(({ pathType, path: prefix = "" }) => pathType === "Prefix" && isBelow(path, prefix))
    .sort((a, b) => (b.path ?? "").length - (a.path ?? "").length);
  return (exact ?? prefixes[0])?.backend.service?.name;
}

function environmentOfService(name: string): Record<string, string> {
  return environmentOf(objects, mainContainer(named(objects, "Deployment", name)));
}

describe("The Ingress of the ingress overlay", () => {
  test.each(REQUESTS)("leads $method $path to the service that answers it", ({ method, path }) => {
    expect(backendOf(path)).toBe(serviceOf(method, path));
  });

  test.each(UNKNOWN)("leads GET %s, which nobody knows, to the service that says so", (path) => {
    expect(backendOf(path)).toBe(serviceOf("GET", path));
  });

  test("leads both websocket paths to the connector", () => {
    const { alternateWsPath } = readWsConnectorSettings(environmentOfService("ws-connector"));
    expect(backendOf(WEBSOCKET_PATH)).toBe("ws-connector");
    expect(backendOf(alternateWsPath)).toBe("ws-connector");
  });

  test("leads to ports that the Services have", () => {
    for (const { backend } of paths) {
      const service = named(objects, "Service", backend.service?.name ?? "");
      const port = service.spec?.ports?.find(({ name }) => name === backend.service?.port?.name);
      expect(port).toMatchObject({ name: "http", port: 8080 });
    }
  });

  test("is of any class: it names none, and has no annotation that one of them alone would read", () => {
    expect(spec?.ingressClassName).toBeUndefined();
    expect(metadata?.annotations).toBeUndefined();
  });

  test("speaks TLS under the host that the relay names in its links", () => {
    const { protocol, host } = new URL(environmentOfService("gateway").RELAY_BASE_URL ?? "");
    expect(protocol).toBe("https:");
    expect([rule?.host, otherRules]).toEqual([host, []]);
    expect(spec?.tls).toEqual([{ secretName: "relay-tls", hosts: [host] }]);
  });

  test("is the one proxy whose word about the client's address is taken", () => {
    for (const service of ["gateway", "ws-connector", "ops-reporting"]) {
      expect(environmentOfService(service).RELAY_TRUSTED_PROXY_HOPS).toBe("1");
    }
  });

  test("stands in the place of the Gateway: nothing of Gateway API or of Envoy Gateway is left", () => {
    const groups = objects.map((object) => (object.apiVersion as string).split("/")[0]);
    expect(groups.filter((group) => group?.startsWith("gateway."))).toEqual([]);
  });
});
