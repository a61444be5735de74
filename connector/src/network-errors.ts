import { RelayError, type Retry } from "./errors.ts";
import { waitOf } from "./frames.ts";
import { RETRY_AFTER_CAP_MS } from "./limits.ts";

/** Why a relay could not be reached. */
export interface NetworkError {
  /** The end of a sentence. */
  readonly why: string;
  readonly hint: string;
  /** `fix`: trying again cannot help. */
  readonly retry: Retry;
  /** As an answer asked. */
  readonly retryAfterMs?: number | undefined;
}

const entry = (why: string, hint: string, retry: Retry): NetworkError => ({ why, hint, retry });

const REFUSED_HINT = "Start the relay, or correct the host and port of its address.";
const NAME_HINT =
  "Correct the host of the relay's address, or wait until this machine's DNS knows it. Behind a proxy set HTTPS_PROXY, for http:// HTTP_PROXY, and leave the host out of NO_PROXY.";
const NETWORK_HINT = "Check this machine's network, and firewalls between it and the relay.";
const SELF_SIGNED_HINT =
  "Give the relay a public certificate, or have Node trust its authority: NODE_EXTRA_CA_CERTS=ca.pem.";
const CHAIN_HINT =
  "The server must send its intermediate certificates, or NODE_EXTRA_CA_CERTS must name its authority.";
const NO_TLS_HINT = "This port speaks plain http: use http:// (or ws://), or the port of the relay's TLS.";
const VERSION_HINT = "The server, or a proxy in front of it, must offer TLS 1.2 or later.";
const CLIENT_CERTIFICATE_HINT = "This package presents none: use an address of the relay that asks for none.";
const HANDSHAKE_HINT =
  "The server may ask for a client certificate, which this package does not present, or offer no cipher of this machine's.";
const NO_HTTP_HINT =
  "Correct the host and port of the relay's address; if the port speaks TLS, use https:// (or wss://).";
const FAULTY_HINT = "An edge may answer so while its relay is away. If it lasts, ask the operator.";
const UNKNOWN_HINT = "Check the relay's address, this machine's network, and what stands between the two.";
const MAYBE_TLS_HINT = "Something ended the connection at once: where the port speaks TLS, use https:// (or wss://).";

const SELF_SIGNED = entry("its certificate is self-signed", SELF_SIGNED_HINT, "fix");
const UNVERIFIED = entry("its certificate cannot be verified", CHAIN_HINT, "fix");
const NO_TLS = entry("it does not speak TLS on this port", NO_TLS_HINT, "fix");
const NO_HTTP = entry("what answers there does not speak HTTP", NO_HTTP_HINT, "fix");
const CUT_OFF = entry("connection reset", MAYBE_TLS_HINT, "later");
const SILENT = entry("the host does not answer", NETWORK_HINT, "later");

/** By error code: of POSIX, of getaddrinfo, and Node's names for OpenSSL's. */
const NETWORK_ERRORS: Readonly<Record<string, NetworkError>> = {
  ECONNREFUSED: entry("connection refused", REFUSED_HINT, "later"),
  ECONNRESET: CUT_OFF,
  EPIPE: CUT_OFF,
  ENOTFOUND: entry("unknown host", NAME_HINT, "later"),
  EAI_AGAIN: entry("the host name could not be resolved", NAME_HINT, "later"),
  EHOSTUNREACH: entry("the host is not reachable", NETWORK_HINT, "later"),
  ENETUNREACH: entry("the network is not reachable", NETWORK_HINT, "later"),
  ETIMEDOUT: SILENT,
  CERT_HAS_EXPIRED: entry("its certificate has expired", "Renew it, or set this machine's clock.", "fix"),
  CERT_NOT_YET_VALID: entry("its certificate is not valid yet", "Set this machine's clock.", "fix"),
  DEPTH_ZERO_SELF_SIGNED_CERT: SELF_SIGNED,
  SELF_SIGNED_CERT_IN_CHAIN: SELF_SIGNED,
  CERT_REVOKED: entry("its certificate was revoked", "The server needs another certificate.", "fix"),
  ERR_TLS_CERT_ALTNAME_INVALID: entry("its certificate is for another host", "Use a host name that it names.", "fix"),
};

