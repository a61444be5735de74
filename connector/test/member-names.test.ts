import { expect, test } from "@jest/globals";
import { shared } from "./fixture.ts";
import { next, PodsStage } from "./kit.ts";

const stage = shared(new PodsStage("alice", "bob"));

test("Members that JSON.parse would take for those of an earlier delivery are verified as they were signed", async () => {
  // A process of its own: the relay must not tell this one's V8 of the names.
  const pod = await stage.relay.startWsConnectorProcess();
  const alice = await stage.online("alice", pod.url);
  const bob = await stage.online("bob", pod.url, { trust: { "agent://alice": [stage.agent("alice").trusted] } });
  for (const name of ["\\", "\n", '"']) {
    // Without a prototype: an ordinary object would tell V8 of its names. The empty name stands first in canonical texts.
    await alice.send("agent://bob", Object.assign(Object.create(null), { "": 1, [name]: 2 }));
    const { verified, payload } = await next(bob);
    expect([verified, Object.keys(payload)]).toEqual(["agent", ["", name]]);
  }
});
