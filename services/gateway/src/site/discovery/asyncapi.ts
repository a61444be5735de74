import { CLOSE_CODES, ERRORS, type ErrorCode } from "protocol/contract/errors.ts";
import { WEBSOCKET_PATH } from "protocol/contract/surfaces.ts";
import { ENVELOPE_MESSAGES, FRAME_MESSAGES, type MessageEntry } from "./asyncapi-messages.ts";
import { SchemaWriter } from "./json-schema.ts";
import {
  AUTHENTICATION,
  DELIVERY_RULES,
  DESCRIPTION,
  type DiscoverySettings,
  TITLE,
  VERSION,
} from "./relay-description.ts";

const MESSAGES = { ...ENVELOPE_MESSAGES, ...FRAME_MESSAGES };

/** The codes of the frame `error`. */
const ERROR_FRAME_CODES = (Object.keys(ERRORS) as ErrorCode[]).filter((code) => ERRORS[code].websocket);

/** The AsyncAPI document of the websocket, from the relay's side: it receives envelopes and sends frames. */
export function asyncApiDocument(settings: DiscoverySettings) {
  const { protocol, host, pathname } = new URL(settings.wsUrl);
  const schemas = new SchemaWriter("draft-7");
  const messages = mapEntries(MESSAGES, (name, message) => messageObject(name, message, schemas));
  return {
    asyncapi: "3.0.0",
    info: { title: `${TITLE} websocket`, version: VERSION, description: [DESCRIPTION, ...DELIVERY_RULES].join("\n\n") },
    defaultContentType: "application/json",
    servers: {
      relay: {
        host,
        protocol: protocol.slice(0, -1),
        ...(pathname !== "/" && { pathname }),
        description: AUTHENTICATION.websocket,
      },
    },
    channels: {
      websocket: channel(WEBSOCKET_PATH, "The websocket."),
      alternateWebsocket: channel(settings.alternateWsPath, "The websocket at its alternate path."),
    },
    operations: {
      receiveEnvelope: operation("receive", "websocket", ENVELOPE_MESSAGES, "An agent sends a signed envelope."),
      sendFrame: operation("send", "websocket", FRAME_MESSAGES, "The relay sends answers, deliveries and notices."),
      receiveEnvelopeAlternate: operation(
        "receive",
        "alternateWebsocket",
        ENVELOPE_MESSAGES,
        "As receiveEnvelope, at the alternate path.",
      ),
      sendFrameAlternate: operation(
        "send",
        "alternateWebsocket",
        FRAME_MESSAGES,
        "As sendFrame, at the alternate path.",
      ),
    },
    components: { messages, schemas: schemas.components },
  } as const;
}

function channel(address: string, description: string): object {
  return {
    address,
    description,
    servers: [{ $ref: "#/servers/relay" }],
    messages: mapEntries(MESSAGES, (name) => ({ $ref: `#/components/messages/${name}` })),
    bindings: { ws: { method: "GET", bindingVersion: "0.1.0" } },
    "x-upgrade-refusals": codesOf([
      "not_found",
      "upgrade_required",
      "origin_not_allowed",
      "over_capacity",
      "rate_limited",
    ]),
    "x-error-codes": codesOf(ERROR_FRAME_CODES),
    "x-close-codes": Object.values(CLOSE_CODES),
  };
}

function operation(
  action: "send" | "receive",
  channelName: string,
  messages: Readonly<Record<string, MessageEntry>>,
  summary: string,
): object {
  return {
    action,
    summary,
    channel: { $ref: `#/channels/${channelName}` },
    messages: Object.keys(messages).map((name) => ({ $ref: `#/channels/${channelName}/messages/${name}` })),
  };
}

function messageObject(name: string, { schema, summary, examples }: MessageEntry, schemas: SchemaWriter): object {
  return {
    name,
    title: name,
    summary,
    contentType: "application/json",
    payload: schemas.write(schema),
    examples: Object.entries(examples).map(([example, payload]) => ({ name: example, payload })),
  };
}

function codesOf(codes: readonly ErrorCode[]): object[] {
  return codes.map((code) => {
    const { httpStatus, title, hint, retry } = ERRORS[code];
    return { code, http_status: httpStatus, title, hint, retry };
  });
}

function mapEntries<Value, Result>(
  entries: Readonly<Record<string, Value>>,
  map: (name: string, value: Value) => Result,
): Record<string, Result> {
  return Object.fromEntries(Object.entries(entries).map(([name, value]) => [name, map(name, value)]));
}
