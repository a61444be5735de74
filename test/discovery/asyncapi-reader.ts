import { randomUUID } from "node:crypto";
import { Ajv } from "ajv";
import addFormats from "ajv-formats";
import { type AgentKey, type Frame, jcs } from "../support/agent.ts";
import { OWN_CONNECTION } from "../support/http.ts";

interface Example {
  readonly name: string;
  readonly summary?: string;
  readonly payload: Frame;
}

/** What `given` replaces in an example, by the name that the document gives the member. */
export interface Replacements {
  readonly from: string;
  readonly to?: string;
  readonly "payload.session_id"?: string;
  readonly "payload.request_sha256"?: string;
}

/** A reader of the AsyncAPI document, who knows of the relay what stands in it and nothing else. */
export class AsyncApiReader {
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: the document is what is tested.
  readonly document: any;
  readonly #validators: Map<string, (value: unknown) => boolean>;

  private constructor(text: string) {
    this.text = text;
    this.document = JSON.parse(text);
    const { messages, schemas } = this.document.components;
    const ajv = addFormats.default(new Ajv({ strict: false }));
    const validators = Object.entries<{ payload: object }>(messages).map(
      ([name, { payload }]) => [name, ajv.compile({ ...payload, components: { schemas } })] as const,
    );
    this.#validators = new Map(validators);
  }

  static async read(gatewayUrl: string): Promise<AsyncApiReader> {
    return new AsyncApiReader(await (await fetch(`${gatewayUrl}/asyncapi.json`, { headers: OWN_CONNECTION })).text());
  }

  /** Where the channel is: the values that its address takes. */
  get paths(): readonly string[] {
    const { address, parameters } = this.document.channels.websocket;
    return parameters.path.enum.map((path: string) => address.replace("{path}", path));
  }

  examplesOf(message: string): readonly Example[] {
    return this.document.components.messages[message].examples;
  }

  /** The messages that a value is, by their schemas. */
  messagesOf(value: unknown): string[] {
    return [...this.#validators].filter(([, validate]) => validate(value)).map(([name]) => name);
  }

  /** The text to sign, in the order that the document tells. */
  canonical(envelope: Frame): string {
    const order: string[] = this.document["x-signing"].canonical_signing_order;
    const members = order.filter((name) => envelope[name] !== undefined);
    return `{${members.map((name) => `"${name}":${jcs(envelope[name])}`).join(",")}}`;
  }

  /** The example of a message with those members replaced that its words name, in their order, and no other. */
  envelope(message: string, key: AgentKey, replacements: Replacements): Frame {
    const { summary = "", payload } = this.examplesOf(message)[0] as Example;
    const envelope = structuredClone(payload);
    const values = { ...replacements, id: randomUUID(), ts: Date.now(), key_id: key.keyId };
    for (const [, member = ""] of summary.matchAll(/`([\w.]+)`/g)) {
      const value = member === "sig" ? key.sign(this.canonical(envelope)) : values[member as keyof typeof values];
      if (value === undefined) throw new Error(`The example of ${message} names a member to replace: ${member}`);
      const path = member.split(".");
      const last = path.pop() as string;
      path.reduce((inner, step) => inner[step], envelope)[last] = value;
    }
    return envelope;
  }
}
