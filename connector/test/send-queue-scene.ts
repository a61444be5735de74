import { afterEach, beforeEach, jest } from "@jest/globals";
import { Clock } from "../src/clock.ts";
import { RelayError } from "../src/errors.ts";
import type { AckFrame, ErrorFrame } from "../src/frames.ts";
import { SendQueue } from "../src/send-queue.ts";
import { Signer } from "../src/signer.ts";
import type { CallOptions } from "../src/types.ts";
import { draftOf } from "../src/wire-mapping.ts";
import { testAgent } from "./kit.ts";

const { agent, key } = testAgent("alice");

/** A connection that keeps what is sent on it. */
export class TestWriter {
  readonly maxClockSkewMs = 300_000;
  readonly maxInFlight: number;
  readonly signer: Signer;
  /** Ids of keys that have ended on it. */
  readonly ended = new Set<string>();
  readonly texts: string[] = [];

  get ids(): string[] {
    return this.texts.map((text) => JSON.parse(text).id);
  }

  constructor(signer: Signer, maxInFlight: number) {
    this.signer = signer;
    this.maxInFlight = maxInFlight;
  }

  accepts(keyId: string): boolean {
    return !this.ended.has(keyId);
  }

  send(text: string): void {
    this.texts.push(text);
  }
}

interface SendOfTest extends CallOptions {
  /** What the draft waits for, as a sealed one does. */
  readonly drafted?: Promise<void>;
  readonly type?: string;
}

/** A send queue of alice, and the relay's answers. */
class SendQueueScene {
  declare sendQueue: SendQueue;
  declare signer: Signer;
  declare clock: Clock;
  notRegistered = 0;
  /** Why there is no connection. */
  failure: RelayError | undefined;

  async begin(): Promise<void> {
    this.renewQueue();
    this.signer = new Signer(key, this.clock);
    await this.signer.start();
  }

  renewQueue(maxPending = 100): void {
    this.clock = new Clock();
    this.notRegistered = 0;
    this.sendQueue = new SendQueue({
      whyAway: () => this.failure,
      clock: this.clock,
      maxPending,
      notRegistered: () => (this.notRegistered += 1),
    });
  }

  end(): void {
    this.sendQueue.end(new RelayError("closed"));
  }

  readonly draft = (id: string, to: string, type = "message.send"): string =>
    this.signer.draft(draftOf({ type, to, payload: {} }, id, agent));

  readonly add = (id: string, options: SendOfTest = {}): Promise<AckFrame> => this.addTo("agent://bob", id, options);

  readonly addTo = (
    to: string,
    id: string,
    { drafted, type = "message.send", ...options }: SendOfTest = {},
  ): Promise<AckFrame> => {
    const text = this.draft(id, to, type);
    const draft = drafted ? () => drafted.then(() => text) : text;
    const answer = this.sendQueue.add({ id, type, to, draft }, options);
    answer.catch(() => {});
    return answer;
  };

  readonly connect = async (maxInFlight = 1000): Promise<TestWriter> => {
    const writer = new TestWriter(this.signer, maxInFlight);
    this.sendQueue.resume(writer);
    return writer;
  };

  readonly ack = (envelopeId: string): void => {
    const delivery = { status: "online", canDeliverRealtime: true } as const;
    const session = { sessionId: "", sessionStatus: "approved" } as const;
    this.sendQueue.acknowledge({ frame: "ack", envelopeId, duplicate: false, delivery, ...session });
  };

  readonly refuse = (envelopeId: string, code: string, retryAfterMs = 1): void => {
    const texts = { message: undefined, hint: undefined, retry: undefined, errors: [], serverTime: undefined };
    this.sendQueue.refuse({ frame: "error", code, envelopeId, retryAfterMs, ...texts } satisfies ErrorFrame);
  };
}

export function useSendQueue(): SendQueueScene {
  const scene = new SendQueueScene();
  beforeEach(() => scene.begin());
  afterEach(() => {
    jest.restoreAllMocks();
    scene.end();
  });
  return scene;
}

type Method = (this: unknown, ...given: unknown[]) => unknown;

const ITERATORS = [[].values(), new Map().values(), new Set().values()].map((each) => Object.getPrototypeOf(each));
const LOOPS = ["every", "filter", "find", "findIndex", "flatMap", "forEach", "map", "some", "sort"];

/** @returns how many items of arrays, maps and sets all loops went over during the work: its cost, however fast the machine is. */
export async function visitsIn(work: () => Promise<void>): Promise<number> {
  let visits = 0;
  const counting = (method: Method): Method =>
    function (...given) {
      visits += 1;
      return method.apply(this, given);
    };
  const restores = [
    ...ITERATORS.map((iterator) => replace(iterator, "next", counting)),
    ...LOOPS.map((name) =>
      replace(Array.prototype, name, (loop) => {
        return function (each, ...rest) {
          return loop.call(this, each && counting(each as Method), ...rest);
        };
      }),
    ),
  ];
  try {
    await work();
  } finally {
    for (const restore of restores) restore();
  }
  return visits;
}

/** @returns restores the method. */
function replace(owner: object, name: string, by: (method: Method) => Method): () => void {
  const methods = owner as Record<string, Method>;
  const method = methods[name] as Method;
  methods[name] = by(method);
  return () => {
    methods[name] = method;
  };
}
