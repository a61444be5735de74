/** A protection, and what takes its place to see that a test notices. */
export interface Sabotage {
  /** What no longer holds. */
  readonly without: string;
  /**
   * `<path of the module>#<an export, or a method of one>`; in Lua and Python a function or method. With no `#` the module only
   * gets one more line.
   */
  readonly place: string;
  /** In the language of the module. `original` is what was in the place. */
  readonly becomes: string;
  /** Test files. In each of them a test must fail. */
  readonly tests: readonly string[];
}

/** The path of the module, and what is replaced in it. */
export function partsOf({ place }: Sabotage): readonly [module: string, target: string | undefined] {
  const [module = "", target] = place.split("#");
  return [module, target];
}

const PROTOCOL = "shared/protocol/src";
const RUNTIME = "shared/runtime/src";
const WINDOW = "shared/window/src";
const POD = "services/ws-connector/src";
const PYTHON = "connector-python/src/agent_relay_connector";

const PROTOCOL_TESTS = "shared/protocol/test";
const WINDOW_TESTS = "shared/window/test";
const POD_TESTS = "services/ws-connector/test";
const GATEWAY_TESTS = "services/gateway/test";
const CONFORMANCE = "test/conformance";

/** The reply of one Lua script. */
const reply = (script: string, value: string) =>
  `async (client, name, keys, args) => name === "${script}" ? ${value} : await original(client, name, keys, args)`;

const SIGNATURES: readonly Sabotage[] = [
  {
    without: "a signature is the key's",
    place: `${PROTOCOL}/signing/algorithms.ts#verify`,
    becomes: "() => true",
    tests: [`${PROTOCOL_TESTS}/signing/algorithms.test.ts`],
  },
  {
    without: "an envelope whose signature is wrong is refused",
    place: `${PROTOCOL}/intake/steps.ts#checkAfterSignature`,
    becomes: "(candidate) => original(candidate, true)",
    tests: [`${PROTOCOL_TESTS}/intake/steps.test.ts`, `${CONFORMANCE}/refusals.test.ts`],
  },
  {
    without: "no key of small order",
    place: `${PROTOCOL}/signing/algorithms.ts#isSmallOrderEd25519`,
    becomes: "() => false",
    tests: [`${PROTOCOL_TESTS}/signing/algorithms.test.ts`],
  },
  {
    without: "a shared secret cannot be guessed",
    place: `${PROTOCOL}/signing/algorithms.ts#importSecret`,
    becomes: '(text) => new HmacSecret(Buffer.from(text, "base64url"))',
    tests: [`${PROTOCOL_TESTS}/signing/algorithms.test.ts`],
  },
  {
    without: "no member of a credential stands twice",
    place: `${PROTOCOL}/wire/json.ts#parseUniqueJson`,
    becomes: "(text) => JSON.parse(text)",
    tests: [`${PROTOCOL_TESTS}/signing/credentials.test.ts`],
  },
  {
    without: "a register is for this relay and this connection",
    place: `${PROTOCOL}/intake/destination-step.ts#checkDestination`,
    becomes: "() => undefined",
    tests: [`${PROTOCOL_TESTS}/intake/destination-step.test.ts`, `${CONFORMANCE}/replay.test.ts`],
  },
];

const AUTHORITY: readonly Sabotage[] = [
  {
    without: "a key acts for its own agents",
    place: `${PROTOCOL}/signing/key-ring.ts#KeyRing.prototype.signingKey`,
    becomes:
      "function (...args) { const key = original.apply(this, args); return key && { ...key, mayAct: () => true }; }",
    tests: [`${CONFORMANCE}/refusals.test.ts`],
  },
  {
    without: "an API key sends for its own agents",
    place: `${PROTOCOL}/signing/key-ring.ts#KeyRing.prototype.apiKey`,
    becomes:
      "function (...args) { const key = original.apply(this, args); return key && { ...key, mayAct: () => true }; }",
    tests: [`${GATEWAY_TESTS}/refusals.test.ts`],
  },
  {
    without: "a key is valid for its time",
    place: `${PROTOCOL}/signing/credentials.ts#isValidAt`,
    becomes: "() => true",
    tests: [`${PROTOCOL_TESTS}/signing/key-ring.test.ts`],
  },
  {
    without: "a credential is its issuer's",
    place: `${PROTOCOL}/intake/credential-step.ts#isIssued`,
    becomes: "() => true",
    tests: [`${GATEWAY_TESTS}/self-test.test.ts`],
  },
  {
    without: "a token is verified before it is remembered",
    place: `${RUNTIME}/verification/envelope-verifier.ts#IssuedTokens.prototype.has`,
    becomes: "() => true",
    tests: ["shared/runtime/test/verification/envelope-verifier.test.ts", `${CONFORMANCE}/credentials.test.ts`],
  },
  {
    without: "a credential's key signs for its agent alone",
    place: `${PROTOCOL}/intake/credential-step.ts#entryOfCredential`,
    becomes: "(credential) => ({ ...original(credential), mayAct: () => true })",
    tests: [`${PROTOCOL_TESTS}/intake/credential-step.test.ts`],
  },
  {
    without: "an issuer speaks for its own agents",
    place: `${PROTOCOL}/signing/credentials.ts#AgentHolders.prototype.isOfIssuer`,
    becomes: "() => true",
    tests: [`${PROTOCOL_TESTS}/signing/issuers.test.ts`],
  },
  {
    without: "a listed key does not speak for an issuer's agents",
    place: `${PROTOCOL}/signing/credentials.ts#AgentHolders.prototype.isOfListedKeys`,
    becomes: "() => true",
    tests: [`${PROTOCOL_TESTS}/signing/issuers.test.ts`],
  },
  {
    without: "a broken keys file changes nothing",
    place: `${PROTOCOL}/signing/key-ring.ts#KeyRing.from`,
    becomes:
      "function (file) { try { return original.call(this, file); } catch { return original.call(this, { api_keys: [], signing_keys: [], issuers: [] }); } }",
    tests: ["shared/runtime/test/key-store.test.ts"],
  },
];