/** Node's other names for OpenSSL's X509_V_ERR_*: none of them passes by itself. UNSPECIFIED is each that has none. */
const UNVERIFIED_CODE =
  /^(?:UNABLE_TO_\w+|(?:CERT|CRL)_\w+|ERROR_IN_\w+|INVALID_(?:CA|PURPOSE)|PATH_LENGTH_EXCEEDED|HOSTNAME_MISMATCH|UNSPECIFIED)$/;

/** By OpenSSL's words for it, in Node's code or, for EPROTO, in the message. Any other failure of a handshake may pass. */
const TLS_ERRORS: readonly (readonly [words: RegExp, NetworkError])[] = [
  [/wrong.version.number|packet.length.too.long|record.layer.failure|unknown.protocol/i, NO_TLS],
  [
    /protocol.version|unsupported.protocol|insufficient.security/i,
    entry("it has no version of TLS of this machine's", VERSION_HINT, "fix"),
  ],
  [/unrecognized.name/i, entry("it serves no host of this name", "Use a host name that it serves.", "fix")],
  [/certificate.required|bad.certificate/i, entry("it asks for a client certificate", CLIENT_CERTIFICATE_HINT, "fix")],
  [/handshake.failure/i, entry("it refused the TLS handshake", HANDSHAKE_HINT, "fix")],
  [/./, entry("the TLS handshake failed", UNKNOWN_HINT, "later")],
];

/** Of Node's parser. Its other codes are of an answer that began as HTTP. */
const NO_HTTP_CODES: ReadonlySet<unknown> = new Set([
  "HPE_INVALID_CONSTANT",
  "HPE_INVALID_VERSION",
  "HPE_INVALID_STATUS",
]);

/** No connection came about. */
const UNCONNECTED: ReadonlySet<unknown> = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN"]);

/** What is read of the error of a failed request. */
export interface FailedRequest {
  readonly name?: string | undefined;
  readonly code?: string | undefined;
  readonly message?: string | undefined;
  /** Why, of a proxy on the way. */
  readonly networkError?: NetworkError | undefined;
  /** Whether the other end may have got the request: its TLS was there, or a proxy answers in its place. */
  readonly wasSent?: boolean | undefined;
}

/** An answer of HTTP that no relay gave, or in the place of the upgrade to a websocket. */
export interface StrangeAnswer {
  readonly status: number;
  /** By their names in lower case. */
  readonly headers: Readonly<Record<string, unknown>>;
}

/** Why a websocket could not be opened. */
export type AttemptFailure = StrangeAnswer | FailedRequest;

export function networkErrorOf({ name, code, message, networkError }: FailedRequest): NetworkError {
  if (networkError !== undefined) return networkError;
  if (name === "TimeoutError") return SILENT;
  // A DOMException has a number.
  if (typeof code !== "string") return entry("the connection failed", UNKNOWN_HINT, "later");
  if (Object.hasOwn(NETWORK_ERRORS, code)) return NETWORK_ERRORS[code] as NetworkError;
  if (UNVERIFIED_CODE.test(code)) return UNVERIFIED;
  if (NO_HTTP_CODES.has(code)) return NO_HTTP;
  if (code.startsWith("HPE_")) return entry(`its answer is not valid HTTP (${code})`, FAULTY_HINT, "later");
  const words = code === "EPROTO" ? `${code} ${message}` : code;
  const tlsError = /^(?:EPROTO|ERR_SSL_)/.test(code) ? TLS_ERRORS.find(([pattern]) => pattern.test(words)) : undefined;
  return tlsError?.[1] ?? entry(`the connection failed (${code})`, UNKNOWN_HINT, "later");
}

/** What the other end does not speak, if it is that which failed. */
export function unspokenIn(failed: FailedRequest): "TLS" | "HTTP" | undefined {
  const told = networkErrorOf(failed);
  if (told === NO_TLS) return "TLS";
  return told === NO_HTTP ? "HTTP" : undefined;
}

