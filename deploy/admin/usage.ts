export const USAGE = `Asks the admin listeners of ws-connector pods (ADMIN_PORT): for the operator alone.

  npm run admin -- counts                    the window, its agents by presence, and what each pod has
  npm run admin -- agents --key <id>         the agents of a signing key, over the whole window; or of an issuer:
                  agents --issuer <id>       those of its credentials. At most 1000, those seen last first
  npm run admin -- disconnect agent://bob    closes the connection of an agent, wherever it is: the agents on it go too, and
                                             connectors come back at once. To keep an agent out revoke its key
  npm run admin -- noisiest [--limit <n>]    keys, issuers and agents of issuers that sent most in the last minute or two, and
                                             who was refused most since the pods started

Options
  --url <url,…>       admin listeners of pods, of which the first that answers tells of the window, and all are added up;
                      by default that of ADMIN_PORT on this machine, or http://127.0.0.1:9092
  --key-file <path>   file with their key; by default RELAY_ADMIN_KEY_FILE
  --limit <n>         noisiest: how many of each, 1 to 100; by default 10
  --json              prints JSON in place of tables
  --help              this text

Each command is a line in the audit log of the pods that it asks.

agents and disconnect ask one pod after the other, until one answers.

Exit codes: 0 done, 1 refused, or a pod gave no answer: what the others say is printed, 2 invalid command line.
`;