const REVOCATION: readonly Sabotage[] = [
  {
    without: "a revoked credential is refused",
    place: `${PROTOCOL}/signing/credentials.ts#Issuers.prototype.revokedBefore`,
    becomes: "() => 0",
    tests: [`${PROTOCOL_TESTS}/signing/issuers.test.ts`],
  },
  {
    without: "a credential that is looked up is judged again",
    place: `${PROTOCOL}/signing/credentials.ts#Issuers.prototype.problemOf`,
    becomes: "() => undefined",
    tests: [`${GATEWAY_TESTS}/credentials.test.ts`],
  },
  {
    without: "a revoked gateway key is listed no more",
    place: `${PROTOCOL}/signing/key-ring.ts#KeyRing.prototype.isRevokedGatewayKey`,
    becomes: "() => false",
    tests: [`${GATEWAY_TESTS}/envelopes.test.ts`],
  },
  {
    without: "agents whose key was revoked are released",
    place: `${POD}/agents/revocation.ts#Revocation.prototype.start`,
    becomes: "() => {}",
    tests: [`${CONFORMANCE}/keys.test.ts`],
  },
  {
    without: "agents whose credential ended are released",
    place: `${POD}/agents/revocation.ts#Revocation.prototype.checkExpiry`,
    becomes: "() => {}",
    tests: [`${CONFORMANCE}/credentials.test.ts`],
  },
  {
    without: "a connection keeps no agent that its key lost",
    place: `${POD}/agents/ownership.ts#Ownership.prototype.releaseUnless`,
    becomes: "() => []",
    tests: [`${POD_TESTS}/ownership.test.ts`],
  },
];

const OWNERSHIP: readonly Sabotage[] = [
  {
    without: "a connection sends for its own agents",
    place: `${POD}/agents/ownership.ts#Ownership.prototype.owns`,
    becomes: "() => true",
    tests: [`${CONFORMANCE}/refusals.test.ts`],
  },
  {
    without: "a connection that lost its agent is told, and loses it",
    place: `${POD}/agents/registrar.ts#Registrar.prototype.superseded`,
    becomes: "() => {}",
    tests: [`${CONFORMANCE}/ownership.test.ts`],
  },
  {
    without: "a late call changes nothing of a newer owner",
    place: `${WINDOW}/lua/lib/route.lua#is_owned`,
    becomes: "function(record) return record end",
    tests: [`${WINDOW_TESTS}/presence.test.ts`],
  },
  {
    without: "a failover has no envelope delivered again",
    place: `${POD}/delivery/deliveries.ts#RecentDeliveries.prototype.has`,
    becomes: "() => false",
    tests: [`${POD_TESTS}/deliveries.test.ts`],
  },
  {
    without: "an agent has envelopes only of those it accepts",
    place: `${WINDOW}/lua/accept/delivery.lua#is_unwanted`,
    becomes: "function() return false end",
    tests: [`${WINDOW_TESTS}/accept-from.test.ts`, `${CONFORMANCE}/accept-from.test.ts`],
  },
];

