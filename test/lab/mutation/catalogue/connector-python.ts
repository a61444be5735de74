import type { Mutation } from "../mutation.ts";

const FOLDER = "connector-python/src/agent_relay_connector";
const UNIT = ["test/python/package.test.ts"];

/** What the connector for Python does not believe. */
export const CONNECTOR_PYTHON_MUTATIONS: readonly Mutation[] = [
  {
    name: "Python drops what is forged",
    file: `${FOLDER}/sender_verifier.py`,
    find: "return verdict if is_signed_by(key, envelope) else None",
    replace: "return verdict",
    tests: ["test/python/conversation.test.ts"],
  },
  {
    name: "Python takes a reply of the asked agent alone",
    file: `${FOLDER}/conversations.py`,
    find: " or delivery.sender != question.agent",
    replace: "",
    tests: ["test/python/conversation.test.ts"],
  },
  {
    name: "Python ties a receipt to its session",
    file: `${FOLDER}/receipts/verify_receipt.py`,
    find: 'if not is_session_of(decision["payload"]["session_id"], digest):',
    replace: "if False:",
    tests: ["test/python/trust.test.ts"],
  },
  {
    name: "Python wants a sealed reply to a sealed question",
    file: `${FOLDER}/conversations.py`,
    find: "if question.is_sealed and not delivery.sealed:",
    replace: "if False:",
    tests: ["test/python/trust.test.ts"],
  },
  {
    name: "Python takes an id of a sender once",
    file: `${FOLDER}/replay_guard.py`,
    find: "return name in self._verified or name in self._others",
    replace: "return False",
    tests: UNIT,
  },
  {
    name: "Python drops what is old",
    file: `${FOLDER}/replay_guard.py`,
    find: "> self._max_age_ms",
    replace: '> float("inf")',
    tests: UNIT,
  },
  {
    name: "Python refuses keys of small order",
    file: `${FOLDER}/small_order.py`,
    find: "return y >= _FIELD_PRIME or y in _SMALL_ORDER_Y",
    replace: "return False",
    tests: UNIT,
  },
  {
    name: "Python takes no header that chooses how a credential is checked",
    file: `${FOLDER}/credentials/read_credential.py`,
    find: "if is_known and len(header) == 3",
    replace: "if is_known",
    tests: UNIT,
  },
  {
    name: "Python takes one spelling of base64url",
    file: `${FOLDER}/base64url.py`,
    find: "return data if encode_base64url(data) == text else None",
    replace: "return data",
    tests: UNIT,
  },
  {
    name: "Python seals into one envelope",
    file: `${FOLDER}/sealing/sealed_payload.py`,
    find: 'return canonicalize({**members, "kid": kid, "v": _VERSION}).encode()',
    replace: 'return b""',
    tests: UNIT,
  },
  {
    name: "Python knows a gateway's key by its digest",
    file: `${FOLDER}/gateway_keys.py`,
    find: " or key_id != _id_of(public_key)",
    replace: "",
    tests: UNIT,
  },
  {
    name: "Python does not take an agent back from another connection",
    file: `${FOLDER}/error_catalogue.py`,
    find: '    4409: "superseded",\n',
    replace: "",
    tests: UNIT,
  },
];
