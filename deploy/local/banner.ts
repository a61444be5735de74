/** What `npm start` and `npm run start:cluster` print. */
export interface Started {
  /** Without a slash at its end. */
  readonly baseUrl: string;
  /** Full address of the websocket, path included. */
  readonly websocketUrl: string;
  /** The development API key of agent://alice; undefined when the keys come from RELAY_KEYS_FILE. */
  readonly apiKey: string | undefined;
  /** RELAY_KEYS_FILE, where the keys come from it. */
  readonly keysFile: string | undefined;
  /** Process ids of each primary of its own Redis Cluster, and of its replica; undefined when it has none. */
  readonly shards: readonly (readonly [primary: number, replica: number])[] | undefined;
}

/** The URL that the command `relay` uses by default. */
const DEFAULT_URL = "http://127.0.0.1:8080";
const PAYLOAD = '{"message":"Hello, Bob."}';
const REQUEST = '{"from":"agent://alice","to":"agent://bob","message":"Hello, Bob."}';

/** The text printed when the relay is up: addresses, and commands that send a first message. */
export function banner(started: Started): string {
  const sending = started.apiKey === undefined ? howToMakeAKey(started) : firstMessage(started, started.apiKey);
  const failing = started.shards === undefined ? "" : `\n${failover(started.shards)}`;
  return `
Agent Relay is up.

  HTTP       ${started.baseUrl}
  websocket  ${started.websocketUrl}
${elsewhere(started)}
${sending}${failing}
Ctrl-C stops it.
`;
}

/** Commands look for the relay at its default address. */
function elsewhere({ baseUrl }: Started): string {
  if (baseUrl === DEFAULT_URL) return "";
  return `
In each other terminal first, for relay and npm run keys:

  export RELAY_URL=${baseUrl}
`;
}

function howToMakeAKey({ baseUrl, keysFile }: Started): string {
  return `The keys come from ${keysFile}. To make one:

  npm run keys -- new-api-key --agent agent://<name> --file ${keysFile} --url ${baseUrl}
`;
}

function firstMessage({ baseUrl }: Started, apiKey: string): string {
  const url = baseUrl === DEFAULT_URL ? "" : ` --url ${baseUrl}`;
  return `Listen as agent://bob, in another terminal:

  npx --no relay listen --key .local/bob.json${url}

Send him a message as agent://alice, in a third:

  npx --no relay send --key .local/alice.json${url} agent://bob '${PAYLOAD}'

Or over HTTP, with her development API key ${apiKey}:

  curl -sS ${baseUrl}/v1/messages/send -H 'content-type: application/json' -H 'x-api-key: ${apiKey}' -d '${REQUEST}'
`;
}

function failover(shards: NonNullable<Started["shards"]>): string {
  const pairs = shards.map(([primary, replica]) => `  ${primary}, its replica ${replica}`).join("\n");
  return `Redis is a cluster of three primaries and three replicas, as processes:

${pairs}

End a primary, and its replica takes over within seconds:

  kill -KILL ${shards[0]?.[0]}

It is for trying: a node that ended does not come back until all is started again.
`;
}
