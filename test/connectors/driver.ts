import { createInterface } from "node:readline";
import {
  Connector,
  type ConnectorOptions,
  type Delivery,
  type IssuerRecord,
  type Presence,
  RelayError,
  verifyReceipt,
} from "../../connector/src/index.ts";
import { FIRST_START, LOOK_UP, MANIFEST, ONLINE_LOOK } from "../../connector/src/limits.ts";
import type { Frame } from "../support/agent.ts";

/**
 * The connector for TypeScript behind the protocol of `driver-process.ts`. Translates names, decides nothing. A busy machine
 * may answer later than the product waits. So some limits differ from the product's. A look-up may take 60 s. A delivery and
 * the end of an agent wait for it as long. A start presents a key that the relay does not know until it ends.
 */

for (const { answer } of [LOOK_UP, MANIFEST, ONLINE_LOOK]) Object.assign(answer, { timeoutMs: 60_000 });
for (const times of [LOOK_UP, MANIFEST]) Object.assign(times, { waitMs: 60_000 });
Object.assign(LOOK_UP, { lastMs: 60_000 });
Object.assign(FIRST_START, { unknownKeyMs: Number.POSITIVE_INFINITY });

const connectors = new Map<string, Connector>();
const deliveries: Delivery[] = [];

function say(line: object): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

function connectorOf(name: string, options: Frame): Connector {
  const made = connectors.get(name);
  if (made !== undefined) return made;
  const connector = new Connector(optionsOf(options));
  connectors.set(name, connector);
  const tell = (event: string, value: unknown) => say({ agent: name, event, value });
  if (options.listens) connector.on("delivery", (delivery) => tell("delivery", deliveryOf(delivery)));
  connector.on("state", (state) => tell("state", stateOf(state)));
  connector.on("notice", (notice) => tell("notice", snakeCase(notice)));
  connector.on("error", (error) => tell("error", errorOf(error)));
  connector.on("warning", ({ code, hint }) => tell("warning", { code, hint }));
  connector.on("overflow", ({ dropped }) => tell("overflow", { dropped }));
  return connector;
}

function optionsOf({ url, agent, key, credential, sealing_keys, trust, ...rest }: Frame): ConnectorOptions {
  const {
    require_verified,
    max_delivery_age_ms,
    max_pending,
    max_inbox,
    take_over,
    start_timeout_ms,
    seal,
    accept_from,
  } = rest;
  const sealingKeys = sealing_keys?.map((pair: Frame) => ({
    publicKey: pair.public_key,
    privateKey: pair.private_key,
  }));
  const trusted = Object.entries<Frame[]>(trust?.keys ?? {}).map(([id, keys]) => [id, keys.map(keyOf)]);
  return {
    ...{ url, agent, key: keyOf(key) as never, credential, sealingKeys, seal, acceptFrom: accept_from },
    ...{ requireVerified: require_verified, maxDeliveryAgeMs: max_delivery_age_ms, takeOver: take_over },
    ...{ maxPending: max_pending, maxInbox: max_inbox, startTimeoutMs: start_timeout_ms },
    trust: trust && { ...trust, keys: Object.fromEntries(trusted) },
  };
}

function keyOf({ key_id: keyId, alg, private_key: privateKey, public_key: publicKey, secret }: Frame): object {
  return { keyId, alg, privateKey, publicKey, secret };
}

function deliveryOf(delivery: Delivery): object {
  const number = deliveries.push(delivery) - 1;
  const { envelope, from, type, payload, sessionId = null, verified, issuer = null, sealed } = delivery;
  const task_id = delivery.taskId ?? null;
  return { number, envelope, from, type, payload, session_id: sessionId, task_id, verified, issuer, sealed };
}

function stateOf({ status, ...rest }: Frame): object {
  return { status, reason: rest.reason ?? null, close_code: rest.closeCode ?? null, code: rest.error?.code ?? null };
}

function errorOf(error: unknown): object {
  if (error instanceof TypeError) return { code: "invalid_options" };
  if (!(error instanceof RelayError)) return { code: "not_a_relay_error", hint: String(error) };
  const { code, message, hint, retry, outcome, closeCode = null, envelopeId = null, missing = [], errors } = error;
  return { code, message, hint, retry, outcome, close_code: closeCode, envelope_id: envelopeId, missing, errors };
}

/** With the names of the wire. */
function snakeCase(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(snakeCase);
  if (typeof value !== "object" || value === null || value instanceof Date) return value;
  const name = (camelCase: string) => camelCase.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [name(key), snakeCase(member)]));
}

/** `status` is the session's, `delivery` the target's. */
function acceptedOf(accepted: object): unknown {
  return snakeCase({ sessionId: null, status: null, ...accepted });
}

function presenceOf({ details: _, ...presence }: Presence): unknown {
  return snakeCase(presence);
}

const callOptions = ({ timeout_ms, wait_online_ms, type, task_id, seal }: Frame) => ({
  ...{ timeoutMs: timeout_ms, waitOnline: wait_online_ms, taskId: task_id, type, seal },
});

const ACTIONS: Record<string, (connector: Connector, given: Frame) => Promise<unknown>> = {
  start: async (connector, { timeout_ms }) => await connector.start({ timeoutMs: timeout_ms }),
  close: async (connector) => await connector.close(),
  send: async (connector, { to, payload, ...rest }) => acceptedOf(await connector.send(to, payload, callOptions(rest))),
  ask: async (connector, { to, payload, ...rest }) => deliveryOf(await connector.ask(to, payload, callOptions(rest))),
  reply: async (_, { delivery, payload, ...rest }) =>
    acceptedOf(await (deliveries[delivery] as Delivery).reply(payload, callOptions(rest))),
  request_session: async (connector, { to, purpose, ttl_minutes: ttlMinutes, timeout_ms: timeoutMs }) =>
    acceptedOf(await connector.requestSession(to, { purpose, ttlMinutes }, { timeoutMs })),
  approve: async (connector, { session_id, to }) => acceptedOf(await connector.approve(session_id, to)),
  reject: async (connector, { session_id, to, reason }) => acceptedOf(await connector.reject(session_id, to, reason)),
  receipt: async (connector, { session_id }) => connector.receipt(session_id),
  verify_receipt: async (_, { receipt, issuers }) => {
    const { problem = null, facts = null } = snakeCase(
      await verifyReceipt(JSON.stringify(receipt), issuers as IssuerRecord[]),
    ) as Frame;
    return { problem, facts };
  },
  check_online: async (connector, { agent, timeout_ms }) =>
    presenceOf(await connector.checkOnline(agent, { timeoutMs: timeout_ms })),
  wait_online: async (connector, { agent, timeout_ms }) =>
    presenceOf(await connector.waitOnline(agent, { timeoutMs: timeout_ms })),
  dropped: async (connector) => Object.fromEntries(connector.dropped),
  read: async (connector) => {
    const read: object[] = [];
    for await (const delivery of connector) read.push(deliveryOf(delivery));
    return { read };
  },
};

async function perform({ call, agent, does, given, options }: Frame): Promise<void> {
  try {
    const result = await ACTIONS[does]?.(connectorOf(agent, options), given);
    say({ call, result: result ?? null });
  } catch (error) {
    say({ call, error: errorOf(error) });
  }
}

for await (const line of createInterface(process.stdin)) void perform(JSON.parse(line));
await Promise.all([...connectors.values()].map((connector) => connector.close()));
