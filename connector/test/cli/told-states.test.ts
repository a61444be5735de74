import { expect, test } from "@jest/globals";
import { onState } from "../../src/cli/control/told-states.ts";
import type { Connector } from "../../src/connector.ts";
import { Emitter } from "../../src/emitter.ts";
import { RelayError } from "../../src/errors.ts";
import type { ConnectorState } from "../../src/types.ts";

const LOST = { status: "reconnecting", reason: "lost", retryInMs: 1, closeCode: 1006 } as const;

/** What is told of these states and errors, in their order. */
function told(...events: readonly (ConnectorState | RelayError)[]): (readonly [status: string, code?: string])[] {
  const [emitter, states] = [new Emitter(), [] as (readonly [string, string?])[]];
  const is: { state: ConnectorState } = { state: { status: "connecting" } };
  const connector = Object.assign(is, { on: emitter.on.bind(emitter) }) as unknown as Connector;
  onState(connector, (state) => states.push("error" in state ? [state.status, state.error?.code] : [state.status]));
  for (const event of events) {
    if (event instanceof RelayError) emitter.emit("error", event);
    else {
      is.state = event;
      emitter.emit("state", event);
    }
  }
  return states;
}

test("a connection that is lost again and again tells what answers over HTTP in place of the relay, until it is online", () => {
  const states = told(new RelayError("not_a_relay"), LOST, { status: "online" }, LOST);
  expect(states).toEqual([["reconnecting", "not_a_relay"], ["online"], ["reconnecting"]]);
});

test("one that reaches no relay tells why as soon as that is known", () => {
  const states = told({ ...LOST, reason: "unreachable" }, new RelayError("unreachable"));
  expect(states).toEqual([["reconnecting"], ["reconnecting", "unreachable"]]);
});