const REPLAYS: readonly Sabotage[] = [
  {
    without: "no envelope takes effect twice",
    place: `${WINDOW}/acceptance/acceptance.ts#guardDigestOf`,
    becomes: '() => String(Math.random()).slice(2).padEnd(16, "0").slice(0, 16)',
    tests: [`${CONFORMANCE}/replay.test.ts`],
  },
  {
    without: "no envelope whose replay the guard could not see",
    place: `${WINDOW}/lua/lib/guard.lua#fits_bucket`,
    becomes: "function() return true end",
    tests: [`${WINDOW_TESTS}/acceptance.test.ts`],
  },
  {
    without: "the guard judges a decision before it takes effect",
    place: `${WINDOW}/redis/scripts.ts#runScript`,
    becomes: reply("reserve_decision", '["reserved"]'),
    tests: [`${CONFORMANCE}/sessions.test.ts`],
  },
  {
    without: "a session is decided by its target, and once",
    place: `${WINDOW}/redis/scripts.ts#runScript`,
    becomes: reply("decide_session", '["state", args[5], String(Date.now())]'),
    tests: [`${CONFORMANCE}/sessions.test.ts`],
  },
  {
    without: "an Idempotency-Key is bound to one body",
    place: `${WINDOW}/redis/scripts.ts#runScript`,
    becomes: reply("bind_claim", '["bound"]'),
    tests: [`${WINDOW_TESTS}/claims.test.ts`],
  },
  {
    without: "an Idempotency-Key is bound before its request is accepted",
    place: `${WINDOW}/acceptance/acceptor.ts#Acceptor.prototype.needsPreparation`,
    becomes: '({ kind }) => kind !== "message"',
    tests: [`${WINDOW_TESTS}/claims.test.ts`, `${GATEWAY_TESTS}/publisher.test.ts`],
  },
];

const LIMITS: readonly Sabotage[] = [
  {
    without: "requests of an API key and of an address have a limit",
    place: `${WINDOW}/limits/rate-limit.ts#RateLimit.prototype.use`,
    becomes: "async () => ({ allowed: true, remaining: 1, resetMs: 1000 })",
    tests: [`${GATEWAY_TESTS}/rate-limits.test.ts`],
  },
  {
    without: "envelopes of a connection have a rate",
    place: `${POD}/throttle/rates.ts#TokenBuckets.prototype.wait`,
    becomes: "() => 0",
    tests: [`${POD_TESTS}/throttle.test.ts`, `${CONFORMANCE}/backpressure.test.ts`],
  },
  {
    without: "a key has one rate over all its connections",
    place: `${POD}/throttle/rates.ts#PrincipalRates.prototype.take`,
    becomes: "() => 0",
    tests: [`${POD_TESTS}/rates.test.ts`],
  },
  {
    without: "pings have a rate",
    place: `${POD}/throttle/rates.ts#ConnectionRates.prototype.takePing`,
    becomes: "() => true",
    tests: [`${POD_TESTS}/throttle.test.ts`],
  },
  {
    without: "an address and a pod have so many connections",
    place: `${POD}/throttle/connection-quota.ts#ConnectionQuota.prototype.refusalOf`,
    becomes: "() => null",
    tests: [`${POD_TESTS}/connections.test.ts`],
  },
  {
    without: "refusals in a row end a connection",
    place: `${POD}/connection/connection.ts#Connection.prototype.noteRefusal`,
    becomes: "() => {}",
    tests: [`${CONFORMANCE}/limits.test.ts`],
  },
  {
    without: "an outbox of which nothing drains is given up",
    place: `${POD}/connection/outbox.ts#OutboxBudget.prototype.check`,
    becomes: "() => {}",
    tests: [`${CONFORMANCE}/slow-readers.test.ts`],
  },
  {
    without: "a principal has so many pending sessions",
    place: `${WINDOW}/lua/accept/sessions_and_claims.lua#make_session_bounds`,
    becomes: "function(...) local bounds = original(...) bounds.wait_of = function() end return bounds end",
    tests: [`${WINDOW_TESTS}/session-bounds.test.ts`],
  },
  {
    without: "plain connections have a bound",
    place: `${RUNTIME}/http/connections.ts#fitted`,
    becomes: "(settings) => settings",
    tests: ["shared/runtime/test/http/connections.test.ts"],
  },
  {
    without: "a client's address is the one that a trusted proxy saw",
    place: `${RUNTIME}/http/client-address.ts#clientAddress`,
    becomes: '(req, hops) => req.headers["x-forwarded-for"] ?? original(req, hops)',
    tests: ["shared/runtime/test/http/client-address.test.ts"],
  },
];

