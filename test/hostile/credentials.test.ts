import { beforeAll, describe, expect, test } from "@jest/globals";
import { verify } from "relay-protocol/signing/algorithms.ts";
import { readCredential } from "relay-protocol/signing/credentials.ts";
import { CLAIMS, HEADER, ISSUER, issued, issuedAsWritten, RECORD } from "../../shared/protocol/test/signing/issuing.ts";
import { MALFORMED } from "../../shared/protocol/test/signing/malformed.ts";
import type { AgentSocket, Frame } from "../support/agent.ts";
import { fc } from "../support/fast-check.ts";
import { HttpClient } from "../support/http.ts";
import { type CredentialAgent, registerWith, TestIssuer } from "../support/issuer.ts";
import { badJson, badValue } from "./support/envelopes.ts";
import { type AttackedService, MARK, relayUnderAttack } from "./support/under-attack.ts";

const HOST = "relay.example";
const { relay, start } = relayUnderAttack();
const http = new HttpClient();
let bob: CredentialAgent;
let pod: AttackedService;
let gateway: AttackedService;
let socket: AgentSocket;

beforeAll(async () => {
  bob = await new TestIssuer("acme", ISSUER).agent("agent://acme.bob");
  await relay.writeKeys({ ...relay.keys.file, issuers: [RECORD] });
  const settings = { RELAY_PUBLIC_HOSTS: HOST, RELAY_PUBLIC_REQUESTS_PER_MINUTE: "0" };
  gateway = await start("gateway", settings);
  pod = await start("ws-connector", { RELAY_PUBLIC_HOSTS: HOST });
  socket = await relay.connect(pod);
  for (let n = 0; n < 20; n += 1) {
    await socket.ask(registerWith(bob, HOST));
    // Of two at once: the client may open a second connection for what follows an answer at once.
    await Promise.all([1, 2].map(() => selfTest(registerWith(bob, HOST), "")));
  }
  await Promise.all([pod.remember(), gateway.remember()]);
});

const presenting = (credential: unknown): Frame => registerWith({ ...bob, credential: credential as string }, HOST);
const heartbeat = () => registerWith(bob, HOST, { type: "agent.heartbeat", payload: {} });

async function selfTest(envelope: Frame, query: string) {
  const { status, body } = await http.post(`${gateway.url}/api/self-test${query}`, envelope);
  return { status, code: body.code, detail: body.detail };
}

describe.each(Object.entries(MALFORMED))("%s", (_, token) => {
  const REFUSED = { code: "invalid_credential", detail: expect.stringMatching(/^malformed: /) };

  test("is refused over the websocket as malformed, and the connection goes on", async () => {
    const register = presenting(token);
    const { code, message, envelope_id } = await socket.ask(register);
    expect({ code, message, envelope_id }).toEqual({
      code: "invalid_credential",
      message: expect.stringContaining("malformed: "),
      envelope_id: register.id,
    });
    expect(await socket.ask(registerWith(bob, HOST))).toMatchObject({ accepted: true });
  });

  test("is refused by the self-test as malformed, in a register and beside another envelope", async () => {
    expect(await selfTest(presenting(token), "")).toEqual({ status: 400, ...REFUSED });
    const query = `?credential=${encodeURIComponent(String(token))}`;
    expect(await selfTest(heartbeat(), query)).toEqual({ status: 400, ...REFUSED });
  });
});

describe("Nothing but a credential is read as one:", () => {
  test("any value at all", () => {
    fc.assert(
      fc.property(fc.oneof(fc.anything(), fc.string({ unit: "binary", maxLength: 3000 })), (value) => {
        expect(readCredential(value)).toBeUndefined();
      }),
    );
  });

  test("any JSON as header or as claims, though its issuer signed it", () => {
    const texts = fc.oneof(badValue.map(JSON.stringify), badJson, fc.json());
    fc.assert(
      fc.property(texts, (text) => {
        expect(readCredential(issuedAsWritten(text, JSON.stringify(CLAIMS)))).toBeUndefined();
        expect(readCredential(issuedAsWritten(JSON.stringify(HEADER), text))).toBeUndefined();
      }),
    );
  });

  test("any member that counts made another, though its issuer signed it so", () => {
    const members = [
      ...Object.keys(HEADER).map((name) => [name, 0] as const),
      ...["sub", "cnf", "iat", "exp"].map((name) => [name, 1] as const),
    ];
    fc.assert(
      fc.property(fc.constantFrom(...members), badValue, ([name, part], value) => {
        const texts = [HEADER, CLAIMS].map((each, index) =>
          JSON.stringify(index === part ? { ...each, [name]: value } : each),
        );
        const read = readCredential(issuedAsWritten(texts[0] as string, texts[1] as string));
        // Any text may be a key id, until the issuer's keys are asked for it.
        expect(read === undefined || name === "kid").toBe(true);
      }),
    );
  });

  test("one that was damaged after it was signed: it is malformed, or its signature does not match", async () => {
    const token = await issued();
    const publicKey = Buffer.from(ISSUER.x, "base64url");
    const pieces = fc.constantFrom("", "A", "g", "w", "_", "-", ".", "=", "\n", "\0", "é", MARK);
    fc.assert(
      fc.property(fc.nat(token.length), fc.nat(2), pieces, (at, cut, piece) => {
        const damaged = token.slice(0, at) + piece + token.slice(at + cut);
        fc.pre(damaged !== token);
        const read = readCredential(damaged);
        expect(read !== undefined && verify({ alg: "ed25519", publicKey }, read.signed, read.signature)).toBe(false);
      }),
      { numRuns: 2000 },
    );
  });
});
