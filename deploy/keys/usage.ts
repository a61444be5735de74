export const USAGE = `Manages the keys of the relay: who may sign for which agent, and who may send through the gateway.

  npm run keys -- add [record.json]                  adds a key that its agent made: the record that relay keygen printed,
                                                     from a file or standard input; its private key stays with the agent
  npm run keys -- new --agent agent://alice          makes a signing key in the agent's place, to be handed over
  npm run keys -- new-api-key --agent agent://alice  makes an API key for the gateway's x-api-key header
  npm run keys -- list                               lists every key, without secrets
  npm run keys -- revoke <id>                        removes a key

Options of new and new-api-key
  --agent <id>       agent that the key is for; may be repeated. A namespace: agent://alice.*
  --key-id <id>      id of the key; by default made from the first agent
  --expires-at <t>   when it expires, such as 2027-06-01T00:00:00Z; by default never
  --alg <name>       new only: ed25519 (the default; the relay has no secret) or hmac-sha256

All commands
  --file <path>      keys file; by default RELAY_KEYS_FILE, or else the development keys of npm start
  --help             this text

A secret is shown once, when it is made: give it to the agent and keep no copy. A running relay loads a change within
5 seconds, without a restart. To rotate a key: make a new one, switch the agent to it, revoke the old one.

Exit codes: 0 done, 1 refused (the file is unchanged), 2 invalid command line.
`;