/** Whether a request failed before anything of it can have gone out. An answer that is no HTTP came to one that did. */
export function wasNeverSent(failed: FailedRequest): boolean {
  if (failed.wasSent) return false;
  if (failed.networkError !== undefined || UNCONNECTED.has(failed.code)) return true;
  const told = networkErrorOf(failed);
  return told.retry === "fix" && told !== NO_HTTP;
}

const PATH_HINT = "Correct the path of the relay's address; a proxy in front must pass its websocket on.";
const EDGE_HINT =
  "An edge in front of the relay refuses this client. Envoy does so while no pod is ready, and it passes. If it lasts, ask the operator.";
const REDIRECT_HINT = "Use the address that it redirects to; http:// often becomes https://.";
const NOWHERE_HINT = "It does not say where to. Correct the relay's address; http:// often becomes https://.";
const UPGRADE_HINT = "The server there must be a relay, and a proxy in between must pass websocket upgrades.";
const UPGRADED_TO_ANOTHER = "101, without the headers of a websocket";
const LATER_HINT = "The relay, or a proxy in front of it, has no room or is down";
/** What servers of TLS, such as nginx, answer to plain HTTP. */
const PLAIN_TO_TLS_HINT = "If the port speaks TLS, use https:// (or wss://). Else the server there must be a relay.";
/** Timeout, too early, too many requests: other refusals of the client are as true at the next attempt. */
const PASSING = new Set([408, 425, 429]);

/** Whether another attempt may be answered otherwise than with this HTTP status. */
export function mayPass(status: number): boolean {
  return status >= 500 || PASSING.has(status);
}

/** @param address that was asked, with the scheme of HTTP. */
export function upgradeRefusal(answer: StrangeAnswer, address: URL): NetworkError {
  const { status } = answer;
  const answered = status === 101 ? UPGRADED_TO_ANOTHER : shownAnswer(answer, address);
  const why = `the upgrade to a websocket was answered with ${answered}`;
  const hint = hintOfStatus(answer, address) ?? (status === 404 ? hintOfPath(address) : UPGRADE_HINT);
  const told = mayPass(status) ? entry(why, hint, "later") : entry(why, `${pathHint(address)}${hint}`, "fix");
  return { ...told, retryAfterMs: retryAfterIn(answer) };
}

/** What answers over HTTP is no relay, or lets nobody through to one. */
export interface NoRelay {
  readonly message: string;
  /** Undefined where the status does not tell what to do. */
  readonly hint: string | undefined;
  readonly retry: Retry;
  /** As it asked. */
  readonly retryAfterMs: number | undefined;
}

/** @param base that was asked. */
export function noRelayAt(base: string, answer: StrangeAnswer): NoRelay {
  const address = new URL(base);
  return {
    message: `No Agent Relay answers at ${base}: the answer was ${shownAnswer(answer, address)}.`,
    hint: hintOfStatus(answer, address),
    retry: mayPass(answer.status) ? "later" : "fix",
    retryAfterMs: retryAfterIn(answer),
  };
}

/** Its status, and where it redirects to. */
function shownAnswer(answer: StrangeAnswer, address: URL): string {
  const to = redirectOf(answer, address);
  if (to === undefined) return `${answer.status}`;
  const shown = to.length > MOST_OF_LOCATION ? `${to.slice(0, MOST_OF_LOCATION)}…` : to;
  return `${answer.status}, a redirect to ${shown}`;
}

function hintOfStatus(answer: StrangeAnswer, address: URL): string | undefined {
  const { status } = answer;
  if (mayPass(status)) return `${LATER_HINT}: ${tryAgain(retryAfterIn(answer))}.`;
  if (status === 401 || status === 403) return EDGE_HINT;
  if (isRedirect(status)) return redirectOf(answer, address) === undefined ? NOWHERE_HINT : REDIRECT_HINT;
  return status === 400 && address.protocol === "http:" ? PLAIN_TO_TLS_HINT : undefined;
}

function isRedirect(status: number): boolean {
  return status >= 300 && status < 400;
}

