import type { SealedPayloadTestVector } from "../contract/responses.ts";

/** The relay neither seals nor opens: this was made once, and both connectors open it. The key is published on purpose. */
const PUBLIC_KEY = "ST6C_HRGSlkmiBdiPSBTxeuOLMSpiLT-4XnsawENUx0";
const PRIVATE_KEY = "gIGCg4SFhoeIiYqLjI2Oj5CRkpOUlZaXmJmam5ydnp8";
const KID = "96RWz574V_t7txo1oAbLlnHzNSxGAVxHg_tTIDUPCB8";

/** A sealed payload in its envelope, the key that opens it, and what is sealed. Source: docs/protocol.md#sealed-payloads. */
export const SEALED_PAYLOAD_TEST_VECTOR: SealedPayloadTestVector = {
  recipient_key: { private_key: PRIVATE_KEY, public_key: PUBLIC_KEY },
  envelope: {
    id: "test-vector-2",
    type: "message.send",
    from: "agent://alice",
    to: "agent://bob",
    payload: {
      sealed: {
        v: 1,
        kid: KID,
        enc: "YFpyXSpK3-6xop4X7dYhwbdZPujNvESsbEq24vgF0jw",
        ct: "BqWPvz4oEb8n4JmGtHIX-8CNxTgZ8nMFXxIrmtRsne49HyaG3lSqUl3Hqg",
      },
    },
  },
  aad: `{"from":"agent://alice","id":"test-vector-2","kid":"${KID}","to":"agent://bob","type":"message.send","v":1}`,
  plaintext: '{"message":"for Bob alone"}',
};
