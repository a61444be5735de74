import { ENVELOPE_SCHEMAS } from "relay-protocol/contract/envelope.ts";
import { ACK_FRAMES, DeliverFrame, ErrorFrame, HelloFrame, NoticeFrame } from "relay-protocol/contract/frames.ts";
import type { Envelope } from "relay-protocol/wire/envelope.ts";
import { z } from "zod";
import { exampleEnvelope } from "./example-envelopes.ts";
import { frameExamples } from "./frame-examples.ts";
import type { DiscoverySettings } from "./relay-description.ts";

/** One message of the websocket: schema, purpose, and examples. */
export interface MessageEntry {
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
export function envelopeMessages(): Messages {
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
export function frameMessages(settings: DiscoverySettings): Messages {
  const examples: Readonly<Record<string, object>> = frameExamples(settings);
  return Object.fromEntries(
    Object.entries(FRAMES).map(([name, schema]) => {
      // A frame without examples stands here all the same, and a test asks for them.
      const ofFrame = Object.entries(examples[name] ?? {}).map(([example, payload]) => ({ name: example, payload }));
      return [name, { schema, summary: schema.meta()?.description, examples: ofFrame }];
    }),
  );
}

function prefixed(prefix: string, schemas: readonly (readonly [string, z.ZodType])[]): Record<string, z.ZodType> {
  return Object.fromEntries(schemas.map(([name, schema]) => [`${prefix}.${name}`, schema]));
}
