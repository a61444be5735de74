import { ENVELOPE_SCHEMAS } from "relay-protocol/contract/envelope.ts";
import { ACK_FRAMES, DeliverFrame, ErrorFrame, HelloFrame, NoticeFrame } from "relay-protocol/contract/frames.ts";
import { WEBSOCKET_PATH } from "relay-protocol/contract/surfaces.ts";
import { CLOSE_CODES } from "relay-protocol/wire/close-codes.ts";
import type { Envelope } from "relay-protocol/wire/envelope.ts";
import { ERRORS, type ErrorCode } from "relay-protocol/wire/errors.ts";
import { z } from "zod";
import { exampleEnvelope, frameExamples } from "./examples.ts";
import { type JsonSchema, SchemaWriter } from "./json-schema.ts";
import { type DiscoverySettings, SIGNING_RULE, TITLE, urlOf, VERSION } from "./relay-description.ts";
import { signingFacts, websocketGuide } from "./websocket-guide.ts";

/** The AsyncAPI document of the websocket, from the relay's side: it receives envelopes and sends frames. */
export function asyncApiDocument(settings: DiscoverySettings) {
  const { protocol, host, pathname } = new URL(settings.wsUrl);
  const schemas = new SchemaWriter("draft-7");
  const envelopes = envelopeMessages();
  const frames = frameMessages(settings);
  const all = { ...envelopes, ...frames };
  const names = { envelopes: Object.keys(envelopes), frames: Object.keys(frames), all: Object.keys(all) };
  const messages = Object.entries(all).map(([name, message]) => [name, messageObject(name, message, schemas)]);
  return {
    asyncapi: "3.0.0",
    info: {
      title: `${TITLE} websocket`,
      version: VERSION,
      description: websocketGuide(settings),
      externalDocs: {
        description: "Step-by-step instructions for an autonomous agent.",
        url: urlOf(settings.baseUrl, "instructions"),
      },
    },
    defaultContentType: "application/json",
    servers: {
      relay: {
        host,
        protocol: protocol.slice(0, -1),
        ...(pathname !== "/" && { pathname }),
        description: SIGNING_RULE,
        "x-upgrade-refusals": UPGRADE_REFUSALS.map(codeObject),
        "x-close-codes": Object.values(CLOSE_CODES),
      },
    },
    channels: { websocket: channel([WEBSOCKET_PATH, settings.alternateWsPath], names.all) },
    operations: {
      receiveEnvelope: operation("receive", names.envelopes, "An agent sends a signed envelope."),
      sendFrame: operation("send", names.frames, "The relay sends answers, deliveries and notices."),
    },
    components: {
      messages: Object.fromEntries(messages),
      schemas: {
        ...schemas.components,
        SignedEnvelope: anyOfThese(names.envelopes, schemas.components.SignedEnvelope),
      },
    },
    "x-signing": signingFacts(settings),
  } as const;
}

/** How a request for a websocket is refused, over HTTP: the answer has the hint. */
const UPGRADE_REFUSALS: readonly ErrorCode[] = [
  "not_found",
  "upgrade_required",
  "invalid_request",
  "origin_not_allowed",
  "over_capacity",
  "rate_limited",
];

function codeObject(code: ErrorCode): object {
  const { httpStatus, title, retry } = ERRORS[code];
  return { code, http_status: httpStatus, title, retry };
}

/** One channel, which takes the same at each of its paths. */
function channel(paths: readonly string[], messages: readonly string[]): object {
  return {
    address: "{path}",
    parameters: { path: { enum: paths, default: paths[0], description: "All are the same websocket." } },
    servers: [{ $ref: "#/servers/relay" }],
    messages: Object.fromEntries(messages.map((name) => [name, { $ref: `#/components/messages/${name}` }])),
    bindings: { ws: { method: "GET", bindingVersion: "0.1.0" } },
  };
}

function operation(action: "send" | "receive", messages: readonly string[], summary: string): object {
  return {
    action,
    summary,
    channel: { $ref: "#/channels/websocket" },
    messages: messages.map((name) => ({ $ref: `#/channels/websocket/messages/${name}` })),
  };
}

/** A delivered envelope is one of the messages that agents send. The document has their schemas once. */
function anyOfThese(names: readonly string[], envelope: JsonSchema | undefined): JsonSchema {
  return { ...envelope, anyOf: names.map((name) => ({ $ref: `#/components/schemas/${name}` })) };
}

