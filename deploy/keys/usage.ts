export const USAGE = `Keys of the relay: who may sign for which agent, and who may send through the gateway.

  npm run keys -- new --agent agent://alice          a signing key for websocket connectors
  npm run keys -- new-api-key --agent agent://alice  an API key for the gateway's x-api-key header
  npm run keys -- add [record.json]                  puts a key in force that its agent made: the record that relay keygen
                                                     printed, from a file or standard input
  npm run keys -- list                               every key, without its secrets
  npm run keys -- revoke <id>                        takes a key away

Options of new and new-api-key
  --agent <id>       an agent the key is for; may stand several times. A whole team: agent://alice.*
  --key-id <id>      the key's name; made from the first agent when left out
  --expires-at <t>   when it ends, such as 2027-06-01T00:00:00Z; never when left out
  --alg <name>       new only: ed25519 (the relay holds no secret; the default) or hmac-sha256

Everywhere
  --file <path>      the keys file; else RELAY_KEYS_FILE, else the development keys of npm start
  --help             this text

A secret is shown once, when it is made: hand it to the agent and keep no copy. A running relay takes a change
over within 5 seconds, without a restart. To rotate a key: make a new one, move the agent over, revoke the old one.

Exit codes: 0 done, 1 refused (the file is left as it was), 2 wrong usage.
`;
