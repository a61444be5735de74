import type { DomainHint, DomainRouting } from "relay-protocol/contract/reports/checks.ts";
import { PRIVACY } from "relay-protocol/contract/reports/common.ts";
import { SURFACES } from "relay-protocol/contract/surfaces.ts";
import type { OpsReportingSettings } from "../settings.ts";

/** One request as it was received, unchecked; a header field that was not sent is an empty text. */
export interface ObservedRequest {
  readonly host: string;
  readonly encrypted: boolean;
  readonly forwardedHost: string;
  readonly forwardedProto: string;
}

type Scheme = "http" | "https";
type Settings = Pick<OpsReportingSettings, "baseUrl" | "wsUrl" | "publicHosts" | "trustedProxyHops">;
type Observed = DomainRouting["observed"];

/** Compares the host that a request was sent to with the expected ones. Pure. */
export function domainRouting(request: ObservedRequest, settings: Settings): DomainRouting {
  const { baseUrl, wsUrl, publicHosts, trustedProxyHops } = settings;
  const observed = observedOf(request, trustedProxyHops);
  const expected: DomainRouting["expected"] = {
    public_hosts: publicHosts ?? [new URL(baseUrl).host],
    source: publicHosts === undefined ? "RELAY_BASE_URL" : "RELAY_PUBLIC_HOSTS",
    base_url: baseUrl,
    ws_url: wsUrl,
    trusted_proxy_hops: trustedProxyHops,
  };
  const matches = observed.public_origin !== null && isExpected(observed.public_origin, expected.public_hosts);
  const hints = hintsOf(observed, expected, matches);
  return {
    ok: true,
    service: "agent-relay",
    endpoint: SURFACES.domainRouting.path,
    observed,
    expected,
    host_matches_expected: matches,
    stale_custom_domain_hints: hints.map((code) => ({ code, hint: HINTS[code] })),
    next_action: hints[0] === undefined ? "Routing is as expected: nothing to do." : HINTS[hints[0]],
    privacy: PRIVACY,
  };
}

/** The problem and its fix. None repeats what the client sent. */
const HINTS: Readonly<Record<DomainHint, string>> = {
  observed_host_missing: "The request named no valid host: have the edge pass on the Host field as the client sent it.",
  stale_custom_domain:
    "observed.public_origin is not an expected host. If it is an old custom domain, remove its DNS record or edge rule; if it is intended, add it to RELAY_PUBLIC_HOSTS.",
  base_url_host_not_expected:
    "Links lead to a host that is not expected: correct RELAY_BASE_URL or RELAY_PUBLIC_HOSTS.",
  ws_url_host_not_expected:
    "Websocket addresses lead to a host that is not expected: correct RELAY_WS_URL or RELAY_PUBLIC_HOSTS.",
  scheme_differs_from_base_url:
    "The scheme of the request differs from that of RELAY_BASE_URL: have the edge redirect to it, or pass on X-Forwarded-Proto.",
  forwarded_headers_not_trusted:
    "Forwarded header fields were received and ignored: if a proxy of yours wrote them, set RELAY_TRUSTED_PROXY_HOPS.",
};

/** Most urgent first. */
function hintsOf(observed: Observed, expected: DomainRouting["expected"], matches: boolean): DomainHint[] {
  const { base_url, ws_url, public_hosts } = expected;
  const found: Readonly<Record<DomainHint, boolean>> = {
    observed_host_missing: observed.public_origin === null,
    stale_custom_domain: observed.public_origin !== null && !matches,
    base_url_host_not_expected: !isExpected(base_url, public_hosts),
    ws_url_host_not_expected: !isExpected(ws_url.replace(/^ws/, "http"), public_hosts),
    scheme_differs_from_base_url: matches && !base_url.startsWith(`${observed.proxy_scheme ?? observed.scheme}:`),
    forwarded_headers_not_trusted: observed.forwarded_headers === "not_trusted",
  };
  return (Object.keys(found) as DomainHint[]).filter((hint) => found[hint]);
}

/** Forwarded fields are the client's own unless a trusted proxy wrote them: without trusted hops they are ignored. */
function observedOf(request: ObservedRequest, hops: number): Observed {
  const { forwardedHost, forwardedProto } = request;
  const wereSent = forwardedHost !== "" || forwardedProto !== "";
  const scheme: Scheme = request.encrypted ? "https" : "http";
  const host = hostOf(request.host);
  const proxy_host = hostOf(trusted(forwardedHost, hops));
  const proxy_scheme = schemeOf(trusted(forwardedProto, hops));
  const proxy_origin = originOf(proxy_scheme ?? scheme, proxy_host);
  return {
    host,
    scheme,
    proxy_host,
    proxy_scheme,
    proxy_origin,
    public_origin: proxy_origin ?? originOf(proxy_scheme ?? scheme, host),
    forwarded_headers: wereSent ? (hops > 0 ? "trusted" : "not_trusted") : "absent",
  };
}

/** The entry that the outermost trusted proxy wrote, counted from the right: the client writes what is further left. */
function trusted(field: string, hops: number): string {
  const entries = field.split(",").map((entry) => entry.trim());
  return hops === 0 ? "" : (entries.at(-Math.min(hops, entries.length)) as string);
}

/** A host name or address with or without port, in lower case; null for anything else, which is not shown. */
function hostOf(text: string): string | null {
  const host = text.toLowerCase();
  const isHost = host.length <= 255 && /^(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?$/.test(host);
  return isHost && URL.canParse(`http://${host}`) ? host : null;
}

function schemeOf(text: string): Scheme | null {
  const scheme = text.toLowerCase();
  return scheme === "http" || scheme === "https" ? scheme : null;
}

function originOf(scheme: Scheme, host: string | null): string | null {
  return host === null ? null : `${scheme}://${host}`;
}

/** A default port may be present or absent on either side. */
function isExpected(origin: string, hosts: readonly string[]): boolean {
  const { protocol, host } = new URL(origin);
  return hosts.some((expected) => URL.parse(`${protocol}//${expected}`)?.host === host);
}
