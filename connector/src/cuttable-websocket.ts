/** A websocket of the platform. */
export interface CuttableWebSocket {
  readonly websocket: WebSocket;
  /**
   * Ends its connection without the peer, where the platform is Node: Node's websocket waits for the peer without limit, and the
   * process with it.
   */
  readonly cut: () => void;
}

/** What is used of undici, which Node's websocket is made of: this package compiles without its types. */
interface Dispatcher {
  dispatch(options: object, handler: Handler): boolean;
}

type Handler = Record<string, unknown>;
type Connection = { destroy(): void };

/** Where undici keeps the dispatcher of all who name none. */
const GLOBAL_DISPATCHER = Symbol.for("undici.globalDispatcher.1");
/** Undici calls one of these, by its version, with the connection as the last argument once that is a websocket's. */
const UPGRADED = ["onUpgrade", "onRequestUpgrade"];

/** Some edges announce websockets over HTTP/2 and then do not serve them. Undici of Node 26 would not try HTTP/1.1 there. */
const OVER_HTTP_1 = { allowH2: false };

/** Undefined where the platform refuses it: a page on https may not open ws. */
export function openWebSocket(url: string): CuttableWebSocket | undefined {
  let connection: Connection | undefined;
  try {
    // Node makes the dispatcher when the class is read first.
    const { WebSocket } = globalThis;
    const dispatcher = globalDispatcher();
    const telling =
      dispatcher &&
      tellingDispatcher(dispatcher, (opened) => {
        connection = opened;
      });
    const websocket = (telling && websocketOver(url, telling)) ?? new WebSocket(url);
    return { websocket, cut: () => connection?.destroy() };
  } catch {
    return undefined;
  }
}

/** Undefined where the class is not Node's, such as jsdom's: it takes protocols alone. */
function websocketOver(url: string, dispatcher: Dispatcher): WebSocket | undefined {
  try {
    return new WebSocket(url, { dispatcher } as never);
  } catch {
    return undefined;
  }
}

function globalDispatcher(): Dispatcher | undefined {
  return (globalThis as { [GLOBAL_DISPATCHER]?: Dispatcher })[GLOBAL_DISPATCHER];
}

/** Dispatches as the given one does, and tells the connection of what was upgraded. */
function tellingDispatcher(dispatcher: Dispatcher, tell: (connection: Connection) => void): Dispatcher {
  const dispatch = (options: object, handler: Handler) => {
    const heard: Handler = Object.create(handler);
    for (const name of UPGRADED) {
      const upgraded = handler[name];
      if (typeof upgraded !== "function") continue;
      heard[name] = (...given: readonly unknown[]) => {
        tell(given.at(-1) as Connection);
        return upgraded.apply(heard, given);
      };
    }
    return dispatcher.dispatch({ ...options, ...OVER_HTTP_1 }, heard);
  };
  return { dispatch };
}
