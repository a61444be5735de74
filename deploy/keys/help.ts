/** The help pages of \`npm run keys\`. Each has at most 25 lines of 80 columns. */

/** What \`npm run keys -- --help\` prints. */
export const USAGE = `Usage: npm run keys -- <command> [options]. <command> --help shows one command.
Manages the keys, the API keys and the issuers of the relay.

Commands:
  new            make an agent's keys and a credential; --listed: a listed key
  new-api-key    make an API key for the gateway's x-api-key header
  add            add a key that its agent made
  revoke         revoke a key, or the credentials of an agent
  new-issuer     make an issuer, or one more key of an issuer, and admit it
  add-issuer     admit the issuer of an organisation, or its new keys
  remove-issuer  remove an issuer, or one of its keys
  list           list keys, issuers and revocations, without secrets

Options of every command:
  --file PATH     keys file; default RELAY_KEYS_FILE or npm start's keys
  --wait SECONDS  how long until it is in force; default 10, 0 does not wait
  --url URL       the relay; default RELAY_URL or http://127.0.0.1:8080

Examples:
  npm run keys -- new --agent agent://alice
  npm run keys -- revoke alice-0ff9df

Exit codes: 0 done, 1 refused, 2 invalid command line, 3 not in force in time.
Reference: docs/operations.md#keys
`;

/** What \`npm run keys -- <command> --help\` prints. */
export const PAGES: ReadonlyMap<string, string> = new Map([
  [
    "new",
    `Usage: npm run keys -- new --agent ID [options]

Make an agent's keys and issue a credential for them, into a new file.

Options:
  --agent ID          the agent
  --days N            how long the credential holds, 1 to 90; default 30
  --issuer-file PATH  the issuer that signs; default issuer.json beside the keys
                      file, or npm start's issuer
  --out PATH          the new file; default <name>.json beside the keys file
  --listed            make a key that the keys file lists; print its key file

Options with --listed:
  --agent ID          may be repeated; a namespace is agent://alice.*
  --key-id ID         default made from the first agent
  --expires-at TIME   such as 2027-06-01T00:00:00Z; default never
  --alg NAME          ed25519 (default), or hmac-sha256, which is always listed

Examples:
  npm run keys -- new --agent agent://alice
  npm run --silent keys -- new --listed --agent agent://alice > alice.json

Reference: docs/operations.md#keys
`,
  ],
  [
    "new-api-key",
    `Usage: npm run keys -- new-api-key --agent ID [options]

Make an API key for the gateway's x-api-key header, and print it once.

Options:
  --agent ID         the agent; may be repeated; a namespace is agent://alice.*
  --key-id ID        default made from the first agent
  --expires-at TIME  such as 2027-06-01T00:00:00Z; default never

Examples:
  npm run keys -- new-api-key --agent agent://alice
  npm run --silent keys -- new-api-key --agent 'agent://alice.*'

Reference: docs/operations.md#keys
`,
  ],
  [
    "add",
    `Usage: npm run keys -- add [record.json]

Add a key that its agent made, by the record that relay keygen printed.

Without a file it reads the record from standard input. The private key stays
with the agent. A key that was added before is accepted again.

Examples:
  npm run keys -- add record.json
  relay keygen --agent agent://carol | npm run keys -- add

Reference: docs/operations.md#keys
`,
  ],
  [
    "revoke",
    `Usage: npm run keys -- revoke <id>
       npm run keys -- revoke --agent ID --issued-before TIME [options]

Revoke a key by its id, or the credentials that an agent has.

Options:
  --agent ID            the agent, or '*' for all agents of the issuer
  --issued-before TIME  now, or a past time; later credentials stay valid.
                        now reaches 60 s ahead, because clocks differ. Issue
                        again with new at once, with other tools after 61 s
  --issuer NAME         default the issuer that speaks for the agent

Examples:
  npm run keys -- revoke alice-0ff9df
  npm run keys -- revoke --agent agent://bob --issued-before now

Reference: docs/operations.md#issuers
`,
  ],
  [
    "new-issuer",
    `Usage: npm run keys -- new-issuer --issuer NAME [options]

Make an issuer, or one more key of a known issuer, and admit it.

Options:
  --issuer NAME      the issuer's name, the claim iss of its credentials
  --agents ID        an agent that it may speak for; may be repeated.
                     A namespace is 'agent://acme.*'. '*' means all agents that
                     no other key or issuer speaks for. A known issuer keeps its
                     agents.
  --expires-at TIME  when its key and what it signed expire; default never
  --out PATH         the private file; default issuer.json beside the keys file

Examples:
  npm run keys -- new-issuer --issuer acme --agents '*'
  npm run keys -- new-issuer --issuer acme --out issuer-2.json

Reference: docs/operations.md#issuers
`,
  ],
  [
    "add-issuer",
    `Usage: npm run keys -- add-issuer [record.json] [options]

Admit the issuer of an organisation by its public record, or take its new keys.

Without a file it reads the record from standard input.

Options:
  --agents ID  an agent that it may speak for; may be repeated; default the
               agents of the record

Examples:
  npm run keys -- add-issuer acme.json
  npm run keys -- add-issuer acme.json --agents 'agent://acme.*'

Reference: docs/operations.md#issuers
`,
  ],
  [
    "remove-issuer",
    `Usage: npm run keys -- remove-issuer <name> [options]

Remove an issuer, or one of its keys.

Options:
  --key ID  the key to remove, as list shows it; default the whole issuer

Examples:
  npm run keys -- remove-issuer acme
  npm run keys -- remove-issuer acme --key R3RuTAc5rLGL3MoZpVf2

Reference: docs/operations.md#issuers
`,
  ],
]);
