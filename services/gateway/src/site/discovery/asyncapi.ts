import { CLOSE_CODES } from "protocol/contract/close-codes.ts";
import { ERRORS, type ErrorCode } from "protocol/contract/errors.ts";
import { WEBSOCKET_PATH } from "protocol/contract/surfaces.ts";
import { envelopeMessages, frameMessages, type MessageEntry } from "./asyncapi-messages.ts";
import { SchemaWriter } from "./json-schema.ts";
import { urlOf } from "./links.ts";
import { AUTHENTICATION, type DiscoverySettings, TITLE, VERSION } from "./relay-description.ts";
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
        description: AUTHENTICATION.websocket,
        "x-upgrade-refusals": UPGRADE_REFUSALS.map(codeObject),
        "x-close-codes": Object.values(CLOSE_CODES),
      },
    },
    channels: {
      websocket: channel(WEBSOCKET_PATH, "The websocket.", names.all),
      alternateWebsocket: channel(settings.alternateWsPath, "The websocket at its alternate path.", names.all),
    },
    operations: {
      receiveEnvelope: operation("receive", "websocket", names.envelopes, "An agent sends a signed envelope."),
      sendFrame: operation("send", "websocket", names.frames, "The relay sends answers, deliveries and notices."),
      receiveEnvelopeAlternate: operation(
        "receive",
        "alternateWebsocket",
        names.envelopes,
        "As receiveEnvelope, at the alternate path.",
      ),
      sendFrameAlternate: operation("send", "alternateWebsocket", names.frames, "As sendFrame, at the alternate path."),
    },
    components: { messages: Object.fromEntries(messages), schemas: schemas.components },
    "x-signing": signingFacts(settings),
  } as const;
}

/** How a request for a websocket is refused, over HTTP. */
const UPGRADE_REFUSALS: readonly ErrorCode[] = [
  "not_found",
  "upgrade_required",
  "invalid_request",
  "origin_not_allowed",
  "over_capacity",
  "rate_limited",
];

function codeObject(code: ErrorCode): object {
  const { httpStatus, title, hint, retry } = ERRORS[code];
  return { code, http_status: httpStatus, title, hint, retry };
}

function channel(address: string, description: string, messages: readonly string[]): object {
  return {
    address,
    description,
    servers: [{ $ref: "#/servers/relay" }],
    messages: Object.fromEntries(messages.map((name) => [name, { $ref: `#/components/messages/${name}` }])),
    bindings: { ws: { method: "GET", bindingVersion: "0.1.0" } },
  };
}

function operation(
  action: "send" | "receive",
  channelName: string,
  messages: readonly string[],
  summary: string,
): object {
  return {
    action,
    summary,
    channel: { $ref: `#/channels/${channelName}` },
    messages: messages.map((name) => ({ $ref: `#/channels/${channelName}/messages/${name}` })),
  };
}

function messageObject(name: string, { schema, summary, examples }: MessageEntry, schemas: SchemaWriter): object {
  const payload = schemas.writeNamed(schema, name);
  return { name, title: name, summary, contentType: "application/json", payload, examples };
}
