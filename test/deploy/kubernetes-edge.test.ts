import { describe, expect, test } from "@jest/globals";
import { serviceOf, WEBSOCKET_PATH } from "relay-protocol/contract/surfaces.ts";
import { settingsReader } from "relay-runtime/settings.ts";
import { EDGE_PATHS, METHODS } from "../support/edge-requests.ts";
import { backendOf, type HttpRoute, type RouteRule, ruleFor } from "../support/http.ts";
import { kubernetesFile, secondsOf } from "../support/sources.ts";

interface EdgeSpec {
  readonly rules?: readonly RouteRule[];
  readonly parentRefs?: readonly { readonly name: string }[];
}

interface ServiceSpec {
  readonly ports: readonly { readonly name: string; readonly port: number }[];
}

const objects = await kubernetesFile<EdgeSpec>("base/edge.yaml");
const gateways = objects.filter(({ kind }) => kind === "Gateway");
const routes: readonly HttpRoute[] = objects.filter(({ kind }) => kind === "HTTPRoute");
const rules = routes.flatMap(({ spec }) => spec?.rules ?? []);
const websocketPaths = [WEBSOCKET_PATH, settingsReader("RELAY_ALTERNATE_WS_PATH")({}).alternateWsPath];

describe("the edge in Kubernetes", () => {
  test.each(EDGE_PATHS)("takes %s to the service of the catalogue", (path) => {
    const expected = METHODS.map((method) => `${method} ${serviceOf(method, path)}`);
    expect(METHODS.map((method) => `${method} ${backendOf(routes, method, path)}`)).toEqual(expected);
  });

  test("takes both websocket paths, whatever the method, to the connectors", () => {
    for (const path of websocketPaths) {
      expect(METHODS.map((method) => backendOf(routes, method, path))).toEqual(METHODS.map(() => "ws-connector"));
    }
  });

  test("leads to the port of each service's surfaces, never to that of its metrics", async () => {
    const backends = rules.flatMap(({ backendRefs }) => backendRefs ?? []);
    expect(backends.map(({ name }) => name).sort()).toEqual(["gateway", "ops-reporting", "ws-connector"]);
    for (const { name, port } of backends) {
      const service = (await kubernetesFile<ServiceSpec>(`base/${name}.yaml`)).find(({ kind }) => kind === "Service");
      expect(service?.spec.ports.filter((each) => each.port === port).map((each) => each.name)).toEqual(["http"]);
    }
  });

  test("ends no websocket for its age, and every other answer within a minute", () => {
    for (const path of websocketPaths) expect(ruleFor(routes, "GET", path)?.timeouts?.request).toBe("0s");
    for (const path of EDGE_PATHS) {
      const seconds = secondsOf(ruleFor(routes, "GET", path)?.timeouts?.request);
      expect(seconds).toBeGreaterThan(0);
      expect(seconds).toBeLessThanOrEqual(60);
    }
  });

  test("keeps what a client says in X-Forwarded-Host from the services, which would believe it", () => {
    const removal = { type: "RequestHeaderModifier", requestHeaderModifier: { remove: ["X-Forwarded-Host"] } };
    expect(rules.map(({ filters }) => filters)).toEqual(rules.map(() => [removal]));
  });

  test("is one Gateway, which has every route", () => {
    expect(gateways.map(({ metadata }) => metadata.name)).toEqual(["relay"]);
    for (const { spec } of objects.filter(({ kind }) => kind === "HTTPRoute")) {
      expect(spec.parentRefs).toEqual([{ name: "relay" }]);
    }
  });
});

describe("what tests make of the rules of an HTTPRoute", () => {
  const rule = (name: string, ...matches: NonNullable<RouteRule["matches"]>) => ({
    spec: { rules: [{ matches, backendRefs: [{ name, port: 1 }] }] },
  });
  const prefix = (value: string) => ({ path: { type: "PathPrefix", value } });

  test("an exact path comes before a prefix, a longer prefix before a shorter, a method before none", () => {
    const known = [
      rule("all", prefix("/")),
      rule("below", prefix("/a")),
      rule("post", { ...prefix("/a"), method: "POST" }),
      rule("exact", { path: { type: "Exact", value: "/a" } }),
    ];
    const asked = ["GET /ab", "GET /a/b", "POST /a/b", "POST /a"].map((line) => line.split(" ") as [string, string]);
    expect(asked.map(([method, path]) => backendOf(known, method, path))).toEqual(["all", "below", "post", "exact"]);
  });

  test("two rules with the same claim are an error, and a path without a rule has no backend", () => {
    expect(() => backendOf([rule("a", prefix("/a")), rule("b", prefix("/a"))], "GET", "/a")).toThrow(/claim/);
    expect(backendOf([rule("a", prefix("/a"))], "GET", "/")).toBeUndefined();
  });
});
