import type { AttemptFailure, FailedRequest, RefusedUpgrade } from "./network-errors.ts";

/** A websocket of the platform. */
export interface CuttableWebSocket {
  readonly websocket: WebSocket;
  /**
   * Ends its connection without the peer, where the platform is Node: Node's websocket waits for the peer without limit, and the
   * process with it.
   */
  readonly cut: () => void;
  /** Why it could not be opened, which the platform tells nobody. Undefined where the platform is not Node, or it was opened. */
  readonly failure: () => AttemptFailure | undefined;
}

/** What is used of undici, which Node's websocket is made of: this package compiles without its types. */
interface Dispatcher {
  dispatch(options: object, handler: Handler): boolean;
}

type Handler = Record<string, unknown>;
type Listener = (...given: never) => unknown;
type Connection = { destroy(): void };

/** Where undici keeps the dispatcher of all who name none. */
const GLOBAL_DISPATCHER = Symbol.for("undici.globalDispatcher.1");

/** Some edges announce websockets over HTTP/2 and then do not serve them. Undici of Node 26 would not try HTTP/1.1 there. */
const OVER_HTTP_1 = { allowH2: false };

/** Undefined where the platform refuses it: a page on https may not open ws. */
export function openWebSocket(url: string): CuttableWebSocket | undefined {
  let connection: Connection | undefined;
  let failure: AttemptFailure | undefined;
  const upgraded = (...given: readonly unknown[]) => {
    connection = given.at(-1) as Connection;
  };
  const failed = (reason: AttemptFailure) => {
    failure ??= reason;
  };
  try {
    // Node makes the dispatcher when the class is read first.
    const { WebSocket } = globalThis;
    const dispatcher = globalDispatcher();
    const telling = dispatcher && tellingDispatcher(dispatcher, listenersOf(upgraded, failed));
    const websocket = (telling && websocketOver(url, telling)) ?? new WebSocket(url);
    return { websocket, cut: () => connection?.destroy(), failure: () => failure };
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

/** Dispatches as the given one does, and has these listeners hear what its handlers hear. */
function tellingDispatcher(dispatcher: Dispatcher, listeners: Readonly<Record<string, Listener>>): Dispatcher {
  const dispatch = (options: object, handler: Handler) => {
    const heard: Handler = Object.create(handler);
    for (const [name, listener] of Object.entries(listeners)) {
      const own = handler[name];
      if (typeof own !== "function") continue;
      heard[name] = (...given: never) => {
        listener(...given);
        return own.apply(heard, given);
      };
    }
    return dispatcher.dispatch({ ...options, ...OVER_HTTP_1 }, heard);
  };
  return { dispatch };
}

/** By the names of undici's handlers: those up to version 7, and those from version 8 on. */
function listenersOf(
  upgraded: (...given: readonly unknown[]) => void,
  failed: (reason: AttemptFailure) => void,
): Readonly<Record<string, Listener>> {
  return {
    // The connection is the last argument.
    onUpgrade: upgraded,
    onRequestUpgrade: upgraded,
    onHeaders: (status: number, headers: readonly unknown[]) => failed({ status, headers: headersIn(headers) }),
    onResponseStart: (_: unknown, status: number, headers: RefusedUpgrade["headers"]) => failed({ status, headers }),
    onError: (error: FailedRequest) => failed(error),
    onResponseError: (_: unknown, error: FailedRequest) => failed(error),
  };
}

/** From names and values in turn. */
function headersIn(raw: readonly unknown[]): RefusedUpgrade["headers"] {
  const names = raw.filter((_, index) => index % 2 === 0);
  return Object.fromEntries(names.map((name, index) => [String(name).toLowerCase(), String(raw[index * 2 + 1])]));
}
