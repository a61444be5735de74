import { describe, expect, test } from "@jest/globals";
import { DomainRouting } from "relay-protocol/contract/reports/checks.ts";
import { domainRouting, type ObservedRequest } from "../src/reports/domain-routing.ts";

const SETTINGS = {
  baseUrl: "https://relay.example",
  wsUrl: "wss://relay.example",
  publicHosts: undefined as string[] | undefined,
  trustedProxyHops: 0,
};
const REQUEST = { host: "relay.example", encrypted: true, forwardedHost: "", forwardedProto: "" };

const reportOf = (request: Partial<ObservedRequest> = {}, settings: Partial<typeof SETTINGS> = {}) =>
  DomainRouting.parse(domainRouting({ ...REQUEST, ...request }, { ...SETTINGS, ...settings }));
const hintsOf = (...given: Parameters<typeof reportOf>) =>
  reportOf(...given).stale_custom_domain_hints.map(({ code }) => code);

describe("domain-routing", () => {
  test("finds nothing to do where the host is the base URL's", () => {
    expect(reportOf()).toMatchObject({
      observed: {
        host: "relay.example",
        scheme: "https",
        proxy_origin: null,
        public_origin: "https://relay.example",
        forwarded_headers: "absent",
      },
      expected: { public_hosts: ["relay.example"], source: "RELAY_BASE_URL" },
      host_matches_expected: true,
      stale_custom_domain_hints: [],
    });
  });

  test("expects the public hosts that are set, in place of the base URL's", () => {
    const settings = { publicHosts: ["relay.example", "agents.example:8443"] };
    expect(reportOf({ host: "agents.example:8443" }, settings)).toMatchObject({
      expected: { public_hosts: settings.publicHosts, source: "RELAY_PUBLIC_HOSTS" },
      host_matches_expected: true,
    });
    expect(reportOf({ host: "agents.example" }, settings).host_matches_expected).toBe(false);
  });

  test.each([
    ["RELAY.Example", true],
    ["relay.example:443", true],
    ["relay.example:80", false],
    ["old.example", false],
    ["relay.example.evil.test", false],
  ])("the host %s as expected: %j", (host, matches) => {
    expect(reportOf({ host }).host_matches_expected).toBe(matches);
    expect(hintsOf({ host })).toEqual(matches ? [] : ["stale_custom_domain"]);
  });

  test.each([
    "",
    "a b",
    "<script>",
    "relay.example/path",
    "user@relay.example",
    "x".repeat(300),
    "relay.example:99999",
  ])("of %j, which names no host, nothing is shown", (host) => {
    const report = reportOf({ host });
    expect(report.observed).toMatchObject({ host: null, public_origin: null });
    expect(report.stale_custom_domain_hints.map(({ code }) => code)).toEqual(["observed_host_missing"]);
    if (host !== "") expect(JSON.stringify(report)).not.toContain(`"${host}"`);
  });

  test("forwarded fields are ignored without a trusted proxy, but for the hint that they were received", () => {
    const request = { forwardedHost: "evil.test", forwardedProto: "http" };
    const report = reportOf(request);
    expect(report.observed).toMatchObject({ proxy_host: null, proxy_origin: null, forwarded_headers: "not_trusted" });
    expect(report.host_matches_expected).toBe(true);
    expect(JSON.stringify(report)).not.toContain("evil");
    expect(hintsOf(request)).toEqual(["forwarded_headers_not_trusted"]);
  });

  test.each([
    [1, "relay.example", "https://relay.example"],
    [1, "evil.test, relay.example", "https://relay.example"],
    [2, "evil.test, relay.example, inner.example", "https://relay.example"],
    [2, "relay.example", "https://relay.example"],
    [1, "evil.test, ", null],
  ])("%i trusted hops believe of %j the origin %j", (trustedProxyHops, forwardedHost, origin) => {
    const request = { host: "10.0.0.7:8080", encrypted: false, forwardedHost, forwardedProto: "https" };
    const report = reportOf(request, { trustedProxyHops });
    expect(report.observed).toMatchObject({ proxy_origin: origin, host: "10.0.0.7:8080", scheme: "http" });
    expect(report.host_matches_expected).toBe(origin !== null);
    expect(JSON.stringify(report)).not.toContain("evil");
  });

  test("a proxy that passes the Host field on and tells the scheme alone is enough", () => {
    const request = { encrypted: false, forwardedProto: "https" };
    const report = reportOf(request, { trustedProxyHops: 1 });
    expect(report.observed).toMatchObject({ public_origin: "https://relay.example", forwarded_headers: "trusted" });
    expect(report.stale_custom_domain_hints).toEqual([]);
  });

  test("the websocket address that is expected has no path, as the base address has none", () => {
    expect(reportOf({}).expected).toMatchObject({ base_url: "https://relay.example", ws_url: "wss://relay.example" });
  });

  test("hints at links that lead elsewhere, and at another scheme, most urgent first", () => {
    expect(hintsOf({ host: "new.example" }, { publicHosts: ["new.example"] })).toEqual([
      "base_url_host_not_expected",
      "ws_url_host_not_expected",
    ]);
    expect(hintsOf({ encrypted: false })).toEqual(["scheme_differs_from_base_url"]);
    const report = reportOf({ host: "old.example" }, { wsUrl: "wss://other.example" });
    expect(report.stale_custom_domain_hints.map(({ code }) => code)).toEqual([
      "stale_custom_domain",
      "ws_url_host_not_expected",
    ]);
    expect(report.next_action).toBe(report.stale_custom_domain_hints[0]?.hint);
  });
});