const PRIVACY: readonly Sabotage[] = [
  {
    without: "the log shows nothing private",
    place: `${RUNTIME}/logging.ts#createLogger`,
    becomes:
      "({ service, level }, destination = pino.destination(1)) => pino({ level, base: { service } }, destination)",
    tests: ["shared/runtime/test/logging.test.ts"],
  },
  {
    without: "an unforeseen fault says nothing of itself",
    place: `${RUNTIME}/http/problem.ts#refusalOf`,
    becomes:
      '(error) => error instanceof ServiceError ? error : new ServiceError("internal_error", { detail: String(error) })',
    tests: ["shared/runtime/test/http/app.test.ts"],
  },
  {
    without: "addresses are hashed",
    place: `${RUNTIME}/http/client-address.ts#anonymousId`,
    becomes: "(salt, purpose, ...traits) => traits.join()",
    tests: ["test/integration/secrets.test.ts"],
  },
  {
    without: "reports can hide who has sessions",
    place: "services/ops-reporting/src/reports/session-proofs.ts#withoutIdentities",
    becomes: "(proofs) => proofs",
    tests: ["services/ops-reporting/test/proof-identities.test.ts"],
  },
];

const OPERATION: readonly Sabotage[] = [
  {
    without: "the admin listener is for whoever has its key",
    place: `${RUNTIME}/admin/admin-key.ts#AdminKey.prototype.isIn`,
    becomes: "() => true",
    tests: ["shared/runtime/test/admin/admin-key.test.ts", "shared/runtime/test/admin/admin-server.test.ts"],
  },
  {
    without: "an admin key that others may read is refused",
    place: `${RUNTIME}/files.ts#readRegularFile`,
    becomes: "async (...args) => { const file = await original(...args); file.stats.mode = 0o100600; return file; }",
    tests: ["shared/runtime/test/admin/admin-key.test.ts"],
  },
  {
    without: "no private key is overwritten, and others may not read it",
    place: "deploy/keys/store.ts#writePrivateFile",
    becomes:
      'async (file, value) => { await using handle = await open(file, "w", 0o644); await handle.writeFile(JSON.stringify(value)); }',
    tests: ["test/local/issuers-command.test.ts"],
  },
  {
    without: "a service may do in Redis what it needs, and nothing else",
    place: "deploy/redis/users.acl",
    becomes: "  +@all ~*",
    tests: ["test/deploy/redis-users.test.ts"],
  },
];

const CONNECTORS: readonly Sabotage[] = [
  {
    without: "the connector verifies who signed a delivery",
    place: "connector/src/envelope-signature.ts#isSignedBy",
    becomes: "async () => true",
    tests: ["connector/test/judging.test.ts"],
  },
  {
    without: "the connector delivers nothing twice",
    place: "connector/src/replay-guard.ts#ReplayGuard.prototype.isRepeat",
    becomes: "() => false",
    tests: ["connector/test/replays.test.ts"],
  },
  {
    without: "the connector delivers nothing old",
    place: "connector/src/replay-guard.ts#ReplayGuard.prototype.isStale",
    becomes: "() => false",
    tests: ["connector/test/replays.test.ts"],
  },
  {
    without: "a credential of another agent shows nothing",
    place: "connector/src/credentials/token-signature.ts#isTokenSignedBy",
    becomes: "async () => true",
    tests: ["connector/test/credentials/credential.test.ts"],
  },
  {
    without: "a sealed payload opens in its own envelope alone",
    place: "connector/src/sealing/hpke.ts",
    becomes:
      "const none = { aad: new Uint8Array() }, [seal, open] = [sealBytes, openBytes];" +
      "sealBytes = (key, text, context) => seal(key, text, { ...context, ...none });" +
      "openBytes = (key, text, context) => open(key, text, { ...context, ...none });",
    tests: ["connector/test/sealing.test.ts"],
  },
  {
    without: "a receipt is of the session that its request opened",
    place: "connector/src/receipts/session-of.ts#isSessionOf",
    becomes: "() => true",
    tests: ["connector/test/receipts.test.ts"],
  },
  {
    without: "the connector for Python verifies who signed a delivery",
    place: `${PYTHON}/sender_verifier.py#_signed`,
    becomes: "lambda envelope, key, verdict: verdict",
    tests: ["test/connectors/behaviour.test.ts"],
  },
  {
    without: "the connector for Python delivers nothing twice",
    place: `${PYTHON}/replay_guard.py#ReplayGuard.is_repeat`,
    becomes: "lambda self, envelope: False",
    tests: ["test/connectors/behaviour.test.ts"],
  },
];

/** The protections that matter most. */
export const SABOTAGES: readonly Sabotage[] = [
  ...SIGNATURES,
  ...AUTHORITY,
  ...REVOCATION,
  ...OWNERSHIP,
  ...REPLAYS,
  ...LIMITS,
  ...PRIVACY,
  ...OPERATION,
  ...CONNECTORS,
];