function redirectOf({ status, headers }: StrangeAnswer, address: URL): string | undefined {
  return isRedirect(status) ? placeOf(headers.location, address) : undefined;
}

/** Errors name the address that was dialled, with /ws. Whoever gives that dials another /ws behind it. */
function hintOfPath({ protocol, host, pathname }: URL): string {
  const base = /^(.*)\/ws\/ws$/.exec(pathname)?.[1];
  return base === undefined ? PATH_HINT : `Use ${protocol}//${host}${base}: the relay's address, without /ws.`;
}

/** A websocket's address is dialled as it is: one with the prefix of the relay alone leads past its websocket. */
function pathHint({ protocol, host, pathname }: URL): string {
  if (pathname.endsWith("/ws")) return "";
  const place = `${host}${pathname}`;
  return `If the relay is at ${protocol}//${place}, use that address, or ${protocol.replace("http", "ws")}//${place}/ws. `;
}

/** In characters of RFC 3986 alone, and with a host after a scheme or //: others mean different places to different clients. */
const LOCATION = /^(?!\/\/(?:\/|$)|(?:[a-z][a-z\d+.-]*:)(?!\/\/[^/]))[\w.~:/[\]@!$&'()*+,;=%-]+$/i;

/** In characters. */
const MOST_OF_LOCATION = 200;

/** Without user, password and query. Undefined where it is no URL of HTTP. */
function placeOf(location: unknown, address: URL): string | undefined {
  const [given = ""] = typeof location === "string" ? location.split(/[?#]/) : [];
  const url = LOCATION.test(given) ? URL.parse(given, address.href) : null;
  return url?.protocol.startsWith("http") ? `${url.protocol}//${url.host}${url.pathname}` : undefined;
}

/** None of a status that does not pass: a start that ends after a while must not wait past its end. */
function retryAfterIn({ status, headers }: StrangeAnswer): number | undefined {
  return mayPass(status) ? retryAfterOf(String(headers["retry-after"] ?? "")) : undefined;
}

/** The wait that an answer asks for: in seconds, or until an IMF-fixdate. Source: RFC 9110, section 10.2.3. */
export function retryAfterOf(text = ""): number | undefined {
  if (/^\d+$/.test(text)) return waitOf(Math.min(Number(text) * 1000, RETRY_AFTER_CAP_MS));
  const until = new Date(text);
  // Date takes many other texts.
  return until.toUTCString() === text ? waitOf(Math.min(until.getTime() - Date.now(), RETRY_AFTER_CAP_MS)) : undefined;
}

/** The end of a hint. */
export function tryAgain(waitMs: number | undefined): string {
  return waitMs === undefined ? "try again later" : `try again in ${Math.ceil(waitMs / 1000)} s`;
}

/**
 * The error of an attempt or a look-up that reached no relay.
 * @param tried the address, of a websocket or of HTTP.
 * @param failure undefined where the platform does not tell it.
 */
export function unreachable(tried: string, failure: AttemptFailure | undefined): RelayError {
  if (failure === undefined) return new RelayError("unreachable");
  const address = new URL(tried.replace(/^ws/, "http"));
  const isAnswer = "status" in failure;
  const { why, ...told } = isAnswer ? upgradeRefusal(failure, address) : networkErrorOf(failure);
  const place = `${address.protocol}//${address.host}${address.pathname.replace(/\/$/, "")}`;
  return new RelayError("unreachable", {
    ...told,
    message: `The relay at ${place} is not reachable: ${why}.`,
    cause: isAnswer ? { status: failure.status } : failure,
  });
}

/** Whether a proxy answered that it does not connect. */
export function isRefusedByProxy({ cause }: RelayError): boolean {
  return typeof (cause as { readonly proxyStatus?: unknown } | undefined)?.proxyStatus === "number";
}

/** Whether something answered that is no relay, or none for this client: it may be an edge whose relay is being changed. */
export function isRefusedUpgrade({ cause }: RelayError): boolean {
  return typeof (cause as { readonly status?: unknown } | undefined)?.status === "number";
}
