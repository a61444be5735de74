import { describe, expect, test } from "@jest/globals";
import { kubernetesFile } from "../../support/sources.ts";
import { environmentOf } from "./environment.ts";
import { GATEWAY_OVERLAYS, type Manifest, mainContainer, named, ofKind, render } from "./manifests.ts";

/** What the routes and policies themselves promise: test/deploy/kubernetes-edge.test.ts, test/deploy/envoy-gateway.test.ts. */

const overlays = await Promise.all(
  GATEWAY_OVERLAYS.map(async (overlay) => ({ overlay, objects: await render(overlay) })),
);
const POLICIES = ["ClientTrafficPolicy", "BackendTrafficPolicy"] as const;

function objectsOf(overlay: (typeof GATEWAY_OVERLAYS)[number]): readonly Manifest[] {
  return overlays.find((each) => each.overlay === overlay)?.objects ?? [];
}

describe.each(overlays)("The edge of the $overlay overlay", ({ objects }) => {
  test("has the routes and the policies as they stand in their files", async () => {
    const policies = ["client", "backend"].map((side) => `components/envoy-gateway/${side}-traffic.yaml`);
    const files = ["base/edge.yaml", ...policies].map((file) => kubernetesFile<object>(file));
    const written = (await Promise.all(files)).flat();
    for (const kind of ["HTTPRoute", ...POLICIES] as const) {
      const ofFiles = written.filter((object) => object.kind === kind);
      const expected = ofFiles.map(({ metadata, spec }) => [metadata.name, spec]);
      const rendered = ofKind(objects, kind).map(({ metadata, spec }) => [metadata?.name, spec]);
      expect(rendered.sort()).toEqual(expected.sort());
      expect(rendered.length).toBeGreaterThan(0);
    }
  });

  test("leads to ports that the Services have, and says of one that it takes websockets", () => {
    const backends = ofKind(objects, "HTTPRoute")
      .flatMap(({ spec }) => spec?.rules ?? [])
      .flatMap(({ backendRefs }) => backendRefs ?? []);
    for (const { name, port } of backends) {
      const found = named(objects, "Service", name).spec?.ports?.find((each) => each.port === port);
      expect(found?.name).toBe("http");
      expect(found?.appProtocol).toBe(name === "ws-connector" ? "kubernetes.io/ws" : undefined);
    }
    expect(backends).toHaveLength(3);
  });

  test("gives its policies and its Envoys targets that exist", () => {
    const targets = POLICIES.flatMap((kind) => ofKind(objects, kind)).flatMap(({ spec }) => spec.targetRefs ?? []);
    for (const { kind, name } of targets) named(objects, kind as "Gateway" | "HTTPRoute", name);
    expect(targets).toHaveLength(3);
    const { infrastructure } = named(objects, "Gateway", "relay").spec;
    expect(infrastructure?.parametersRef).toEqual({
      group: "gateway.envoyproxy.io",
      kind: "EnvoyProxy",
      name: named(objects, "EnvoyProxy", "relay").metadata?.name,
    });
  });

  test("has no Ingress beside it", () => {
    expect(ofKind(objects, "Ingress")).toEqual([]);
  });
});

describe("In production", () => {
  const objects = objectsOf("production");

  test("the edge speaks TLS alone, under the host that the relay names in its links", () => {
    const { RELAY_BASE_URL = "" } = environmentOf(objects, mainContainer(named(objects, "Deployment", "gateway")));
    const { protocol, host } = new URL(RELAY_BASE_URL);
    expect(protocol).toBe("https:");
    const tls = { certificateRefs: [{ name: "relay-tls" }] };
    expect(named(objects, "Gateway", "relay").spec.listeners).toEqual([
      { name: "https", protocol: "HTTPS", port: 443, hostname: host, tls },
    ]);
  });

  test("two Envoys at least are the edge, one of which goes at a time, and they learn who connects", () => {
    const { kubernetes } = named(objects, "EnvoyProxy", "relay").spec?.provider ?? {};
    expect(kubernetes?.envoyDeployment?.replicas).toBeGreaterThanOrEqual(2);
    expect(kubernetes?.envoyPDB).toEqual({ maxUnavailable: 1 });
    expect(kubernetes?.envoyService).toEqual({ type: "LoadBalancer", externalTrafficPolicy: "Local" });
  });
});

test("On a machine of one's own the edge answers under any host, so that a forwarded port does, and is not exposed", () => {
  const objects = objectsOf("local");
  expect(named(objects, "Gateway", "relay").spec.listeners).toEqual([{ name: "http", protocol: "HTTP", port: 80 }]);
  const { kubernetes } = named(objects, "EnvoyProxy", "relay").spec?.provider ?? {};
  expect(kubernetes?.envoyService).toEqual({ type: "ClusterIP" });
  expect(kubernetes?.envoyDeployment?.replicas).toBeUndefined();
});
