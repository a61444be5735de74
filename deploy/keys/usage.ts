export const USAGE = `Manages the keys of the relay: who may sign for which agent, and who may send through the gateway.

Credentials: an issuer of yours signs for agents, and the relay knows the issuer alone
  npm run keys -- new --agent agent://alice            makes an agent's keys and issues a credential for them, into a file
                                                       for the agent; the keys file stays as it is
  npm run keys -- new-issuer --issuer acme --agents '*'
                                                       makes an issuer and admits it, or one more key of a known one
  npm run keys -- add-issuer [record.json]             admits the issuer of an organisation, or takes in its new keys: its
                                                       public record, from a file or standard input
  npm run keys -- remove-issuer <name>                 removes an issuer, or with --key one of its keys
  npm run keys -- revoke --agent agent://bob --issued-before now
                                                       revokes the credentials that an agent has by now

Keys that the keys file lists
  npm run keys -- new --listed --agent agent://alice   makes a signing key in the agent's place, to be handed over
  npm run keys -- new-api-key --agent agent://alice    makes an API key for the gateway's x-api-key header
  npm run keys -- add [record.json]                    adds a key that its agent made: the record that relay keygen printed,
                                                       from a file or standard input; its private key stays with the agent.
                                                       Added before: fine
  npm run keys -- revoke <id>                          removes or revokes a key

  npm run keys -- list                                 lists keys, issuers and revocations, without secrets

Options of new without --listed
  --agent <id>           agent that the credential is for: one id
  --days <n>             how long it holds, 1 to 90; by default 30
  --issuer-file <path>   issuer that signs; by default issuer.json beside the keys file, or else npm start's
  --out <path>           file to write, never overwritten; by default <name of the agent>.json beside the keys file

Options of new --listed and new-api-key
  --agent <id>       agent that the key is for; may be repeated. A namespace: agent://alice.*
  --key-id <id>      id of the key; by default made from the first agent
  --expires-at <t>   when it expires, such as 2027-06-01T00:00:00Z; by default never
  --alg <name>       new only: ed25519 (the default; the relay has no secret) or hmac-sha256, which is always listed

Options of new-issuer, add-issuer and remove-issuer
  --issuer <name>    new-issuer: name of the issuer, the claim iss of what it signs
  --agents <id>      agents that it may speak for; may be repeated. A namespace: 'agent://acme.*'. '*': all that no other key
                     or issuer speaks for. A known issuer keeps its agents. add-issuer: by default those of the record
  --expires-at <t>   new-issuer: when the key expires, and with it what it signed; by default never
  --out <path>       new-issuer: file for the private key, never overwritten; by default issuer.json beside the keys file
  --key <id>         remove-issuer: the key to remove, as list shows it

Options of revoke
  --agent <id>            agent whose credentials are revoked, or '*' for all of the issuer's
  --issued-before <t>     now, or a time that is past; newer credentials hold. now reaches 60 seconds ahead, as the clocks of
                          issuers may be: new can issue at once, others a minute later
  --issuer <name>         issuer of the credentials; by default whoever speaks for the agent

All commands but list
  --wait <seconds>   how long to wait until it is in force at the relay that runs; by default 10, 0 = not at all
  --url <url>        that relay, of which one gateway and one connector are asked; by default RELAY_URL, or else
                     http://127.0.0.1:8080; RELAY_HTTP_URL as in relay --help

All commands
  --file <path>      keys file; by default RELAY_KEYS_FILE, or else the development keys of npm start
  --help             this text

Standard output has only data: the list, the key file of new --listed, the API key. In a script use npm run --silent keys. Keep no
copy of a listed key's secret. Those of issuers and their agents go to files that only you may read. A relay loads a change within 5
seconds. To rotate a listed key: make a new one, give it to the agent, revoke the old one. To renew a credential: relay issue, then
relay credential (docs/operations.md). new makes new keys, which open nothing that was sealed before.

Exit codes: 0 done, also if no relay answers, 1 refused (file unchanged), 2 invalid command line, 3 done, but not in force in time.
`;
