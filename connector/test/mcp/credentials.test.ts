import { describe, expect, test } from "@jest/globals";
import { issueCredential, issuerRecord, newIssuerKey } from "../../src/credentials/issuing.ts";
import { verifyReceipt } from "../../src/index.ts";
import { newSealingKey } from "../../src/sealing/sealing-keys.ts";
import { newKeys } from "../credentials/kit.ts";
import { shared } from "../fixture.ts";
import { type Host, McpStage } from "./kit.ts";

const issuer = await newIssuerKey("acme");
const record = issuerRecord(issuer, ["agent://acme.*"]);

/** Knows one issuer, and nobody's key. */
class IssuedStage extends McpStage {
  /** Before the relay starts: what it reads later is in force seconds later. */
  override async allow(): Promise<void> {
    await this.relay.writeKeys({ issuers: [record] });
  }

  /** A model whose agent has a credential. @param pinned the issuers that it trusts. */
  async issuedHost(name: string, pinned: readonly object[] = [record]): Promise<Host> {
    const [keys, sealing] = [await newKeys(), await newSealingKey()];
    const agent = `agent://acme.${name}`;
    const claims = { agent, publicKey: keys.x, sealingKey: sealing.publicKey, days: 1 };
    const { token: credential } = await issueCredential(issuer, claims);
    const secrets = { alg: "ed25519", private_key: keys.d, sealing_key: sealing.privateKey };
    const file = await this.write(`${name}.json`, { agent_id: agent, ...secrets, credential, trusted_issuers: pinned });
    return await this.#onlineHostOf(file);
  }

  /** Another model of the same agent. */
  async secondHost(name: string): Promise<Host> {
    return await this.#onlineHostOf(this.path(`${name}.json`));
  }

  async #onlineHostOf(file: string): Promise<Host> {
    const host = await this.hostOf(file, this.url);
    await host.untilConnection("online");
    return host;
  }
}

const stage = shared(new IssuedStage());
const BOB = "agent://acme.bob";

describe("A model whose agent has a credential", () => {
  test("is told who vouches for a sender, and which messages only it could read", async () => {
    const [ann, bob] = [await stage.issuedHost("ann"), await stage.issuedHost("bob")];
    await ann.call("send_message", { to: BOB, message: "open" });
    await ann.call("send_message", { to: BOB, message: "for you alone", seal: true });
    expect(await bob.take(2)).toMatchObject([
      { payload: { message: "open" }, verified: "agent", issuer: "acme", sealed: false },
      { payload: { message: "for you alone" }, verified: "agent", issuer: "acme", sealed: true },
    ]);
  });

  test("gives the receipt of a session to its user, also over the connection of another process; of no other session", async () => {
    const [ann, bob] = [await stage.issuedHost("ann"), await stage.issuedHost("bob")];
    const second = await stage.secondHost("ann");
    const { session_id } = await ann.call("request_session", { to: BOB, purpose: "Translate a page" });
    await bob.call("wait_for_messages");
    await bob.call("approve_session", { session_id });
    await ann.call("wait_for_messages");
    const { receipt } = await ann.call("session_receipt", { session_id });
    const facts = { sessionId: session_id, requester: "agent://acme.ann", target: BOB, decision: "approved" };
    expect(await verifyReceipt(JSON.stringify(receipt), [record])).toMatchObject({ valid: true, facts });
    expect((await second.call("session_receipt", { session_id })).receipt).toEqual(receipt);
    for (const host of [ann, second]) {
      const error = await host.error("session_receipt", { session_id: `ses_${"0".repeat(26)}` });
      expect(error).toMatchObject({ code: "unknown_session", retry: "never" });
    }
  });

  test("is told when an issuer is the relay's word only, and cannot seal to it", async () => {
    const [ann, bob] = [await stage.issuedHost("ann", []), await stage.issuedHost("bob", [])];
    await ann.call("send_message", { to: BOB, message: "hi" });
    expect((await bob.call("wait_for_messages")).messages).toMatchObject([
      { verified: "relay_issuer", issuer: "acme" },
    ]);
    expect(await ann.error("send_message", { to: BOB, message: "hi", seal: true })).toMatchObject({
      code: "recipient_unverified",
      hint: expect.stringContaining("trusted_issuers"),
    });
  });

  test("is not sent after a pin where its target has not been online yet, and seals as soon as it has", async () => {
    const ann = await stage.issuedHost("ann");
    const sealed = { to: "agent://acme.cleo", message: "for you alone", seal: true };
    expect(await ann.error("send_message", sealed)).toMatchObject({
      code: "recipient_unknown",
      hint: expect.not.stringContaining("trusted_issuers"),
      retry: "later",
    });
    const cleo = await stage.issuedHost("cleo");
    await ann.call("send_message", sealed);
    expect((await cleo.call("wait_for_messages")).messages).toMatchObject([{ sealed: true, verified: "agent" }]);
  });
});
