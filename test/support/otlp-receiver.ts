import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { until } from "./until.ts";

/** A span as a collector has it. */
export interface ReceivedSpan {
  readonly service: string;
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  /** Empty for the first of its trace. */
  readonly parentSpanId: string;
  /** 2 server, 3 client, 5 consumer. */
  readonly kind: number;
  readonly startNs: bigint;
  readonly endNs: bigint;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly isError: boolean;
}

/**
 * A collector: takes traces over OTLP/HTTP, and decodes their protobuf by the numbers of its fields.
 * Source: OTLP, ExportTraceServiceRequest.
 */
export class OtlpReceiver {
  readonly spans: ReceivedSpan[] = [];
  /** Bodies as they came, and attributes of the resources in them. */
  readonly bodies: string[] = [];
  readonly resources: Readonly<Record<string, unknown>>[] = [];
  readonly #server: Server = createServer(async (req, res) => {
    const chunks: Buffer[] = [];
    for await (const chunk of req) chunks.push(chunk);
    if (req.url === "/v1/traces") this.#take(Buffer.concat(chunks));
    res.writeHead(req.url === "/v1/traces" ? 200 : 404, { "content-type": "application/x-protobuf" }).end();
  });

  async start(): Promise<this> {
    await once(this.#server.listen(0, "127.0.0.1"), "listening");
    return this;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  /** The spans of a trace once there are so many, in the order of their starts. */
  async trace(traceId: string, count: number): Promise<ReceivedSpan[]> {
    const found = () => this.spans.filter((span) => span.traceId === traceId);
    await until(`${count} spans of ${traceId}`, () => found().length >= count);
    const spans = found();
    // Two clocks of one process may differ by a millisecond, so times do not tell what led to what.
    const depthOf = ({ parentSpanId }: ReceivedSpan): number => {
      const parent = spans.find(({ spanId }) => spanId === parentSpanId);
      return parent === undefined ? 0 : depthOf(parent) + 1;
    };
    return spans.sort((a, b) => depthOf(a) - depthOf(b));
  }

  #take(body: Buffer): void {
    this.bodies.push(body.toString("latin1"));
    for (const resourceSpans of messages(body, 1)) {
      const resource = attributesIn(messages(resourceSpans, 1)[0] ?? Buffer.alloc(0), 1);
      this.resources.push(resource);
      for (const span of messages(resourceSpans, 2).flatMap((scope) => messages(scope, 2))) {
        this.spans.push({ service: String(resource["service.name"]), ...spanIn(span) });
      }
    }
  }
}

function spanIn(span: Buffer): Omit<ReceivedSpan, "service"> {
  const fields = fieldsOf(span);
  const last = (number: number) => fields.findLast((field) => field.number === number)?.value;
  const bytes = (number: number) => (last(number) as Buffer | undefined) ?? Buffer.alloc(0);
  const status = fieldsOf(bytes(15)).find(({ number }) => number === 3);
  return {
    traceId: bytes(1).toString("hex"),
    spanId: bytes(2).toString("hex"),
    parentSpanId: bytes(4).toString("hex"),
    name: bytes(5).toString(),
    kind: Number(last(6)),
    startNs: last(7) as bigint,
    endNs: last(8) as bigint,
    attributes: attributesIn(span, 9),
    isError: status?.value === 2n,
  };
}

function attributesIn(message: Buffer, number: number): Record<string, unknown> {
  const pairs = messages(message, number).map((pair) => [
    messages(pair, 1)[0]?.toString(),
    valueIn(messages(pair, 2)[0]),
  ]);
  return Object.fromEntries(pairs);
}

/** An AnyValue: of a text, a truth or an integer. */
function valueIn(value: Buffer | undefined): unknown {
  const [field] = fieldsOf(value ?? Buffer.alloc(0));
  if (field === undefined) return undefined;
  return Buffer.isBuffer(field.value) ? field.value.toString() : Number(field.value);
}

function messages(message: Buffer, number: number): Buffer[] {
  return fieldsOf(message).flatMap((field) => (field.number === number ? (field.value as Buffer) : []));
}

interface Field {
  readonly number: number;
  readonly value: bigint | Buffer;
}

/** Source: Protocol Buffers, encoding. */
function fieldsOf(message: Buffer): Field[] {
  const fields: Field[] = [];
  let at = 0;
  const varint = () => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = message.readUInt8(at++);
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  const take = (length: number) => {
    at += length;
    return message.subarray(at - length, at);
  };
  while (at < message.length) {
    const tag = Number(varint());
    const [number, type] = [tag >> 3, tag & 7];
    if (type === 0) fields.push({ number, value: varint() });
    else if (type === 1) fields.push({ number, value: take(8).readBigUInt64LE() });
    else if (type === 2) fields.push({ number, value: take(Number(varint())) });
    else if (type === 5) fields.push({ number, value: BigInt(take(4).readUInt32LE()) });
    else throw new Error(`no field has the type ${type}`);
  }
  return fields;
}
