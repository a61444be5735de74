import { afterEach, beforeEach, expect, jest } from "@jest/globals";
import type { Frame } from "../../test/support/agent.ts";
import { until } from "../../test/support/until.ts";
import type { Connector, ConnectorOptions } from "../src/index.ts";
import { shared } from "./fixture.ts";
import { record, WholeStage } from "./kit.ts";
import { waitForLookUps } from "./times.ts";
import type { WireProxy } from "./wire-proxy.ts";

/** Alice, who sends, and bob, who gets what she sent from a relay that may change it, in each test of a file. */
class VerificationScene {
  readonly stage: WholeStage;
  /** Between the relay and bob. */
  declare proxy: WireProxy;
  declare alice: Connector;
  declare bob: Connector;
  /** What bob was told. */
  declare heard: ReturnType<typeof record>;

  constructor(stage: WholeStage) {
    this.stage = stage;
  }

  async begin(): Promise<void> {
    this.proxy = await this.stage.proxy(this.stage.url);
    this.alice = await this.stage.online("alice", this.stage.url);
  }

  readonly bobTrusts = async (options: Partial<ConnectorOptions>, url = this.proxy.url) => {
    this.bob = await this.stage.online("bob", url, options);
    this.heard = record(this.bob);
  };

  /** The relay, or whoever stands before it, changes what it delivers. */
  readonly deliver = (change: (envelope: Frame) => object) => {
    this.proxy.toAgent = (frame) =>
      frame.frame === "deliver" ? { ...frame, envelope: { ...frame.envelope, ...change(frame.envelope) } } : frame;
  };

  readonly expectDropped = async (code: string) => {
    await this.alice.send("agent://bob", { n: 1 });
    await until("it is dropped", () => this.heard.errors.length > 0);
    expect(this.heard.errors).toMatchObject([{ code, envelopeId: expect.any(String) }]);
    expect(this.heard.deliveries).toEqual([]);
  };

  readonly trustAlice = () => ({ "agent://alice": [this.stage.agent("alice").trusted] });
}

export function useVerificationScene(): VerificationScene {
  const scene = new VerificationScene(shared(new WholeStage("alice", "alice.two-hmac", "bob")));
  beforeEach(async () => {
    waitForLookUps();
    await scene.begin();
  });
  afterEach(() => {
    jest.restoreAllMocks();
  });
  return scene;
}