function messageObject(name: string, { schema, summary, examples }: MessageEntry, schemas: SchemaWriter): object {
  return { name, summary, payload: schemas.writeNamed(schema, name), examples };
}

/** One message of the websocket: schema, purpose, and examples. */
interface MessageEntry {
  readonly schema: z.ZodType;
  readonly summary: string | undefined;
  readonly examples: readonly MessageExample[];
}

interface MessageExample {
  readonly name: string;
  readonly summary?: string;
  readonly payload: object;
}

type Messages = Readonly<Record<string, MessageEntry>>;

/** What agents send: a message for each type, so that a frame is one message and no other. Source: docs/protocol.md#envelopes. */
function envelopeMessages(): Messages {
  const { register, heartbeat, message, session_request, session_decision } = ENVELOPE_SCHEMAS;
  const ownType = message.shape.type.meta({ not: { const: "message.send" } });
  return {
    "agent.register": {
      schema: register,
      summary: "Registers the agent on this connection and brings it online.",
      examples: [signedExample(exampleEnvelope("agent.register"))],
    },
    "agent.heartbeat": {
      schema: heartbeat,
      summary: "Keeps the agent online.",
      examples: [signedExample(exampleEnvelope("agent.heartbeat"))],
    },
    "message.send": {
      schema: message.safeExtend({ type: z.literal("message.send") }),
      summary: "A message to the target.",
      examples: [signedExample(exampleEnvelope("message.send"))],
    },
    "message.word": {
      schema: message.safeExtend({ type: ownType }),
      summary: "A message of a type of your own, message.<word>; handled as message.send.",
      examples: [signedExample(exampleEnvelope("message.offer"))],
    },
    "session.request": {
      schema: session_request,
      summary: "Requests a session with the target, which is another agent than from.",
      examples: [signedExample(exampleEnvelope("session.request"))],
    },
    "session.approve": {
      schema: session_decision.safeExtend({ type: z.literal("session.approve") }),
      summary:
        "The target of a session request approves it; to is the requester. Without payload.request_sha256 there can be no receipt.",
      examples: [signedExample(exampleEnvelope("session.approve"))],
    },
    "session.reject": {
      schema: session_decision.safeExtend({ type: z.literal("session.reject") }),
      summary: "The target of a session request rejects it; to is the requester.",
      examples: [signedExample(exampleEnvelope("session.reject"))],
    },
  };
}

/** The example with the members that its reader replaces, in words: a test sends it with these replaced, and nothing else. */
function signedExample(payload: Envelope): MessageExample {
  const members = Object.keys(payload).filter((name) => name !== "type" && name !== "payload" && name !== "sig");
  const ofRequest = ["session_id", "request_sha256"].filter((name) => name in payload.payload);
  const all = [...members, ...ofRequest.map((name) => `payload.${name}`)];
  const named = all.map((name) => `\`${name}\``).join(", ");
  const summary = `Signed with a published key. Before you send it, replace ${named}, and then \`sig\`.`;
  return { name: payload.type, summary, payload };
}

const FRAMES: Readonly<Record<string, z.ZodType>> = {
  hello: HelloFrame,
  ...prefixed("ack", Object.entries(ACK_FRAMES)),
  error: ErrorFrame,
  deliver: DeliverFrame,
  ...prefixed(
    "notice",
    NoticeFrame.options.map((option) => [option.shape.notice.value, option]),
  ),
};

/** What the relay sends: a message for each frame, each ack and each notice. Source: docs/protocol.md#frames. */
function frameMessages(settings: DiscoverySettings): Messages {
  const examples: Readonly<Record<string, object>> = frameExamples(settings);
  return Object.fromEntries(
    Object.entries(FRAMES).map(([name, schema]) => {
      // A frame without examples is listed too; a test asks for them.
      const ofFrame = Object.entries(examples[name] ?? {}).map(([example, payload]) => ({ name: example, payload }));
      return [name, { schema, summary: schema.meta()?.description, examples: ofFrame }];
    }),
  );
}

function prefixed(prefix: string, schemas: readonly (readonly [string, z.ZodType])[]): Record<string, z.ZodType> {
  return Object.fromEntries(schemas.map(([name, schema]) => [`${prefix}.${name}`, schema]));
}
