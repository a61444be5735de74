/** Peers at their best: the options that their programs are given, and that the report shows. */

/** ioredis, in every peer: what one turn of the event loop asks leaves in one write, and is answered in one read. */
export const REDIS_CLIENT = { enableAutoPipelining: true } as const;

/** ws, in the bare relay. */
export const WEBSOCKETS = { perMessageDeflate: false, clientTracking: false } as const;

/** Socket.IO, with either adapter. */
export const SOCKET_IO = { transports: ["websocket"], perMessageDeflate: false } as const;

/** Its sharded adapter. */
export const SHARDED_ADAPTER = { subscriptionMode: "dynamic" } as const;

/** Threads of ours that verify, and so of the bare verification: one a core, and no more than so many. */
export const MAX_VERIFICATION_THREADS = 4;
