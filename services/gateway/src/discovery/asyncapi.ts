import { WEBSOCKET_PATH } from "relay-protocol/contract/surfaces.ts";
import { CLOSE_CODES } from "relay-protocol/wire/close-codes.ts";
import { ERRORS, type ErrorCode } from "relay-protocol/wire/errors.ts";
import { envelopeMessages, frameMessages, type MessageEntry } from "./asyncapi-messages.ts";
import { type JsonSchema, SchemaWriter } from "./json-schema.ts";
import { urlOf } from "./links.ts";
import { type DiscoverySettings, SIGNING_RULE, TITLE, VERSION } from "./relay-description.ts";
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

/** A delivered envelope is one of the messages that agents send: their schemas stand in the document once. */
function anyOfThese(names: readonly string[], envelope: JsonSchema | undefined): JsonSchema {
  return { ...envelope, anyOf: names.map((name) => ({ $ref: `#/components/schemas/${name}` })) };
}

function messageObject(name: string, { schema, summary, examples }: MessageEntry, schemas: SchemaWriter): object {
  return { name, summary, payload: schemas.writeNamed(schema, name), examples };
}
